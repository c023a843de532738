//! Scheduling: policies, CPUs, timer slack.

use std::{io, mem};

use wakescope_core::plan::ProbePolicy;
use wakescope_core::units::SpanNs;

use crate::checked;

/// A thread, by the kernel's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(pub(crate) libc::pid_t);

impl ThreadId {
    /// The number by which the kernel and its tools know the thread.
    pub fn number(self) -> u32 {
        self.0.unsigned_abs()
    }
}

/// The calling thread.
pub fn this_thread() -> ThreadId {
    // The C library's `gettid` is weak in std, which makes it null in a static binary (Rust 1.95,
    // glibc 2.36, fat LTO).
    // SAFETY: takes nothing and cannot fail.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    ThreadId(libc::pid_t::try_from(id).unwrap_or(0))
}

/// A policy with what the kernel needs to know about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// `SCHED_OTHER` with a nice value.
    Other {
        /// -20 to 19.
        nice: i32,
    },
    /// `SCHED_IDLE`: runs when nothing else wants to.
    Idle,
    /// `SCHED_FIFO`.
    Fifo {
        /// 1 to 99.
        priority: u8,
    },
    /// `SCHED_RR`.
    Rr {
        /// 1 to 99.
        priority: u8,
    },
    /// `SCHED_DEADLINE`, its deadline at the end of each period.
    Deadline {
        /// CPU time per period.
        runtime: SpanNs,
        /// The period.
        period: SpanNs,
    },
}

impl Schedule {
    /// The policy's name in a plan; `None` for those that no plan has.
    pub fn policy(self) -> Option<ProbePolicy> {
        match self {
            Self::Other { .. } => Some(ProbePolicy::Other),
            Self::Idle => None,
            Self::Fifo { .. } => Some(ProbePolicy::Fifo),
            Self::Rr { .. } => Some(ProbePolicy::Rr),
            Self::Deadline { .. } => Some(ProbePolicy::Deadline),
        }
    }
}

/// `struct sched_attr` as of its first version (Linux 3.14), which every later kernel accepts.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const _: () = assert!(size_of::<SchedAttr>() == 48);
const ATTR_SIZE: u32 = 48;

const SCHED_OTHER: u32 = 0;
const SCHED_FIFO: u32 = 1;
const SCHED_RR: u32 = 2;
const SCHED_IDLE: u32 = 5;
const SCHED_DEADLINE: u32 = 6;

/// Puts the calling thread under `schedule`.
pub fn set_schedule(schedule: Schedule) -> io::Result<()> {
    let mut attr = SchedAttr { size: ATTR_SIZE, ..Default::default() };
    match schedule {
        Schedule::Other { nice } => (attr.policy, attr.nice) = (SCHED_OTHER, nice),
        Schedule::Idle => attr.policy = SCHED_IDLE,
        Schedule::Fifo { priority } => {
            (attr.policy, attr.priority) = (SCHED_FIFO, u32::from(priority));
        }
        Schedule::Rr { priority } => (attr.policy, attr.priority) = (SCHED_RR, u32::from(priority)),
        Schedule::Deadline { runtime, period } => {
            attr.policy = SCHED_DEADLINE;
            (attr.runtime, attr.deadline, attr.period) = (runtime.0, period.0, period.0);
        }
    }
    // SAFETY: `attr` is live, of the size it states, and the kernel only reads it.
    let rc = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    checked(rc).map(drop)
}

/// What `thread` is scheduled under now.
pub fn schedule_of(thread: ThreadId) -> io::Result<Schedule> {
    let mut attr = SchedAttr::default();
    // SAFETY: `attr` is live and writable, and its size is what we pass.
    let rc =
        unsafe { libc::syscall(libc::SYS_sched_getattr, thread.0, &raw mut attr, ATTR_SIZE, 0) };
    checked(rc)?;
    let priority = u8::try_from(attr.priority).unwrap_or(u8::MAX);
    Ok(match attr.policy {
        SCHED_FIFO => Schedule::Fifo { priority },
        SCHED_RR => Schedule::Rr { priority },
        SCHED_DEADLINE => {
            Schedule::Deadline { runtime: SpanNs(attr.runtime), period: SpanNs(attr.period) }
        }
        SCHED_IDLE => Schedule::Idle,
        _ => Schedule::Other { nice: attr.nice },
    })
}

/// Binds the calling thread to `cpus`.
pub fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    // 0 is the calling thread.
    set_affinity_of(ThreadId(0), cpus)
}

/// Binds `thread` to `cpus`.
pub fn set_affinity_of(thread: ThreadId, cpus: &[u32]) -> io::Result<()> {
    let mut mask = [0_u64; MASK_WORDS];
    for &cpu in cpus {
        let word = mask.get_mut(cpu as usize / 64).ok_or(io::ErrorKind::InvalidInput)?;
        *word |= 1 << (cpu % 64);
    }
    // SAFETY: `mask` is live and its size in bytes is what we pass; the kernel only reads it.
    checked(unsafe {
        libc::sched_setaffinity(thread.0, mem::size_of_val(&mask), mask.as_ptr().cast())
    })?;
    Ok(())
}

