//! How long instructions of x86-64 are, as far as the kernel's own code uses them.

/// What follows an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rest {
    /// Whether a byte of registers follows, with what that asks for.
    registers: bool,
    /// Bytes of a constant or distance behind that.
    constant: usize,
}

const PLAIN: Rest = Rest { registers: false, constant: 0 };
const REGISTERS: Rest = Rest { registers: true, constant: 0 };

fn constant(bytes: usize) -> Rest {
    Rest { constant: bytes, ..PLAIN }
}

fn registers_and(bytes: usize) -> Rest {
    Rest { constant: bytes, ..REGISTERS }
}

/// How long the instruction is that `code` begins with; `None` if it is none, if it does not end there, or if it is one
/// of those that the kernel uses nowhere but in sections of its own, as those of AVX.
pub(crate) fn length(code: &[u8]) -> Option<usize> {
    let prefixes = code.iter().take_while(|&&byte| is_prefix(byte)).count();
    let has_short_words = code[..prefixes].contains(&0x66);
    let rex = *code.get(prefixes)?;
    let has_rex = rex & 0xf0 == 0x40;
    let is_wide = has_rex && rex & 8 != 0;
    let word = if has_short_words && !is_wide { 2 } else { 4 };
    let mut at = prefixes + usize::from(has_rex);
    let mut next = || {
        let byte = code.get(at).copied();
        at += 1;
        byte
    };
    let rest = match next()? {
        0x0f => match next()? {
            0x38 => next().map(|_| REGISTERS)?,
            0x3a => next().map(|_| registers_and(1))?,
            opcode => of_two_bytes(opcode)?,
        },
        opcode @ 0xf6..=0xf7 => {
            // Only two of these instructions have a constant.
            let compares = code.get(at)? & 0x30 == 0;
            let bytes = if opcode == 0xf6 { 1 } else { word };
            registers_and(if compares { bytes } else { 0 })
        }
        0xb8..=0xbf if is_wide => constant(8),
        opcode => of_one_byte(opcode, word)?,
    };
    if rest.registers {
        at += registers_length(&code[at.min(code.len())..])?;
    }
    at += rest.constant;
    (at <= code.len()).then_some(at)
}

fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3)
}

