//! Debian's archive, through an apt of one's own: its lists and packages lie below the lab's
//! folder, signatures are checked, and the system's apt neither knows nor changes.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cache::{Cache, CacheError};
use crate::kernel::Arch;
use crate::watch::{Step, Watch};

mod root;
mod site;
mod tar;
pub(crate) mod tool;
mod unpack;

use root::Room;
pub use site::{Site, SiteError};
use tar::TarError;
use tool::Tool;
use unpack::{LIMITS, UnpackError, Unpacker};

/// The longest line of a package list that is of interest.
const LONGEST_LINE: usize = 64 << 10;

/// Why the archive is of no help.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A program is missing: `apt-get`, `dpkg-deb`.
    #[error("`{0}` is not installed")]
    NoTool(&'static str),
    /// The keys that Debian signs with are missing, or those that were named.
    #[error("the archive's keys are not installed: {}", .0.display())]
    NoKeys(PathBuf),
    /// What was said about the mirror makes no sense.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// A program could not be started.
    #[error("cannot start {}: {source}", .program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A program ended without having done what it should.
    #[error("apt or dpkg could not {task}")]
    Failed {
        /// What it should have done: `fetch the package lists`.
        task: String,
        /// What it said about it, a line each.
        complaints: Vec<String>,
    },
    /// A package is not taken apart.
    #[error("a package of {what} cannot be unpacked: {why}")]
    Package {
        /// What it belongs to.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The lab's folder.
    #[error(transparent)]
    Cache(CacheError),
    /// The user ended it.
    #[error("interrupted")]
    Stopped,
}

impl From<CacheError> for ArchiveError {
    fn from(e: CacheError) -> Self {
        match e {
            CacheError::Stopped => Self::Stopped,
            other => Self::Cache(other),
        }
    }
}

impl ArchiveError {
    /// Whether there is no room left on the disk, or for this user.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Cache(e) => e.is_full(),
            Self::Failed { complaints, .. } => complaints.iter().any(|line| tells_of_full(line)),
            _ => false,
        }
    }
}

/// A package of the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version, in full: `1:10.0.13+ds-0+deb13u1`.
    pub version: String,
    /// Its size as it is fetched, bytes.
    pub size: u64,
}

/// What is to be had of an archive, for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Kernels of every release that Debian cares for.
    Kernels,
    /// The emulator and programs for guests, of one release, so that they fit together.
    Programs,
}

/// An apt of one's own. It is not locked: whoever has it holds the cache's lock of its name.
#[derive(Debug)]
pub struct Archive {
    root: PathBuf,
    apt_get: PathBuf,
    apt_cache: PathBuf,
    dpkg_deb: PathBuf,
}

impl Archive {
    /// Sets up apt for packages of `arch`. Fetches nothing.
    pub fn open(
        cache: &Cache,
        site: &Site,
        purpose: Purpose,
        arch: Arch,
    ) -> Result<Self, ArchiveError> {
        let program = |name| tool::find(name).ok_or(ArchiveError::NoTool(name));
        let (apt_get, apt_cache) = (program("apt-get")?, program("apt-cache")?);
        let dpkg_deb = program("dpkg-deb")?;
        if !site.keys.is_file() {
            return Err(ArchiveError::NoKeys(site.keys.clone()));
        }
        let root = cache.apt().join(Self::name(purpose, arch));
        root::create(cache, &root, site, purpose, arch)?;
        Ok(Self { root, apt_get, apt_cache, dpkg_deb })
    }

    /// Names the folder and the lock of an archive: `kernels-amd64`.
    pub fn name(purpose: Purpose, arch: Arch) -> String {
        match purpose {
            Purpose::Kernels => format!("kernels-{arch}"),
            Purpose::Programs => format!("programs-{arch}"),
        }
    }

