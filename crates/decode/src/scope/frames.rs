//! How to find what a call returns to in code for arm64, whose kernels have no tables that say it.
//!
//! A call leaves the return address in a register (x30). A function that calls others stores it with the caller's
//! frame pointer, and has x29 point at both. So the return address is in the register until x29 is set, and again
//! once both are read back. Which of the two it is at an instruction follows from the code before it, whatever way
//! led there. Where two ways disagree nothing is said.

use wakescope_core::budget::Budget;

use super::ScopeError;
use super::memory::Memory;
use super::unwind::{Base, Unwind};

/// Bytes of an instruction.
const STEP: u64 = 4;

/// A part of the code with one entry, in which jumps are followed.
pub(super) struct Function {
    pub(super) start: u64,
    pub(super) end: u64,
    /// What holds at its beginning: where a call has just come in, the register.
    pub(super) entry: Base,
}

/// What an instruction does to the frame, and where the code goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Nothing, and goes on behind it.
    Next,
    /// x29 points at the stored pair from here on.
    SetsFrame,
    /// The stored pair is read back.
    RestoresFrame,
    /// Calls a function, which leaves another return address in x30.
    Calls,
    /// Goes on at so many instructions from here.
    Jumps(i64),
    /// The same, or behind it.
    Branches(i64),
    /// Goes on where a register says.
    JumpsByRegister,
    /// Is left.
    Ends,
}

/// A signed number of `bits` bits from bit `from` on.
fn signed(word: u32, from: u32, bits: u32) -> i64 {
    let number = i64::from(word >> from & ((1 << bits) - 1));
    if number >> (bits - 1) == 0 { number } else { number - (1 << bits) }
}

fn effect(word: u32) -> Effect {
    match word {
        _ if word & 0xfc00_0000 == 0x1400_0000 => Effect::Jumps(signed(word, 0, 26)),
        _ if word & 0xfc00_0000 == 0x9400_0000 => Effect::Calls,
        _ if word & 0xff00_0000 == 0x5400_0000 => Effect::Branches(signed(word, 5, 19)),
        _ if word & 0x7e00_0000 == 0x3400_0000 => Effect::Branches(signed(word, 5, 19)),
        _ if word & 0x7e00_0000 == 0x3600_0000 => Effect::Branches(signed(word, 5, 14)),
        _ if word & 0xffff_fc1f == 0xd61f_0000 => Effect::JumpsByRegister,
        _ if word & 0xffff_fc1f == 0xd63f_0000 => Effect::Calls,
        // ret and eret.
        _ if word & 0xffff_fc1f == 0xd65f_0000 || word == 0xd69f_03e0 => Effect::Ends,
        // add x29, sp, #number
        _ if word & 0xffc0_03ff == 0x9100_03fd => Effect::SetsFrame,
        // ldp x29, x30, of the stack, with or without moving it.
        _ if word & 0xfe40_7fff == 0xa840_7bfd => Effect::RestoresFrame,
        _ => Effect::Next,
    }
}

/// What holds behind an instruction before which this did.
fn after(base: Base, effect: Effect) -> Base {
    match effect {
        Effect::SetsFrame => Base::Frame,
        Effect::RestoresFrame => Base::Link,
        Effect::Calls if base == Base::Link => Base::Unknown,
        _ => base,
    }
}

/// What holds from each place on at which that changes, in order. `jumps` are further ways from one instruction to
/// another, in order: those that the kernel patches into its code and out of it.
pub(super) fn find(
    memory: &Memory,
    functions: &[Function],
    jumps: &[(u64, u64)],
    budget: &Budget,
) -> Result<Vec<Unwind>, ScopeError> {
    let mut all = Vec::new();
    for function in functions {
        let length = function.end.saturating_sub(function.start) & !(STEP - 1);
        budget.take(length, "bytes of code")?;
        let code = usize::try_from(length).ok();
        let code = code.and_then(|length| memory.from(function.start)?.get(..length));
        let words = code.unwrap_or_default().chunks_exact(4);
        let words = words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let words: Vec<u32> = words.collect();
        let first = jumps.partition_point(|(from, _)| *from < function.start);
        let last = jumps.partition_point(|(from, _)| *from < function.end);
        let place =
            |address: u64| usize::try_from(address.checked_sub(function.start)? / STEP).ok();
        let jumps = jumps[first..last].iter();
        let jumps = jumps.filter_map(|&(from, to)| Some((place(from)?, place(to)?))).collect();
        let mut from = function.start;
        let mut before = None;
        for base in (Flow { words: &words, jumps }).bases(function.entry) {
            if before != Some(base) {
                all.push(Unwind { from, offset: 0, base });
                before = Some(base);
            }
            from += STEP;
        }
    }
    Ok(all)
}

/// The ways through a function, in places of its instructions.
struct Flow<'a> {
    words: &'a [u32],
    jumps: Vec<(usize, usize)>,
}

