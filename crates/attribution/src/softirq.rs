//! Softirqs, by their numbers.

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
pub(crate) fn softirq_actions(number: u8) -> &'static [&'static str] {
    ACTIONS.get(usize::from(number)).copied().unwrap_or_default()
}

/// The kernel's own name of a softirq: `NET_RX`. Its number where the kernel has no such softirq.
pub fn softirq_name(number: u8) -> String {
    match SOFTIRQS.get(usize::from(number)) {
        Some(name) => (*name).into(),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softirqs_have_the_kernels_names() {
        let names: Vec<String> = [0, 3, 9, 10].map(softirq_name).into();
        assert_eq!(names, ["HI", "NET_RX", "RCU", "10"]);
    }
}
