//! One operation after another.

use super::{
    Environment, Frame, FrameKind, Kernel, NeedResched, Progress, SOFTIRQ_BITS, SOFTIRQ_UNIT,
    Sleep, Stage, TaskState, Violation,
};
use crate::image::{CountId, CpuId, EventId, Image, Op, SourceId, SourceKind, TaskId};
use crate::trace::Transition;

impl Kernel {
    /// Executes one operation of a CPU. What takes time has only begun then, and is to be ended by
    /// [`Self::finish`].
    pub fn step(&mut self, image: &Image, cpu: CpuId, env: &mut impl Environment) -> Progress {
        if self.cpus[cpu.index()].pending != 0 {
            if let Some(source) = self.next_interrupt(image, cpu) {
                self.take(image, cpu, source, env);
                return Progress::Instant;
            }
        }
        let Some(top) = self.top_mut(cpu) else {
            return self.step_idle(cpu, env);
        };
        if let Some(left) = top.left.take() {
            return Progress::Resumes(left);
        }
        match (top.kind, top.stage) {
            (FrameKind::Interrupt(_), Stage::LeavingIdle) => Progress::LeavesIdle,
            (FrameKind::Interrupt(source), Stage::Entry) => {
                match image.sources[source.index()].kind {
                    SourceKind::Steal => {
                        self.enter_stage(cpu, Stage::Code, Transition::HandlerBegin(source), env);
                        Progress::Instant
                    }
                    _ => Progress::Takes(image.costs.interrupt_entry),
                }
            }
            (FrameKind::Interrupt(source), Stage::Exit) => {
                match image.sources[source.index()].kind {
                    SourceKind::Steal => {
                        self.leave_interrupt(image, cpu, source, env);
                        Progress::Instant
                    }
                    _ => Progress::Takes(image.costs.interrupt_exit),
                }
            }
            (FrameKind::Scheduler { .. }, Stage::Entry) => Progress::Takes(image.costs.schedule),
            (FrameKind::Scheduler { .. }, Stage::Code) => {
                self.leave_scheduler(cpu, env);
                Progress::Instant
            }
            (FrameKind::Scheduler { .. }, _) => Progress::Takes(image.costs.switch),
            _ => {
                let op = image.codes[top.code.index()].ops[top.pc as usize];
                self.execute(image, cpu, op, env)
            }
        }
    }

    /// What takes time on a CPU is over.
    pub fn finish(&mut self, image: &Image, cpu: CpuId, env: &mut impl Environment) {
        let Some(top) = self.top_mut(cpu) else { return };
        match (top.kind, top.stage) {
            (FrameKind::Interrupt(_), Stage::LeavingIdle) => top.stage = Stage::Entry,
            (FrameKind::Interrupt(source), Stage::Entry) => {
                self.enter_stage(cpu, Stage::Code, Transition::HandlerBegin(source), env)
            }
            (FrameKind::Interrupt(source), Stage::Exit) => {
                self.leave_interrupt(image, cpu, source, env);
            }
            (FrameKind::Scheduler { preempts }, Stage::Entry) => {
                self.choose(image, cpu, preempts, env);
            }
            (FrameKind::Scheduler { .. }, _) => self.switch(image, cpu, env),
            _ => {
                let is_fault =
                    matches!(image.codes[top.code.index()].ops[top.pc as usize], Op::PageFault(_));
                top.pc += 1;
                if is_fault {
                    if let Some(task) = self.cpus[cpu.index()].current {
                        env.observe(cpu, Transition::PageFault(task));
                    }
                }
            }
        }
    }

    /// An interrupt comes in the middle of what takes time: so much of it is left, nanoseconds.
    pub fn pause(&mut self, cpu: CpuId, left: u64) {
        if let Some(top) = self.top_mut(cpu) {
            top.left = Some(left);
        }
    }

    fn step_idle(&mut self, cpu: CpuId, env: &mut impl Environment) -> Progress {
        let state = &self.cpus[cpu.index()];
        if state.need_resched == NeedResched::No {
            return Progress::Idle;
        }
        self.enter_scheduler(cpu, true, env);
        Progress::Instant
    }

