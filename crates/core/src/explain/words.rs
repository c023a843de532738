//! Tasks and softirqs in words.

use super::event::{Policy, Task};

/// The kernel's priorities below this are real-time ones.
const FIRST_FAIR_PRIO: i32 = 100;

/// The softirqs, by their number.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The functions that do their work, by the softirqs' numbers: all names that these have had since
/// 5.10, and those of what two of them end with, which the compiler makes a jump.
const ACTIONS: [&[&str]; 10] = [
    &["tasklet_hi_action", "tasklet_action_common"],
    &["run_timer_softirq"],
    &["net_tx_action"],
    &["net_rx_action"],
    &["blk_done_softirq"],
    &["irq_poll_softirq"],
    &["tasklet_action", "tasklet_action_common"],
    &["run_rebalance_domains", "sched_balance_softirq"],
    &["hrtimer_run_softirq"],
    &["rcu_core_si", "rcu_core"],
];

/// The functions of the kernel that do the work of a softirq; none of one that is not known.
pub(super) fn softirq_actions(number: u8) -> &'static [&'static str] {
    ACTIONS.get(usize::from(number)).copied().unwrap_or_default()
}

/// The kernel's own name of a softirq: `NET_RX`.
pub fn softirq_name(number: u8) -> String {
    match SOFTIRQS.get(usize::from(number)) {
        Some(name) => (*name).into(),
        None => format!("softirq {number}"),
    }
}

impl Policy {
    /// Whether it is a real-time one: its tasks run before all ordinary ones.
    pub fn is_realtime(self) -> bool {
        matches!(self, Self::Fifo | Self::RoundRobin | Self::Deadline)
    }

    /// In words; the number of an unknown one.
    fn words(self) -> String {
        match self {
            Self::Other => "other".into(),
            Self::Fifo => "fifo".into(),
            Self::RoundRobin => "rr".into(),
            Self::Batch => "batch".into(),
            Self::Idle => "idle".into(),
            Self::Deadline => "deadline".into(),
            Self::Ext => "ext".into(),
            Self::Unknown(number) => format!("policy {number}"),
        }
    }
}

impl Task {
    /// Whether anything is said of it. The idle task has no 0 for want of anything else.
    pub(super) fn is_known(&self) -> bool {
        !self.is_idle() || !self.comm.is_empty()
    }

    /// `rm[412]`
    pub fn name(&self) -> String {
        format!("{}[{}]", self.comm, self.pid)
    }

    /// `rm[412] other`, `spin[7] fifo 95`: with the priority as one sets it.
    pub fn words(&self) -> String {
        format!("{} {}", self.name(), self.policy_words())
    }

    /// `fifo 95`, `other`
    pub fn policy_words(&self) -> String {
        let policy = self.policy.words();
        match self.policy {
            // The kernel counts them the other way round, so that less is more urgent.
            Policy::Fifo | Policy::RoundRobin => {
                format!("{policy} {}", (FIRST_FAIR_PRIO - 1).saturating_sub(self.prio))
            }
            _ => policy,
        }
    }

    /// Whether it is what a CPU runs that has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.pid == 0
    }

    /// Whether ordinary tasks come after it, by its policy or because it was lent a priority.
    pub(super) fn is_urgent(&self) -> bool {
        self.policy.is_realtime() || self.prio < FIRST_FAIR_PRIO
    }

    /// Whether the scheduler would not run `other` while this one can run.
    pub(super) fn comes_before(&self, other: &Self) -> bool {
        self.prio < other.prio && !self.is_idle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(policy: Policy, prio: i32, want: &str) {
        let task = Task { pid: 7, comm: "x".into(), policy, prio };
        assert_eq!(task.words(), want);
    }

    #[test]
    fn tasks_are_named_with_the_priority_that_one_sets() {
        check(Policy::Fifo, 4, "x[7] fifo 95");
        check(Policy::RoundRobin, 98, "x[7] rr 1");
        check(Policy::Deadline, -1, "x[7] deadline");
        check(Policy::Other, 120, "x[7] other");
        check(Policy::Unknown(9), 120, "x[7] policy 9");
        check(Policy::Fifo, i32::MIN, "x[7] fifo 2147483647");
    }

    #[test]
    fn softirqs_have_the_kernels_names() {
        let names: Vec<String> = [0, 3, 9, 10].map(softirq_name).into();
        assert_eq!(names, ["HI", "NET_RX", "RCU", "softirq 10"]);
    }
}
