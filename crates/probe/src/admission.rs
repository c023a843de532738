//! Whether the kernel admits `SCHED_DEADLINE` probes, and what to do if it does not.

use std::sync::mpsc::sync_channel;
use std::{fs, io, thread};

use wakescope_core::host::{Host, cpu_ranges};
use wakescope_core::plan::Plan;
use wakescope_core::units::SpanNs;
use wakescope_sys::sched::{self, Schedule};

use crate::trial::in_own_thread;

/// Why the kernel does not admit the probes of a plan.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The period is outside of what the kernel allows: the least and the most.
    #[error("the kernel allows a period from {0} to {1}")]
    Period(SpanNs, SpanNs),
    /// The process may not use this policy.
    #[error("this process has no CAP_SYS_NICE")]
    NotPermitted,
    /// The process may not use all CPUs that the kernel balances together; these it may.
    #[error("this process may use only CPU {}", cpu_ranges(.0))]
    Affinity(Vec<u32>),
    /// Single CPUs are asked for, and the probes cannot be bound: these are, of those.
    #[error("the probe cannot be bound to CPU {} of {}", cpu_ranges(.0), cpu_ranges(.1))]
    Binding(Vec<u32>, Vec<u32>),
    /// Together with others, the tasks would need more CPU time than there is for them.
    #[error("{}", .0)]
    Bandwidth(io::Error),
    /// The kernel has no CPU time at all for such tasks.
    #[error("kernel.sched_rt_runtime_us is 0")]
    NoBandwidth,
    /// Anything else.
    #[error("{}", .0)]
    Other(io::Error),
}

const TIMER: &str = "or measure with another policy: --stimulus timer";
const ROOT_DOMAIN: &str = "a SCHED_DEADLINE task must be allowed on all CPUs of its root domain, \
     which are all CPUs unless cpusets divide them (man 7 cpuset)";

impl Refusal {
    /// Why the kernel refused `plan` with this error.
    pub(crate) fn of(error: io::Error, host: &Host) -> Self {
        let allowed = sched::affinity().unwrap_or_default();
        match error.kind() {
            io::ErrorKind::ResourceBusy => Self::Bandwidth(error),
            io::ErrorKind::PermissionDenied if host.rt.nice_capability == Some(false) => {
                Self::NotPermitted
            }
            io::ErrorKind::PermissionDenied if host.rt.runtime_ns == Some(0) => Self::NoBandwidth,
            io::ErrorKind::PermissionDenied
                if host.cpus_online.iter().any(|cpu| !allowed.contains(cpu)) =>
            {
                Self::Affinity(allowed)
            }
            _ => Self::Other(error),
        }
    }

    /// What lies behind it, if there is more to say, and what to do.
    pub fn cause_and_remedies(&self) -> (Option<&'static str>, Vec<String>) {
        let partition = || {
            "or start it in a cpuset that is a partition of its own: echo root > \
             cpuset.cpus.partition"
        };
        let (cause, remedies): (_, Vec<&str>) = match self {
            Self::Period(..) => (
                Some(
                    "the period of a SCHED_DEADLINE task is the interval; its limits are \
                     kernel.sched_deadline_period_min_us and _max_us",
                ),
                vec!["use another --interval", TIMER],
            ),
            Self::NotPermitted => (
                Some("without it, nobody may use SCHED_DEADLINE"),
                vec!["run as root; or: setcap cap_sys_nice,cap_ipc_lock+ep on wakescope", TIMER],
            ),
            Self::Affinity(_) => (
                Some(ROOT_DOMAIN),
                vec![
                    "start it without taskset and outside of a narrower cpuset",
                    partition(),
                    TIMER,
                ],
            ),
            Self::Binding(..) => (
                Some(ROOT_DOMAIN),
                vec![
                    "omit --cpus: the probes then run where the kernel puts them",
                    partition(),
                    TIMER,
                ],
            ),
            Self::Bandwidth(_) => (
                Some(
                    "this and other SCHED_DEADLINE tasks together would have reserved the CPU time \
                     of all real-time tasks, kernel.sched_rt_runtime_us of each \
                     kernel.sched_rt_period_us",
                ),
                vec![
                    "end the others (chrt -p PID shows a task's policy), or use a smaller --runtime",
                    TIMER,
                ],
            ),
            Self::NoBandwidth => (
                Some("so the kernel has no CPU time for real-time and SCHED_DEADLINE tasks"),
                vec![
                    "as root: sysctl kernel.sched_rt_runtime_us=950000",
                    "or measure with --policy other",
                ],
            ),
            Self::Other(e) if e.kind() == io::ErrorKind::PermissionDenied => (
                Some(
                    "a container's seccomp filter or a security module may forbid sched_setattr(2)",
                ),
                vec!["run it outside of the container", TIMER],
            ),
            Self::Other(_) => (None, vec!["use another --interval or --runtime", TIMER]),
        };
        (cause, remedies.into_iter().map(str::to_owned).collect())
    }
}

