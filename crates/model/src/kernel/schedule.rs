//! Who runs.

use super::{
    Environment, FIRST_FAIR_PRIO, Frame, FrameKind, Kernel, NeedResched, Running, Stage, TaskState,
    Violation,
};
use crate::image::{CodeId, CpuId, Image, TaskId};
use crate::trace::Transition;

impl Kernel {
    /// `preempt_check_resched`: calls the scheduler where the count has just become 0.
    pub(super) fn preempt_if_enabled(
        &mut self,
        image: &Image,
        cpu: CpuId,
        env: &mut impl Environment,
    ) {
        if image.rules.preempt_enable_schedules {
            self.schedule_if_needed(cpu, env);
        }
    }

    /// Calls the scheduler where a task may be preempted and is to be.
    fn schedule_if_needed(&mut self, cpu: CpuId, env: &mut impl Environment) {
        let state = &self.cpus[cpu.index()];
        let in_task = state.frames.is_empty() && state.current.is_some();
        let is_enabled = state.count == 0 && in_task && !self.irqs_off(cpu);
        if is_enabled && state.need_resched == NeedResched::Now {
            self.enter_scheduler(cpu, true, env);
        }
    }

    /// `schedule`, or `preempt_schedule`, which marks the task as preempted.
    pub(super) fn enter_scheduler(
        &mut self,
        cpu: CpuId,
        preempts: bool,
        env: &mut impl Environment,
    ) {
        if let Some(count) = self.atomic_count(cpu) {
            env.violated(cpu, Violation::AtomicSchedule { count });
            return;
        }
        env.observe(cpu, Transition::SchedEntry);
        self.push(cpu, Frame::new(FrameKind::Scheduler { preempts }, CodeId(0)));
    }

    /// The preempt count, if the CPU is in atomic context: not 0, or with interrupts off, or in a handler or softirq.
    pub(super) fn atomic_count(&self, cpu: CpuId) -> Option<u32> {
        let state = &self.cpus[cpu.index()];
        let irq_depth = self.top(cpu).map_or(0, |top| top.irq_depth);
        let is_atomic = state.count != 0 || irq_depth != 0 || !state.frames.is_empty();
        is_atomic.then_some(state.count)
    }

    /// A task that is about to sleep is in no read-side section of RCU; with softirqs off, RT is in one.
    pub(super) fn must_be_allowed_to_sleep(&self, cpu: CpuId, env: &mut impl Environment) {
        let Some(task) = self.cpus[cpu.index()].current else { return };
        let task = &self.tasks[task.index()];
        if task.rcu_depth > 0 || task.bh_depth > 0 {
            env.violated(cpu, Violation::SleepInRcu);
        }
    }

    /// The scheduler's choice.
    pub(super) fn choose(
        &mut self,
        image: &Image,
        cpu: CpuId,
        preempts: bool,
        env: &mut impl Environment,
    ) {
        self.cpu(cpu).need_resched = NeedResched::No;
        let current = self.cpus[cpu.index()].current;
        if let Some(task) = current {
            self.charge(image, cpu, task, true, env);
            let stays = preempts && image.rules.preempted_stay_ready;
            let is_ready = self.tasks[task.index()].state == TaskState::Running || stays;
            self.cpu(cpu).preempts = is_ready;
            if is_ready {
                self.put_back(cpu, task);
            } else {
                self.task(task).is_queued = false;
            }
        }
        let next = self.take_first(image, cpu, env).or_else(|| self.pull(image, cpu, env));
        if next == current {
            self.cpu(cpu).preempts = false;
            return self.enable_interrupts(cpu);
        }
        self.cpu(cpu).next = next;
        if let Some(top) = self.top_mut(cpu) {
            top.stage = Stage::Exit;
        }
    }

    /// A task that could run on goes before those of its priority; one whose slice is over behind them.
    fn put_back(&mut self, cpu: CpuId, task: TaskId) {
        let rotates = std::mem::take(&mut self.task(task).frame.rotates);
        let state = self.cpu(cpu);
        if rotates {
            state.ready.push(task);
        } else {
            state.ready.insert(0, task);
        }
    }

