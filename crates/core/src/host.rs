//! The machine and kernel that a run was made on.

use serde::{Deserialize, Serialize};

use crate::preemption::Preemption;
use crate::time_domain::TimeDomain;
use crate::validity::RtLimit;

/// Facts about the machine, as far as they could be read. What could not be read is `None` or
/// empty, never a guess.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub arch: String,
    /// Which preemption model runs, and how that is known.
    pub preemption: Preemption,
    /// The processor's own name.
    pub cpu_model: Option<String>,
    /// CPUs that are online.
    pub cpus_online: Vec<u32>,
    /// CPUs that this process may use.
    pub cpus_allowed: Vec<u32>,
    /// CPUs taken out of the scheduler's domains (`isolcpus=` or an isolated cpuset).
    pub cpus_isolated: Vec<u32>,
    /// CPUs that stop their tick (`nohz_full=`).
    pub cpus_nohz_full: Vec<u32>,
    /// Where the time comes from.
    pub clock: Clock,
    /// The kernel's command line, [masked](crate::command_line::masked).
    pub cmdline: String,
    /// Idle states.
    pub idle: Idle,
    /// Frequency governors in use, each once.
    pub governors: Vec<String>,
    /// The scheduler of sched_ext that decides which ordinary tasks run, by the name that it gave itself; `None`
    /// without one.
    pub sched_ext: Option<String>,
    /// Limits on real-time tasks.
    pub rt: RtLimits,
    /// The hypervisor's name where the machine is a guest.
    pub hypervisor: Option<String>,
    /// Microcode revision.
    pub microcode: Option<String>,
    /// Where nothing could be read.
    pub unreadable: Vec<KernelFiles>,
}

/// A scheduler of sched_ext in words, by its `name`.
pub fn scheduler(name: Option<&str>) -> &str {
    match name {
        None => "none",
        Some("") => "one without a name",
        Some(name) => name,
    }
}

/// Files of the kernel that facts about the machine come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelFiles {
    /// All of /proc.
    #[serde(rename = "/proc")]
    Proc,
    /// /proc/sys alone.
    #[serde(rename = "/proc/sys")]
    ProcSys,
    /// /sys.
    #[serde(rename = "/sys")]
    Sys,
}

impl Host {
    /// Whether a hypervisor may have held the machine up in a run whose clock counts `time`. One that
    /// counts instructions never does.
    pub fn may_be_stopped(&self, time: TimeDomain) -> bool {
        time == TimeDomain::Real && self.hypervisor.is_some()
    }
}

/// The clock that wakeups are measured with (`CLOCK_MONOTONIC`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// The clocksource in use: `tsc`, `arch_sys_counter`, …
    pub source: String,
    /// What `clock_getres` says; 1 ns with high-resolution timers.
    pub resolution_ns: u64,
    /// What one reading costs, the median of many.
    pub read_cost_ns: u64,
}

/// What the CPUs may do while they have nothing to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Idle {
    /// The cpuidle driver, if any.
    pub driver: Option<String>,
    /// The cpuidle governor, if any.
    pub governor: Option<String>,
    /// The states of the first measured CPU, the shallowest first.
    pub states: Vec<IdleState>,
}

impl Idle {
    /// How long the deepest state takes to leave, nanoseconds; 0 without any. One that is off now may
    /// have been on for a part of the run.
    pub fn longest_exit_ns(&self) -> u64 {
        self.states.iter().map(|state| state.exit_latency_ns).max().unwrap_or(0)
    }

    /// The deepest state that is enabled.
    pub fn deepest(&self) -> Option<&IdleState> {
        self.states.iter().filter(|s| !s.disabled).max_by_key(|s| s.exit_latency_ns)
    }
}

/// One idle state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleState {
    /// The driver's name for it: `POLL`, `C1E`, `C6`.
    pub name: String,
    /// How long it takes to wake from it, as the driver states.
    pub exit_latency_ns: u64,
    /// Whether it is switched off.
    pub disabled: bool,
}

