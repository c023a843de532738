//! What can be seen on a machine, and with what.

use serde::{Deserialize, Serialize};

/// Something that shows what a kernel or processor does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instrument {
    /// Its name: `btf`, `tracepoint:sched_waking`, `tracer:osnoise`, `pmu`, …
    pub name: String,
    /// Whether this process could use it now; `None` if that is not known.
    pub available: Option<bool>,
    /// How that is known, or what stands in the way; may be empty.
    pub detail: String,
}

impl Instrument {
    /// An instrument and how it is known to be there, or not to be.
    pub fn new(
        name: impl Into<String>,
        available: Option<bool>,
        detail: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), available, detail: detail.into() }
    }
}

/// Tracepoints that later instruments look for, with their group in tracefs. Those without a group
/// are for BPF only.
pub const TRACEPOINTS: [(&str, &str); 22] = [
    ("sched", "sched_waking"),
    ("sched", "sched_wakeup"),
    ("sched", "sched_switch"),
    ("sched", "sched_migrate_task"),
    ("", "sched_entry_tp"),
    ("rcu", "rcu_utilization"),
    ("", "sched_exit_tp"),
    ("", "sched_set_need_resched_tp"),
    ("timer", "hrtimer_start"),
    ("timer", "hrtimer_expire_entry"),
    ("timer", "hrtimer_expire_exit"),
    ("irq", "irq_handler_entry"),
    ("irq", "softirq_entry"),
    ("irq_vectors", "local_timer_entry"),
    ("irq_vectors", "reschedule_entry"),
    ("ipi", "ipi_send_cpu"),
    ("lock", "contention_begin"),
    ("power", "cpu_idle"),
    ("raw_syscalls", "sys_enter"),
    ("exceptions", "page_fault_user"),
    ("preemptirq", "irq_disable"),
    ("preemptirq", "preempt_disable"),
];

/// Tracers that later instruments look for, with the build options that bring them.
pub const TRACERS: [(&str, &str); 5] = [
    ("osnoise", "CONFIG_OSNOISE_TRACER"),
    ("timerlat", "CONFIG_TIMERLAT_TRACER"),
    ("hwlat", "CONFIG_HWLAT_TRACER"),
    ("irqsoff", "CONFIG_IRQSOFF_TRACER"),
    ("preemptoff", "CONFIG_PREEMPT_TRACER"),
];
