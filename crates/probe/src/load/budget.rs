//! How much a load may take, so that the machine stays usable.

use std::path::Path;
use std::{fs, io};

use wakescope_sys::file;

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
    pub(super) fn at(dir: &Path) -> io::Result<Self> {
        let room = file::room(dir)?;
        let memory = if room.in_memory { available_memory() } else { u64::MAX };
        Ok(Self::of(room, memory))
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
    let group = fs::read_to_string("/proc/self/cgroup").ok().as_deref().and_then(group_path);
    let Some(group) = group else { return machine };
    // A limit of any group above holds as well.
    let limits = Path::new(&group).ancestors().map(|group| {
        let dir = Path::new("/sys/fs/cgroup").join(group);
        let number = |name| fs::read_to_string(dir.join(name)).ok()?.trim().parse::<u64>().ok();
        // "max", and the root's lack of both files, are no limit.
        match (number("memory.max"), number("memory.current")) {
            (Some(most), Some(used)) => most.saturating_sub(used),
            _ => u64::MAX,
        }
    });
    limits.fold(machine, u64::min)
}

/// `MemAvailable` of /proc/meminfo (Linux 3.14), in bytes.
fn available_in(meminfo: &str) -> Option<u64> {
    let value = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The cgroup of /proc/self/cgroup in the unified hierarchy, without the slash before it.
pub(super) fn group_path(cgroup: &str) -> Option<String> {
    let path = cgroup.lines().find_map(|l| l.strip_prefix("0::/"))?;
    // Never out of the hierarchy, whatever the file says.
    (!path.split('/').any(|part| part == "..")).then(|| path.into())
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
        for (text, want) in [
            ("12:cpu:/a\n0::/user.slice/b\n", Some("user.slice/b")),
            ("0::/\n", Some("")),
            ("0::/../../etc\n", None),
            ("1:memory:/x\n", None),
        ] {
            assert_eq!(group_path(text).as_deref(), want, "{text:?}");
        }
        assert!(available_memory() > 0);
    }
}
