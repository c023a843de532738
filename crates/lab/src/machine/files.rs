//! The files of a boot, as the emulator inherits them: open, so that it needs no right to any folder.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};

use wakescope_store::create_new;
use wakescope_sys::file::sealed_copy;
use wakescope_sys::input::open_input;
use wakescope_sys::process::confined::FIRST_INHERITED;

/// The descriptors of the emulator.
pub(super) const KERNEL: RawFd = FIRST_INHERITED;
pub(super) const GUEST: RawFd = FIRST_INHERITED + 1;
pub(super) const CONSOLE: RawFd = FIRST_INHERITED + 2;
pub(super) const RESULTS: RawFd = FIRST_INHERITED + 3;
pub(super) const PLUGIN: RawFd = FIRST_INHERITED + 4;
pub(super) const SEEN: RawFd = FIRST_INHERITED + 5;
pub(super) const PLAN: RawFd = FIRST_INHERITED + 6;

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
    /// Of an observer, if there is one.
    observer: Vec<File>,
}

/// A plugin of the emulator, and its files.
#[derive(Clone, Debug)]
pub struct Observer {
    /// The plugin.
    pub plugin: PathBuf,
    /// What it is told, if anything.
    pub plan: Option<PathBuf>,
    /// Where it writes to.
    pub seen: PathBuf,
}

impl Observer {
    /// The arguments of an emulator that inherits its files.
    pub fn arguments(&self) -> [String; 2] {
        let plan = if self.plan.is_some() { format!(",plan={PLAN}") } else { String::new() };
        ["-plugin".into(), format!("file={},out={SEEN}{plan}", path_of(PLUGIN))]
    }
}

impl Files {
    /// Reads the images `kernel` and `guest`, and makes the files that the guest's lines and an
    /// observer are written to. The emulator opens the images once more, as another user: of copies in memory, neither
    /// modes nor folders keep it from that.
    pub fn open(
        kernel: &Path,
        guest: &Path,
        console: &Path,
        results: &Path,
        observer: Option<&Observer>,
    ) -> io::Result<Self> {
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
            observer: match observer {
                None => Vec::new(),
                Some(Observer { plugin, plan, seen }) => {
                    let plan = plan.as_deref().map(copy).transpose()?;
                    [copy(plugin)?, create(seen)?].into_iter().chain(plan).collect()
                }
            },
        })
    }

    /// In the order of their numbers.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let own = [&self.kernel, &self.guest, &self.console, &self.results];
        own.into_iter().chain(&self.observer).map(File::as_fd).collect()
    }
}

/// The error with the file's name.
fn named(path: &Path) -> impl Fn(io::Error) -> io::Error + use<'_> {
    move |e| io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}
