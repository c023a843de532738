//! How to leave a function, as the kernel's tables say it (ORC, arch/x86/include/asm/orc_types.h).

/// From a place in code to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Where the stack of the caller begins, or the registers are.
    pub(super) base: Base,
    pub(super) sp_offset: i16,
    pub(super) bp: CallerBp,
    pub(super) bp_offset: i16,
    pub(super) kind: Kind,
}

/// What a distance is told from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Sp,
    Bp,
    /// What lies where the stack pointer points to; then the distance.
    AtSp,
    /// What lies at the distance from the base pointer.
    AtBp,
    /// These registers themselves.
    R10,
    R13,
    Di,
    Dx,
}

/// Where the caller's base pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallerBp {
    Same,
    /// Told from where the stack of the caller begins.
    AtOuter,
    /// Told from the base pointer.
    AtBp,
}

/// What lies there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Before it, the address that a call returns to.
    Call,
    /// All registers.
    Registers,
    /// What the processor saves by itself.
    Return,
}

/// How kernels number kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Up to 6.3: two bits.
    TwoBits,
    /// Since 6.4: three bits.
    ThreeBits,
}

/// Bytes of an entry.
pub(super) const BYTES: u64 = 6;

impl Format {
    /// That in which `entry` is what the first instruction of a function has: a call has just put the
    /// address that it returns to onto the stack.
    pub(super) fn with_start_of_function(entry: [u8; 6]) -> Option<Self> {
        let at_start = |format: &Self| {
            let rule = format.rule(entry)?;
            let is_start = rule.kind == Kind::Call && rule.base == Base::Sp && rule.sp_offset == 8;
            is_start.then_some(*format)
        };
        [Self::TwoBits, Self::ThreeBits].iter().find_map(at_start)
    }

    /// What an entry says; `None` where a stack ends, or nothing is known.
    pub(super) fn rule(self, entry: [u8; 6]) -> Option<Rule> {
        let [sp_low, sp_high, bp_low, bp_high, registers, kind] = entry;
        Some(Rule {
            base: base(registers & 0xf)?,
            sp_offset: i16::from_le_bytes([sp_low, sp_high]),
            bp: caller_bp(registers >> 4)?,
            bp_offset: i16::from_le_bytes([bp_low, bp_high]),
            kind: self.kind(kind)?,
        })
    }

    fn kind(self, bits: u8) -> Option<Kind> {
        let number = match self {
            Self::TwoBits => bits & 3,
            // 0 is for what is not known, 1 for the end of the stack.
            Self::ThreeBits => (bits & 7).checked_sub(2)?,
        };
        match number {
            0 => Some(Kind::Call),
            1 => Some(Kind::Registers),
            2 => Some(Kind::Return),
            _ => None,
        }
    }
}

fn base(number: u8) -> Option<Base> {
    Some(match number {
        2 => Base::Dx,
        3 => Base::Di,
        4 => Base::Bp,
        5 => Base::Sp,
        6 => Base::R10,
        7 => Base::R13,
        8 => Base::AtBp,
        9 => Base::AtSp,
        _ => return None,
    })
}

fn caller_bp(number: u8) -> Option<CallerBp> {
    match number {
        0 => Some(CallerBp::Same),
        1 => Some(CallerBp::AtOuter),
        4 => Some(CallerBp::AtBp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_kernels_write_them() {
        let call = |sp_offset| Rule {
            base: Base::Sp,
            sp_offset,
            bp: CallerBp::Same,
            bp_offset: 0,
            kind: Kind::Call,
        };
        let framed = Rule {
            base: Base::Bp,
            sp_offset: 16,
            bp: CallerBp::AtOuter,
            bp_offset: -16,
            kind: Kind::Call,
        };
        let registers = Rule { kind: Kind::Registers, ..call(0) };
        for (entry, two, three) in [
            // sp at 8; a call in the older format, not known in the newer one.
            ([8, 0, 0, 0, 0x05, 0], Some(call(8)), None),
            ([8, 0, 0, 0, 0x05, 2], Some(Rule { kind: Kind::Return, ..call(8) }), Some(call(8))),
            (
                [16, 0, 0xf0, 0xff, 0x14, 2],
                Some(Rule { kind: Kind::Return, ..framed }),
                Some(framed),
            ),
            // The bit that says it is no call: 0x08.
            ([0, 0, 0, 0, 0x05, 0x0b], None, Some(registers)),
            ([0, 0, 0, 0, 0x05, 0x01], Some(registers), None),
            // No register is known to hold it.
            ([0, 0, 0, 0, 0x00, 0x00], None, None),
            ([0, 0, 0, 0, 0x0f, 0x02], None, None),
            ([0, 0, 0, 0, 0x95, 0x02], None, None),
        ] {
            assert_eq!(Format::TwoBits.rule(entry), two, "{entry:x?}");
            assert_eq!(Format::ThreeBits.rule(entry), three, "{entry:x?}");
        }
    }

    #[test]
    fn the_format_is_told_by_how_functions_start() {
        for (entry, format) in [
            ([8, 0, 0, 0, 0x05, 0], Some(Format::TwoBits)),
            ([8, 0, 0, 0, 0x05, 4], Some(Format::TwoBits)),
            ([8, 0, 0, 0, 0x05, 2], Some(Format::ThreeBits)),
            ([16, 0, 0, 0, 0x05, 2], None),
            ([0; 6], None),
        ] {
            assert_eq!(Format::with_start_of_function(entry), format, "{entry:x?}");
        }
    }
}