    /// Takes the most urgent of those that are ready from the run queue.
    fn take_first(
        &mut self,
        image: &Image,
        cpu: CpuId,
        env: &mut impl Environment,
    ) -> Option<TaskId> {
        let state = &self.cpus[cpu.index()];
        let may_run = |task: &TaskId| self.may_run(image, cpu, *task);
        let allowed: Vec<TaskId>;
        let ready = match state.throttled {
            0 => &state.ready,
            _ => {
                allowed = state.ready.iter().copied().filter(may_run).collect();
                &allowed
            }
        };
        let prio = |task: TaskId| self.tasks[task.index()].prio;
        let mut best = 0;
        for (at, &task) in ready.iter().enumerate().skip(1) {
            let (this, other) = (prio(task), prio(ready[best]));
            let class = |prio: i16| prio.min(FIRST_FAIR_PRIO);
            let is_earlier = this == -1 && other == -1 && env.is_earlier(task, ready[best]);
            if class(this) < class(other) || is_earlier {
                best = at;
            }
        }
        let first = *ready.get(best)?;
        if prio(first) >= FIRST_FAIR_PRIO && ready.len() > 1 {
            best = env.first_of_fair(cpu, ready);
        }
        let chosen = ready[best];
        let ready = &mut self.cpu(cpu).ready;
        let at = ready.iter().position(|&task| task == chosen)?;
        Some(ready.remove(at))
    }

    /// An idle CPU takes a task that waits elsewhere and may run here.
    fn pull(&mut self, image: &Image, cpu: CpuId, env: &mut impl Environment) -> Option<TaskId> {
        for other in 0..self.cpus.len() {
            let runs_there = self.cpus[other].current;
            let may_move = |&task: &TaskId| {
                let is_bound = self.tasks[task.index()].is_bound;
                let is_free = image.tasks[task.index()].cpu.is_none() && !is_bound;
                let may_run = |on| self.may_run(image, on, task);
                is_free && runs_there != Some(task) && may_run(CpuId::at(other)) && may_run(cpu)
            };
            let Some(at) = self.cpus[other].ready.iter().position(may_move) else { continue };
            env.pulls_from(CpuId::at(other), || self.running(image, CpuId::at(other)));
            let task = self.cpus[other].ready.remove(at);
            self.task(task).cpu = cpu;
            env.observe(cpu, Transition::Pulled(task));
            return Some(task);
        }
        None
    }

    /// The change from one task to another.
    pub(super) fn switch(&mut self, image: &Image, cpu: CpuId, env: &mut impl Environment) {
        let state = self.cpu(cpu);
        let (from, to) = (state.current, state.next.take());
        let count = state.count;
        state.current = to;
        let preempted = std::mem::take(&mut state.preempts);
        if let Some(from) = from {
            self.task(from).count = count;
        }
        if let Some(to) = to {
            self.task(to).cpu = cpu;
            let count = self.tasks[to.index()].count;
            self.cpu(cpu).count = count;
        } else {
            self.cpu(cpu).count = 0;
        }
        if let Some(task) = from.filter(|_| env.wants_places()) {
            let frame = &self.tasks[task.index()].frame;
            let (stack, prio) = (frame.stack(image), self.tasks[task.index()].prio);
            let at = Running { task: from, prio, stack, ..self.running(image, cpu) };
            env.place(cpu, at);
        }
        env.observe(cpu, Transition::Switch { from, preempted, to });
        self.enable_interrupts(cpu);
    }

    /// Interrupts are on again; what waited for that comes first.
    fn enable_interrupts(&mut self, cpu: CpuId) {
        if let Some(top) = self.top_mut(cpu) {
            top.stage = Stage::Code;
        }
    }

    /// The scheduler looks again before it returns, under all models, since interrupts were off and other CPUs
    /// may have woken somebody meanwhile (`while (need_resched())` of `schedule` and `preempt_schedule`,
    /// kernel/sched/core.c, 6.18).
    pub(super) fn leave_scheduler(&mut self, cpu: CpuId, env: &mut impl Environment) {
        self.cpu(cpu).frames.pop();
        env.observe(cpu, Transition::SchedExit);
        self.schedule_if_needed(cpu, env);
    }

    /// `try_to_wake_up`
    pub(super) fn wake(
        &mut self,
        image: &Image,
        cpu: CpuId,
        task: TaskId,
        env: &mut impl Environment,
    ) {
        if self.tasks[task.index()].state == TaskState::Running {
            return;
        }
        self.task(task).state = TaskState::Running;
        if env.wants_places() {
            env.wakes(cpu, task, self.running(image, cpu));
        }
        // It has not left its CPU yet, or was preempted on its way to sleep: it simply goes on.
        if self.tasks[task.index()].is_queued {
            return;
        }
        let on = self.cpu_for(image, task);
        if self.tasks[task.index()].prio >= FIRST_FAIR_PRIO {
            env.joins(on, task, self.fair_tasks(image, on).filter(|&other| other != task));
        }
        let woken = self.task(task);
        (woken.is_queued, woken.cpu) = (true, on);
        self.cpu(on).ready.push(task);
        env.observe(cpu, Transition::Woken { task, on });
        self.charge(image, on, task, false, env);
        self.preempt_for(image, cpu, on, task, env);
    }

