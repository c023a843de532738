//! What an ELF file is, as far as a guest must know: for which machine, and whether it needs others.

use object::LittleEndian;
use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::kernel::Arch;

/// A 64-bit little-endian program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// Where it runs; `None` for a machine that the lab does not know.
    pub(super) arch: Option<Arch>,
    /// Whether it asks for an interpreter, which loads its libraries.
    pub(super) dynamic: bool,
}

/// What `file` is; `None` if it is no such program.
pub(super) fn kind(file: &[u8]) -> Option<Kind> {
    let header = FileHeader64::<LittleEndian>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let arch = match header.e_machine(endian) {
        EM_X86_64 => Some(Arch::Amd64),
        EM_AARCH64 => Some(Arch::Arm64),
        _ => None,
    };
    let parts = header.program_headers(endian, file).ok()?;
    Some(Kind { arch, dynamic: parts.iter().any(|part| part.p_type(endian) == PT_INTERP) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::program;
    use wakescope_testing::fuzz;

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
