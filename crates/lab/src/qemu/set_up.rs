//! Sets up an emulator in the cache, from the packages of a newer Debian than the machine may run.
//! It brings its own C library, and is started through that one's dynamic loader.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wakescope_store::copy_new;

use super::{Qemu, QemuError, Version};
use crate::archive::tool::{self, Tool};
use crate::archive::{Archive, ArchiveError, Purpose, Site};
use crate::cache::{Cache, CacheError, Stage};
use crate::kernel::Arch;
use crate::sum::Memo;
use crate::watch::{Step, Watch};

/// The version that the lab was tried with: Debian 13's.
const PINNED: Version = Version(10, 0, 13);

/// The packages that hold the emulators.
const PACKAGES: [&str; 2] = ["qemu-system-x86", "qemu-system-arm"];

/// Why the emulator could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// There are no packages for this machine.
    #[error("there are no packages of QEMU for this architecture")]
    Host,
    /// The archive has an emulator of another series than the one that was tried.
    #[error("the archive has QEMU {0} in place of {}.{}", PINNED.0, PINNED.1)]
    Moved(String),
    /// The archive is of no help.
    #[error(transparent)]
    Archive(ArchiveError),
    /// Its packages do not make up an emulator.
    #[error("the packages do not contain a usable emulator: {0}")]
    Incomplete(String),
    /// It does not run.
    #[error(transparent)]
    Qemu(QemuError),
}

impl<E: Into<ArchiveError>> From<E> for SetUpError {
    fn from(e: E) -> Self {
        Self::Archive(e.into())
    }
}

/// An emulator that is in the cache now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUp {
    /// The emulator for this machine's own architecture.
    pub qemu: Qemu,
    /// Whether it was there before.
    pub was_there: bool,
    /// Bytes that were fetched.
    pub bytes: u64,
}

/// Sees to it that the cache has an emulator. `refresh` looks for a newer one of its series.
pub fn set_up(
    cache: &Cache,
    site: &Site,
    refresh: bool,
    watch: &mut dyn Watch,
) -> Result<SetUp, SetUpError> {
    let host = Arch::of_this_program().ok_or(SetUpError::Host)?;
    let there = |cache: &Cache| {
        let root = newest(cache, host)?;
        check(&root, host, cache).ok()
    };
    if let Some(qemu) = there(cache).filter(|_| !refresh) {
        return Ok(SetUp { qemu, was_there: true, bytes: 0 });
    }
    let name = Archive::name(Purpose::Programs, host);
    let _lock = cache.lock(&format!("apt-{name}"), watch)?;
    // Another lab may have set it up while this one waited.
    if let Some(qemu) = there(cache).filter(|_| !refresh) {
        return Ok(SetUp { qemu, was_there: true, bytes: 0 });
    }
    let archive = Archive::open(cache, site, Purpose::Programs, host)?;
    archive.update(watch)?;
    let packages = archive.closure(&PACKAGES, watch)?;
    let full = packages.iter().find(|p| p.name == PACKAGES[0]).map_or("", |p| &p.version);
    let version = suited(full)?;
    if version != PINNED {
        watch.step(&Step::Note(&format!(
            "the archive now has QEMU {version}; the lab was tested with {PINNED}"
        )));
    }
    let place = cache.qemu().join(version.to_string());
    if let Ok(qemu) = check(&place, host, cache) {
        return Ok(SetUp { qemu, was_there: true, bytes: 0 });
    }
    let stage = cache.stage(&place)?;
    let (debs, tree) = (stage.path().join("debs"), stage.path().join("tree"));
    archive.fetch(&format!("QEMU {version}"), &packages, &debs, &tree, is_needed, watch)?;
    let qemu = finish(stage, &tree, host, cache, watch)?;
    Ok(SetUp { qemu, was_there: false, bytes: packages.iter().map(|p| p.size).sum() })
}

