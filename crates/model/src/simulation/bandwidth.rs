//! What of a budget was used, and when it is refilled.

use crate::image::{Budget, BudgetId, BudgetOf, CpuId, Image};

/// What a CPU takes of a group's quota at a time, nanoseconds: `sched_cfs_bandwidth_slice_us`.
const SLICE_NS: i64 = 5_000_000;

/// All budgets, in time.
#[derive(Clone, Debug)]
pub(super) struct Bandwidth {
    budgets: Vec<Used>,
    /// Those whose period has ended, with the CPU where the timer is.
    ended: Vec<(CpuId, BudgetId)>,
}

#[derive(Clone, Debug)]
struct Used {
    budget: Budget,
    /// What is left for each CPU, nanoseconds. Negative: it has run over.
    left_ns: Vec<i64>,
    /// What is left for all, of a group.
    pool_ns: i64,
    /// CPUs that have used up theirs: a bit for each.
    throttled: u64,
    /// Whether anybody has run in this period.
    is_used: bool,
    /// Where its timer is.
    on: CpuId,
}

impl Bandwidth {
    pub(super) fn new(image: &Image) -> Self {
        let used = |&budget: &Budget| {
            let runtime = nanoseconds(budget.runtime_ns);
            let left = if budget.of == BudgetOf::Group { 0 } else { runtime };
            Used {
                budget,
                left_ns: vec![left; usize::from(image.cpus)],
                pool_ns: runtime,
                throttled: 0,
                is_used: false,
                on: CpuId(0),
            }
        };
        Self { budgets: image.budgets.iter().map(used).collect(), ended: Vec::new() }
    }

    /// Charges a budget with what ran on a CPU. Whether it is used up there.
    pub(super) fn charge(&mut self, cpu: CpuId, budget: BudgetId, ran_ns: u64) -> bool {
        let used = &mut self.budgets[budget.index()];
        let left = &mut used.left_ns[cpu.index()];
        used.is_used = true;
        *left = left.saturating_sub(nanoseconds(ran_ns));
        let is_group = used.budget.of == BudgetOf::Group;
        // Those that ran on because nobody wanted the CPU owe nothing for that.
        if used.budget.of == (BudgetOf::RealTime { fair_server: true }) {
            *left = (*left).max(-1);
        }
        if is_group && *left <= 0 {
            let taken = used.pool_ns.min(SLICE_NS - *left);
            used.pool_ns -= taken;
            *left += taken;
        }
        // The kernel compares with the quota in one way, and with the time of real-time tasks in the other.
        let is_over = if is_group { *left <= 0 } else { *left < 0 };
        if is_over {
            used.throttled |= 1 << cpu.0;
        }
        is_over
    }

    /// A timer is set on this CPU for the end of a budget's period.
    pub(super) fn timer_is_on(&mut self, budget: BudgetId, cpu: CpuId) {
        self.budgets[budget.index()].on = cpu;
    }

    /// A period ends: where, and whether another one begins. It does unless nobody ran in this one.
    pub(super) fn end(&mut self, budget: BudgetId) -> (CpuId, bool) {
        let used = &mut self.budgets[budget.index()];
        let runtime = nanoseconds(used.budget.runtime_ns);
        match used.budget.of {
            BudgetOf::RealTime { .. } => {
                for left in &mut used.left_ns {
                    *left = left.saturating_add(runtime).min(runtime);
                }
            }
            BudgetOf::Group => used.pool_ns = runtime,
        }
        let goes_on = std::mem::take(&mut used.is_used) || used.throttled != 0;
        self.ended.push((used.on, budget));
        (used.on, goes_on)
    }

    /// A budget whose period has ended, with its timer on this CPU.
    pub(super) fn next_ended(&mut self, cpu: CpuId) -> Option<BudgetId> {
        let at = self.ended.iter().position(|&(on, _)| on == cpu)?;
        Some(self.ended.remove(at).1)
    }

    /// Whether a CPU that had used it up has some again.
    pub(super) fn refill(&mut self, cpu: CpuId, budget: BudgetId) -> bool {
        let used = &mut self.budgets[budget.index()];
        let left = &mut used.left_ns[cpu.index()];
        if used.budget.of == BudgetOf::Group {
            let taken = used.pool_ns.min(1 - *left);
            used.pool_ns -= taken;
            *left += taken;
        }
        if *left > 0 {
            used.throttled &= !(1 << cpu.0);
        }
        *left > 0
    }
}

fn nanoseconds(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