    /// The fair tasks that run on a CPU or could. One that is about to sleep is none of them.
    pub(super) fn fair_tasks<'k>(
        &'k self,
        image: &'k Image,
        cpu: CpuId,
    ) -> impl Iterator<Item = TaskId> + 'k {
        let state = &self.cpus[cpu.index()];
        let current = state.current.filter(|task| self.tasks[task.index()].is_queued);
        let is_fair = |task: TaskId| self.tasks[task.index()].prio >= FIRST_FAIR_PRIO;
        let queued = current.into_iter().chain(state.next).chain(state.ready.iter().copied());
        queued.filter(move |&task| is_fair(task) && self.may_run(image, cpu, task))
    }

    /// The CPU that a woken task goes to: where it ran, unless that is busy and another one idle.
    fn cpu_for(&self, image: &Image, task: TaskId) -> CpuId {
        if let Some(bound) = image.tasks[task.index()].cpu {
            return bound;
        }
        let is_idle = |cpu: CpuId| {
            let state = &self.cpus[cpu.index()];
            let nobody = state.current.is_none() && state.next.is_none();
            nobody && !self.somebody_waits(image, cpu)
        };
        let last = self.tasks[task.index()].cpu;
        // It has not left its CPU yet: nobody else may run it before that.
        if self.cpus[last.index()].current == Some(task) || self.tasks[task.index()].is_bound {
            return last;
        }
        if is_idle(last) {
            return last;
        }
        (0..self.cpus.len()).map(CpuId::at).find(|&cpu| is_idle(cpu)).unwrap_or(last)
    }

    /// Whether `task`, which is ready on the CPU `on`, is to run there before who runs.
    pub(super) fn preempt_for(
        &mut self,
        image: &Image,
        cpu: CpuId,
        on: CpuId,
        task: TaskId,
        env: &mut impl Environment,
    ) {
        if !self.may_run(image, on, task) {
            return;
        }
        let state = &self.cpus[on.index()];
        // Once the scheduler has chosen, it does not look again: its choice counts, idle too.
        let has_chosen = state.frames.iter().any(|frame| {
            matches!(frame.kind, FrameKind::Scheduler { .. }) && frame.stage == Stage::Exit
        });
        let Some(running) = (if has_chosen { state.next } else { state.current }) else {
            return self.set_need(cpu, on, NeedResched::Now, env);
        };
        let (this, other) = (self.tasks[task.index()].prio, self.tasks[running.index()].prio);
        let preempts = match (this >= FIRST_FAIR_PRIO, other >= FIRST_FAIR_PRIO) {
            (true, true) => env.fair_preempts(on, running, task),
            (true, false) if !self.may_run(image, on, running) => true,
            _ if this == -1 && other == -1 => env.is_earlier(task, running),
            _ => this < other,
        };
        if preempts {
            let need = self.need_for(image, task);
            self.set_need(cpu, on, need, env);
        }
    }

    /// How the class of a task asks for the scheduler: `resched_curr_lazy` of fair ones, `resched_curr` of the others.
    pub(super) fn need_for(&self, image: &Image, task: TaskId) -> NeedResched {
        let is_fair = self.tasks[task.index()].prio >= FIRST_FAIR_PRIO;
        match is_fair && image.rules.fair_class_is_lazy {
            true => NeedResched::Lazy,
            false => NeedResched::Now,
        }
    }

    /// Sets `need_resched` of the CPU `on`, from `cpu`.
    pub(super) fn set_need(
        &mut self,
        cpu: CpuId,
        on: CpuId,
        need: NeedResched,
        env: &mut impl Environment,
    ) {
        let state = self.cpu(on);
        if state.need_resched >= need {
            return;
        }
        state.need_resched = need;
        env.observe(on, Transition::NeedResched { lazy: need == NeedResched::Lazy });
        if on != cpu && need == NeedResched::Now {
            env.send_reschedule(on);
        }
    }
}
