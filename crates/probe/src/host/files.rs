//! Files of /proc, /sys and /boot, read with a limit and without waiting.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use wakescope_core::preemption::Reading;
use wakescope_sys::machine;

/// A file system tree that looks like a machine's: `/`, or a folder in a test.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
}

/// Enough for every one-line file and list of this module; more than this is not one.
const TEXT_LIMIT: u64 = 64 << 10;

/// A directory with more entries than this is not one that is expected here.
const ENTRIES_LIMIT: usize = 10_000;

impl Files {
    /// The machine's own files.
    pub fn of_this_machine() -> Self {
        Self::under("/")
    }

    /// Files below `root`, as if it were `/`.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Opens `path`, which is absolute.
    pub(super) fn open(&self, path: &str) -> io::Result<File> {
        machine::open_without_waiting(&self.path(path))
    }

    /// Where `path`, which is absolute, lies. A `..` would lead out of the tree, so it leads nowhere.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        if path.split('/').any(|part| part == "..") {
            return PathBuf::from("/dev/null/nowhere");
        }
        self.root.join(path.trim_start_matches('/'))
    }

    /// Whether `path` is there.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The first `limit` bytes of `path`.
    pub(super) fn bytes(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The beginning of a text file, without the white space around it. Bytes that are not UTF-8
    /// are replaced.
    pub(super) fn text(&self, path: &str) -> io::Result<String> {
        let mut bytes = self.bytes(path, TEXT_LIMIT)?;
        // Device tree strings end in NUL.
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(String::from_utf8_lossy(&bytes).trim().to_string())
    }

    /// As [`Files::text`]; `None` where there is nothing.
    pub(super) fn word(&self, path: &str) -> Option<String> {
        self.text(path).ok().filter(|text| !text.is_empty())
    }

    /// Where the link at `path` leads; `None` where there is none.
    pub(super) fn link(&self, path: &str) -> Option<PathBuf> {
        std::fs::read_link(self.path(path)).ok()
    }

    /// The number that `path` holds.
    pub(super) fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path).ok()?.parse().ok()
    }

    /// The CPUs that `path` lists (`0-3,8`).
    pub(super) fn cpus(&self, path: &str) -> Vec<u32> {
        self.word(path).map(|list| wakescope_core::host::cpu_list(&list)).unwrap_or_default()
    }

    /// The names in a directory, sorted; none if it cannot be read.
    pub(super) fn entries(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(path)) else { return Vec::new() };
        let name =
            |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        let mut names: Vec<_> = entries.take(ENTRIES_LIMIT).filter_map(name).collect();
        names.sort();
        names
    }

    /// A source of evidence: what it holds or why that could not be read.
    pub(super) fn reading(&self, path: &str) -> Reading {
        self.reading_with(path, |files| files.text(path))
    }

    /// As [`Files::reading`], with a way of its own to read.
    pub(super) fn reading_with(
        &self,
        path: &str,
        read: impl FnOnce(&Self) -> io::Result<String>,
    ) -> Reading {
        Reading { source: path.into(), text: read(self).map_err(|e| self.why(path, &e)) }
    }

    /// Why `path` could not be read, in a few words that name the obstacle.
    pub(super) fn why(&self, path: &str, cause: &io::Error) -> String {
        if machine::is_absent(cause) {
            // An empty mount point: the file may well exist, but not where anybody can see it.
            return match self.unmounted(path) {
                Some(point) => format!("{point} is not mounted"),
                None => "absent".into(),
            };
        }
        if machine::is_refused_on_principle(cause) && path == "/dev/kmsg" {
            return "not for this user (kernel.dmesg_restrict)".into();
        }
        if machine::is_refused_on_principle(cause) {
            return match self.lockdown() {
                Some(level) => format!("refused by kernel lockdown ({level})"),
                None => "refused by the kernel (lockdown, or the container's seccomp rules)".into(),
            };
        }
        match cause.kind() {
            io::ErrorKind::PermissionDenied => "permission denied".into(),
            _ => cause.to_string(),
        }
    }

    /// The kernel's lockdown level, if it is known and not `none`.
    pub(super) fn lockdown(&self) -> Option<String> {
        let text = self.word("/sys/kernel/security/lockdown")?;
        let level = text.split('[').nth(1)?.split(']').next()?.to_string();
        (level != "none").then_some(level)
    }

    /// The mount point above `path` on which nothing is mounted.
    fn unmounted(&self, path: &str) -> Option<&'static str> {
        const POINTS: [&str; 3] =
            ["/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security"];
        let empty = |point: &&str| {
            std::fs::read_dir(self.path(point)).is_ok_and(|mut all| all.next().is_none())
        };
        POINTS.into_iter().find(|point| path.starts_with(point) && empty(point))
    }
}