/// Whether a file of the emulator's packages can be one that [`keep`] takes.
fn is_needed(path: &Path) -> bool {
    let folders =
        ["usr/bin", "lib", "lib64", "usr/lib", "usr/lib64", "usr/share/qemu", "usr/share/seabios"];
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Keeps what is needed of the unpacked packages in `tree`, puts it into its place, and tries it.
fn finish(
    stage: Stage,
    tree: &Path,
    host: Arch,
    cache: &Cache,
    watch: &mut dyn Watch,
) -> Result<Qemu, SetUpError> {
    keep(tree, stage.path(), watch)?;
    for folder in ["debs", "tree"].map(|name| stage.path().join(name)) {
        fs::remove_dir_all(&folder).map_err(CacheError::io("remove", &folder))?;
    }
    for arch in Arch::ALL {
        check(stage.path(), arch, cache).map_err(SetUpError::Qemu)?;
    }
    let place = stage.commit()?;
    check(&place, host, cache).map_err(SetUpError::Qemu)
}

/// The version within a package's version, if it is one of the series that was tried.
fn suited(full: &str) -> Result<Version, SetUpError> {
    let upstream = full.split_once(':').map_or(full, |(_, rest)| rest);
    let moved = || SetUpError::Moved(full.chars().take(60).collect());
    let version = Version::of(upstream).ok_or_else(moved)?;
    let same_series = (version.0, version.1) == (PINNED.0, PINNED.1);
    if same_series { Ok(version) } else { Err(moved()) }
}

fn check(root: &Path, arch: Arch, cache: &Cache) -> Result<Qemu, QemuError> {
    let start = super::Start::private(root, arch)?;
    Qemu::of(&start, arch, cache, &mut Memo::open(cache))
}

/// The newest emulator of the cache.
pub(super) fn newest(cache: &Cache, arch: Arch) -> Option<PathBuf> {
    let entries = cache.qemu().read_dir().into_iter().flatten().flatten();
    let versions = entries.filter_map(|entry| {
        let name = entry.file_name();
        Some((Version::of(name.to_str()?)?, entry.path()))
    });
    let program = Path::new("usr/bin").join(Qemu::program_name(arch));
    let usable = versions.filter(|(_, root)| tool::is_program(&root.join(&program)));
    usable.max().map(|(_, root)| root)
}

/// The dynamic loader below `root`, and the folder of libraries.
pub(super) fn loader(root: &Path) -> Option<(PathBuf, PathBuf)> {
    let usr = root.join("usr");
    let libraries = folders(&usr.join("lib")).find(|dir| dir.join("libc.so.6").is_file())?;
    // Where programs expect it comes before where it really is.
    let candidates = [usr.join("lib64"), root.join("lib64"), usr.join("lib"), libraries.clone()];
    let found = candidates.iter().find_map(|dir| {
        let entries = dir.read_dir().into_iter().flatten().flatten();
        let mut files = entries.map(|entry| entry.path());
        files.find(|path| is_loader(path) && path.is_file())
    });
    found.map(|loader| (loader, libraries))
}

/// `ld-linux-x86-64.so.2`, `ld-linux-aarch64.so.1`.
fn is_loader(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("ld-linux-") && name.contains(".so")
}

fn folders(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = dir.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// Moves the emulators from `tree` to `place`, with the libraries they load and the firmware that
/// a guest may run: a third of what the packages hold.
fn keep(tree: &Path, place: &Path, watch: &mut dyn Watch) -> Result<(), SetUpError> {
    let incomplete = |why: &str| SetUpError::Incomplete(why.into());
    let (loader, libraries) =
        loader(tree).ok_or_else(|| incomplete("there is no dynamic loader"))?;
    let mut needed = BTreeSet::from([loader.clone()]);
    for arch in Arch::ALL {
        let program = tree.join("usr/bin").join(Qemu::program_name(arch));
        if !program.is_file() {
            return Err(incomplete(&format!("{} is missing", Qemu::program_name(arch))));
        }
        needed.extend(loaded(&loader, &libraries, &program, tree, watch)?);
        needed.insert(program);
    }
    for name in super::FIRMWARE {
        let dirs = ["usr/share/qemu", "usr/share/seabios"].map(|dir| tree.join(dir));
        needed.extend(dirs.into_iter().map(|dir| dir.join(name)).filter(|path| path.is_file()));
    }
    for path in needed {
        let name = path.strip_prefix(tree).map_err(|_| incomplete("a file lies outside"))?;
        take(&path, &place.join(name))?;
        let made = name.ancestors().skip(1).map(|above| place.join(above));
        made.into_iter().try_for_each(|folder| open_to_all(&folder))?;
    }
    Ok(())
}

/// Lets every user go through a folder, whatever the umask says: as root, the emulator is another one.
fn open_to_all(folder: &Path) -> Result<(), CacheError> {
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder, mode).map_err(CacheError::io("open", folder))
}

/// The libraries that `program` loads.
fn loaded(
    loader: &Path,
    libraries: &Path,
    program: &Path,
    tree: &Path,
    watch: &mut dyn Watch,
) -> Result<Vec<PathBuf>, SetUpError> {
    let tool = Tool::new(loader).arg("--inhibit-cache").arg("--library-path").arg(libraries);
    let tool = tool.arg("--list").arg(program);
    let ended = tool::run(&tool, tool::text(1 << 20), watch, |_| Ok(()))?;
    let lines = ended.output.lines().filter_map(|line| line.split_once(" => "));
    let paths =
        lines.map(|(name, rest)| (name.trim(), rest.split(" (").next().unwrap_or_default()));
    let mut found = Vec::new();
    for (name, path) in paths {
        let path = PathBuf::from(path);
        if path.starts_with(tree) {
            found.push(path);
        } else if !is_loader(Path::new(name)) {
            return Err(SetUpError::Incomplete(format!("the library {name} is missing")));
        }
    }
    if !ended.success() || found.is_empty() {
        return Err(SetUpError::Incomplete("the loader does not list the libraries".into()));
    }
    Ok(found)
}

/// Gives the file `from` the name `to`, too.
fn take(from: &Path, to: &Path) -> Result<(), CacheError> {
    if let Some(parent) = to.parent() {
        Cache::create(parent)?;
    }
    fs::hard_link(from, to).or_else(|_| copy_new(from, to)).map_err(CacheError::io("create", to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_testing::Folder;

    #[test]
    fn only_the_series_that_was_tried_is_taken() {
        for (full, want) in [
            ("1:10.0.13+ds-0+deb13u1", Some(PINNED)),
            ("1:10.0.14+ds-0+deb13u1", Some(Version(10, 0, 14))),
            ("10.0.0", Some(Version(10, 0, 0))),
            ("1:10.1.0+ds-1", None),
            ("1:11.0.0+ds-1", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(suited(full).ok(), want, "{full}");
        }
    }

    #[test]
    fn the_loader_is_found_under_the_names_of_each_architecture() {
        for (loader_name, multiarch) in [
            ("usr/lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu"),
            ("usr/lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu"),
            ("usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1", "aarch64-linux-gnu"),
        ] {
            let folder = Folder::new("loader");
            let libraries = folder.path().join("usr/lib").join(multiarch);
            fs::create_dir_all(&libraries).unwrap();
            fs::create_dir_all(folder.path().join("usr/lib64")).unwrap();
            assert_eq!(loader(folder.path()), None);
            let path = folder.path().join(loader_name);
            fs::write(libraries.join("libc.so.6"), "").unwrap();
            fs::write(&path, "").unwrap();
            assert_eq!(loader(folder.path()), Some((path, libraries)));
        }
    }

    #[test]
    fn the_newest_emulator_is_taken() {
        let folder = Folder::new("newest");
        let cache = Cache::at(folder.path());
        assert_eq!(newest(&cache, Arch::Amd64), None);
        for version in ["10.0.9", "10.0.13", ".new-1-0-10.0.14", "10.0.15-empty"] {
            let bin = cache.qemu().join(version).join("usr/bin");
            fs::create_dir_all(&bin).unwrap();
            if !version.ends_with("empty") {
                let program = bin.join("qemu-system-x86_64");
                fs::write(&program, "").unwrap();
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(&program, mode).unwrap();
            }
        }
        assert_eq!(newest(&cache, Arch::Amd64), Some(cache.qemu().join("10.0.13")));
        assert_eq!(newest(&cache, Arch::Arm64), None);
    }
}