/// What stands between a real-time task and its CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RtLimits {
    /// `sched_rt_runtime_us` as ns: real-time tasks get this much of each period where the kernel throttles them,
    /// and deadline tasks are admitted up to this. `None`: no limit, or not readable.
    pub runtime_ns: Option<u64>,
    /// `sched_rt_period_us` as ns.
    pub period_ns: Option<u64>,
    /// Whether the kernel has the fair server (6.12 and later), which gives ordinary tasks their
    /// share instead of throttling real-time ones. `None`: not known.
    pub fair_server: Option<bool>,
    /// What the fair server may take. `None`: there is none, or debugfs cannot be read.
    pub fair_server_share: Option<FairServerShare>,
    /// Whether real-time group scheduling is built in. `None`: not known.
    pub group_scheduling: Option<bool>,
    /// `cpu.rt_runtime_us` of this process's own cgroup as ns, where that exists.
    pub group_runtime_ns: Option<u64>,
    /// This process's limit on real-time priority (`RLIMIT_RTPRIO`).
    pub priority_limit: Option<u64>,
    /// Whether this process may exceed that limit (`CAP_SYS_NICE` outside a user namespace).
    /// `None`: not known.
    pub nice_capability: Option<bool>,
}

impl RtLimits {
    /// How much of each period real-time tasks get where the kernel throttles them; `None` where it does not, or
    /// that is not known.
    pub fn throttling(&self) -> Option<RtLimit> {
        // With real-time groups a kernel keeps throttling beside the fair server (kernel/sched/rt.c, 6.12).
        if self.fair_server == Some(true) && self.group_scheduling != Some(true) {
            return None;
        }
        let limit = RtLimit { runtime_ns: self.runtime_ns?, period_ns: self.period_ns? };
        Some(limit).filter(|limit| limit.runtime_ns < limit.period_ns)
    }
}

/// How long the fair server may run ordinary tasks before real-time ones in each period: on the CPU where that is
/// the largest share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FairServerShare {
    /// The runtime in ns; 0: it is switched off on all CPUs.
    pub runtime_ns: u64,
    /// The period in ns.
    pub period_ns: u64,
}

impl FairServerShare {
    /// What each CPU begins with (`dl_server_start` in kernel/sched/deadline.c of 6.12, later
    /// `sched_init_dl_servers`).
    pub const DEFAULT: Self = Self { runtime_ns: 50_000_000, period_ns: 1_000_000_000 };
}

/// The first two numbers of a kernel release: 6.12 for `6.12.95-rt-amd64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion(pub u32, pub u32);

impl KernelVersion {
    /// Reads the numbers off a release; `None` if it does not begin with two.
    pub fn of(release: &str) -> Option<Self> {
        let mut numbers = release.splitn(3, '.');
        let major = numbers.next()?.parse().ok()?;
        let rest = numbers.next()?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some(Self(major, rest[..end].parse().ok()?))
    }
}

/// The most CPUs that Linux can be built for (x86-64, `MAXSMP`).
pub const CPUS_MAX: u32 = 8192;

/// The CPUs of a list as the kernel writes it (`0-3,8`), ascending, each once. What is not a CPU
/// or a range of them is left out.
pub fn cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = std::collections::BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            cpus.extend(first..=last.min(CPUS_MAX - 1));
        }
    }
    cpus.into_iter().collect()
}

/// Ascending CPUs as the kernel writes them: `0-3,8`.
pub fn cpu_ranges(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let text = |&(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_lists_are_written_as_they_are_read() {
        for text in ["", "0", "0-2,5,7-8", "3,5,7"] {
            assert_eq!(cpu_ranges(&cpu_list(text)), text);
        }
        assert_eq!(cpu_ranges(&[u32::MAX, 0]), "4294967295,0", "a record may hold any numbers");
    }

    #[test]
    fn kernel_versions_are_read() {
        for (release, want) in [
            ("6.12.95-rt-amd64", Some(KernelVersion(6, 12))),
            ("5.10", Some(KernelVersion(5, 10))),
            ("7.0-rc1", Some(KernelVersion(7, 0))),
            ("6.1.0-56-cloud-arm64", Some(KernelVersion(6, 1))),
            ("6", None),
            ("6.", None),
            ("", None),
            ("99999999999.1", None),
        ] {
            assert_eq!(KernelVersion::of(release), want, "{release}");
        }
        assert!(KernelVersion(6, 2) < KernelVersion(6, 12));
    }

    #[test]
    fn cpu_lists_are_read() {
        for (text, want) in [
            ("", vec![]),
            ("0", vec![0]),
            ("0-3,8", vec![0, 1, 2, 3, 8]),
            ("2,0-1\n", vec![0, 1, 2]),
            ("3-1,x,-,7-", vec![]),
            ("8190-4294967295", vec![8190, 8191]),
        ] {
            assert_eq!(cpu_list(text), want, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_readers_panic(text in "\\PC{0,40}", list in "[0-9,-]{0,40}") {
            let _ = (KernelVersion::of(&text), cpu_list(&text), cpu_list(&list));
        }
    }
}
