//! How to find what a call returns to, as the kernel's own tables say it (ORC), so far as the plugin
//! follows it: from the stack pointer or the base pointer alone.

use wakescope_core::budget::Budget;

use super::ScopeError;
use super::memory::Memory;
use super::symbols::{Symbol, address};
use crate::orc::{self, Format, Kind};

/// Any function that every kernel has. Where it begins, a call has just stored what it returns to.
const A_FUNCTION: &str = "hrtimer_wakeup";

/// The register that holds an address near the caller's stack, or what a call returns to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Unknown,
    Sp,
    Bp,
    /// What a call returns to is in a register (x30).
    Link,
    /// It is stored behind the caller's frame pointer, where x29 points.
    Frame,
}

impl Base {
    /// As the plugin numbers them.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Sp => 1,
            Self::Bp => 2,
            Self::Link => 3,
            Self::Frame => 4,
        }
    }

    pub(super) fn of_number(text: &str) -> Option<Self> {
        let all = [Self::Unknown, Self::Sp, Self::Bp, Self::Link, Self::Frame];
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
    let at = |name: &str| address(symbols, name);
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
    let format = first.and_then(Format::with_start_of_function).filter(|_| is_sorted);
    let Some(format) = format else { return Ok(Vec::new()) };
    Ok(all.into_iter().map(|(from, entry)| unwind(format, from, entry)).collect())
}

fn unwind(format: Format, from: u64, entry: [u8; 6]) -> Unwind {
    let rule = format.rule(entry).filter(|rule| rule.kind == Kind::Call);
    let base = match rule.map(|rule| rule.base) {
        Some(orc::Base::Sp) => Base::Sp,
        Some(orc::Base::Bp) => Base::Bp,
        _ => Base::Unknown,
    };
    Unwind { from, offset: rule.map_or(0, |rule| rule.sp_offset), base }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_kernels_write_them() {
        // An entry, and what it says.
        let cases: [(Format, [u8; 6], Base, i16); 6] = [
            (Format::TwoBits, [24, 0, 0, 0, 5, 0], Base::Sp, 24),
            (Format::TwoBits, [16, 0, 0xf0, 0xff, 0x14, 0], Base::Bp, 16),
            // All registers of an interrupt, not a call.
            (Format::TwoBits, [0, 0, 0, 0, 5, 1], Base::Unknown, 0),
            (Format::Renumbered, [0x18, 0, 0, 0, 3, 2], Base::Sp, 24),
            (Format::Renumbered, [16, 0, 0xf0, 0xff, 0x84, 2], Base::Bp, 16),
            (Format::Renumbered, [0, 0, 0, 0, 0, 0], Base::Unknown, 0),
        ];
        for (format, entry, base, offset) in cases {
            assert_eq!(unwind(format, 7, entry), Unwind { from: 7, offset, base }, "{entry:?}");
        }
    }
}
