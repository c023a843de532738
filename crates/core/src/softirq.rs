//! Softirqs, by their numbers (include/linux/interrupt.h).

/// A softirq of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Softirq {
    /// The kernel's own name: `NET_RX`.
    pub name: &'static str,
    /// The function that does its work, by all names that it has had since 5.10, the newest last.
    pub functions: &'static [&'static str],
    /// What that ends with, where the compiler makes a jump of the call. Others call it as well.
    pub ends_with: &'static [&'static str],
}

/// All of them, by their numbers.
pub const SOFTIRQS: [Softirq; 10] = [
    softirq("HI", &["tasklet_hi_action"], &["tasklet_action_common"]),
    softirq("TIMER", &["run_timer_softirq"], &[]),
    softirq("NET_TX", &["net_tx_action"], &[]),
    softirq("NET_RX", &["net_rx_action"], &[]),
    softirq("BLOCK", &["blk_done_softirq"], &[]),
    softirq("IRQ_POLL", &["irq_poll_softirq"], &[]),
    softirq("TASKLET", &["tasklet_action"], &["tasklet_action_common"]),
    softirq("SCHED", &["run_rebalance_domains", "sched_balance_softirq"], &[]),
    softirq("HRTIMER", &["hrtimer_run_softirq"], &[]),
    softirq("RCU", &["rcu_core_si"], &["rcu_core"]),
];

const fn softirq(
    name: &'static str,
    functions: &'static [&'static str],
    ends_with: &'static [&'static str],
) -> Softirq {
    Softirq { name, functions, ends_with }
}

/// The kernel's own name of a softirq. Its number where the kernel has no such softirq.
pub fn softirq_name(number: u8) -> String {
    let known = SOFTIRQS.get(usize::from(number));
    known.map_or_else(|| number.to_string(), |softirq| softirq.name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softirqs_have_the_kernels_names() {
        let names: Vec<String> = [0, 3, 9, 10].map(softirq_name).into();
        assert_eq!(names, ["HI", "NET_RX", "RCU", "10"]);
    }

    #[test]
    fn a_function_does_the_work_of_one_softirq() {
        let mut functions = SOFTIRQS.map(|softirq| softirq.functions).concat();
        functions.sort_unstable();
        assert!(functions.windows(2).all(|pair| pair[0] != pair[1]), "{functions:?}");
    }
}
