//! What watching takes.

use std::os::fd::OwnedFd;

use aya::programs::Program;
use aya::sys::{Stats, enable_stats};
use wakescope_core::watch::{CostSource, OwnCost};
use wakescope_sys::clock::{self, Clock};

/// What was known last, and what it adds up to.
#[derive(Default)]
pub(super) struct Costs {
    /// Held while the kernel is to measure runs: it ends when this is closed, also by death.
    stats: Option<OwnedFd>,
    /// What the kernel measured so far: run time of all programs, ns, and runs at switches.
    measured: (u64, u64),
    /// What all took for each switch when some were measured last, in picoseconds.
    run_ps: Option<u64>,
    agent_ns: u64,
    total: Total,
}

#[derive(Default)]
struct Total {
    agent_ns: u64,
    program_ns: u64,
    runs: u64,
    has_measured: bool,
    has_estimated: bool,
    has_unknown: bool,
}

impl Costs {
    /// Has the kernel measure every run of every BPF program, or no more. Where it cannot, costs are
    /// estimated, or unknown.
    pub(super) fn measure(&mut self, measures: bool) {
        self.stats = if measures { enable_stats(Stats::RunTime).ok() } else { None };
    }

    /// From here on CPU time of this process counts: what starting took is before the first interval.
    pub(super) fn begin(&mut self) {
        self.agent_ns = clock::read(Clock::ProcessCpu);
    }

    /// Whether the kernel measures runs just now.
    pub(super) fn is_measuring(&self) -> bool {
        self.stats.is_some()
    }

    /// What was taken since the last call, in which `switch` ran `runs` times, and `moves` beside it.
    pub(super) fn since_last(
        &mut self,
        switch: Option<&Program>,
        moves: Option<&Program>,
        runs: u64,
        cpus: u32,
    ) -> OwnCost {
        let agent = clock::read(Clock::ProcessCpu);
        let agent_ns = agent.saturating_sub(self.agent_ns);
        self.agent_ns = agent;
        let (beside_ns, _) = measured(moves).unwrap_or_default();
        let now = measured(switch).map(|(ns, runs)| (ns.saturating_add(beside_ns), runs));
        let (now_ns, now_runs) = now.unwrap_or(self.measured);
        let new_ns = now_ns.saturating_sub(self.measured.0);
        let new_runs = now_runs.saturating_sub(self.measured.1);
        self.measured = (now_ns, now_runs);
        let (program_ns, source) = self.judge(new_ns, new_runs, runs);
        let total = &mut self.total;
        total.agent_ns += agent_ns;
        total.program_ns += program_ns.unwrap_or(0);
        total.runs += runs;
        total.has_measured |= source == CostSource::Measured;
        total.has_estimated |= source == CostSource::Estimated;
        total.has_unknown |= source == CostSource::Unknown;
        OwnCost { agent_ns, program_ns, program_runs: runs, source, cpus, ..OwnCost::default() }
    }

    /// The run time of `runs`, of which the kernel measured `new_runs` in `new_ns`.
    fn judge(&mut self, new_ns: u64, new_runs: u64, runs: u64) -> (Option<u64>, CostSource) {
        if let Some(run_ps) = new_ns.saturating_mul(1_000).checked_div(new_runs) {
            self.run_ps = Some(run_ps);
        }
        // Both are read one after the other, and the program runs meanwhile.
        let all = new_runs > 0 && new_runs.saturating_mul(100) >= runs.saturating_mul(99);
        match self.run_ps {
            _ if all => (Some(new_ns), CostSource::Measured),
            Some(run_ps) => {
                let ns = u128::from(runs) * u128::from(run_ps) / 1_000;
                (Some(u64::try_from(ns).unwrap_or(u64::MAX)), CostSource::Estimated)
            }
            None => (None, CostSource::Unknown),
        }
    }

    /// All that was taken so far.
    pub(super) fn total(&self, cpus: u32) -> OwnCost {
        let Total { agent_ns, program_ns, runs, has_measured, has_estimated, has_unknown } =
            self.total;
        let source = match (has_unknown, has_estimated, has_measured) {
            (false, false, true) => CostSource::Measured,
            (false, true, _) => CostSource::Estimated,
            _ => CostSource::Unknown,
        };
        let program_ns = (source != CostSource::Unknown).then_some(program_ns);
        OwnCost { agent_ns, program_ns, program_runs: runs, source, cpus, ..OwnCost::default() }
    }
}

/// For how long a program has run, ns, and how often, while the kernel measured it.
fn measured(program: Option<&Program>) -> Option<(u64, u64)> {
    let info = program?.info().ok()?;
    Some((u64::try_from(info.run_time().as_nanos()).unwrap_or(u64::MAX), info.run_count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_before_the_begin_is_no_cost() {
        let mut before = 0;
        while before < 20_000_000 {
            before = clock::read(Clock::ProcessCpu);
        }
        let mut costs = Costs::default();
        costs.begin();
        let cost = costs.since_last(None, None, 0, 1);
        let since_begin = clock::read(Clock::ProcessCpu) - before;
        assert!(cost.agent_ns <= since_begin, "{} of {since_begin}", cost.agent_ns);
    }

    #[test]
    fn a_cost_is_measured_or_called_an_estimate() {
        let mut costs = Costs::default();
        assert_eq!(costs.judge(0, 0, 1_000), (None, CostSource::Unknown));
        assert_eq!(costs.judge(90_000, 1_000, 1_002), (Some(90_000), CostSource::Measured));
        // Of half of them only.
        assert_eq!(costs.judge(50_000, 500, 1_000), (Some(100_000), CostSource::Estimated));
        assert_eq!(costs.judge(0, 0, 10), (Some(1_000), CostSource::Estimated));
    }
}