/// Whether the kernel admits the probes of `plan`, all at once.
pub(crate) fn check(plan: &Plan, host: &Host) -> Result<(), Refusal> {
    let Some(runtime) = plan.runtime() else { return Ok(()) };
    let period = SpanNs(plan.interval_ns);
    check_period(period, setting)?;
    let schedule = Schedule::Deadline { runtime, period };
    let allowed = sched::affinity().map_err(Refusal::Other)?;
    admit(schedule, plan.cpus.len()).map_err(|e| Refusal::of(e, host))?;
    // Probes that cannot be bound run on all CPUs, so they do for all of them, and for no other choice.
    let single = plan.cpus.first().filter(|_| allowed.iter().any(|cpu| !plan.cpus.contains(cpu)));
    match single.map(|&cpu| admit_on(cpu, schedule)) {
        Some(Err(_)) => Err(Refusal::Binding(plan.cpus.clone(), allowed)),
        Some(Ok(())) | None => Ok(()),
    }
}

/// Kernels since 5.9 limit the period.
fn check_period(period: SpanNs, setting: impl Fn(&str) -> Option<SpanNs>) -> Result<(), Refusal> {
    let least = setting("sched_deadline_period_min_us").unwrap_or(SpanNs(0));
    let most = setting("sched_deadline_period_max_us").unwrap_or(SpanNs(u64::MAX));
    if (least..=most).contains(&period) { Ok(()) } else { Err(Refusal::Period(least, most)) }
}

fn setting(name: &str) -> Option<SpanNs> {
    let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
    text.trim().parse::<u64>().ok()?.checked_mul(1_000).map(SpanNs)
}

/// Puts so many threads under `schedule` at the same time, and ends them.
fn admit(schedule: Schedule, count: usize) -> io::Result<()> {
    thread::scope(|scope| {
        let mut held = Vec::new();
        for _ in 0..count {
            let (tell, text) = sync_channel(1);
            let (hold, end) = sync_channel::<()>(0);
            thread::Builder::new().spawn_scoped(scope, move || {
                // Whoever asks waits for the answer, and then for nothing but the end.
                let _ = tell.send(sched::set_schedule(schedule));
                let _ = end.recv();
            })?;
            held.push(hold);
            text.recv().map_err(io::Error::other)??;
        }
        Ok(())
    })
}

/// Puts a thread under `schedule` that is bound to `cpu`, and ends it.
fn admit_on(cpu: u32, schedule: Schedule) -> io::Result<()> {
    in_own_thread(move || sched::set_affinity(&[cpu]).and_then(|()| sched::set_schedule(schedule)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::host::RtLimits;

    #[test]
    fn a_period_is_held_to_the_limits_that_the_kernel_has() {
        let ms = |ms: u64| SpanNs(ms * 1_000_000);
        let limits =
            |name: &str| Some(if name.contains("min") { SpanNs(100_000) } else { ms(4_194) });
        for (period, fits) in [
            (SpanNs(99_999), false),
            (SpanNs(100_000), true),
            (ms(4_194), true),
            (ms(5_000), false),
        ] {
            assert_eq!(check_period(period, limits).is_ok(), fits, "{period}");
            check_period(period, |_| None).unwrap();
        }
        let text = check_period(ms(5_000), limits).unwrap_err().to_string();
        assert_eq!(text, "the kernel allows a period from 100 µs to 4.19 s");
    }

    /// What the kernel's answer means on such a machine, and a part of the first remedy.
    #[track_caller]
    fn check_refusal(errno: i32, change: impl FnOnce(&mut Host), want: &str, remedy: &str) {
        let rt = RtLimits {
            nice_capability: Some(true),
            runtime_ns: Some(950_000_000),
            ..RtLimits::default()
        };
        let cpus_online = sched::affinity().unwrap();
        let mut host = Host { rt, cpus_online, ..Host::default() };
        change(&mut host);
        let refusal = Refusal::of(io::Error::from_raw_os_error(errno), &host);
        assert!(refusal.to_string().contains(want), "{refusal}");
        let (_, remedies) = refusal.cause_and_remedies();
        assert!(remedies[0].contains(remedy) && remedies.len() > 1, "{remedies:?}");
    }

    #[test]
    fn each_refusal_is_told_from_the_others() {
        const EPERM: i32 = 1;
        const EBUSY: i32 = 16;
        const EINVAL: i32 = 22;
        check_refusal(EBUSY, |_| (), "busy", "--runtime");
        check_refusal(EINVAL, |_| (), "Invalid argument", "--interval");
        check_refusal(EPERM, |_| (), "not permitted", "outside of the container");
        check_refusal(EPERM, |h| h.rt.nice_capability = Some(false), "CAP_SYS_NICE", "setcap");
        check_refusal(EPERM, |h| h.rt.runtime_ns = Some(0), "_runtime_us is 0", "sysctl");
        check_refusal(EPERM, |h| h.cpus_online.push(8_191), "only CPU", "taskset");
    }
}
