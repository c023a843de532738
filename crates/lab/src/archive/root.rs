//! The files that make an apt of one's own.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_store::is_trusted_owner;
use wakescope_sys::clock;
use wakescope_sys::file::{effective_user, room};
use wakescope_sys::folder::{Folder, Kind};

use super::site::Site;
use super::tool::{self, Tool};
use super::{ArchiveError, Purpose};
use crate::cache::{Cache, CacheError, PARTIAL};
use crate::kernel::Arch;
use crate::watch::Unwatched;

/// What is kept of the system's settings: how to get through to the net, and whether the mirrors
/// that it leads to may be behind. All else, such as what to do after an update, is the system's
/// own business.
const KEPT: [&str; 5] = [
    "Acquire::http",
    "Acquire::https",
    "Acquire::ForceIPv",
    "Acquire::Retries",
    "Acquire::Check-Valid-Until",
];

/// Where kernels come from: `(suite, whether it is one of security updates)`.
const KERNEL_SUITES: [(&str, bool); 7] = [
    ("bookworm", false),
    ("bookworm-backports", false),
    ("trixie", false),
    ("trixie-backports", false),
    ("sid", false),
    ("bookworm-security", true),
    ("trixie-security", true),
];

/// Where programs come from: one release, so that their libraries fit.
const PROGRAM_SUITES: [(&str, bool); 1] = [("trixie", false)];

/// Where apt is told all that follows.
pub(super) fn config(root: &Path) -> PathBuf {
    root.join("apt.conf")
}

/// Writes the settings and makes the folders of an apt below `root`.
pub(super) fn create(
    cache: &Cache,
    root: &Path,
    site: &Site,
    purpose: Purpose,
    arch: Arch,
) -> Result<(), ArchiveError> {
    for folder in ["lists", "archives"] {
        let folder = root.join(folder);
        Cache::create(&folder)?;
        make_partial(&folder).map_err(CacheError::io("create", &folder.join(PARTIAL)))?;
    }
    Cache::create(&root.join("parts"))?;
    cache.write(&root.join("status"), b"")?;
    cache.write(&root.join("archive.sources"), sources(site, purpose, arch).as_bytes())?;
    cache.write(&config(root), settings(root, arch)?.as_bytes())?;
    Ok(())
}

/// Makes apt's folder for what is not checked yet. As root, apt gives it to the user `_apt`: what that
/// user has left there is removed.
fn make_partial(folder: &Path) -> io::Result<()> {
    let name = OsStr::new(PARTIAL);
    let folder = Folder::open(folder)?;
    let found = match folder.about_file(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return folder.make(name, 0o700),
        other => other?,
    };
    if found.kind == Kind::Folder && is_trusted_owner(found.owner) {
        return Ok(());
    }
    if found.kind == Kind::Folder {
        folder.subfolder(name)?.empty()?;
        folder.remove_folder(name)?;
    } else {
        folder.remove_file(name)?;
    }
    folder.make(name, 0o700)
}

fn sources(site: &Site, purpose: Purpose, arch: Arch) -> String {
    let suites: &[(&str, bool)] = match purpose {
        Purpose::Kernels => &KERNEL_SUITES,
        Purpose::Programs => &PROGRAM_SUITES,
    };
    let keys = site.keys.display();
    let mut out = String::new();
    for (address, security) in [(&site.main, false), (&site.security, true)] {
        let suites: Vec<&str> = suites.iter().filter(|s| s.1 == security).map(|s| s.0).collect();
        if !suites.is_empty() {
            let suites = suites.join(" ");
            let _ = write!(
                out,
                "Types: deb\nURIs: {address}\nSuites: {suites}\nComponents: main\n\
                 Architectures: {arch}\nSigned-By: {keys}\n\n"
            );
        }
    }
    out
}

fn settings(root: &Path, arch: Arch) -> Result<String, ArchiveError> {
    // It stands in quotes, and apt knows no way to write one inside.
    let path = root.to_str().filter(|path| !path.contains(['"', '\\', '\n'])).ok_or_else(|| {
        let source = io::Error::new(
            io::ErrorKind::InvalidInput,
            "apt does not support the name of this folder",
        );
        CacheError::Io { action: "use", path: root.into(), source }
    })?;
    let mut out = format!(
        "Dir::State \"{path}\";\n\
         Dir::State::lists \"{path}/lists\";\n\
         Dir::State::status \"{path}/status\";\n\
         Dir::State::extended_states \"{path}/extended_states\";\n\
         Dir::Cache \"{path}\";\n\
         Dir::Cache::archives \"{path}/archives\";\n\
         Dir::Cache::pkgcache \"\";\n\
         Dir::Cache::srcpkgcache \"\";\n\
         Dir::Log \"{path}\";\n\
         Dir::Etc::sourcelist \"{path}/archive.sources\";\n\
         Dir::Etc::sourceparts \"{path}/parts\";\n\
         Dir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"{path}/parts\";\n\
         Dir::Etc::main \"/dev/null\";\n\
         Dir::Etc::parts \"{path}/parts\";\n\
         APT::Architecture \"{arch}\";\n\
         APT::Architectures {{ \"{arch}\"; }};\n\
         APT::Get::List-Cleanup \"true\";\n\
         Acquire::GzipIndexes \"true\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         Acquire::IndexTargets::deb::CNF::DefaultEnabled \"false\";\n\
         Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n"
    );
    // As root, apt fetches as the user `_apt`, who must be able to come here.
    if effective_user() == 0 && !open_to_all(root) {
        out.push_str("APT::Sandbox::User \"root\";\n");
    }
    out.push_str(&kept_settings());
    Ok(out)
}

