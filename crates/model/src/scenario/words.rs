//! The words of a scenario file that stand for one thing each, for its reader and its writer.

use super::{Costs, Length, LockKind, Step};

/// The schema of the files.
pub(super) const SCHEMA: &str = "wakescope.scenario/1";

/// The keys of a file.
pub(super) const KEYS: &[&str] = &[
    "schema",
    "name",
    "about",
    "published",
    "measured",
    "machine",
    "kernel",
    "costs",
    "group",
    "task",
    "interrupt",
    "path",
];

/// Those of a kernel that was measured.
pub(super) const MEASURED: &[&str] = &[
    "preempt",
    "kernel",
    "time_domain",
    "samples",
    "max",
    "mean",
    "stdev",
    "percentiles",
    "buckets",
    "below",
];

/// Those of the machine, of one of its idle states, and of the kernel.
pub(super) const MACHINE: &[&str] = &["cpus", "tick", "idle_states"];
pub(super) const IDLE_STATE: &[&str] = &["name", "exit", "residency"];
pub(super) const KERNEL: &[&str] = &["bh_lock", "rt_runtime", "rt_period", "fair_server"];

/// Those of a group, of a task, of an interrupt, and of a burst of interrupts.
pub(super) const GROUP: &[&str] = &["name", "quota", "period"];
pub(super) const TASK: &[&str] = &["name", "policy", "cpu", "group", "period", "path"];
pub(super) const INTERRUPT: &[&str] = &["name", "kind", "arrives", "cpu", "path"];
pub(super) const ARRIVES: &[&str] = &["periodic", "poisson", "bursts", "recorded"];
pub(super) const BURSTS: &[&str] = &["every", "count", "gap"];

/// Steps that are a word alone.
pub(super) const PLAIN: &[(&str, Step)] = &[
    ("preempt_disable", Step::PreemptDisable),
    ("preempt_enable", Step::PreemptEnable),
    ("local_irq_save", Step::IrqSave),
    ("local_irq_restore", Step::IrqRestore),
    ("local_bh_disable", Step::BhDisable),
    ("local_bh_enable", Step::BhEnable),
    ("rcu_read_lock", Step::RcuReadLock),
    ("rcu_read_unlock", Step::RcuReadUnlock),
    ("cond_resched", Step::CondResched),
    ("preemption_point", Step::PreemptionPoint),
    ("schedule", Step::Schedule),
    ("work", Step::Work),
];

/// Steps that are a table, each with the keys that it has beside its own.
pub(super) const TABLES: &[(&str, &[&str])] = &[
    ("user", &[]),
    ("compute", &[]),
    ("call", &["do"]),
    ("repeat", &["do"]),
    ("spin_lock", &[]),
    ("spin_unlock", &[]),
    ("spin_lock_irqsave", &[]),
    ("spin_unlock_irqrestore", &[]),
    ("spin_lock_bh", &[]),
    ("spin_unlock_bh", &[]),
    ("raw_spin_lock", &[]),
    ("raw_spin_unlock", &[]),
    ("raw_spin_lock_irqsave", &[]),
    ("raw_spin_unlock_irqrestore", &[]),
    ("mutex_lock", &[]),
    ("mutex_unlock", &[]),
    ("lock_break", &["every", "restart"]),
    ("block", &["interrupt"]),
    ("wait", &[]),
    ("wake", &[]),
    ("prepare_to_wait", &[]),
    ("unless", &["do"]),
    ("finish_wait", &[]),
    ("raise_softirq", &[]),
    ("page_fault", &[]),
    ("per_cpu", &["do"]),
];

/// Lock functions: what takes it, what gives it back.
pub(super) const LOCKS: &[(LockKind, &str, &str)] = &[
    (LockKind::Spin, "spin_lock", "spin_unlock"),
    (LockKind::SpinIrq, "spin_lock_irqsave", "spin_unlock_irqrestore"),
    (LockKind::SpinBh, "spin_lock_bh", "spin_unlock_bh"),
    (LockKind::Raw, "raw_spin_lock", "raw_spin_unlock"),
    (LockKind::RawIrq, "raw_spin_lock_irqsave", "raw_spin_unlock_irqrestore"),
    (LockKind::Mutex, "mutex_lock", "mutex_unlock"),
];

/// The softirqs by number, as /proc/softirqs calls them, in lower case.
pub(super) const SOFTIRQS: &[&str] =
    &["hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"];

/// What a softirq is called in scenario files; its number if it has no name.
pub fn softirq_name(number: u8) -> String {
    SOFTIRQS.get(usize::from(number)).map_or_else(|| number.to_string(), |name| (*name).into())
}

/// Every cost with its key.
pub(super) fn costs(costs: &mut Costs) -> [(&'static str, &mut Length); 8] {
    let Costs {
        interrupt_entry,
        interrupt_exit,
        timer_function,
        tick,
        schedule,
        switch,
        return_to_user,
        ipi,
    } = costs;
    [
        ("interrupt_entry", interrupt_entry),
        ("interrupt_exit", interrupt_exit),
        ("timer_function", timer_function),
        ("tick", tick),
        ("schedule", schedule),
        ("switch", switch),
        ("return_to_user", return_to_user),
        ("ipi", ipi),
    ]
}
