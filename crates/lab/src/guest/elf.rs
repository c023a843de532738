//! What an ELF file is, as far as a guest must know: for which machine, and whether it needs others.

use crate::kernel::Arch;

/// A 64-bit little-endian program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// Where it runs; `None` for a machine that the lab does not know.
    pub(super) arch: Option<Arch>,
    /// Whether it asks for an interpreter, which loads its libraries.
    pub(super) dynamic: bool,
}

const INTERPRETER: u32 = 3;

/// What `file` is; `None` if it is no such program.
pub(super) fn kind(file: &[u8]) -> Option<Kind> {
    // Class 2 is 64 bits, data 1 is little-endian.
    let is_elf = file.starts_with(b"\x7fELF\x02\x01");
    let arch = match number(file, 18, 2)? {
        62 => Some(Arch::Amd64),
        183 => Some(Arch::Arm64),
        _ => None,
    };
    let (start, size, count) = (number(file, 32, 8)?, number(file, 54, 2)?, number(file, 56, 2)?);
    let mut headers = (0..count).filter_map(|i| start.checked_add(i * size));
    let dynamic =
        headers.any(|at| number(file, at, 4).is_some_and(|kind| kind == u64::from(INTERPRETER)));
    is_elf.then_some(Kind { arch, dynamic })
}

/// The little-endian number of `size` bytes at `at`.
pub(super) fn number(file: &[u8], at: u64, size: u64) -> Option<u64> {
    let (from, to) = (usize::try_from(at).ok()?, usize::try_from(at.checked_add(size)?).ok()?);
    Some(file.get(from..to)?.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use wakescope_testing::fuzz;

    /// The least that looks like a program.
    pub(in crate::guest) fn program(machine: u8, dynamic: bool) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[18] = machine;
        file[32] = 64;
        file[54] = 56;
        file[56] = 1;
        file[64] = if dynamic { 3 } else { 1 };
        file
    }

    #[test]
    fn programs_are_recognized() {
        let check = |file: &[u8], want| assert_eq!(kind(file), want);
        check(&program(62, false), Some(Kind { arch: Some(Arch::Amd64), dynamic: false }));
        check(&program(183, true), Some(Kind { arch: Some(Arch::Arm64), dynamic: true }));
        check(&program(8, false), Some(Kind { arch: None, dynamic: false }));
        check(b"#!/bin/sh", None);
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(kind(&this).unwrap().arch, Arch::of_this_program());
    }

    #[test]
    fn fuzz_programs() {
        fuzz("elf", &[program(62, true), program(183, false)], |bytes| {
            let _ = kind(bytes);
        });
    }
}
