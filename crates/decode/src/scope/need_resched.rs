//! Where the kernel looks by itself whether the task that runs is to give up the CPU (`need_resched`): loops do,
//! which then end early. They read the flags of the task, its first word (include/linux/thread_info.h), through
//! its address, and test one bit.
//!
//! Other words are tested in the same way, a page's flags for one. So what is found here is where such a word may be
//! read: the plugin compares the address that is read with that of the task.

use super::memory::Memory;
use super::symbols::{Symbol, address};

/// How far into the scheduler the bit is looked for, bytes. It stands in the first 700 of 6.1 to 7.2.
const NEAR: usize = 1 << 12;

/// Prefixes of x86-64: registers beyond the first eight, operands of eight bytes; a locked bus, and what the kernel
/// puts in its place where there is one CPU (arch/x86/kernel/alternative.c).
const REX: std::ops::RangeInclusive<u8> = 0x40..=0x4f;
const LOCK: [u8; 2] = [0xf0, 0x3e];

/// Addresses of instructions that may read the flags, in order; none if the bit is not known.
pub(super) fn find(memory: &Memory, symbols: &[Symbol]) -> Vec<u64> {
    listed(memory, symbols).unwrap_or_default()
}

fn listed(memory: &Memory, symbols: &[Symbol]) -> Option<Vec<u64>> {
    let at = |name: &str| address(symbols, name);
    let scheduler = memory.from(at("__schedule")?)?;
    let bit = bit_cleared(&scheduler[..scheduler.len().min(NEAR)])?;
    let (start, end) = (at("_stext")?, at("_etext")?);
    let length = usize::try_from(end.checked_sub(start)?).ok()?;
    let text = memory.from(start)?.get(..length)?;
    let found = (0..text.len()).filter(|&place| may_test(&text[place..], bit).is_some());
    Some(found.map(|place| start.wrapping_add(place as u64)).collect())
}

/// The bit that the scheduler clears in the flags of the task that gave up the CPU. Since 6.13 it clears the next
/// higher one with it, that of requests that may wait (`TIF_NEED_RESCHED_LAZY`).
fn bit_cleared(scheduler: &[u8]) -> Option<u32> {
    (0..scheduler.len()).find_map(|place| {
        let kept = and_of(&scheduler[place..])?;
        let bit = 1 << (!kept).trailing_zeros().min(31);
        [bit, bit | bit << 1].contains(&!kept).then_some(bit)
    })
}

/// What a locked `and` keeps of a word in memory.
fn and_of(code: &[u8]) -> Option<u32> {
    let (lock, code) = code.split_first()?;
    LOCK.contains(lock).then_some(())?;
    let (_, [opcode, operand @ ..]) = without_rex(code)? else { return None };
    // The operation is in the bits that otherwise name a register.
    let (4, behind) = through_register(operand)? else { return None };
    match opcode {
        // Of one byte; and of more than one, with the highest bit of that number in all of them.
        0x80 => behind.first().map(|&kept| 0xffff_ff00 | u32::from(kept)),
        0x83 => {
            behind.first().filter(|&&kept| kept >= 0x80).map(|&kept| 0xffff_ff00 | u32::from(kept))
        }
        0x81 => number(behind),
        _ => None,
    }
}

/// Whether the instruction at the beginning of `code` reads a word through a register of which it, or the one
/// behind it, tests nothing but `bit`.
fn may_test(code: &[u8], bit: u32) -> Option<()> {
    let (rex, [opcode, operand @ ..]) = without_rex(code)? else { return None };
    let is_memory = matches!(opcode, 0xf6 | 0xf7 | 0x8b);
    let (register, behind) = is_memory.then(|| through_register(operand)).flatten()?;
    let tested = match (opcode, register) {
        (0xf6, 0) => behind.first().map(|&bits| u32::from(bits)),
        (0xf7, 0) => number(behind),
        (0x8b, _) if rex & 8 != 0 => tested_of(behind, register | (rex & 4) << 1),
        _ => None,
    };
    (tested? == bit).then_some(())
}

/// Which bits of the lowest byte of `register` an instruction tests.
fn tested_of(code: &[u8], register: u8) -> Option<u32> {
    let bits = match without_rex(code)? {
        (0, [0xa8, bits, ..]) if register == 0 => bits,
        (rex, [0xf6, operand @ 0xc0..=0xc7, bits, ..])
            if (operand & 7) | (rex & 1) << 3 == register =>
        {
            bits
        }
        _ => return None,
    };
    Some((*bits).into())
}

/// The low bits of the prefix, or zero, and what stands behind it.
fn without_rex(code: &[u8]) -> Option<(u8, &[u8])> {
    let first = code.first()?;
    Some(if REX.contains(first) { (first & 0xf, &code[1..]) } else { (0, code) })
}