    fn execute(
        &mut self,
        image: &Image,
        cpu: CpuId,
        op: Op,
        env: &mut impl Environment,
    ) -> Progress {
        match op {
            Op::Compute(length) | Op::PageFault(length) => return Progress::Takes(length),
            Op::User(length) => {
                if self.enters_user_mode(cpu, env) {
                    return Progress::Takes(length);
                }
            }
            Op::Sleep(length, source) => self.sleep(cpu, Sleep::For(length, source), env),
            Op::SleepOnGrid => self.sleep(cpu, Sleep::OnGrid, env),
            Op::Respond => {
                if self.enters_user_mode(cpu, env) {
                    if let Some(task) = self.cpus[cpu.index()].current {
                        env.observe(cpu, Transition::Response(task));
                    }
                    self.advance(cpu);
                }
            }
            Op::Acquire(lock) => return self.acquire(cpu, lock, env),
            Op::Release(lock) => {
                self.release(image, cpu, lock, env);
                self.advance(cpu);
            }
            Op::MutexLock(lock) | Op::RtLock(lock) => {
                if self.lock_or_sleep(cpu, lock, matches!(op, Op::RtLock(_)), env) {
                    self.advance(cpu);
                }
            }
            Op::MutexUnlock(lock) => {
                self.unlock_and_wake(image, cpu, lock, env);
                self.advance(cpu);
                self.preempt_if_enabled(image, cpu, env);
            }
            Op::PreemptDisable => {
                self.raise_count(cpu, 1, env);
                self.advance(cpu);
            }
            Op::PreemptEnable => {
                self.lower_count(cpu, 1, env);
                self.advance(cpu);
                self.preempt_if_enabled(image, cpu, env);
            }
            Op::PreemptEnableNoResched => {
                self.lower_count(cpu, 1, env);
                self.advance(cpu);
            }
            Op::IrqSave | Op::IrqRestore => {
                self.change_irqs(image, cpu, op == Op::IrqSave, env);
                self.advance(cpu);
            }
            Op::BhDisable => self.disable_softirqs(image, cpu, env),
            Op::BhEnable => {
                if env.wants_places() {
                    env.place(cpu, self.running(image, cpu));
                }
                self.advance(cpu);
                self.enable_softirqs(image, cpu, env);
            }
            Op::RcuReadLock | Op::RcuReadUnlock => {
                self.change_rcu(cpu, op == Op::RcuReadLock, env);
                self.advance(cpu);
            }
            Op::ReschedulePoint => {
                self.advance(cpu);
                let state = &self.cpus[cpu.index()];
                if state.need_resched != NeedResched::No && state.count == 0 {
                    self.enter_scheduler(cpu, true, env);
                }
            }
            Op::Schedule => {
                self.advance(cpu);
                self.must_be_allowed_to_sleep(cpu, env);
                self.enter_scheduler(cpu, false, env);
            }
            Op::PrepareToWait(event) => {
                if let Some(task) = self.cpus[cpu.index()].current {
                    self.task(task).state = TaskState::Sleeping(Some(event));
                }
                self.advance(cpu);
            }
            Op::FinishWait(event) => {
                self.announced[usize::from(event.0)] = false;
                if let Some(task) = self.cpus[cpu.index()].current {
                    self.task(task).state = TaskState::Running;
                }
                self.advance(cpu);
            }
            Op::IfAnnounced(event, to) => {
                if self.announced[usize::from(event.0)] {
                    self.go_to(cpu, to);
                } else {
                    self.advance(cpu);
                }
            }
            Op::Wake(event) => {
                self.announce(image, cpu, event, env);
                self.advance(cpu);
                self.preempt_if_enabled(image, cpu, env);
            }
            Op::WakeSleepers(source) => {
                while let Some(task) = env.next_sleeper(cpu, source) {
                    self.wake(image, cpu, task, env);
                }
                self.advance(cpu);
                self.preempt_if_enabled(image, cpu, env);
            }
            Op::NextTimer(end) => self.next_timer(cpu, end, env),
            Op::WakeTimer => {
                let expired = self.top_mut(cpu).and_then(|top| top.expired.take());
                if let Some(task) = expired {
                    self.wake(image, cpu, task, env);
                    env.observe(cpu, Transition::TimerEnd(task));
                }
                self.advance(cpu);
            }
            Op::BeginTick(end) => {
                if env.take_tick(cpu) {
                    env.observe(cpu, Transition::TickBegin);
                    self.advance(cpu);
                } else {
                    self.go_to(cpu, end);
                }
            }
            Op::EndTick => {
                self.tick(image, cpu, env);
                env.observe(cpu, Transition::TickEnd);
                self.advance(cpu);
            }
            Op::NextPeriod(end) => self.next_period(cpu, end, env),
            Op::EndPeriod => {
                self.end_period(image, cpu, env);
                self.advance(cpu);
            }
            Op::RaiseSoftirq(number) => {
                self.cpu(cpu).softirqs |= 1 << number;
                self.advance(cpu);
            }
            Op::RunSoftirqs => {
                self.advance(cpu);
                self.run_softirqs_in_thread(image, cpu, env);
            }
            Op::TakeSoftirq(number, none) => {
                if self.cpus[cpu.index()].softirqs & (1 << number) == 0 {
                    self.go_to(cpu, none);
                } else {
                    self.cpu(cpu).softirqs &= !(1 << number);
                    self.set_softirq(cpu, Some(number));
                    env.observe(cpu, Transition::SoftirqBegin(number));
                    self.advance(cpu);
                }
            }
            Op::EndSoftirq(number) => {
                self.set_softirq(cpu, None);
                env.observe(cpu, Transition::SoftirqEnd(number));
                self.advance(cpu);
            }
            Op::EndSoftirqs(begin) => self.end_softirqs_of_task(image, cpu, begin, env),
            Op::BeginChange(variable) => {
                self.begin_change(cpu, variable, env);
                self.advance(cpu);
            }
            Op::EndChange(variable) => {
                self.end_change(cpu, variable, env);
                self.advance(cpu);
            }
            Op::Work => {
                if let Some(task) = self.cpus[cpu.index()].current {
                    env.observe(cpu, Transition::Work(task));
                }
                self.advance(cpu);
            }
            Op::Broken(lock) => {
                env.observe(cpu, Transition::LockBroken(lock));
                self.advance(cpu);
            }
            Op::Jump(to) => self.go_to(cpu, to),
            Op::Loop { depth, count, end } => self.begin_loop(cpu, depth, count, end, env),
            Op::EndLoop { depth, begin } => self.end_loop(cpu, depth, begin),
            Op::RestartLoop { depth, count, begin } => {
                let times = env.count(count);
                if let Some(top) = self.top_mut(cpu) {
                    top.loops[usize::from(depth)] = times;
                    top.since_look[usize::from(depth)] = 0;
                    top.pc = begin;
                }
            }
            Op::BreakPoint { depth, every, end } => self.look_at_need(cpu, depth, every, end),
            Op::End => self.end_of_code(image, cpu, env),
        }
        Progress::Instant
    }

