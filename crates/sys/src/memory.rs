//! Locked memory and page faults.

use std::io;
use std::ops::{Deref, DerefMut};

use crate::checked;
use crate::region::Region;

/// Locks all memory that the process has now, so that none of it is paged out; what was not
/// resident becomes so.
///
/// Memory that it gets later stays unlocked. Locking that too (`MCL_FUTURE`) would make every later
/// allocation fail once an ordinary user's limit (`RLIMIT_MEMLOCK`, often 8 MiB) is reached.
pub fn lock_present() -> io::Result<()> {
    // SAFETY: flags only.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT) }).map(drop)
}

/// Gives memory that was freed back to the kernel, where the C library keeps it for later.
pub fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes a number, and touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// While this lives, the kernel makes no huge pages of this process's memory.
///
/// It does that in a thread of its own (khugepaged, nice 19), for which it takes the small pages out of
/// the page tables, locked ones too: whoever touches one meanwhile sleeps until that thread is done,
/// however long it has to wait for a CPU. (Guests of 6.1 and 7.2 under emulation beside a load: a probe
/// of SCHED_FIFO 90 was so 90 ms to 4.3 s late, about once in 20 s.) Huge pages that are there stay.
///
/// What is forked and executed meanwhile inherits it, and keeps it.
#[derive(Debug)]
pub struct SteadyPages {
    /// Whether it was so before.
    was_so: bool,
}

impl SteadyPages {
    /// Fails where the kernel knows no huge pages, and makes none.
    pub fn keep() -> io::Result<Self> {
        // SAFETY: an integer option; the kernel writes no memory.
        let before = checked(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) })?;
        let was_so = before != 0;
        if !was_so {
            no_huge_pages(true)?;
        }
        Ok(Self { was_so })
    }
}

impl Drop for SteadyPages {
    fn drop(&mut self) {
        if !self.was_so {
            // What could be set can be unset.
            let _ = no_huge_pages(false);
        }
    }
}

fn no_huge_pages(on: bool) -> io::Result<()> {
    // SAFETY: integer options; the kernel reads no memory.
    checked(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(on), 0, 0, 0) })
        .map(drop)
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
        let usage = crate::sched::thread_usage()?;
        let count = |faults| u64::try_from(faults).unwrap_or(0);
        Ok(Self { minor: count(usage.ru_minflt), major: count(usage.ru_majflt) })
    }

    /// Faults since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { minor: self.minor - earlier.minor, major: self.major - earlier.major }
    }
}

/// Memory of this process alone, mapped for as long as this lives. It is zero at first, and none of it
/// is there until it is touched.
#[derive(Debug)]
pub struct Mapping {
    region: Region,
}

impl Mapping {
    /// So many bytes, more than 0.
    pub fn new(length: usize) -> io::Result<Self> {
        Region::of_zeros(length, false).map(|region| Self { region })
    }

    /// Has the kernel make no huge pages of it: each page then faults by itself.
    pub fn no_huge_pages(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_NOHUGEPAGE)
    }

    /// Lets the kernel take the memory back when it is short of it. What was taken back is zero.
    pub fn free_lazily(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_FREE)
    }

    fn advise(&mut self, advice: libc::c_int) -> io::Result<()> {
        let (start, length) = (self.region.start().as_ptr(), self.region.length());
        // SAFETY: the range is that of the mapping, which is borrowed for writing: its bytes may change.
        checked(unsafe { libc::madvise(start, length, advice) }).map(drop)
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped there, readable, for as long as this value lives.
        unsafe { std::slice::from_raw_parts(self.region.start().as_ptr(), self.region.length()) }
    }
}

impl DerefMut for Mapping {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and writable; nobody else has them.
        unsafe {
            std::slice::from_raw_parts_mut(self.region.start().as_ptr(), self.region.length())
        }
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
    fn pages_are_steady_as_long_as_that_is_wanted() {
        // `THP_enabled` is in there since 5.0.
        let huge_pages = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            status.lines().find_map(|line| Some(line.strip_prefix("THP_enabled:")?.trim() == "1"))
        };
        let before = huge_pages();
        if before != Some(true) {
            return; // This kernel does not tell, makes none, or was text not to.
        }
        let outer = SteadyPages::keep().unwrap();
        assert_eq!(huge_pages(), Some(false));
        drop(SteadyPages::keep().unwrap());
        assert_eq!(huge_pages(), Some(false));
        drop(outer);
        assert_eq!(huge_pages(), before);
    }

    #[test]
    fn fresh_memory_faults() {
        let before = PageFaults::of_this_thread().unwrap();
        let fresh = vec![1_u8; 4 << 20];
        std::hint::black_box(&fresh);
        let faults = PageFaults::of_this_thread().unwrap().since(before);
        assert!(faults.minor > 0, "{faults:?}");
    }
}
