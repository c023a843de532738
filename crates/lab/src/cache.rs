//! The lab's folder: kernels, the emulator, package lists, guests and results.
//!
//! Several labs may share it. What appears in it appears whole: it is made under another name
//! beside its place and then renamed, so that neither a full disk nor `kill -9` leaves half of it.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use wakescope_core::units::SpanNs;
use wakescope_store::{
    Refused, WayError, check_own, create_folder, create_new, is_full, is_trusted_owner,
    make_own_folder, open_lock, open_own_folder,
};
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::file::{FileLock, exchange, open_directory, try_lock};
use wakescope_sys::input::open_input;

use crate::kernel::Arch;
use crate::watch::{Step, Unwatched, Watch};

/// How often to look whether another process has let go of a lock.
const LOOK: SpanNs = SpanNs(100_000_000);

/// The name of apt's folders for what is not checked yet.
pub(crate) const PARTIAL: &str = "partial";

/// The name of apt's folder for what is neither a list nor a package: the lab asks for nothing of that.
const AUXILIARY: &str = "auxfiles";

/// The name of a kernel's folder of modules, in that of the kernel.
pub(crate) const MODULES: &str = "modules";

/// The file of known checksums.
const SUMS: &str = "sums.json";

/// What every name begins with that is not in its place yet.
const UNFINISHED: &str = ".new-";

/// Why something could not be done in the lab's folder.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// There is no telling where the folder is to be.
    #[error("there is no home directory for the cache")]
    NoHome,
    /// A file or folder could not be used.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried: `write`, `create`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it did not work.
        source: io::Error,
    },
    /// Another user controls it, so nothing in it is executed or believed.
    #[error("cannot trust the lab's cache: {}: {why}", .path.display())]
    Untrusted {
        /// The folder or file; it may lie above the cache.
        path: PathBuf,
        /// How another user controls it.
        why: Refused,
    },
    /// The user ended it.
    #[error("interrupted")]
    Stopped,
}

impl CacheError {
    pub(crate) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self::Io { action, path: path.into(), source }
    }

    /// Whether there is no room left on the disk, or for this user.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_full(source))
    }
}

/// `action` is what is said of a folder that is no folder.
fn of_own(action: &'static str) -> impl FnOnce(WayError) -> CacheError {
    move |e| match e {
        WayError::Refused { path, why: why @ (Refused::NoFolder(_) | Refused::Links) } => {
            CacheError::Io { action, path, source: why.into() }
        }
        WayError::Refused { path, why } => CacheError::Untrusted { path, why },
        WayError::Io { path, source } => CacheError::Io { action, path, source },
    }
}

