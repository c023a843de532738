//! Budgets of CPU time: real-time throttling, and quotas of groups.
//!
//! Time is charged at the tick, where the scheduler is called, and to whom it wakes, as in the kernel: who
//! has used up a budget runs on until then. Whoever is stopped stays on the run queue, and is not chosen
//! until the budget's period ends and a timer refills it.

use super::{Environment, FIRST_FAIR_PRIO, Kernel, NeedResched};
use crate::image::{BudgetId, BudgetOf, CpuId, Image, TaskId};
use crate::trace::Transition;

impl Kernel {
    /// Whether a task that is ready on a CPU, or runs there, may be chosen: its budget is not used up.
    pub(crate) fn may_run(&self, image: &Image, cpu: CpuId, task: TaskId) -> bool {
        let throttled = self.cpus[cpu.index()].throttled;
        if throttled == 0 {
            return true;
        }
        let Some(budget) = self.budget_of(image, task) else { return true };
        if throttled & (1 << budget.0) == 0 {
            return true;
        }
        match image.budgets[budget.index()].of {
            BudgetOf::RealTime { fair_server: true } => !self.ordinary_task_wants(image, cpu),
            BudgetOf::RealTime { fair_server: false } | BudgetOf::Group => false,
        }
    }

    /// The budget that a task uses with the priority that it has now, which may be lent.
    fn budget_of(&self, image: &Image, task: TaskId) -> Option<BudgetId> {
        match self.tasks[task.index()].prio {
            ..=-1 => None,
            0..FIRST_FAIR_PRIO => image.rt_budget,
            _ => image.tasks[task.index()].budget,
        }
    }

    /// Whether an ordinary task runs on a CPU, or could.
    fn ordinary_task_wants(&self, image: &Image, cpu: CpuId) -> bool {
        self.fair_tasks(image, cpu).next().is_some()
    }

    /// Whether somebody is ready on a CPU and may run.
    pub(super) fn somebody_waits(&self, image: &Image, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].ready.iter().any(|&task| self.may_run(image, cpu, task))
    }

    /// Stops those with the budget of a task that `runs`, or was woken, if it is used up.
    pub(super) fn charge(
        &mut self,
        image: &Image,
        cpu: CpuId,
        task: TaskId,
        runs: bool,
        env: &mut impl Environment,
    ) {
        let Some(budget) = self.budget_of(image, task) else { return };
        let bit = 1 << budget.0;
        if self.cpus[cpu.index()].throttled & bit != 0 {
            if runs {
                env.runs_over(cpu, budget);
            }
        } else if env.is_used_up(cpu, budget, runs) {
            self.cpu(cpu).throttled |= bit;
            env.observe(cpu, Transition::Throttled(budget));
        }
    }

    pub(super) fn next_period(&mut self, cpu: CpuId, end: u32, env: &mut impl Environment) {
        let period = env.next_period(cpu);
        let Some(top) = self.top_mut(cpu) else { return };
        top.period = period;
        top.pc = if period.is_some() { top.pc + 1 } else { end };
        if let Some(budget) = period {
            env.observe(cpu, Transition::PeriodBegin(budget));
        }
    }

    /// A new period begins: those that were stopped for the last one may run, on every CPU.
    pub(super) fn end_period(&mut self, image: &Image, cpu: CpuId, env: &mut impl Environment) {
        let Some(budget) = self.top_mut(cpu).and_then(|top| top.period.take()) else { return };
        let bit = 1 << budget.0;
        for on in (0..self.cpus.len()).map(CpuId::at) {
            if self.cpus[on.index()].throttled & bit != 0 && env.is_refilled(on, budget) {
                self.cpu(on).throttled &= !bit;
                env.observe(on, Transition::Unthrottled(budget));
                self.run_again(image, cpu, on, budget, env);
            }
        }
        env.observe(cpu, Transition::PeriodEnd);
    }

    /// Calls the scheduler of a CPU where somebody with this budget is ready, if need be: for ordinary
    /// tasks only where nobody runs, as `unthrottle_cfs_rq` does.
    fn run_again(
        &mut self,
        image: &Image,
        cpu: CpuId,
        on: CpuId,
        budget: BudgetId,
        env: &mut impl Environment,
    ) {
        let state = &self.cpus[on.index()];
        let has_it = |task: &TaskId| self.budget_of(image, *task) == Some(budget);
        let ready = state.ready.iter().copied().filter(has_it);
        let Some(first) = ready.clone().min_by_key(|task| self.tasks[task.index()].prio) else {
            return;
        };
        if let BudgetOf::RealTime { .. } = image.budgets[budget.index()].of {
            return self.preempt_for(image, cpu, on, first, env);
        }
        for task in ready {
            env.joins(on, task, self.fair_tasks(image, on).filter(|other| !has_it(other)));
        }
        if state.current.is_none() && state.next.is_none() {
            self.set_need(cpu, on, NeedResched::Now, env);
        }
    }
}
