//! How to leave a function, as the kernel's tables say it (ORC, arch/x86/include/asm/orc_types.h).

/// From a place in code to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where the stack of the caller begins, or the registers are.
    pub base: Base,
    /// From the base on, bytes.
    pub sp_offset: i16,
    /// Where the caller's base pointer is.
    pub bp: CallerBp,
    /// From what `bp` says on, bytes.
    pub bp_offset: i16,
    /// What lies where the caller's stack begins.
    pub kind: Kind,
}

/// What a distance is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The stack pointer.
    Sp,
    /// The base pointer.
    Bp,
    /// What lies where the stack pointer points to; then the distance.
    AtSp,
    /// What lies at the distance from the base pointer.
    AtBp,
    /// This register itself.
    R10,
    /// This register itself.
    R13,
    /// This register itself.
    Di,
    /// This register itself.
    Dx,
}

/// Where the caller's base pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerBp {
    /// Still in its register.
    Same,
    /// Told from where the stack of the caller begins.
    AtOuter,
    /// Told from the base pointer.
    AtBp,
}

/// What lies there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Before it, the address that a call returns to.
    Call,
    /// All registers.
    Registers,
    /// What the processor saves by itself.
    Return,
}

/// How kernels number kinds and registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Up to 6.3: two bits.
    TwoBits,
    /// Since 6.4: three bits.
    ThreeBits,
    /// As in 7.2: three bits, and registers have other numbers.
    Renumbered,
}

/// Bytes of an entry.
pub const BYTES: u64 = 6;

impl Format {
    /// That in which `entry` is what the first instruction of a function has: a call has just put the
    /// address that it returns to onto the stack.
    pub fn with_start_of_function(entry: [u8; 6]) -> Option<Self> {
        let at_start = |format: &Self| {
            let rule = format.rule(entry)?;
            let is_start = rule.kind == Kind::Call && rule.base == Base::Sp && rule.sp_offset == 8;
            is_start.then_some(*format)
        };
        [Self::TwoBits, Self::ThreeBits, Self::Renumbered].iter().find_map(at_start)
    }

    /// What an entry says; `None` where a stack ends, or nothing is known.
    pub fn rule(self, entry: [u8; 6]) -> Option<Rule> {
        let [sp_low, sp_high, bp_low, bp_high, registers, kind] = entry;
        Some(Rule {
            base: self.base(registers & 0xf)?,
            sp_offset: i16::from_le_bytes([sp_low, sp_high]),
            bp: self.caller_bp(registers >> 4)?,
            bp_offset: i16::from_le_bytes([bp_low, bp_high]),
            kind: self.kind(kind)?,
        })
    }

    fn kind(self, bits: u8) -> Option<Kind> {
        let number = match self {
            Self::TwoBits => bits & 3,
            // 0 is for what is not known, 1 for the end of the stack.
            Self::ThreeBits | Self::Renumbered => (bits & 7).checked_sub(2)?,
        };
        match number {
            0 => Some(Kind::Call),
            1 => Some(Kind::Registers),
            2 => Some(Kind::Return),
            _ => None,
        }
    }

    fn base(self, number: u8) -> Option<Base> {
        Some(match (self, number) {
            (_, 2) => Base::Dx,
            (_, 4) => Base::Bp,
            (_, 6) => Base::R10,
            (_, 7) => Base::R13,
            (_, 9) => Base::AtSp,
            (Self::Renumbered, 3) => Base::Sp,
            (Self::Renumbered, 5) => Base::Di,
            (Self::Renumbered, 10) => Base::AtBp,
            (Self::TwoBits | Self::ThreeBits, 3) => Base::Di,
            (Self::TwoBits | Self::ThreeBits, 5) => Base::Sp,
            (Self::TwoBits | Self::ThreeBits, 8) => Base::AtBp,
            _ => return None,
        })
    }

    fn caller_bp(self, number: u8) -> Option<CallerBp> {
        match (self, number) {
            (_, 0) => Some(CallerBp::Same),
            (_, 4) => Some(CallerBp::AtBp),
            (Self::Renumbered, 8) => Some(CallerBp::AtOuter),
            (Self::TwoBits | Self::ThreeBits, 1) => Some(CallerBp::AtOuter),
            _ => None,
        }
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
    fn registers_have_other_numbers_since() {
        let rule = |registers| Format::Renumbered.rule([16, 0, 0xf0, 0xff, registers, 2]);
        let bases = [2, 3, 4, 5, 6, 7, 9, 10].map(|number| rule(number).unwrap().base);
        let all =
            [Base::Dx, Base::Sp, Base::Bp, Base::Di, Base::R10, Base::R13, Base::AtSp, Base::AtBp];
        assert_eq!(bases, all);
        let bps = [0x04, 0x44, 0x84].map(|registers| rule(registers).unwrap().bp);
        assert_eq!(bps, [CallerBp::Same, CallerBp::AtBp, CallerBp::AtOuter]);
        for registers in [0, 1, 8, 11, 15, 0x14, 0x34] {
            assert_eq!(rule(registers), None, "{registers:x}");
        }
    }

    #[test]
    fn the_format_is_told_by_how_functions_start() {
        for (entry, format) in [
            ([8, 0, 0, 0, 0x05, 0], Some(Format::TwoBits)),
            ([8, 0, 0, 0, 0x05, 4], Some(Format::TwoBits)),
            ([8, 0, 0, 0, 0x05, 2], Some(Format::ThreeBits)),
            ([8, 0, 0, 0, 0x03, 2], Some(Format::Renumbered)),
            ([16, 0, 0, 0, 0x05, 2], None),
            ([8, 0, 0, 0, 0x03, 0], None),
            ([0; 6], None),
        ] {
            assert_eq!(Format::with_start_of_function(entry), format, "{entry:x?}");
        }
    }
}