/// Whether every user may come into `folder`.
fn open_to_all(folder: &Path) -> bool {
    folder.ancestors().all(|folder| {
        folder.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o005 == 0o005)
    })
}

/// The system's settings that are kept.
fn kept_settings() -> String {
    let Some(apt_config) = tool::find("apt-config") else { return String::new() };
    let tool = Tool::new(apt_config);
    let tool = tool.args(["dump", "--no-empty", "--format", "%F \"%V\";%n", "Acquire"]);
    let ended = tool::run(&tool, tool::text(1 << 20), &mut Unwatched, |_| Ok(()));
    ended.map_or_else(|_| String::new(), |ended| kept(&ended.output))
}

fn kept(dump: &str) -> String {
    let lines = dump.lines().filter(|line| KEPT.iter().any(|key| line.starts_with(key)));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Whether there are any package lists in `folder`.
pub(super) fn has_lists(folder: &Path) -> bool {
    let names = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.into_iter().any(|name| name.to_string_lossy().contains("_Packages"))
}

/// Bytes of all files in `folder` and its folder `partial`, as far as they can be seen.
pub(super) fn bytes_below(folder: &Path) -> u64 {
    [folder.to_owned(), folder.join("partial")]
        .iter()
        .flat_map(|folder| folder.read_dir().into_iter().flatten().flatten())
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|meta| meta.len())
        .sum()
}

/// Sees when the disk is full. Some of apt's helpers then try again for ever.
pub(super) struct Room<'a> {
    folder: &'a Path,
    bytes: u64,
    grew_at: MonoNs,
}

/// Less room than this is none: what apt writes at once is not more.
const NO_ROOM: u64 = 1 << 20;

/// What writing fails with then, on every architecture of Linux.
const ENOSPC: i32 = 28;

/// How long nothing may grow where there is no room.
const STALLED: SpanNs = SpanNs(3_000_000_000);

impl<'a> Room<'a> {
    pub(super) fn of(folder: &'a Path) -> Self {
        Self { folder, bytes: 0, grew_at: clock::now() }
    }

    /// Fails if the disk is full and the files, of `bytes` together, have not grown for a while.
    pub(super) fn check(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        let now = clock::now();
        if bytes != self.bytes {
            (self.bytes, self.grew_at) = (bytes, now);
        }
        let stalled = now.since(self.grew_at) > STALLED;
        if stalled && room(self.folder).is_ok_and(|room| room.bytes < NO_ROOM) {
            let source = io::Error::from_raw_os_error(ENOSPC);
            return Err(CacheError::io("write to", self.folder)(source).into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use wakescope_testing::Folder;

    #[test]
    fn sources_bear_the_keys() {
        let site = Site::of("http://m/debian", Some("/k.gpg".into())).unwrap();
        expect![[r#"
            Types: deb
            URIs: http://m/debian
            Suites: bookworm bookworm-backports trixie trixie-backports sid
            Components: main
            Architectures: arm64
            Signed-By: /k.gpg

            Types: deb
            URIs: http://m/debian-security
            Suites: bookworm-security trixie-security
            Components: main
            Architectures: arm64
            Signed-By: /k.gpg

        "#]]
        .assert_eq(&sources(&site, Purpose::Kernels, Arch::Arm64));
        assert_eq!(sources(&site, Purpose::Programs, Arch::Amd64).matches("Types").count(), 1);
    }

    #[test]
    fn of_the_system_only_the_way_to_the_net_is_kept() {
        let dump = "Acquire::http::Proxy \"http://proxy:3128\";\nAcquire::Languages \"de\";\n\
                    Acquire::https::Verify-Peer \"true\";\nAcquire::IndexTargets::deb::x \"1\";\n";
        expect![[r#"
            Acquire::http::Proxy "http://proxy:3128";
            Acquire::https::Verify-Peer "true";
        "#]]
        .assert_eq(&kept(dump));
    }

    #[test]
    fn a_folder_that_apt_cannot_write_down_is_refused() {
        let folder = Folder::new("quote\"d");
        let e = settings(folder.path(), Arch::Amd64).unwrap_err();
        assert!(e.to_string().contains("the name of this folder"), "{e}");
    }

    #[test]
    fn a_folder_below_a_private_one_is_not_open_to_all() {
        let folder = Folder::new("private");
        let below = folder.path().join("below");
        std::fs::create_dir(&below).unwrap();
        let allow = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path(), mode).unwrap();
        };
        allow(0o755);
        let reachable = open_to_all(&below);
        allow(0o700);
        assert!(!open_to_all(&below));
        assert_eq!(reachable, open_to_all(&std::env::temp_dir()));
    }
}
