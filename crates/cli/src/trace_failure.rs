//! Wakeups that cannot be followed: the cause, and the remedy.

use wakescope_trace::{TargetError, TraceError};

use crate::Failure;

/// What lies behind wakeups that cannot be followed, and what to do.
pub(crate) fn cannot_trace(error: &TraceError) -> Failure {
    let failure = Failure::new(format!("cannot follow wakeups: {error}"));
    match error {
        TraceError::NotAllowed => failure
            .because("that needs the capabilities CAP_BPF and CAP_PERFMON")
            .try_this("run as root, or: setcap cap_bpf,cap_perfmon,cap_sys_nice,cap_ipc_lock+ep on wakescope"),
        TraceError::LockedDown => failure
            .because("lockdown is set to confidentiality, which hides kernel memory even from root")
            .try_this("boot without lockdown=confidentiality (lockdown=integrity is enough), or \
                 measure without an explanation: wakescope measure"),
        TraceError::NoTypes(_) => failure
            .because("it needs CONFIG_DEBUG_INFO_BTF, which distribution kernels have since 2020, \
                 and a mounted /sys")
            .try_this("mount /sys if it is not mounted (mount -t sysfs sysfs /sys), boot such a \
                 kernel, or measure without an explanation: wakescope measure"),
        TraceError::NoTracepoint(_) => failure
            .because("kernels from 5.10 on with tracing have it")
            .try_this("see what this machine supports: wakescope check"),
        TraceError::Refused(..) => failure
            .try_this("report this error with the output of wakescope check"),
        TraceError::Target(TargetError::Namespace) => failure
            .because("a container has its own PID namespace, but BPF programs see the kernel's \
                 thread IDs")
            .try_this("run outside the container or with the host's PID namespace; or use --comm \
                 or --cgroup, which need no IDs"),
        TraceError::Target(TargetError::Cgroup(..)) => failure
            .try_this("name a folder under the mount point of cgroup2: findmnt -t cgroup2"),
        TraceError::Target(_) => failure.try_this("name existing threads: ps -eL -o pid,tid,comm"),
    }
}
