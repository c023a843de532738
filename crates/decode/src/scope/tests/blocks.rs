//! Streams and memory that were changed after they were written.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use wakescope_testing::{fuzz, in_blocks};

use super::super::blocks::Blocks;
use super::{
    FORMAT, Form, PAGE, WELL, edges, image, in_block, locks, memory, pages, record, stream,
};
use crate::scope::{Kernel, ScopeError, decode};

const MAGIC: u64 = u64::from_le_bytes(*b"akescope");

/// Two streams and their kernels: of sections, edges and times, and of locks.
fn streams() -> [(Vec<u8>, Kernel); 2] {
    let kernel = Kernel::read(&memory(Form::Before)).unwrap();
    [(stream(&edges::whole()), kernel), (locks::whole(), locks::kernel())]
}

#[test]
fn a_stream_with_any_bit_flipped_is_refused() {
    for (contents, kernel) in streams() {
        let whole = in_block(&contents);
        assert!(decode(&whole, &kernel).is_ok());
        for bit in 0..8 * whole.len() {
            let mut other = whole.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            let refused = decode(&other, &kernel).unwrap_err();
            // Its length may seem to be more than there is.
            let expected = match bit {
                0..32 => matches!(refused, ScopeError::Damaged { .. } | ScopeError::Cut),
                _ => refused == ScopeError::Damaged { at: 8, length: contents.len() },
            };
            assert!(expected, "bit {bit}: {refused}");
        }
        for length in 8..whole.len() {
            assert_eq!(decode(&whole[..length], &kernel), Err(ScopeError::Cut), "{length}");
        }
    }
}

/// All words of a stream in blocks of words.
fn words_of(bytes: &[u8]) -> Result<Vec<u64>, ScopeError> {
    let mut blocks = Blocks::of(bytes, MAGIC)?;
    let mut words = Vec::new();
    while !blocks.are_read() {
        words.push(blocks.word()?);
    }
    Ok(words)
}

proptest! {
    #[test]
    fn what_was_changed_in_any_block_is_refused(
        words in vec(prop_oneof![Just(0), any::<u64>()], 1..300),
        block in 1_usize..60,
        (at, change) in (any::<Index>(), 1_u8..),
        (one, other) in (any::<Index>(), any::<Index>()),
    ) {
        let head = [MAGIC, FORMAT];
        let contents: Vec<u8> = head.iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect();
        let whole = in_blocks(&contents, 8 * block);
        prop_assert_eq!(words_of(&whole), Ok(words));
        let mut damaged = whole.clone();
        let at = at.index(whole.len());
        damaged[at] ^= change;
        let refused = words_of(&damaged);
        match refused {
            // The block is named; but if its length was changed, that is what is named.
            Err(ScopeError::Damaged { at: begin, .. }) => {
                prop_assert!((begin.saturating_sub(8)..begin + 8 * block).contains(&at));
            }
            Err(ScopeError::Cut) => {}
            other => prop_assert!(false, "{:?}", other),
        }
        // A block that is missing, or in another's place.
        let blocks: Vec<&[u8]> = whole.chunks(8 * block + 8).collect();
        let (one, other) = (one.index(blocks.len()), other.index(blocks.len()));
        let mut swapped = blocks.clone();
        swapped.swap(one, other);
        let is_same = swapped.concat() == whole;
        prop_assert_eq!(words_of(&swapped.concat()).is_ok(), is_same);
        let mut fewer = blocks.clone();
        fewer.remove(one);
        let is_last = one + 1 == blocks.len();
        prop_assert_eq!(words_of(&fewer.concat()).is_ok(), is_last && one > 0);
    }

    #[test]
    fn a_kernels_memory_with_a_bit_flipped_is_refused(bit in any::<Index>()) {
        let contents = pages(62, &image(Form::Before));
        // The head, and page after page with their addresses.
        let (head, rest) = contents.split_at(24);
        let whole = in_blocks(&[head, &rest[..2 * (PAGE + 8)], &[0; 8]].concat(), 24 + PAGE + 8);
        let mut damaged = whole.clone();
        let bit = bit.index(8 * whole.len());
        damaged[bit / 8] ^= 1 << (bit % 8);
        let refused = Kernel::read(&damaged).unwrap_err();
        prop_assert!(
            matches!(refused, ScopeError::Damaged { .. } | ScopeError::Cut),
            "{}", refused
        );
    }
}

#[test]
fn fuzz_blocks_of_the_emulator() {
    let (contents, kernel) = streams().into_iter().next().unwrap();
    let end = record(5, &WELL);
    let seeds = [in_block(&contents), in_block(&stream(&end))];
    fuzz("scope-blocks", &seeds, |bytes| {
        // The checksum leaves nothing else to be believed.
        assert!(decode(bytes, &kernel).is_err() || seeds.iter().any(|seed| seed == bytes));
    });
}
