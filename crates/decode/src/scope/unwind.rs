//! How to find what a call returns to, as the kernel's own tables say it (ORC), so far as the plugin
//! follows it: from the stack pointer or the base pointer alone.

use wakescope_core::budget::Budget;

use super::ScopeError;
use super::memory::Memory;
use super::symbols::Symbol;

/// Any function that every kernel has. Where it begins, a call has just stored what it returns to.
const A_FUNCTION: &str = "hrtimer_wakeup";

/// The register that the caller's stack is told from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Unknown,
    Sp,
    Bp,
}

impl Base {
    /// As the plugin numbers them.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Sp => 1,
            Self::Bp => 2,
        }
    }

    pub(super) fn of_number(text: &str) -> Option<Self> {
        let all = [Self::Unknown, Self::Sp, Self::Bp];
        all.into_iter().find(|base| text == base.number().to_string())
    }
}

/// What holds from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unwind {
    pub(super) from: u64,
    /// From the register to where the caller's stack begins.
    pub(super) offset: i16,
    pub(super) base: Base,
}

/// All entries, in order; none if the kernel has no such tables, or has them in another form.
pub(super) fn find(
    memory: &Memory,
    symbols: &[Symbol],
    budget: &Budget,
) -> Result<Vec<Unwind>, ScopeError> {
    let at = |name: &str| symbols.iter().find(|symbol| symbol.name == name).map(|s| s.address);
    let known = || {
        let (places, end) = (at("__start_orc_unwind_ip")?, at("__stop_orc_unwind_ip")?);
        Some((places, end.checked_sub(places)? / 4, at("__start_orc_unwind")?, at(A_FUNCTION)?))
    };
    let Some((places, count, entries, function)) = known() else { return Ok(Vec::new()) };
    budget.take(count, "entries of unwind tables")?;
    let entry = |number: u64| {
        let from = places + 4 * number;
        let from = from.wrapping_add_signed(memory.i32(from)?.into());
        let bytes = memory.from(entries + 6 * number)?.get(..6)?;
        Some((from, <[u8; 6]>::try_from(bytes).ok()?))
    };
    let all: Vec<(u64, [u8; 6])> = (0..count).map_while(entry).collect();
    let is_sorted = all.windows(2).all(|pair| pair[0].0 <= pair[1].0);
    let before = all.partition_point(|(from, _)| *from <= function);
    let first = before.checked_sub(1).map(|number| all[number].1);
    let Some(form) = first.and_then(Form::with_start_of_function).filter(|_| is_sorted) else {
        return Ok(Vec::new());
    };
    Ok(all.into_iter().map(|(from, entry)| form.unwind(from, entry)).collect())
}

/// How kernels number registers and kinds of entries.
#[derive(Clone, Copy)]
struct Form {
    sp: u8,
    /// Up to 6.3 kinds have two bits, and a call is 0. Since 6.4 they have three, and a call is 2.
    call: u8,
    kinds: u8,
}

/// The number of the base pointer in all kernels so far.
const BP: u8 = 4;

impl Form {
    /// That in which `entry` says that what a call returns to lies at the stack pointer. The register's
    /// number is 5 in 6.1 and 3 in 7.2.
    fn with_start_of_function(entry: [u8; 6]) -> Option<Self> {
        let [8, 0, _, _, registers, kind] = entry else { return None };
        let sp = Some(registers & 0xf).filter(|&register| register != 0)?;
        let form = match (kind & 7, kind & 3) {
            (2, _) => Self { sp, call: 2, kinds: 7 },
            (_, 0) => Self { sp, call: 0, kinds: 3 },
            _ => return None,
        };
        Some(form)
    }

    fn unwind(self, from: u64, entry: [u8; 6]) -> Unwind {
        let offset = i16::from_le_bytes([entry[0], entry[1]]);
        let base = match entry[4] & 0xf {
            _ if entry[5] & self.kinds != self.call => Base::Unknown,
            register if register == self.sp => Base::Sp,
            BP => Base::Bp,
            _ => Base::Unknown,
        };
        Unwind { from, offset, base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_kernels_write_them() {
        // The start of a function, an entry of it, and what that says: in 6.1, 6.12 and 7.2.
        let cases: [([u8; 6], [u8; 6], Base, i16); 8] = [
            ([8, 0, 0, 0, 5, 0], [24, 0, 0, 0, 5, 0], Base::Sp, 24),
            ([8, 0, 0, 0, 5, 0], [16, 0, 0xf0, 0xff, 0x14, 0], Base::Bp, 16),
            // All registers of an interrupt, not a call.
            ([8, 0, 0, 0, 5, 0], [0, 0, 0, 0, 5, 1], Base::Unknown, 0),
            ([8, 0, 0, 0, 5, 2], [32, 0, 0, 0, 5, 2], Base::Sp, 32),
            ([8, 0, 0, 0, 5, 2], [32, 0, 0, 0, 5, 0], Base::Unknown, 32),
            ([8, 0, 0, 0, 3, 2], [0x18, 0, 0, 0, 3, 2], Base::Sp, 24),
            ([8, 0, 0, 0, 3, 2], [16, 0, 0xf0, 0xff, 0x84, 2], Base::Bp, 16),
            ([8, 0, 0, 0, 3, 2], [0, 0, 0, 0, 0, 0], Base::Unknown, 0),
        ];
        for (start, entry, base, offset) in cases {
            let form = Form::with_start_of_function(start).unwrap();
            assert_eq!(form.unwind(7, entry), Unwind { from: 7, offset, base }, "{entry:?}");
        }
        for start in [[0; 6], [16, 0, 0, 0, 5, 0], [8, 0, 0, 0, 0, 2], [8, 0, 0, 0, 5, 1]] {
            assert!(Form::with_start_of_function(start).is_none(), "{start:?}");
        }
    }
}
