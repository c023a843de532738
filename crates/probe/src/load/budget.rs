//! How much a load may take, so that the machine stays usable.

use std::path::Path;
use std::{fs, io};

use wakescope_sys::file;

use crate::host::{Files, cgroups};

/// Bytes that one file without content may cost: an inode and two directory entries of tmpfs or
/// ext4 are below 1,200, the rest is for names and directories.
const FILE_COST: u64 = 2048;

/// What a load may take of the file system that it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    /// Bytes of content.
    pub(super) bytes: u64,
    /// Files without content.
    pub(super) files: u64,
}

impl Budget {
    /// A quarter of what is free at `dir`; where files are held in memory, also no more than an
    /// eighth of the memory that can be had.
    fn at(dir: &Path) -> io::Result<Self> {
        let room = file::room(dir)?;
        let memory = if room.in_memory { available_memory() } else { u64::MAX };
        Ok(Self::of(room, memory))
    }

    /// The same of the current directory, which is called `dir`.
    pub(super) fn here(dir: &str) -> Result<Self, String> {
        let failed = |e| format!("cannot check the free space in {dir}: {e}");
        Self::at(Path::new(".")).map_err(failed)
    }

    /// The fault of a `load` that needs so many bytes.
    pub(super) fn too_small(self, dir: &str, load: &str, needed: u64) -> String {
        format!(
            "{dir} has space for only {} kB of files; {load} needs {} kB (it uses a quarter of the \
             free space, and an eighth of memory where files are in memory)",
            self.bytes / 1000,
            needed.div_ceil(1000)
        )
    }

    fn of(room: file::Room, memory: u64) -> Self {
        let bytes = (room.bytes / 4).min(if room.in_memory { memory / 8 } else { u64::MAX });
        Self { bytes, files: (room.files / 4).min(bytes / FILE_COST) }
    }
}

/// Memory that can be had without swapping, within the limits of this process's cgroups.
pub(super) fn available_memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().as_deref().and_then(available_in);
    // Without /proc nothing is known; a machine that runs Linux has this much.
    let machine = machine.unwrap_or(16 << 20);
    let groups = cgroups::folders(&Files::of_this_machine(), "memory");
    groups.iter().filter_map(|group| available_to(group)).fold(machine, u64::min)
}

/// Memory that the cgroup in `folder` may still take; `None` where it has no limit.
fn available_to(folder: &Path) -> Option<u64> {
    let number = |name| cgroups::number(folder, name);
    // Of the unified hierarchy, or of version 1. Above memory.high, a group is slowed down.
    let limits = ["memory.max", "memory.high", "memory.limit_in_bytes"].map(number);
    let most = limits.into_iter().flatten().min()?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    // What was read or written, and is used no longer, is given up first.
    let kept = |key| cgroups::number_of(folder, "memory.stat", key);
    let cache = kept("total_inactive_file").or_else(|| kept("inactive_file")).unwrap_or(0);
    Some(most.saturating_sub(used.saturating_sub(cache)))
}

/// `MemAvailable` of /proc/meminfo (Linux 3.14), in bytes.
fn available_in(meminfo: &str) -> Option<u64> {
    let value = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[track_caller]
    fn check(bytes: u64, files: u64, memory: Option<u64>, want: (u64, u64)) {
        let room = file::Room { bytes, files, in_memory: memory.is_some() };
        let budget = Budget::of(room, memory.unwrap_or(0));
        assert_eq!((budget.bytes, budget.files), want, "{room:?}, memory {memory:?}");
    }

    #[test]
    fn a_part_is_taken() {
        check(400 * MIB, 1000, None, (100 * MIB, 250));
        check(400 * MIB, u64::MAX, None, (100 * MIB, 100 * 512));
        // ramfs states neither size nor number of files: memory limits it.
        check(u64::MAX, u64::MAX, Some(64 * MIB), (8 * MIB, 8 * 512));
        check(16 * MIB, 1000, Some(64 * MIB), (4 * MIB, 250));
        check(0, 0, Some(0), (0, 0));
    }

    #[test]
    fn kernel_texts_are_read() {
        for (text, want) in [
            ("MemTotal: 9 kB\nMemAvailable:   24444 kB\n", Some(24444 * 1024)),
            ("MemAvailable: 18446744073709551615 kB\n", None),
            ("MemAvailable: x kB\n", None),
            ("", None),
        ] {
            assert_eq!(available_in(text), want, "{text:?}");
        }
        assert!(available_memory() > 0);
    }

    #[test]
    fn the_nearest_limit_of_a_cgroup_counts() {
        for (files, want) in [
            (&[("memory.max", "1000"), ("memory.current", "300")][..], Some(700)),
            (&[("memory.max", "max"), ("memory.current", "300")], None),
            (
                &[("memory.max", "max"), ("memory.high", "500"), ("memory.current", "300")],
                Some(200),
            ),
            (&[("memory.max", "100"), ("memory.high", "500"), ("memory.current", "300")], Some(0)),
            // Page cache that is not in use.
            (
                &[
                    ("memory.max", "1000"),
                    ("memory.current", "900"),
                    ("memory.stat", "anon 200\ninactive_file 600\nactive_file 100\n"),
                ],
                Some(700),
            ),
            // Of version 1, where the groups below are in the total only.
            (
                &[
                    ("memory.limit_in_bytes", "1000"),
                    ("memory.usage_in_bytes", "900"),
                    ("memory.stat", "inactive_file 100\ntotal_inactive_file 200\n"),
                ],
                Some(300),
            ),
            (&[("memory.stat", "inactive_file 600\n")], None),
            (&[], None),
        ] {
            let group = wakescope_testing::Folder::new("budget");
            for (name, text) in files {
                group.write(name, format!("{text}\n"));
            }
            assert_eq!(available_to(&group), want, "{files:?}");
        }
    }
}