    pub(super) fn advance(&mut self, cpu: CpuId) {
        if let Some(top) = self.top_mut(cpu) {
            top.pc += 1;
        }
    }

    pub(super) fn go_to(&mut self, cpu: CpuId, to: u32) {
        if let Some(top) = self.top_mut(cpu) {
            top.pc = to;
        }
    }

    /// Whether the task comes to user mode; else the scheduler is called first.
    fn enters_user_mode(&mut self, cpu: CpuId, env: &mut impl Environment) -> bool {
        let state = &self.cpus[cpu.index()];
        let irq_depth = self.top(cpu).map_or(0, |top| top.irq_depth);
        let bh_depth = state.current.map_or(0, |task| self.tasks[task.index()].bh_depth);
        if state.count != 0 || irq_depth != 0 || bh_depth != 0 {
            env.violated(cpu, Violation::Unbalanced);
        }
        let is_to_schedule = state.need_resched != NeedResched::No;
        if is_to_schedule {
            self.enter_scheduler(cpu, true, env);
        }
        !is_to_schedule
    }

    /// The first time the task goes to sleep, the second time it has slept.
    fn sleep(&mut self, cpu: CpuId, how: Sleep, env: &mut impl Environment) {
        let Some(task) = self.cpus[cpu.index()].current else { return };
        let frame = &mut self.task(task).frame;
        if frame.sleeps || !env.sleep(cpu, task, how) {
            frame.sleeps = false;
            frame.pc += 1;
            return;
        }
        frame.sleeps = true;
        self.task(task).state = TaskState::Sleeping(None);
        self.must_be_allowed_to_sleep(cpu, env);
        self.enter_scheduler(cpu, false, env);
    }

    fn next_timer(&mut self, cpu: CpuId, end: u32, env: &mut impl Environment) {
        let expired = env.next_sleeper(cpu, crate::image::LOCAL_TIMER);
        let Some(top) = self.top_mut(cpu) else { return };
        top.expired = expired;
        top.pc = if expired.is_some() { top.pc + 1 } else { end };
        if let Some(task) = expired {
            env.observe(cpu, Transition::TimerBegin(task));
        }
    }

    pub(super) fn announce(
        &mut self,
        image: &Image,
        cpu: CpuId,
        event: EventId,
        env: &mut impl Environment,
    ) {
        self.announced[usize::from(event.0)] = true;
        for index in 0..self.tasks.len() {
            if self.tasks[index].state == TaskState::Sleeping(Some(event)) {
                self.wake(image, cpu, TaskId::at(index), env);
            }
        }
    }

    fn begin_loop(
        &mut self,
        cpu: CpuId,
        depth: u8,
        count: CountId,
        end: u32,
        env: &mut impl Environment,
    ) {
        let times = env.count(count);
        let Some(top) = self.top_mut(cpu) else { return };
        top.loops[usize::from(depth)] = times;
        top.since_look[usize::from(depth)] = 0;
        top.pc = if times == 0 { end } else { top.pc + 1 };
    }

