//! The files of a boot, as the emulator inherits them: open, so that it needs no right to any folder.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::path::Path;

use wakescope_store::create_new;
use wakescope_sys::file::sealed_copy;
use wakescope_sys::input::open_input;
use wakescope_sys::process::confined::FIRST_INHERITED;

/// The descriptors of the emulator.
pub(super) const KERNEL: RawFd = FIRST_INHERITED;
pub(super) const GUEST: RawFd = FIRST_INHERITED + 1;
pub(super) const CONSOLE: RawFd = FIRST_INHERITED + 2;
pub(super) const RESULTS: RawFd = FIRST_INHERITED + 3;

/// The path of a descriptor, for the process that has it.
pub(super) fn path_of(fd: RawFd) -> String {
    format!("/proc/self/fd/{fd}")
}

/// The files of a boot.
#[derive(Debug)]
pub struct Files {
    kernel: File,
    guest: File,
    console: File,
    results: File,
}

impl Files {
    /// Reads the images `kernel` and `guest`, and makes the files that the guest's lines are written
    /// to. The emulator opens the images once more, as another user: of copies in memory, neither
    /// modes nor folders keep it from that.
    pub fn open(kernel: &Path, guest: &Path, console: &Path, results: &Path) -> io::Result<Self> {
        let copy = |path: &Path| {
            let copy = open_input(path).and_then(|mut file| sealed_copy(&mut file));
            copy.map_err(named(path))
        };
        let create = |path: &Path| create_new(path).map_err(named(path));
        Ok(Self {
            kernel: copy(kernel)?,
            guest: copy(guest)?,
            console: create(console)?,
            results: create(results)?,
        })
    }

    /// In the order of their numbers.
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        [self.kernel.as_fd(), self.guest.as_fd(), self.console.as_fd(), self.results.as_fd()]
    }
}

/// The error with the file's name.
fn named(path: &Path) -> impl Fn(io::Error) -> io::Error + use<'_> {
    move |e| io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}