/// The CPUs that the calling thread may run on, ascending.
pub fn affinity() -> io::Result<Vec<u32>> {
    let mut mask = [0_u64; MASK_WORDS];
    // SAFETY: `mask` is live and writable, and its size in bytes is what we pass.
    checked(unsafe {
        libc::sched_getaffinity(0, mem::size_of_val(&mask), mask.as_mut_ptr().cast())
    })?;
    let bit = |&cpu: &u32| mask[cpu as usize / 64] >> (cpu % 64) & 1 == 1;
    let cpus = u32::try_from(MASK_WORDS * 64).unwrap_or(0);
    Ok((0..cpus).filter(bit).collect())
}

/// Room for 8,192 CPUs, the most that Linux can be built for (x86-64, `MAXSMP`).
const MASK_WORDS: usize = 128;

/// The CPU that the calling thread runs on. No system call where the C library knows it from
/// the thread's rseq area (glibc 2.35 and later) or the vDSO.
#[inline]
pub(crate) fn this_cpu() -> Option<u32> {
    // SAFETY: takes nothing.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// How to tell which CPU the calling thread runs on, as cheaply as this machine allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuReader {
    by_instruction: bool,
}

impl CpuReader {
    /// Chooses the way. On x86-64, RDTSCP tells the CPU in one instruction, as Linux has stored its
    /// number in `TSC_AUX` for the vDSO's getcpu; it is used if it is there and tells the truth.
    pub fn new() -> Self {
        let by_instruction = has_rdtscp() && this_cpu_by_instruction() == this_cpu();
        Self { by_instruction }
    }

    /// The CPU that the calling thread runs on.
    #[inline]
    pub fn read(self) -> Option<u32> {
        if self.by_instruction { this_cpu_by_instruction() } else { this_cpu() }
    }
}

impl Default for CpuReader {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(target_arch = "x86_64")]
fn has_rdtscp() -> bool {
    use std::arch::x86_64::__cpuid;
    #[allow(unused_unsafe)] // Safe in newer versions of std.
    let leaf = |number| {
        // SAFETY: every x86-64 processor has CPUID; a leaf that it lacks gives no meaning, no harm.
        unsafe { __cpuid(number) }
    };
    leaf(0x8000_0000).eax >= 0x8000_0001 && leaf(0x8000_0001).edx >> 27 & 1 == 1
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn this_cpu_by_instruction() -> Option<u32> {
    let mut aux = 0;
    // SAFETY: only called where `has_rdtscp` said yes; writes to `aux` only.
    unsafe { std::arch::x86_64::__rdtscp(&raw mut aux) };
    // The node stands above 12 bits of CPU number (arch/x86/include/asm/segment.h).
    Some(aux & 0xfff)
}

#[cfg(not(target_arch = "x86_64"))]
fn has_rdtscp() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn this_cpu_by_instruction() -> Option<u32> {
    None
}

/// Sets how much later than asked the kernel may fire the calling thread's timers.
/// Real-time policies have no slack whatever is set here.
pub fn set_timer_slack(slack: SpanNs) -> io::Result<()> {
    // SAFETY: an integer option; the kernel reads no memory.
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack.0, 0, 0, 0) }).map(drop)
}

/// The calling thread's timer slack.
pub fn timer_slack() -> io::Result<SpanNs> {
    // SAFETY: an integer option; the kernel writes no memory.
    let slack = checked(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) })?;
    Ok(SpanNs(u64::try_from(slack).unwrap_or(0)))
}

/// The largest real-time priority that this process may ask for without the capability to.
pub fn rt_priority_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is live and writable.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_RTPRIO, &raw mut limit) })?;
    Ok(limit.rlim_cur)
}

/// How often the CPU was taken from the calling thread for another one since it began.
pub fn preemptions() -> io::Result<u64> {
    Ok(u64::try_from(thread_usage()?.ru_nivcsw).unwrap_or(0))
}

/// How often the calling thread gave the CPU up since it began, which is how often it slept. Takes
/// 0.15 µs more than the shortest system call (6.18).
#[inline]
pub fn sleeps() -> io::Result<u64> {
    Ok(u64::try_from(thread_usage()?.ru_nvcsw).unwrap_or(0))
}

/// What the kernel has counted of the calling thread.
#[inline]
pub(crate) fn thread_usage() -> io::Result<libc::rusage> {
    // SAFETY: `rusage` is plain integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is live and writable.
    checked(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) })?;
    Ok(usage)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_thread_can_be_bound_and_knows_where_it_runs() {
        std::thread::spawn(|| {
            let last = *affinity().unwrap().last().unwrap();
            set_affinity(&[last]).unwrap();
            assert_eq!(affinity().unwrap(), [last]);
            assert_eq!(this_cpu(), Some(last));
            assert_eq!(CpuReader::new().read(), Some(last));
            assert!(set_affinity(&[100_000]).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_is_set_is_in_force() {
        std::thread::spawn(|| {
            set_timer_slack(SpanNs(1)).unwrap();
            assert_eq!(timer_slack().unwrap(), SpanNs(1));
            set_schedule(Schedule::Idle).unwrap();
            assert_eq!(schedule_of(this_thread()).unwrap(), Schedule::Idle);
            assert!(set_schedule(Schedule::Fifo { priority: 100 }).is_err());
        })
        .join()
        .unwrap();
    }

    /// Two that both want one CPU take it from each other.
    #[test]
    fn who_loses_the_cpu_is_told() {
        let cpu = affinity().unwrap()[0];
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                set_affinity(&[cpu]).unwrap();
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            scope.spawn(|| {
                set_affinity(&[cpu]).unwrap();
                let before = preemptions().unwrap();
                while preemptions().unwrap() == before {}
                done.store(true, Ordering::Relaxed);
            });
        });
    }
}