impl Flow<'_> {
    /// What holds before each instruction.
    fn bases(&self, entry: Base) -> Vec<Base> {
        let mut bases = vec![None; self.words.len()];
        let mut by_register = None;
        self.follow(0, entry, &mut bases, &mut by_register);
        // Nobody says where a jump by a register leads: in this function to what nothing else does.
        if let Some(base) = by_register {
            for place in 0..self.words.len() {
                if bases[place].is_none() {
                    self.follow(place, base, &mut bases, &mut None);
                }
            }
        }
        bases.into_iter().map(|base| base.unwrap_or(Base::Unknown)).collect()
    }

    /// Follows all ways from `place` on, before which `base` holds.
    fn follow(
        &self,
        place: usize,
        base: Base,
        bases: &mut [Option<Base>],
        by_register: &mut Option<Base>,
    ) {
        let mut open = vec![(place, base)];
        while let Some((place, base)) = open.pop() {
            let Some(known) = bases.get_mut(place) else { continue };
            let base = match *known {
                Some(known) if known == base || known == Base::Unknown => continue,
                Some(_) => Base::Unknown,
                None => base,
            };
            *known = Some(base);
            let effect = effect(self.words[place]);
            let base = after(base, effect);
            let mut go = |to: usize| open.push((to, base));
            let to = |distance: i64| place.checked_add_signed(isize::try_from(distance).ok()?);
            match effect {
                Effect::Jumps(distance) => to(distance).into_iter().for_each(&mut go),
                Effect::Branches(distance) => {
                    to(distance).into_iter().for_each(&mut go);
                    go(place + 1);
                }
                // Where the pair was read back it is the last call of a function.
                Effect::JumpsByRegister if base == Base::Frame => *by_register = Some(base),
                Effect::JumpsByRegister | Effect::Ends => {}
                _ => go(place + 1),
            }
            let first = self.jumps.partition_point(|(from, _)| *from < place);
            let more = self.jumps[first..].iter().take_while(|(from, _)| *from == place);
            for &(_, to) in more {
                go(to);
                go(place + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0xd503_201f;
    const STORE: u32 = 0xa9be_7bfd;
    const SET: u32 = 0x9100_03fd;
    const RESTORE: u32 = 0xa8c2_7bfd;
    const CALL: u32 = 0x9400_0400;
    const RETURN: u32 = 0xd65f_03c0;
    const BY_REGISTER: u32 = 0xd61f_0060;

    /// What holds before each instruction: a letter each.
    fn bases(words: &[u32], jumps: &[(usize, usize)]) -> String {
        let flow = Flow { words, jumps: jumps.to_vec() };
        let letter = |base| match base {
            Base::Link => 'l',
            Base::Frame => 'f',
            _ => '?',
        };
        flow.bases(Base::Link).into_iter().map(letter).collect()
    }

    #[test]
    fn the_return_address_is_where_the_code_has_put_it() {
        // As GNU as writes them.
        let cases: [(&[u32], &str); 7] = [
            (&[NOP, RETURN], "ll"),
            (&[STORE, SET, CALL, RESTORE, RETURN], "llffl"),
            // sub sp; stp x29, x30, [sp, #32]; add x29, sp, #32; …; ldp x29, x30, [sp, #32]; tail call
            (&[0xd100_c3ff, 0xa902_7bfd, 0x9100_83fd, CALL, 0xa942_7bfd, 0x1400_4000], "lllffl"),
            // cbz x0 to behind the return, where the frame still is.
            (&[STORE, SET, 0xb400_0060, RESTORE, RETURN, NOP, CALL], "llfflff"),
            // Half of the ways to the last instruction have set the frame.
            (&[0xb400_0060, STORE, SET, NOP], "lll?"),
            // Calls without having stored anything.
            (&[CALL, NOP], "l?"),
            // A table of jumps.
            (&[STORE, SET, BY_REGISTER, CALL, RESTORE, RETURN], "llfffl"),
        ];
        for (words, want) in cases {
            assert_eq!(bases(words, &[]), want, "{words:08x?}");
        }
    }

    #[test]
    fn jumps_that_are_patched_in_are_followed() {
        let words = [STORE, SET, NOP, RESTORE, RETURN, CALL, 0x17ff_fffd];
        assert_eq!(bases(&words, &[]), "llffl??");
        assert_eq!(bases(&words, &[(2, 5)]), "llfflff");
        // Patched in just now: it may go on behind it.
        let words = [STORE, SET, 0x1400_0003, RESTORE, RETURN, CALL, 0x17ff_fffd];
        assert_eq!(bases(&words, &[(2, 5)]), "llfflff");
    }

    #[test]
    fn any_code_is_read() {
        wakescope_testing::fuzz("arm64-code", &[vec![0; 64]], |bytes| {
            let words = bytes.chunks_exact(4);
            let words: Vec<u32> =
                words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
            assert_eq!(bases(&words, &[(1, 3)]).len(), words.len());
        });
    }
}
