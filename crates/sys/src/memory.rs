//! Locked memory and page faults.

use std::{io, mem};

use crate::checked;

/// Locks all memory that the process has now, so that none of it is paged out; what was not
/// resident becomes so.
///
/// Memory that it gets later stays unlocked. Locking that too (`MCL_FUTURE`) would make every later
/// allocation fail once an ordinary user's limit (`RLIMIT_MEMLOCK`, often 8 MiB) is reached.
pub fn lock_present() -> io::Result<()> {
    // SAFETY: flags only.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT) }).map(drop)
}

/// Page faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFaults {
    /// Served from memory.
    pub minor: u64,
    /// Served from a disk.
    pub major: u64,
}

impl PageFaults {
    /// Faults of the calling thread since it began.
    pub fn of_this_thread() -> io::Result<Self> {
        // SAFETY: `rusage` is plain integers, for which zero is a value.
        let mut usage: libc::rusage = unsafe { mem::zeroed() };
        // SAFETY: `usage` is live and writable.
        checked(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) })?;
        let count = |faults| u64::try_from(faults).unwrap_or(0);
        Ok(Self { minor: count(usage.ru_minflt), major: count(usage.ru_majflt) })
    }

    /// Faults since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { minor: self.minor - earlier.minor, major: self.major - earlier.major }
    }
}

/// Lets this process lock as much memory as it likes, if it may.
pub fn lift_lock_limit() -> io::Result<()> {
    let all = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is live for the call, which only reads it.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const all) }).map(drop)
}

/// Keeps the C library from giving each thread an allocation arena of its own (64 MiB of address
/// space each, with pages that stay resident once memory is locked). Does nothing elsewhere.
pub fn use_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: an integer option, set before other threads exist.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_faults() {
        let before = PageFaults::of_this_thread().unwrap();
        let fresh = vec![1_u8; 4 << 20];
        std::hint::black_box(&fresh);
        let faults = PageFaults::of_this_thread().unwrap().since(before);
        assert!(faults.minor > 0, "{faults:?}");
    }
}