    /// Fetches the package lists, where they have changed. Returns what was wrong with some of
    /// them, a line each; fails if there are none at all.
    pub fn update(&self, watch: &mut dyn Watch) -> Result<Vec<String>, ArchiveError> {
        let tool = self.apt(&self.apt_get).args(["-q", "update"]);
        let lists = self.root.join("lists");
        watch.step(&Step::Lists { bytes: 0 });
        // Lists that stay as they are do not come in.
        let before = root::bytes_below(&lists);
        let mut room = Room::of(&lists);
        let ended = tool::run(&tool, tool::text(1 << 20), watch, |watch| {
            let all = root::bytes_below(&lists);
            watch.step(&Step::Lists { bytes: all.saturating_sub(before) });
            room.check(all)
        })?;
        // For apt it is but a warning when a suite cannot be reached of which it has older lists.
        let unreached = ended.complaints.lines().any(|l| l.starts_with("W: Failed to fetch"));
        if ended.success() && !unreached {
            return Ok(Vec::new());
        }
        match failed("fetch the package lists", &ended.complaints) {
            // A mirror need not have every suite.
            ArchiveError::Failed { complaints, .. } if root::has_lists(&lists) => Ok(complaints),
            e => Err(e),
        }
    }

    /// The packages whose names `wanted` likes, each in the newest version that its suites allow.
    pub fn packages(
        &self,
        wanted: impl Fn(&str) -> bool + Send,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Package>, ArchiveError> {
        let tool = self.apt(&self.apt_cache).arg("dumpavail");
        let read = |out| stanzas(BufReader::new(out), wanted);
        let ended = tool::run(&tool, read, watch, |_| Ok(()))?;
        if !ended.success() {
            return Err(failed("read the package lists", &ended.complaints));
        }
        Ok(ended.output)
    }

    /// `names` and all packages that they depend on.
    pub(crate) fn closure(
        &self,
        names: &[&str],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Package>, ArchiveError> {
        let tool = self.apt(&self.apt_get);
        let tool = tool.args(["-q", "--simulate", "--no-install-recommends", "install"]);
        let tool = tool.args(names.iter().copied());
        let ended = tool::run(&tool, tool::text(4 << 20), watch, |_| Ok(()))?;
        if !ended.success() {
            return Err(failed(&format!("find all of {}", names.join(", ")), &ended.complaints));
        }
        let mut chosen: Vec<Package> = ended.output.lines().filter_map(installed).collect();
        let sizes = self.packages(|name| chosen.iter().any(|p| p.name == name), watch)?;
        for package in &mut chosen {
            let known = sizes.iter().find(|p| p.name == package.name);
            package.size = known.map_or(0, |p| p.size);
        }
        Ok(chosen)
    }

    /// Fetches packages into `folder`, which must be empty, checks them against the signed lists,
    /// and takes their files that are `wanted` apart below `into`. `what` names them for the user.
    pub fn fetch(
        &self,
        what: &str,
        packages: &[Package],
        folder: &Path,
        into: &Path,
        wanted: fn(&Path) -> bool,
        watch: &mut dyn Watch,
    ) -> Result<(), ArchiveError> {
        Cache::create(folder)?;
        self.download(what, packages, folder, watch)?;
        Cache::create(into)?;
        let entries = folder.read_dir().map_err(CacheError::io("read", folder))?;
        let mut debs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        debs.retain(|path| path.extension().is_some_and(|e| e == "deb"));
        debs.sort();
        let unpacker = Unpacker::new(into, wanted, LIMITS);
        let mut unpacker = unpacker.map_err(CacheError::io("open", into))?;
        for deb in debs {
            watch.step(&Step::Unpack(what));
            self.unpack(what, &deb, &mut unpacker, watch)?;
            let _ = std::fs::remove_file(deb);
        }
        unpacker.finish().map_err(|e| not_unpacked(what, e))
    }

    /// The program takes away only the packing: which files are made is not left to it.
    fn unpack(
        &self,
        what: &str,
        deb: &Path,
        unpacker: &mut Unpacker,
        watch: &mut dyn Watch,
    ) -> Result<(), ArchiveError> {
        let tool = Tool::new(&self.dpkg_deb).arg("--fsys-tarfile").arg(deb);
        let ended = tool::run(&tool, |files| unpacker.add(files), watch, |_| Ok(()))?;
        match &ended.output {
            // What came of a program that failed ends too early.
            Ok(()) | Err(UnpackError::Tar(TarError::Io(_))) if !ended.success() => {
                Err(failed(&format!("unpack {what}"), &ended.complaints))
            }
            _ => ended.output.map_err(|e| not_unpacked(what, e)),
        }
    }

    fn download(
        &self,
        what: &str,
        packages: &[Package],
        folder: &Path,
        watch: &mut dyn Watch,
    ) -> Result<(), ArchiveError> {
        let of = packages.iter().map(|p| p.size).sum();
        let tool = self.apt(&self.apt_get).current_dir(folder).args(["-q", "download"]);
        let tool = tool.args(packages.iter().map(|p| format!("{}={}", p.name, p.version)));
        let mut room = Room::of(folder);
        watch.step(&Step::Download { what, bytes: 0, of });
        let ended = tool::run(&tool, tool::text(1 << 20), watch, |watch| {
            let bytes = root::bytes_below(folder);
            watch.step(&Step::Download { what, bytes: bytes.min(of), of });
            room.check(bytes)
        })?;
        if !ended.success() {
            return Err(failed(&format!("fetch {what}"), &ended.complaints));
        }
        Ok(())
    }

    fn apt(&self, program: &Path) -> Tool {
        Tool::new(program).env("APT_CONFIG", &root::config(&self.root))
    }
}

fn not_unpacked(what: &str, e: UnpackError) -> ArchiveError {
    match e {
        UnpackError::Write(path, source) => CacheError::io("write", &path)(source).into(),
        other => ArchiveError::Package { what: what.into(), why: other.to_string() },
    }
}

/// Whether a program complains that there is no room left.
fn tells_of_full(line: &str) -> bool {
    let signs = ["No space left on device", "Disk quota exceeded", "enough free space"];
    signs.iter().any(|sign| line.contains(sign))
}

/// What a program complained about: that there is no room, for the rest follows from that; else
/// errors where there are any; else all it said.
fn failed(task: &str, complaints: &str) -> ArchiveError {
    let lines: Vec<&str> =
        complaints.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let only = |wanted: &dyn Fn(&str) -> bool| -> Vec<&str> {
        lines.iter().copied().filter(|line| wanted(line)).collect()
    };
    let full: Vec<&str> = only(&tells_of_full).into_iter().take(1).collect();
    let errors = only(&|line| line.starts_with("E: ") || line.contains("error"));
    let said = [full, errors, lines].into_iter().find(|lines| !lines.is_empty());
    let complaints = said.unwrap_or_default().into_iter().take(5).map(str::to_owned).collect();
    ArchiveError::Failed { task: task.into(), complaints }
}

/// Reads the packages that are wanted out of a list in Debian's format.
fn stanzas(mut list: impl BufRead, wanted: impl Fn(&str) -> bool) -> Vec<Package> {
    let mut found = Vec::new();
    let mut package: Option<Package> = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        match io::Read::take(&mut list, LONGEST_LINE as u64).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => break,
        }
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        let (key, value) = text.trim_end().split_once(": ").unwrap_or((text.trim_end(), ""));
        match (key, &mut package) {
            ("Package", _) => {
                found.extend(package.take());
                if wanted(value) {
                    package = Some(Package { name: value.into(), ..Package::default() });
                }
            }
            ("Version", Some(package)) => package.version = value.into(),
            ("Size", Some(package)) => package.size = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    found.extend(package);
    found
}

/// Reads a line of apt's simulation: `Inst libc6 (2.41-12 Debian:13.5/stable [amd64])`.
fn installed(line: &str) -> Option<Package> {
    let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
    let version = rest.split_once('(')?.1.split([' ', ')']).next()?;
    Some(Package { name: name.into(), version: version.into(), size: 0 })
}

#[cfg(test)]
mod tests;