/// The lab's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `$WAKESCOPE_CACHE`, else `$XDG_CACHE_HOME/wakescope`, else `~/.cache/wakescope`. It need not
    /// exist yet.
    pub fn locate() -> Result<Self, CacheError> {
        let folder = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let root = locate(folder("WAKESCOPE_CACHE"), folder("XDG_CACHE_HOME"), folder("HOME"))
            .ok_or(CacheError::NoHome)?;
        let root = std::path::absolute(&root).map_err(CacheError::io("find", &root))?;
        Ok(Self { root })
    }

    /// The folder at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Fails unless nobody but root and this user can change what is executed and believed in it:
    /// kernels, emulators with their plugins, package lists, guests, built kernels, modules that were
    /// built, what is known of kernels, and known checksums, and every folder above them. Nothing is
    /// made, and a cache that is not there is fine.
    ///
    /// Cells are looked at one by one when they are used, and with [`Self::check_used`] the modules of
    /// a kernel and what modules are built with: 36 kernels with the headers of six are 165,600 files,
    /// which take half a second.
    pub fn check(&self) -> Result<(), CacheError> {
        if open_own_folder(&self.root).map_err(of_own("use"))?.is_none() {
            return Ok(());
        }
        let is_later = |name: &OsStr| name == MODULES || is_never_used(name);
        check_own(&self.root.join("kernels"), &is_later).map_err(of_own("use"))?;
        for name in [
            "qemu", "guests", "images", "built", "modules", "apt", "states", "plugins", "maps",
            SUMS,
        ] {
            check_own(&self.root.join(name), &is_never_used).map_err(of_own("use"))?;
        }
        for name in ["cells", "locks", "headers"] {
            open_own_folder(&self.root.join(name)).map_err(of_own("use"))?;
        }
        Ok(())
    }

    /// Fails unless nobody but root and this user can change anything at `path`. What does not lie in
    /// the cache is fine: whoever named it trusts it.
    pub(crate) fn check_used(&self, path: &Path) -> Result<(), CacheError> {
        if !path.starts_with(&self.root) {
            return Ok(());
        }
        check_own(path, &|_| false).map_err(of_own("use"))
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Kernels of an architecture, each in a folder of its name.
    pub fn kernels(&self, arch: Arch) -> PathBuf {
        self.root.join("kernels").join(arch.to_string())
    }

    /// Emulators, each in a folder of its version.
    pub fn qemu(&self) -> PathBuf {
        self.root.join("qemu")
    }

    /// Known checksums.
    pub(crate) fn sums(&self) -> PathBuf {
        self.root.join(SUMS)
    }

    /// Package lists.
    pub fn apt(&self) -> PathBuf {
        self.root.join("apt")
    }

    /// Guest images.
    pub fn guests(&self) -> PathBuf {
        self.root.join("guests")
    }

    /// Root images for guests, by architecture and by the names of their packages.
    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Images of kernels that were built for a bisection, each named after its revision.
    pub fn built(&self) -> PathBuf {
        self.root.join("built")
    }

    /// Modules that were built, by the release of their kernel and by their sources.
    pub fn modules(&self) -> PathBuf {
        self.root.join("modules")
    }

    /// What modules are built with, by the release of their kernel.
    pub fn headers(&self) -> PathBuf {
        self.root.join("headers")
    }

    /// Plugins for the emulator, by their sources and compiler.
    pub fn plugins(&self) -> PathBuf {
        self.root.join("plugins")
    }

    /// What is kept of kernels that were looked into from outside, by the checksums of their images.
    pub fn maps(&self) -> PathBuf {
        self.root.join("maps")
    }

    /// Machines that were saved once they had booted.
    pub fn states(&self) -> PathBuf {
        self.root.join("states")
    }

    /// Results.
    pub fn cells(&self) -> PathBuf {
        self.root.join("cells")
    }

    /// Makes `folder`, with all above it, unless it is there. Fails if another user controls it.
    pub(crate) fn create(folder: &Path) -> Result<(), CacheError> {
        make_own_folder(folder).map_err(of_own("create"))
    }

    /// Waits until no other process works on `what`, and keeps others from it until the lock is
    /// dropped. `what` is a word that names the file: `apt-amd64`.
    pub fn lock(&self, what: &str, watch: &mut dyn Watch) -> Result<FileLock, CacheError> {
        let folder = self.root.join("locks");
        Self::create(&folder)?;
        let path = folder.join(what);
        let lock = open_lock(&path).map(FileLock::on).map_err(CacheError::io("create", &path))?;
        while !lock.try_take().map_err(CacheError::io("lock", &path))? {
            if watch.stopped() {
                return Err(CacheError::Stopped);
            }
            watch.step(&Step::Waiting(what));
            let _ = clock::sleep_until(clock::now().after(LOOK));
        }
        Ok(lock)
    }

    /// An empty folder that becomes `place` when it is committed, and is removed when it is not.
    pub fn stage(&self, place: &Path) -> Result<Stage, CacheError> {
        let make = |path: &Path| create_folder(path).and_then(|()| open_directory(path));
        let (path, lock) = self.begin(place, make)?;
        Ok(Stage { path, place: place.into(), _lock: lock })
    }

    /// Makes, by `make`, what is to be put at `place` when it is finished. While it is open, nobody takes it for a
    /// leftover.
    fn begin(
        &self,
        place: &Path,
        make: impl Fn(&Path) -> io::Result<File>,
    ) -> Result<(PathBuf, File), CacheError> {
        let parent = place.parent().unwrap_or(&self.root);
        Self::create(parent)?;
        // While this is held, nobody takes for a leftover what is not locked yet.
        let _sweeping = self.lock("stage", &mut Unwatched)?;
        sweep(parent);
        loop {
            let path = unfinished(place);
            match make(&path) {
                // A process of the same number, in another container, is at work.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    let file = made.map_err(CacheError::io("create", &path))?;
                    try_lock(&file).map_err(CacheError::io("lock", &path))?;
                    return Ok((path, file));
                }
            }
        }
    }

    /// Removes what killed labs left unfinished. Of links to folders, nobody knows what else is where they lead.
    pub(crate) fn sweep(&self) -> Result<(), CacheError> {
        let _sweeping = self.lock("stage", &mut Unwatched)?;
        let below = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        sweep(&self.root);
        for folder in below(&self.root) {
            sweep(&folder);
            below(&folder).iter().for_each(|folder| sweep(folder));
        }
        Ok(())
    }

    /// Removes the folder at `place`, which no other lab sees half of.
    pub(crate) fn discard(&self, place: &Path) -> Result<(), CacheError> {
        let path = unfinished(place);
        // While this is held, nobody removes what is not locked yet.
        let _sweeping = self.lock("stage", &mut Unwatched)?;
        fs::rename(place, &path).map_err(CacheError::io("remove", place))?;
        fs::remove_dir_all(&path).map_err(CacheError::io("remove", place))
    }

    /// Writes a file as a whole, in place of one that may be there.
    pub fn write(&self, place: &Path, bytes: &[u8]) -> Result<(), CacheError> {
        let (path, mut file) = self.begin(place, create_new)?;
        let written = file.write_all(bytes).and_then(|()| fs::rename(&path, place));
        if written.is_err() {
            let _ = fs::remove_file(&path);
        }
        written.map_err(CacheError::io("write", place))
    }
}

