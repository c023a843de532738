//! The guest: an initramfs with one static `wakescope` as its first process, and the modules that
//! it is to load. No shell, no other program. The same inputs give the same bytes.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

mod cpio;
mod elf;
pub mod modules;
pub mod order;
pub mod root;

use cpio::Archive;
use modules::Module;
use serde::{Deserialize, Serialize};
use wakescope_sys::input::open_input;

use crate::kernel::Arch;

/// Changes when images are made in another way of the same files.
pub const FORMAT: &str = "wakescope.guest/1";

/// The verb that the first process of a guest is started with.
pub const VERB: &str = "lab-guest";

/// Where the guest finds its modules.
pub const MODULES: &str = "/modules";

/// Of the parcel: the run record.
pub const RUN: &str = "run.json";

/// Of the parcel: what was seen of late wakeups, where they were explained.
pub const EPISODES: &str = wakescope_store::EPISODES;

/// Of the parcel: when loads disturbed, if they were told to log that.
pub const DISTURBANCES: &str = "disturbances.log";

/// Of the parcel: what `wakescope check --probe --json` prints.
pub const CHECK: &str = "check.json";

/// Of the parcel: [`Facts`].
pub const FACTS: &str = "guest.json";

/// Of the parcel: the kernel's log.
pub const KERNEL_LOG: &str = "kernel.log";

/// How it went, as the guest itself has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Why there is no result; `null` if there is one.
    pub error: Option<String>,
    /// Whether that is because its virtual time was up.
    pub time_up: bool,
    /// `CLOCK_MONOTONIC` when the first process began: how long the kernel took to boot.
    pub began_ns: u64,
    /// `CLOCK_MONOTONIC` when results began to be sent.
    pub ended_ns: u64,
}

/// A program that is larger is surely not the one to run in the guest.
const PROGRAM_MOST: u64 = 256 << 20;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A file cannot be read.
    #[error("cannot read {}: {1}", .0.display())]
    Read(PathBuf, io::Error),
    /// The program is not for this architecture.
    #[error("{} is not a program for {1}", .0.display())]
    Arch(PathBuf, Arch),
    /// The program needs libraries, which a guest does not have.
    #[error("{} needs shared libraries, but a guest has none", .0.display())]
    Dynamic(PathBuf),
    /// It is no program at all.
    #[error("{} is not a program", .0.display())]
    NoProgram(PathBuf),
}

/// The bytes of an initramfs in which `program` is the first process, with `modules` to load: see
/// [`modules::resolve`].
/// `config` is the kernel's configuration, if known: what the guest says about its kernel rests on
/// it, where the kernel itself does not tell.
pub fn image(
    program: &Path,
    arch: Arch,
    config: Option<(&str, &Path)>,
    modules: &[Module],
) -> Result<Vec<u8>, GuestError> {
    let bytes = read(program)?;
    match elf::kind(&bytes) {
        None => return Err(GuestError::NoProgram(program.into())),
        Some(kind) if kind.arch != Some(arch) => {
            return Err(GuestError::Arch(program.into(), arch));
        }
        Some(kind) if kind.dynamic => return Err(GuestError::Dynamic(program.into())),
        Some(_) => {}
    }
    let mut archive = Archive::default();
    for dir in ["dev", "proc", "sys", "tmp", "boot", "modules"] {
        archive.dir(dir);
    }
    // The kernel opens it for the first process before anything is mounted.
    archive.console("dev/console");
    archive.file("init", 0o755, &bytes);
    if let Some((release, config)) = config {
        archive.file(&format!("boot/config-{release}"), 0o444, &what_is_set(&read(config)?));
    }
    for module in modules {
        archive.file(&format!("modules/{}", module.file_name()), 0o444, &module.bytes);
    }
    Ok(archive.finish())
}

/// The lines of a configuration that set something. What it says is not set, two lines in five of
/// Debian's, it says in comments, which nobody needs to be told.
fn what_is_set(config: &[u8]) -> Vec<u8> {
    let lines = config.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| line.starts_with(b"CONFIG_")).flatten().copied().collect()
}

fn read(path: &Path) -> Result<Vec<u8>, GuestError> {
    let failed = |e| GuestError::Read(path.into(), e);
    if fs::metadata(path).map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let mut bytes = Vec::new();
    let file = open_input(path).map_err(failed)?;
    file.take(PROGRAM_MOST).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use wakescope_testing::Folder;

    use super::*;
    use crate::testing::program;

    #[test]
    fn what_is_not_set_is_left_out() {
        let config = b"# Linux\nCONFIG_SMP=y\n# CONFIG_PREEMPT is not set\n\nCONFIG_HZ=250";
        assert_eq!(what_is_set(config), b"CONFIG_SMP=y\nCONFIG_HZ=250");
    }

    #[test]
    fn the_same_inputs_give_the_same_bytes_and_others_do_not() {
        let folder = Folder::new("guest");
        let program = folder.write("static", program(62, false));
        let config = folder.write("config", b"CONFIG_PREEMPT=y\n");
        let make = || image(&program, Arch::Amd64, Some(("6.1", &config)), &[]).unwrap();
        let first = make();
        assert_eq!(first, make());
        assert_eq!(first.len() % 512, 0);
        fs::write(&config, b"CONFIG_PREEMPT=n\n").unwrap();
        assert_ne!(first, make());
        let bare = image(&program, Arch::Amd64, None, &[]).unwrap();
        assert_ne!(first, bare);
        let module = Module { name: "brd".into(), bytes: b"code".to_vec() };
        let loaded = image(&program, Arch::Amd64, None, &[module]).unwrap();
        assert!(loaded.windows(15).any(|w| w == b"modules/brd.ko\0"), "under its name");
        assert_ne!(loaded, bare);
    }

    #[test]
    fn what_a_guest_cannot_run_is_refused() {
        let folder = Folder::new("guest");
        let check = |name, bytes: &[u8], want: &str| {
            let path = folder.write(name, bytes);
            let e = image(&path, Arch::Amd64, None, &[]).unwrap_err().to_string();
            assert!(e.contains(want), "{e}");
        };
        check("dynamic", &program(62, true), "needs shared libraries");
        check("arm", &program(183, false), "not a program for amd64");
        check("text", b"#!/bin/sh\n", "is not a program");
        check("empty", b"", "is not a program");
        let gone = image(Path::new("/does/not/exist"), Arch::Amd64, None, &[]).unwrap_err();
        assert!(gone.to_string().starts_with("cannot read /does/not/exist"), "{gone}");
    }
}