    fn end_loop(&mut self, cpu: CpuId, depth: u8, begin: u32) {
        let Some(top) = self.top_mut(cpu) else { return };
        let times = &mut top.loops[usize::from(depth)];
        *times = times.saturating_sub(1);
        top.pc = if *times == 0 { top.pc + 1 } else { begin };
    }

    /// The low-latency patch: iterations are counted, and only each so many looks whether somebody is
    /// to run. So some work is done between two breaks, however often somebody wakes.
    fn look_at_need(&mut self, cpu: CpuId, depth: u8, every: u32, end: u32) {
        let is_needed = self.cpus[cpu.index()].need_resched != NeedResched::No;
        let Some(top) = self.top_mut(cpu) else { return };
        let since = &mut top.since_look[usize::from(depth)];
        *since += 1;
        let looks = *since >= every;
        if looks {
            *since = 0;
        }
        top.pc = if looks && is_needed { top.pc + 1 } else { end };
    }

    /// Each field of the count is checked apart: bits must not be carried to the next one, nor borrowed from it.
    pub(super) fn raise_count(&mut self, cpu: CpuId, unit: u32, env: &mut impl Environment) {
        let count = &mut self.cpu(cpu).count;
        let field = field_of(unit);
        if *count & field > field - unit {
            env.violated(cpu, Violation::Overflow);
        } else {
            *count += unit;
        }
    }

    pub(super) fn lower_count(&mut self, cpu: CpuId, unit: u32, env: &mut impl Environment) {
        let count = &mut self.cpu(cpu).count;
        if *count & field_of(unit) < unit {
            env.violated(cpu, Violation::Underflow);
        } else {
            *count -= unit;
        }
    }

    fn change_irqs(&mut self, image: &Image, cpu: CpuId, off: bool, env: &mut impl Environment) {
        let Some(top) = self.top_mut(cpu) else { return };
        let in_interrupt = matches!(top.kind, FrameKind::Interrupt(_));
        let before = top.irq_depth;
        match (off, before) {
            (true, depth) => top.irq_depth = depth.saturating_add(1),
            (false, 0) => env.violated(cpu, Violation::Underflow),
            (false, depth) => top.irq_depth = depth - 1,
        }
        match (off, before) {
            (true, 0) if !in_interrupt => env.observe(cpu, Transition::IrqsOff),
            (false, 1) if !in_interrupt => {
                if env.wants_places() {
                    env.place(cpu, self.running(image, cpu));
                }
                env.observe(cpu, Transition::IrqsOn);
            }
            _ => {}
        }
    }

    fn change_rcu(&mut self, cpu: CpuId, begins: bool, env: &mut impl Environment) {
        let Some(task) = self.cpus[cpu.index()].current else { return };
        let depth = &mut self.task(task).rcu_depth;
        match (begins, *depth) {
            (true, _) => *depth = depth.saturating_add(1),
            (false, 0) => env.violated(cpu, Violation::Underflow),
            (false, _) => *depth -= 1,
        }
    }

    /// A handler or softirq ends.
    fn end_of_code(&mut self, image: &Image, cpu: CpuId, env: &mut impl Environment) {
        let Some(top) = self.top(cpu) else { return };
        let (kind, is_balanced) = (top.kind, top.irq_depth == 0);
        let count_before = top.count_before;
        if !is_balanced || self.cpus[cpu.index()].count != count_before {
            env.violated(cpu, Violation::Unbalanced);
        }
        match kind {
            FrameKind::Interrupt(source) => {
                self.enter_stage(cpu, Stage::Exit, Transition::HandlerEnd(source), env)
            }
            FrameKind::Softirq { number, round, after } => {
                self.end_softirq(image, cpu, number, round, after, env);
            }
            FrameKind::Task | FrameKind::Scheduler { .. } => {}
        }
    }

    /// A frame on top of what runs.
    pub(super) fn push(&mut self, cpu: CpuId, mut frame: Frame) {
        let state = self.cpu(cpu);
        frame.count_before = state.count;
        state.frames.push(frame);
    }

    /// Whether this CPU would take such an interrupt now.
    pub fn takes(&self, image: &Image, cpu: CpuId, source: SourceId) -> bool {
        let top = self.top(cpu).map(|top| top.kind);
        let kind_on_top = match top {
            Some(FrameKind::Interrupt(on_top)) => Some(image.sources[on_top.index()].kind),
            _ => None,
        };
        match image.sources[source.index()].kind {
            _ if kind_on_top == Some(SourceKind::Steal) => false,
            SourceKind::Steal => true,
            SourceKind::Nmi => kind_on_top != Some(SourceKind::Nmi),
            _ => !self.irqs_off(cpu),
        }
    }
}

/// The bits of the preempt count that count such units.
fn field_of(unit: u32) -> u32 {
    if unit < SOFTIRQ_UNIT { 0xff } else { SOFTIRQ_BITS }
}