/// A folder that is not in its place yet.
#[derive(Debug)]
pub struct Stage {
    path: PathBuf,
    place: PathBuf,
    _lock: File,
}

impl Stage {
    /// Where to put what belongs into it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it into its place. What was there before is removed.
    pub fn commit(self) -> Result<PathBuf, CacheError> {
        let moved = match fs::rename(&self.path, &self.place) {
            // What is in use goes on under no name; it is removed together with this value.
            Err(_) if self.place.exists() => exchange(&self.path, &self.place),
            other => other,
        };
        moved.map_err(CacheError::io("create", &self.place))?;
        Ok(self.place.clone())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A name beside `place` that nobody else uses.
fn unfinished(place: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    place.with_file_name(format!("{UNFINISHED}{}-{number}-{name}", std::process::id()))
}

/// Whether a name is one that [`unfinished`] gives.
fn is_unfinished(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts = name.strip_prefix(UNFINISHED).map(|rest| rest.splitn(3, '-'));
    parts.is_some_and(|mut parts| {
        parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number)
    })
}

/// Whether the lab uses nothing of this name: what is unfinished, and where apt as another user puts
/// what it has not checked yet, which is made anew each time, and what the lab never asks for.
fn is_never_used(name: &OsStr) -> bool {
    name == PARTIAL || name == AUXILIARY || name.to_str().is_some_and(is_unfinished)
}

/// Removes what killed labs left unfinished in `folder`: files and folders on which nobody holds a lock any more.
fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|e| e.file_name().to_str().is_some_and(is_unfinished)) {
        let path = entry.path();
        // Of a link itself, not of what it leads to.
        let Ok(meta) = entry.metadata() else { continue };
        if !is_trusted_owner(meta.uid()) {
            continue;
        }
        let is_free =
            |file: io::Result<File>| file.is_ok_and(|file| matches!(try_lock(&file), Ok(true)));
        if meta.is_dir() && is_free(open_directory(&path)) {
            let _ = fs::remove_dir_all(&path);
        } else if meta.is_file() && is_free(open_input(&path)) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// How long ago a file was written, in seconds; 0 if that is in the future.
pub(crate) fn age_s(meta: &fs::Metadata) -> u64 {
    let now = clock::read(Clock::Realtime) / 1_000_000_000;
    now.saturating_sub(u64::try_from(meta.mtime()).unwrap_or(0))
}

/// Reads a file that may be anything: not more than `limit` bytes, and nothing but a file.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_input(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let why = format!("it is larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}

fn locate(own: Option<PathBuf>, xdg: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    // The specification of XDG says to ignore a path that is not absolute.
    let xdg = xdg.filter(|path| path.is_absolute()).map(|path| path.join("wakescope"));
    own.or(xdg).or(home.map(|path| path.join(".cache/wakescope")))
}

#[cfg(test)]
mod tests;
