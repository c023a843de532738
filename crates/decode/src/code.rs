//! What the code before a place in the kernel does.

use crate::x86;

/// Bytes of code before a place.
pub const CODE_BYTES: usize = 16;

/// Whether the last instruction of `code`, or the one before it where that takes effect only then,
/// enables interrupts. `None` if nothing was read.
pub(crate) fn enables_interrupts(code: &[u8; CODE_BYTES]) -> Option<bool> {
    let is_enabler = if cfg!(target_arch = "aarch64") { arm64 } else { x86 };
    (*code != [0; CODE_BYTES]).then(|| is_enabler(code))
}

/// `sti` takes effect after the instruction that follows it. Where the kernel chose it at boot, in
/// place of a call, that is a nop as long as the rest of the call; elsewhere it is any.
fn x86(code: &[u8; CODE_BYTES]) -> bool {
    const STI: u8 = 0xfb;
    const POPF: u8 = 0x9d;
    let last = CODE_BYTES - 1;
    let enables = |at: usize| match code[at] {
        // Before 0xff it is part of a distance: some million bytes back.
        STI if code.get(at + 1) == Some(&0xff) => false,
        STI => at == last || x86::length(&code[at + 1..]) == Some(last - at),
        POPF => at == last,
        _ => false,
    };
    (0..CODE_BYTES).any(|at| enables(at) && begins_an_instruction(code, at))
}

/// Whether an instruction may begin at this place of the code, rather than that it is part of one. Where an instruction
/// before begins is not known: the code is parted from each byte on, and a third of these ways must come there.
fn begins_an_instruction(code: &[u8], at: usize) -> bool {
    let mut comes_there = vec![true];
    // From the last byte back, whether the instructions from there on come to the place.
    for from in (0..at).rev() {
        let next = x86::length(&code[from..]).map(|length| from + length);
        comes_there.push(next.is_some_and(|next| next <= at && comes_there[at - next]));
    }
    let come = comes_there.iter().filter(|&&comes| comes).count();
    3 * come >= comes_there.len()
}

/// `msr daifclr`, `msr daif`, or `msr icc_pmr_el1` where interrupts are masked by priority, which
/// may be followed by a barrier.
fn arm64(code: &[u8; CODE_BYTES]) -> bool {
    let word = |at: usize| u32::from_le_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]]);
    let enables = |word: u32| {
        word & 0xffff_f0ff == 0xd503_40ff
            || word & 0xffff_ffe0 == 0xd51b_4220
            || word & 0xffff_ffe0 == 0xd518_4600
    };
    enables(word(CODE_BYTES - 4)) || enables(word(CODE_BYTES - 8))
}

/// Whether an instruction of arm64 calls: `bl`, or `blr` and those that check its signature.
pub fn is_arm64_call(word: u32) -> bool {
    let by_register = word & 0xffff_fc1f == 0xd63f_0000;
    let authenticated = word & 0xfeff_f800 == 0xd63f_0800;
    word & 0xfc00_0000 == 0x9400_0000 || by_register || authenticated
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `end` behind instructions that enable nothing.
    fn code(end: &[u8]) -> [u8; CODE_BYTES] {
        let mut code = [0x90; CODE_BYTES];
        code[CODE_BYTES - end.len()..].copy_from_slice(end);
        code
    }

    #[test]
    fn enabling_is_told_from_what_looks_like_it() {
        for (end, want) in [
            (&[0xfb, 0x90][..], true),                       // sti; nop
            (&[0xfb, 0x0f, 0x1f, 0x44, 0, 0], true),         // sti, and the rest of a call
            (&[0xfb], true),                                 // sti at the end of a jump
            (&[0x9d], true),                                 // popf
            (&[0xe8, 0x12, 0x34, 0xfb, 0xff], false),        // call, 300,000 bytes back
            (&[0xf3, 0x48, 0xab], false),                    // rep stos
            (&[0xfb, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], false), // too long ago
            (&[0xfb, 0xe9, 1, 2, 3, 4], true),               // sti; jmp
            (&[0xfb, 0x90, 0x90], false),                    // sti, and two nops
            (&[0xfb, 0x0f, 0x1f, 0x44, 0], false),           // sti, and a part of a nop
            (&[0x48, 0x89, 0xfb], false),                    // mov %rdi,%rbx
            (&[0x48, 0x89, 0xfb, 0x90], false),              // the same; nop
            (&[0x83, 0xf8, 0xfb], false),                    // cmp $-5,%eax
            (&[0x83, 0xf8, 0xfb, 0x74, 0x10], false),        // the same; je
            (&[0x48, 0xc7, 0xc3, 0xfb, 1, 0, 0], false),     // mov $0x1fb,%rbx
            (&[0x48, 0x8d, 0x43, 0x9d], false),              // lea -0x63(%rbx),%rax
        ] {
            assert_eq!(x86(&code(end)), want, "{end:x?}");
        }
        assert_eq!(enables_interrupts(&[0; CODE_BYTES]), None);
    }

    #[test]
    fn calls_on_arm64() {
        for (word, want) in [
            (0x97ff_fff0_u32, true), // bl, backwards
            (0xd63f_0060, true),     // blr x3
            (0xd63f_081f, true),     // blraaz x0
            (0xd73f_0c41, true),     // blrab x2, x1
            (0x1400_0010, false),    // b
            (0xd61f_0060, false),    // br x3
            (0xd65f_03c0, false),    // ret
            (0, false),
        ] {
            assert_eq!(is_arm64_call(word), want, "{word:x}");
        }
    }

    #[test]
    fn enabling_on_arm64() {
        for (word, want) in [
            (0xd503_43ff_u32, true), // msr daifclr, #3
            (0xd503_42ff, true),     // msr daifclr, #2
            (0xd51b_4220, true),     // msr daif, x0
            (0xd518_4601, true),     // msr icc_pmr_el1, x1
            (0xd503_42df, false),    // msr daifset, #2
            (0xd65f_03c0, false),    // ret
        ] {
            assert_eq!(arm64(&code(&word.to_le_bytes())), want, "{word:x}");
        }
        let barrier = [0xd518_4601_u32.to_le_bytes(), 0xd503_3f9f_u32.to_le_bytes()].concat();
        assert!(arm64(&code(&barrier)), "a barrier in between");
    }
}