/// Of an operand in memory whose address is that of a register, without any distance: the register that goes with
/// it, or what stands for the operation, and what stands behind.
fn through_register(operand: &[u8]) -> Option<(u8, &[u8])> {
    let (&first, rest) = operand.split_first()?;
    let behind = match (first >> 6, first & 7) {
        // Two registers need one more byte: a base alone, and a distance of zero.
        (0, 4) => rest.strip_prefix(&[0x24])?,
        (1, 5) => rest.strip_prefix(&[0])?,
        (0, 0..=3 | 6..=7) => rest,
        _ => return None,
    };
    Some((first >> 3 & 7, behind))
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.get(..4)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As compilers wrote them, from the kernels of Debian that the comments name.
    #[test]
    fn the_bit_is_the_one_that_the_scheduler_clears() {
        for (code, want) in [
            // 6.1: lock andb $0xf7,0x0(%r13)
            ([0xf0, 0x41, 0x80, 0x65, 0x00, 0xf7].as_slice(), Some(0x08)),
            // 7.2: lock andq $~0x30,0x0(%r13)
            (&[0xf0, 0x49, 0x83, 0x65, 0x00, 0xcf], Some(0x10)),
            (&[0x90, 0x90, 0xf0, 0x80, 0x23, 0xf7], Some(0x08)),
            // 6.1 as it lies in the memory of a machine with one CPU.
            (&[0x3e, 0x41, 0x80, 0x65, 0x00, 0xf7], Some(0x08)),
            (&[0xf0, 0x48, 0x81, 0x23, 0xff, 0xfe, 0xff, 0xff], Some(0x100)),
            // Not locked; of another place in the struct; several bits; an `or`.
            (&[0x41, 0x80, 0x65, 0x00, 0xf7], None),
            (&[0xf0, 0x41, 0x80, 0x65, 0x01, 0xf7], None),
            (&[0xf0, 0x80, 0x23, 0xd7], None),
            (&[0xf0, 0x80, 0x23, 0xff], None),
            (&[0xf0, 0x80, 0x23, 0x7f], Some(0x80)),
            (&[0xf0, 0x48, 0x83, 0x23, 0x7f], None),
            (&[0xf0, 0x80, 0x0b, 0xf7], None),
            (&[0xf0, 0x80, 0x23], None),
            (&[], None),
        ] {
            assert_eq!(bit_cleared(code), want, "{code:x?}");
        }
    }

    #[test]
    fn tests_of_one_bit_of_a_word_are_found() {
        for (code, is_one) in [
            // 6.1, unmap_page_range: mov (%rax),%rax; test $0x8,%al
            ([0x48, 0x8b, 0x00, 0xa8, 0x08].as_slice(), true),
            // 6.1, copy_page_range: mov (%r15),%rax; test $0x8,%al
            (&[0x49, 0x8b, 0x07, 0xa8, 0x08], true),
            // mov (%rdi),%rbx; test $0x8,%bl, and the same with %r8, %rsi and %r12
            (&[0x48, 0x8b, 0x1f, 0xf6, 0xc3, 0x08], true),
            (&[0x4c, 0x8b, 0x07, 0x41, 0xf6, 0xc0, 0x08], true),
            (&[0x48, 0x8b, 0x37, 0x40, 0xf6, 0xc6, 0x08], true),
            (&[0x49, 0x8b, 0x04, 0x24, 0xa8, 0x08], true),
            // testb $0x8,(%rdx); testq $0x8,(%rax)
            (&[0xf6, 0x02, 0x08], true),
            (&[0x48, 0xf7, 0x00, 0x08, 0x00, 0x00, 0x00], true),
            // Other bits, one more bit, another register, something in between, another place in the struct.
            (&[0x48, 0x8b, 0x00, 0xa8, 0x04], false),
            (&[0x48, 0x8b, 0x00, 0xa8, 0x0c], false),
            (&[0x48, 0x8b, 0x1f, 0xa8, 0x08], false),
            (&[0x48, 0x8b, 0x1f, 0xf6, 0xc1, 0x08], false),
            (&[0x48, 0x8b, 0x00, 0x90, 0xa8, 0x08], false),
            (&[0x48, 0x8b, 0x40, 0x20, 0xa8, 0x08], false),
            (&[0x49, 0x8b, 0x45, 0x08, 0xa8, 0x08], false),
            // Of a register; not (%rdx); an address without a register.
            (&[0xf6, 0xc2, 0x08], false),
            (&[0xf6, 0x12, 0x08], false),
            (&[0x48, 0x8b, 0x05, 0xa8, 0x08, 0x00, 0x00], false),
            (&[0x48, 0x8b, 0x00], false),
            // Four bytes only: a task's flags are eight.
            (&[0x8b, 0x00, 0xa8, 0x08], false),
            (&[0xf7, 0x00, 0x08, 0x00], false),
        ] {
            assert_eq!(may_test(code, 8).is_some(), is_one, "{code:x?}");
        }
    }
}
