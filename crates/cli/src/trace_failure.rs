//! What cannot be followed or watched: the cause, and the remedy.

use wakescope_sys::time_namespace::Shifted;
use wakescope_trace::{TargetError, TraceError};

use crate::Failure;

/// What lies behind wakeups that cannot be followed, and what to do.
pub(crate) fn cannot_trace(error: &TraceError) -> Failure {
    explained(
        Failure::new(format!("cannot follow wakeups: {error}")),
        error,
        ", or measure without an explanation: wakescope measure",
    )
}

/// What lies behind waits that cannot be watched, and what to do.
pub(crate) fn cannot_watch(error: &TraceError) -> Failure {
    let failure = explained(Failure::new(format!("cannot watch waits: {error}")), error, "");
    match error {
        TraceError::NotAllowed | TraceError::LockedDown | TraceError::NoTypes(_) => failure.try_this(
            "or read what the kernel counts by itself: how long (in ns) and how often a thread waited, \
             fields 2 and 3 of /proc/TID/schedstat; how much of the time any task waited, \
             /proc/pressure/cpu",
        ),
        _ => failure,
    }
}

/// What lies behind a watch that cannot be compared with the kernel's counts, and what to do.
pub(crate) fn cannot_audit(error: &TraceError) -> Failure {
    let failure = Failure::new(format!("cannot compare with the kernel's counts: {error}"));
    match error {
        TraceError::Target(TargetError::Namespace) => in_container(failure).try_this(
            "omit --audit, or run outside the container or with the host's PID namespace",
        ),
        _ => explained(failure, error, ""),
    }
}

fn in_container(failure: Failure) -> Failure {
    failure.because(
        "a container has its own PID namespace, but BPF programs see the kernel's thread IDs",
    )
}

/// Adds cause and remedy to `failure`; `instead` is what can be done without tracing.
fn explained(failure: Failure, error: &TraceError, instead: &str) -> Failure {
    match error {
        TraceError::NotAllowed => failure
            .because("that needs the capabilities CAP_BPF and CAP_PERFMON")
            .try_this("run as root, or: setcap cap_bpf,cap_perfmon,cap_sys_nice,cap_ipc_lock+ep on wakescope")
            .mentioning_filter(),
        TraceError::LockedDown => failure
            .because("lockdown is set to confidentiality, which hides kernel memory even from root")
            .try_this(format!("boot without lockdown=confidentiality (lockdown=integrity is enough){instead}")),
        TraceError::NoTypes(_) => failure
            .because("it needs CONFIG_DEBUG_INFO_BTF, which distribution kernels have since 2020, \
                 and a mounted /sys")
            .try_this(format!("mount /sys if it is not mounted (mount -t sysfs sysfs /sys){} boot such a \
                 kernel{instead}", if instead.is_empty() { ", or" } else { "," })),
        TraceError::NoCpus(_) => failure
            .because("the programs need a place for each CPU that there may be")
            .try_this("mount /sys, with nothing mounted over its folders: mount -t sysfs sysfs /sys"),
        TraceError::NoTracepoint(_) => failure
            .because("kernels from 5.10 on with tracing have it")
            .try_this("see what this machine supports: wakescope check"),
        TraceError::NoField(..) => failure
            .because("the waits of a task follow from it")
            .try_this("boot a kernel that is built with this option, or follow the threads of one \
                 process: wakescope explain --pid PID"),
        TraceError::NotCounting => failure
            .because("the kernel parameter nodelayacct turns the counts off, or /proc is not mounted")
            .try_this("boot without nodelayacct, and mount /proc if it is not mounted (mount -t proc \
                 proc /proc)"),
        TraceError::Shifted(_) => failure.because(Shifted::CAUSE).try_this(Shifted::REMEDY),
        TraceError::NoMemory(_) => failure
            .because("memory ran out, or the limit of this cgroup was reached: BPF maps count for it")
            .try_this(format!("raise that limit (memory.max; cgroup v1: memory.limit_in_bytes){}",
                 if instead.is_empty() { ", or keep fewer figures: --series N" } else { instead })),
        TraceError::Refused(..) => failure
            .try_this("report this error with the output of wakescope check")
            .mentioning_filter(),
        TraceError::Target(TargetError::Namespace) => in_container(failure)
            .try_this("run outside the container or with the host's PID namespace; or use --comm \
                 or --cgroup, which need no IDs"),
        TraceError::Target(TargetError::Cgroup(..)) => failure
            .try_this("name a folder under the mount point of cgroup2: findmnt -t cgroup2"),
        TraceError::Target(_) => failure.try_this("name existing threads: ps -eL -o pid,tid,comm"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_without_room_are_a_matter_of_memory() {
        let no_memory = TraceError::NoMemory("Cannot allocate memory (os error 12)".into());
        let refused = TraceError::Refused("maps", "Invalid argument (os error 22)".into());
        for (text, told) in [
            (cannot_watch(&no_memory).to_string(), "or keep fewer figures: --series N"),
            (cannot_trace(&no_memory).to_string(), "or measure without an explanation"),
            (cannot_watch(&refused).to_string(), "→ report this error"),
        ] {
            assert!(text.contains(told), "{text}");
            assert_eq!(text.contains("memory.max"), !told.starts_with('→'), "{text}");
        }
    }
}