/// Of a byte of registers with what follows it: a scaled index, and the distance of a place in memory.
fn registers_length(code: &[u8]) -> Option<usize> {
    let registers = *code.first()?;
    let (mode, base) = (registers >> 6, registers & 7);
    let index = if mode != 3 && base == 4 { Some(*code.get(1)?) } else { None };
    let base = index.map_or(base, |index| index & 7);
    let distance = match mode {
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    Some(1 + usize::from(index.is_some()) + distance)
}

fn of_one_byte(opcode: u8, word: usize) -> Option<Rest> {
    Some(match opcode {
        0x00..=0x3f => match opcode & 7 {
            0..=3 => REGISTERS,
            4 => constant(1),
            5 => constant(word),
            _ => return None,
        },
        0x50..=0x5f | 0x6c..=0x6f | 0x90..=0x99 | 0x9b..=0x9f | 0xa4..=0xa7 | 0xaa..=0xaf => PLAIN,
        0x63 | 0x84..=0x8f | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe..=0xff => REGISTERS,
        0x68 | 0xa9 | 0xb8..=0xbf => constant(word),
        0x69 | 0x81 | 0xc7 => registers_and(word),
        0x6a | 0x70..=0x7f | 0xa8 | 0xb0..=0xb7 | 0xcd | 0xe0..=0xe7 | 0xeb => constant(1),
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => registers_and(1),
        0xa0..=0xa3 => constant(8),
        0xc2 | 0xca => constant(2),
        0xc8 => constant(3),
        0xe8 | 0xe9 => constant(4),
        0xc3 | 0xc9 | 0xcb | 0xcc | 0xcf | 0xd7 | 0xec..=0xef => PLAIN,
        0xf1 | 0xf4 | 0xf5 | 0xf8..=0xfd => PLAIN,
        _ => return None,
    })
}

fn of_two_bytes(opcode: u8) -> Option<Rest> {
    Some(match opcode {
        0x05..=0x09 | 0x0b | 0x30..=0x37 | 0x77 | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf => PLAIN,
        0x80..=0x8f => constant(4),
        0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => registers_and(1),
        0x00..=0x03 | 0x0d | 0x10..=0x23 | 0x28..=0x2f | 0x40..=0x6f | 0x74..=0x76 => REGISTERS,
        0x78..=0x7f | 0x90..=0x9f | 0xa3 | 0xa5 | 0xab | 0xad..=0xb9 | 0xbb..=0xc1 => REGISTERS,
        0xc3 | 0xc7 | 0xd0..=0xff => REGISTERS,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_code_is_read(code in prop::collection::vec(any::<u8>(), 0..20)) {
            let length = length(&code);
            prop_assert!(length.is_none_or(|length| (1..=code.len()).contains(&length)));
        }
    }

    /// Instructions as GNU objdump 2.40 parts them.
    #[test]
    fn instructions_have_their_length() {
        let all: &[&[u8]] = &[
            &[0x90],                                           // nop
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],                   // nopl 0x0(%rax,%rax,1)
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],             // nopw 0x0(%rax,%rax,1)
            &[0xf3, 0x0f, 0x1e, 0xfa],                         // endbr64
            &[0x48, 0x89, 0xfb],                               // mov %rdi,%rbx
            &[0x83, 0xf8, 0xfb],                               // cmp $-5,%eax
            &[0x48, 0x8b, 0x05, 1, 2, 3, 4],                   // mov 0x4030201(%rip),%rax
            &[0x65, 0x48, 0x8b, 0x04, 0x25, 1, 2, 3, 4],       // mov %gs:0x4030201,%rax
            &[0x48, 0x8b, 0x44, 0x24, 0x08],                   // mov 0x8(%rsp),%rax
            &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8],             // movabs
            &[0xb8, 1, 2, 3, 4],                               // mov $0x4030201,%eax
            &[0x66, 0xb8, 1, 2],                               // mov $0x201,%ax
            &[0xf6, 0x47, 0x10, 0x01],                         // testb $0x1,0x10(%rdi)
            &[0xf7, 0xd8],                                     // neg %eax
            &[0x41, 0xf7, 0xc4, 1, 2, 3, 4],                   // test $0x4030201,%r12d
            &[0x48, 0xc7, 0x84, 0x24, 1, 2, 3, 4, 5, 6, 7, 8], // movq $…,0x4030201(%rsp)
            &[0x0f, 0x85, 1, 2, 3, 4],                         // jne
            &[0xe8, 1, 2, 3, 4],                               // call
            &[0x0f, 0xba, 0xe0, 0x09],                         // bt $0x9,%eax
            &[0xf0, 0x48, 0x0f, 0xb1, 0x0a],                   // lock cmpxchg %rcx,(%rdx)
            &[0x0f, 0x01, 0xcb],                               // stac
            &[0x0f, 0x00, 0x2d, 1, 2, 3, 4],                   // verw 0x4030201(%rip)
            &[0xf3, 0x48, 0xab],                               // rep stos
            &[0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08],             // palignr
        ];
        for code in all {
            assert_eq!(length(code), Some(code.len()), "{code:x?}");
            let more = [code, &[0xcc, 0xcc][..]].concat();
            assert_eq!(length(&more), Some(code.len()), "{code:x?}, and more");
            assert_eq!(length(&code[..code.len() - 1]), None, "{code:x?}, cut");
        }
        for none in [&[][..], &[0x06], &[0x0f, 0x04], &[0xc5, 0xf8, 0x77]] {
            assert_eq!(length(none), None, "{none:x?}");
        }
    }
}
