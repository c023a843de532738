//! The programs: what each is attached to, and what goes unseen without it.

/// A program and its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its function in bpf/.
    pub(crate) name: &'static str,
    /// The tracepoint that it is attached to.
    pub(crate) tracepoint: &'static str,
    /// When it is needed.
    pub(crate) need: Need,
    /// What is not seen where the kernel lacks it; empty if nothing that it could show is missed.
    pub(crate) unseen: &'static str,
}

/// When a program is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Without it there is nothing to explain.
    Always,
    /// Where the kernel has it.
    IfThere,
    /// Where the kernel has it, and not this other one, which shows the same for less.
    InPlaceOf(&'static str),
    /// To follow threads that may change their CPU.
    IfTheyMove,
    /// To follow threads that are known by a name or a cgroup, which they may lose and get back.
    IfTheyLeave,
    /// To know all interrupts, for a bound, where the kernel has it.
    ForBound,
    /// To see the edges of sections, where that is asked for and the kernel has it.
    ForSections,
    /// To follow others' threads, and without it that cannot be done.
    ForOthers,
    /// To follow others, and probes that something else than a timer wakes; without it that cannot be done.
    ForWakers,
}

impl Need {
    /// Whether a kernel without the tracepoint can be traced all the same.
    pub(crate) fn may_be_unmet(self) -> bool {
        use Need::{ForBound, ForSections, IfThere, IfTheyLeave, InPlaceOf};
        matches!(self, IfThere | InPlaceOf(_) | IfTheyLeave | ForBound | ForSections)
    }
}

const fn program(
    name: &'static str,
    tracepoint: &'static str,
    need: Need,
    unseen: &'static str,
) -> Program {
    Program { name, tracepoint, need, unseen }
}

/// Where interrupts go on and off, where a kernel shows it.
pub(crate) const IRQ_EDGES: [&str; 2] = ["irq_enable", "irq_disable"];

/// Where preemption does.
pub(crate) const PREEMPT_EDGES: [&str; 2] = ["preempt_enable", "preempt_disable"];

/// All programs, in the order in which they are attached. Of a pair the end comes first: an end
/// without a beginning is known for one, a beginning without an end is not. Those that follow a wakeup
/// come last: when they run, what they ask for is there.
pub(crate) const PROGRAMS: &[Program] = &[
    program("on_local_timer_exit", "local_timer_exit", Need::IfThere, ""),
    // arm64's timer is an interrupt like others.
    program("on_local_timer_entry", "local_timer_entry", Need::IfThere, ""),
    program("on_reschedule_exit", "reschedule_exit", Need::IfThere, ""),
    program("on_reschedule_entry", "reschedule_entry", Need::IfThere, ""),
    program("on_call_function_exit", "call_function_exit", Need::IfThere, ""),
    program("on_call_function_entry", "call_function_entry", Need::IfThere, ""),
    program("on_call_function_single_exit", "call_function_single_exit", Need::IfThere, ""),
    program("on_call_function_single_entry", "call_function_single_entry", Need::IfThere, ""),
    program("on_irq_work_exit", "irq_work_exit", Need::IfThere, ""),
    program("on_irq_work_entry", "irq_work_entry", Need::IfThere, ""),
    program("on_ipi_exit", "ipi_exit", Need::IfThere, ""),
    program("on_ipi_entry", "ipi_entry", Need::IfThere, ""),
    program("on_thermal_apic_exit", "thermal_apic_exit", Need::ForBound, ""),
    program("on_thermal_apic_entry", "thermal_apic_entry", Need::ForBound, ""),
    program("on_threshold_apic_exit", "threshold_apic_exit", Need::ForBound, ""),
    program("on_threshold_apic_entry", "threshold_apic_entry", Need::ForBound, ""),
    program("on_deferred_error_apic_exit", "deferred_error_apic_exit", Need::ForBound, ""),
    program("on_deferred_error_apic_entry", "deferred_error_apic_entry", Need::ForBound, ""),
    program("on_error_apic_exit", "error_apic_exit", Need::ForBound, ""),
    program("on_error_apic_entry", "error_apic_entry", Need::ForBound, ""),
    program("on_spurious_apic_exit", "spurious_apic_exit", Need::ForBound, ""),
    program("on_spurious_apic_entry", "spurious_apic_entry", Need::ForBound, ""),
    program("on_x86_platform_ipi_exit", "x86_platform_ipi_exit", Need::ForBound, ""),
    program("on_x86_platform_ipi_entry", "x86_platform_ipi_entry", Need::ForBound, ""),
    program("on_irq_handler_exit", "irq_handler_exit", Need::Always, ""),
    program("on_irq_handler_entry", "irq_handler_entry", Need::Always, ""),
    program("on_softirq_exit", "softirq_exit", Need::Always, ""),
    program("on_softirq_entry", "softirq_entry", Need::Always, ""),
    program("on_nmi_handler", "nmi_handler", Need::IfThere, "NMIs"),
    program("on_cpu_idle", "cpu_idle", Need::IfThere, "the idle state of the CPU"),
    program("on_contention_end", "contention_end", Need::IfThere, ""),
    program("on_contention_begin", "contention_begin", Need::IfThere, "waiting for locks"),
    program("on_pi_setprio", "sched_pi_setprio", Need::IfThere, "priorities that are given back"),
    program("on_migrate", "sched_migrate_task", Need::IfTheyMove, ""),
    program("on_rename", "task_rename", Need::IfTheyLeave, "threads that are renamed"),
    program(
        "on_cgroup_attach",
        "cgroup_attach_task",
        Need::IfTheyLeave,
        "threads that are moved to another cgroup",
    ),
    program("on_timer_exit", "hrtimer_expire_exit", Need::Always, ""),
    program("on_sched_entry", "sched_entry_tp", Need::IfThere, ""),
    program(
        "on_rcu_utilization",
        "rcu_utilization",
        Need::InPlaceOf("sched_entry_tp"),
        "the scheduler's entry, so scheduler latency includes scheduling duration",
    ),
    program("on_switch", "sched_switch", Need::Always, ""),
    program("on_irq_enable", IRQ_EDGES[0], Need::ForSections, ""),
    program("on_irq_disable", IRQ_EDGES[1], Need::ForSections, ""),
    program("on_preempt_enable", PREEMPT_EDGES[0], Need::ForSections, ""),
    program("on_preempt_disable", PREEMPT_EDGES[1], Need::ForSections, ""),
    program("on_free", "sched_process_free", Need::ForOthers, ""),
    program("on_wakeup_of_others", "sched_wakeup", Need::ForOthers, ""),
    program("on_first_wakeup_of_others", "sched_wakeup_new", Need::ForOthers, ""),
    program("on_waking", "sched_waking", Need::ForWakers, ""),
    program("on_timer_entry", "hrtimer_expire_entry", Need::Always, ""),
];
