//! Whether code ends in a call: an address behind one is where that returns to.

use wakescope_decode::is_arm64_call;

/// The same of x86-64, whose instructions are of many lengths: all calls that compilers make.
pub(crate) fn ends_in_x86(code: &[u8]) -> bool {
    let last = |count: usize| code.len().checked_sub(count).map(|from| &code[from..]);
    // `call` to an address that follows; also to the thunks of indirect calls.
    let direct = last(5).is_some_and(|c| c[0] == 0xe8);
    // `call *%reg`, `call *%r8` and so on, `call *8(%reg)`, `call *address`.
    let by_register = last(2).is_some_and(|c| c[0] == 0xff && c[1] & 0xf8 == 0xd0);
    let by_byte = last(3).is_some_and(|c| c[0] == 0xff && c[1] & 0xf8 == 0x50);
    let by_word = last(6).is_some_and(|c| c[0] == 0xff && (c[1] & 0xf8 == 0x90 || c[1] == 0x15));
    direct || by_register || by_byte || by_word
}

/// The same of arm64.
pub(crate) fn ends_in_arm64(code: &[u8]) -> bool {
    let Some(last) = code.last_chunk::<4>() else { return false };
    is_arm64_call(u32::from_le_bytes(*last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_other_code() {
        for (code, is_call) in [
            (&[0x90, 0x90, 0xe8, 1, 2, 3, 4][..], true),
            (&[0xe8, 1, 2, 3, 4, 0x90, 0x90], false),
            (&[0xff, 0xd0], true),
            (&[0x41, 0xff, 0xd3], true),
            (&[0xff, 0x50, 0x18], true),
            (&[0xff, 0x15, 0, 0, 0, 0], true),
            (&[0xff, 0xe0], false),
            (&[0xc3], false),
            (&[], false),
        ] {
            assert_eq!(ends_in_x86(code), is_call, "{code:x?}");
        }
        for (word, is_call) in
            [(0x9400_0010_u32, true), (0xd63f_0100, true), (0x1400_0010, false), (0, false)]
        {
            assert_eq!(ends_in_arm64(&word.to_le_bytes()), is_call, "{word:x}");
        }
        assert!(!ends_in_arm64(&[0x94]));
    }
}
