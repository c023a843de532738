//! Programs that are made to be hard to read.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::functions_of_program;

const HEADER: usize = 64;
const SEGMENT: usize = 56;

/// A function of a program: where it begins, its size, and where its name begins in the table.
type Symbol = (u64, u64, u32);

/// A file of functions with names out of `names`. Addresses are what lies in the file, from its
/// beginning up to `reach`.
fn program(symbols: &[Symbol], names: &[u8], reach: u64) -> Vec<u8> {
    let table = HEADER + SEGMENT;
    let strings = table + 24 * symbols.len();
    let sections = (strings + names.len()).next_multiple_of(8);
    let mut bytes = Vec::with_capacity(sections + 3 * 64);
    let half = |bytes: &mut Vec<u8>, values: &[u16]| {
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend(value.to_le_bytes());
    let long = |bytes: &mut Vec<u8>, values: &[u64]| {
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    bytes.extend(*b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    half(&mut bytes, &[2, 62]);
    word(&mut bytes, 1);
    long(&mut bytes, &[0, HEADER as u64, sections as u64]);
    word(&mut bytes, 0);
    half(&mut bytes, &[64, 56, 1, 64, 3, 2]);
    // One segment, which is loaded, readable and executable.
    word(&mut bytes, 1);
    word(&mut bytes, 5);
    long(&mut bytes, &[0, 0, 0, reach, reach, 4096]);
    for &(start, size, name) in symbols {
        word(&mut bytes, name);
        bytes.extend([0x12, 0, 1, 0]);
        long(&mut bytes, &[start, size]);
    }
    bytes.extend(names);
    // Tables that are not aligned are not read.
    bytes.resize(sections, 0);
    bytes.extend([0; 64]);
    for (kind, at, size, link, entry) in
        [(2, table, strings - table, 2, 24), (3, strings, names.len(), 0, 0)]
    {
        word(&mut bytes, 0);
        word(&mut bytes, kind);
        long(&mut bytes, &[0, 0, at as u64, size as u64]);
        word(&mut bytes, link);
        word(&mut bytes, 0);
        long(&mut bytes, &[1, entry]);
    }
    bytes
}

/// What [`functions_of_program`] gives, by what it is defined by.
fn nearest(symbols: &[Symbol], offset: u64) -> Option<(String, u64)> {
    let covers = |&&(start, size, _): &&Symbol| {
        let size = if size == 0 { 4096 } else { size };
        start <= offset && offset <= start.saturating_add(size)
    };
    // The first one is empty in every file. Of equals, the last is the greatest, so the order is reversed.
    let symbols = symbols.iter().skip(1).rev();
    let (start, _, name) = symbols.filter(covers).max_by_key(|symbol| symbol.0)?;
    Some((((b'a' + u8::try_from(*name / 2).unwrap()) as char).to_string(), offset - start))
}

proptest! {
    #[test]
    fn the_nearest_function_that_reaches_an_address_has_it(
        symbols in prop::collection::vec((0_u64..400, 0_u64..90, 0_u32..26), 1..40),
        offsets in prop::collection::vec(0_u64..500, 0..20),
    ) {
        let names: Vec<u8> = (b'a'..=b'z').flat_map(|letter| [letter, 0]).collect();
        let symbols: Vec<Symbol> = symbols.iter().map(|&(start, size, name)| (start, size, 2 * name)).collect();
        let found = functions_of_program(&program(&symbols, &names, 450), &offsets);
        let offsets = offsets.iter().filter(|&&offset| offset < 450);
        let want: BTreeMap<u64, (String, u64)> =
            offsets.filter_map(|&offset| Some((offset, nearest(&symbols, offset)?))).collect();
        prop_assert_eq!(found, want);
    }
}

/// Such a file kept `explain` from its end: each of its symbols is nearer than the one before, and
/// what all of them have as their name is as long as the file.
#[test]
fn a_long_name_of_many_symbols_is_read_once_and_not_to_its_end() {
    let names = vec![b'n'; 20 << 20];
    let symbols: Vec<Symbol> = (0..400_000).map(|start| (start, 0x7fff_ffff, 0)).collect();
    let offsets: Vec<u64> = (400_000..404_000).collect();
    let found = functions_of_program(&program(&symbols, &names, 1 << 30), &offsets);
    assert_eq!(found.len(), offsets.len());
    for (offset, (name, into)) in found {
        assert_eq!((name.len(), offset - into), (1024, 399_999));
    }
}

#[test]
fn names_that_are_not_known_are_not_told() {
    let functions = |count: u64, name: u32| {
        let symbols: Vec<Symbol> = (0..count).map(|start| (start, 8, name)).collect();
        functions_of_program(&program(&symbols, b"x\0", 1 << 30), &[1, count - 1])
    };
    assert_eq!(functions(2, 0)[&1], ("x".to_owned(), 0));
    for (count, name, why) in [
        (2, 1, "it is empty"),
        (2, 2, "it lies at the end of the table"),
        (2, u32::MAX, "it lies outside"),
        ((1 << 19) + 1, 0, "there are too many symbols"),
    ] {
        assert!(functions(count, name).is_empty(), "{why}");
    }
    assert_eq!(functions(1 << 19, 0).len(), 2);
}
