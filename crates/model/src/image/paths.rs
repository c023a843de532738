//! From the steps of a path to operations.

use super::compile::Tables;
use super::op::LOOPS;
use super::{
    Code, CodeId, CountId, EventId, FunctionId, ImageError, LOCAL_TIMER, LengthId, LockId, Op,
    RESCHEDULE, SourceId, StackId, VariableId,
};
use crate::rules::Rules;
use crate::scenario::{Count, Length, LockBreak, LockKind, Step};

/// Compiles paths, and collects what they refer to.
pub(super) struct PathCompiler {
    rules: Rules,
    /// Names of interrupts, in the order of their numbers.
    interrupts: Vec<String>,
    tables: Tables,
}

/// The operations of one path in the making.
pub(super) struct CodeBuilder<'t> {
    tables: &'t mut Tables,
    code: Code,
    stack: StackId,
    /// Of the loops around: where each begins, and how often it runs.
    loops: Vec<(u32, CountId)>,
}

impl PathCompiler {
    pub(super) fn new(rules: Rules, interrupts: Vec<String>) -> Self {
        let tables = Tables { stacks: vec![Vec::new()], ..Tables::default() };
        Self { rules, interrupts, tables }
    }

    pub(super) fn finish(self) -> Tables {
        self.tables
    }

    pub(super) fn length(&mut self, length: &Length) -> LengthId {
        self.tables.length(length)
    }

    pub(super) fn event(&mut self, name: &str) -> EventId {
        EventId::at(self.tables.events.number(name))
    }

    /// Operations that `build` makes.
    pub(super) fn code(&mut self, build: impl FnOnce(&mut CodeBuilder)) -> CodeId {
        let mut builder = CodeBuilder::new(&mut self.tables);
        build(&mut builder);
        let code = builder.code;
        self.tables.add(code)
    }

    /// Operations with which a task executes these softirqs on RT, in the order of their numbers, until
    /// none is left.
    pub(super) fn softirqs_of_tasks(
        &mut self,
        softirqs: &[(u8, &[Step])],
    ) -> Result<CodeId, ImageError> {
        let mut builder = CodeBuilder::new(&mut self.tables);
        let function = builder.enter("handle_softirqs");
        let begin = builder.next();
        for (number, steps) in softirqs {
            let take = builder.push(Op::TakeSoftirq(*number, 0));
            for step in *steps {
                builder.step(step, self.rules, &self.interrupts)?;
            }
            builder.push(Op::EndSoftirq(*number));
            builder.push(Op::Jump(begin));
            builder.set(take, Op::TakeSoftirq(*number, builder.next()));
        }
        builder.push(Op::EndSoftirqs(begin));
        builder.leave(function);
        let code = builder.code;
        Ok(self.tables.add(code))
    }

    /// Operations of `steps`, and what `end` adds.
    pub(super) fn path(
        &mut self,
        steps: &[Step],
        end: impl FnOnce(&mut CodeBuilder),
    ) -> Result<CodeId, ImageError> {
        self.path_after(|_| (), steps, end)
    }

    /// The same, after what `begin` adds.
    pub(super) fn path_after(
        &mut self,
        begin: impl FnOnce(&mut CodeBuilder),
        steps: &[Step],
        end: impl FnOnce(&mut CodeBuilder),
    ) -> Result<CodeId, ImageError> {
        let mut builder = CodeBuilder::new(&mut self.tables);
        begin(&mut builder);
        for step in steps {
            builder.step(step, self.rules, &self.interrupts)?;
        }
        end(&mut builder);
        let code = builder.code;
        Ok(self.tables.add(code))
    }
}

impl Tables {
    fn length(&mut self, length: &Length) -> LengthId {
        let known = self.lengths.iter().position(|known| known == length);
        LengthId::at(known.unwrap_or_else(|| {
            self.lengths.push(length.clone());
            self.lengths.len() - 1
        }))
    }

    fn count(&mut self, count: Count) -> CountId {
        let known = self.counts.iter().position(|&known| known == count);
        CountId::at(known.unwrap_or_else(|| {
            self.counts.push(count);
            self.counts.len() - 1
        }))
    }

    fn add(&mut self, code: Code) -> CodeId {
        self.codes.push(code);
        CodeId::at(self.codes.len() - 1)
    }

    /// `stack` with a call of this function.
    fn called(&mut self, stack: StackId, function: &str) -> StackId {
        let function = FunctionId::at(self.functions.number(function));
        let mut chain = self.stacks[stack.index()].clone();
        chain.push(function);
        let known = self.stacks.iter().position(|known| *known == chain);
        StackId::at(known.unwrap_or_else(|| {
            self.stacks.push(chain);
            self.stacks.len() - 1
        }))
    }
}

impl<'t> CodeBuilder<'t> {
    fn new(tables: &'t mut Tables) -> Self {
        Self { tables, code: Code::default(), stack: StackId(0), loops: Vec::new() }
    }

    /// The number of the next operation.
    pub(super) fn next(&self) -> u32 {
        u32::try_from(self.code.ops.len()).unwrap_or(u32::MAX)
    }

    /// Adds an operation, and returns its number.
    pub(super) fn push(&mut self, op: Op) -> u32 {
        self.code.ops.push(op);
        self.code.stacks.push(self.stack);
        self.next() - 1
    }

    /// Replaces an operation, once it is known where it jumps to.
    pub(super) fn set(&mut self, at: u32, op: Op) {
        self.code.ops[at as usize] = op;
    }

    /// Operations are in this function until [`Self::leave`] is given what this returns.
    pub(super) fn enter(&mut self, function: &str) -> StackId {
        let outer = self.stack;
        self.stack = self.tables.called(outer, function);
        outer
    }

    pub(super) fn leave(&mut self, outer: StackId) {
        self.stack = outer;
    }

    /// Sleeps until the event is announced. The task is prepared before it looks, so that no
    /// announcement between the two is lost.
    pub(super) fn wait(&mut self, event: EventId) {
        let begin = self.push(Op::PrepareToWait(event));
        let look = self.push(Op::IfAnnounced(event, 0));
        self.push(Op::Schedule);
        self.push(Op::Jump(begin));
        let end = self.push(Op::FinishWait(event));
        self.set(look, Op::IfAnnounced(event, end));
    }

    fn step(&mut self, step: &Step, rules: Rules, names: &[String]) -> Result<(), ImageError> {
        match step {
            Step::User(length) => {
                let length = self.tables.length(length);
                self.push(Op::User(length));
            }
            Step::Compute(length) => {
                let length = self.tables.length(length);
                self.push(Op::Compute(length));
            }
            Step::PageFault(length) => {
                let length = self.tables.length(length);
                let outer = self.enter("handle_mm_fault");
                self.push(Op::PageFault(length));
                self.leave(outer);
            }
            Step::Call(function, steps) => {
                let outer = self.enter(function);
                self.steps(steps, rules, names)?;
                self.leave(outer);
            }
            Step::Repeat(count, steps) => self.repeat(*count, steps, rules, names)?,
            Step::Lock(kind, lock) => self.lock(*kind, lock, rules),
            Step::Unlock(kind, lock) => self.unlock(*kind, lock, rules),
            Step::PreemptDisable => self.one(Op::PreemptDisable),
            Step::PreemptEnable => self.one(Op::PreemptEnable),
            Step::IrqSave => self.one(Op::IrqSave),
            Step::IrqRestore => self.one(Op::IrqRestore),
            Step::BhDisable => self.one(Op::BhDisable),
            Step::BhEnable => self.one(Op::BhEnable),
            Step::RcuReadLock => self.one(Op::RcuReadLock),
            Step::RcuReadUnlock => self.one(Op::RcuReadUnlock),
            // Points that a model leaves out are not there, as in a kernel of that model.
            Step::CondResched if rules.cond_resched_schedules => self.one(Op::ReschedulePoint),
            Step::PreemptionPoint if rules.preemption_points_schedule => {
                self.one(Op::ReschedulePoint);
            }
            Step::CondResched | Step::PreemptionPoint => {}
            Step::LockBreak(lock_break) if rules.breaks_locks => self.lock_break(lock_break)?,
            Step::LockBreak(_) => {}
            Step::Block { length, interrupt } => {
                let source = match interrupt {
                    Some(name) => source_of(name, names)?,
                    None => LOCAL_TIMER,
                };
                let length = self.tables.length(length);
                self.push(Op::Sleep(length, source));
            }
            Step::Wait(event) => {
                let event = self.event(event);
                self.wait(event);
            }
            Step::Wake(event) => {
                let event = self.event(event);
                self.push(Op::Wake(event));
            }
            Step::PrepareToWait(event) => {
                let event = self.event(event);
                self.push(Op::PrepareToWait(event));
            }
            Step::Unless(event, steps) => {
                let event = self.event(event);
                let look = self.push(Op::IfAnnounced(event, 0));
                self.steps(steps, rules, names)?;
                let end = self.next();
                self.set(look, Op::IfAnnounced(event, end));
            }
            Step::FinishWait(event) => {
                let event = self.event(event);
                self.push(Op::FinishWait(event));
            }
            Step::Schedule => self.one(Op::Schedule),
            Step::RaiseSoftirq(number) => self.one(Op::RaiseSoftirq(*number)),
            Step::PerCpu(variable, steps) => {
                let variable = VariableId::at(self.tables.variables.number(variable));
                self.push(Op::BeginChange(variable));
                self.steps(steps, rules, names)?;
                self.push(Op::EndChange(variable));
            }
            Step::Work => self.one(Op::Work),
        }
        Ok(())
    }

    fn one(&mut self, op: Op) {
        self.push(op);
    }

    fn steps(&mut self, steps: &[Step], rules: Rules, names: &[String]) -> Result<(), ImageError> {
        steps.iter().try_for_each(|step| self.step(step, rules, names))
    }

    fn event(&mut self, name: &str) -> EventId {
        EventId::at(self.tables.events.number(name))
    }

    fn repeat(
        &mut self,
        count: Count,
        steps: &[Step],
        rules: Rules,
        names: &[String],
    ) -> Result<(), ImageError> {
        if self.loops.len() == LOOPS {
            return Err(ImageError::Loops);
        }
        let depth = u8::try_from(self.loops.len()).unwrap_or(0);
        let count = self.tables.count(count);
        let head = self.push(Op::Jump(0));
        let begin = self.next();
        self.loops.push((begin, count));
        self.steps(steps, rules, names)?;
        self.loops.pop();
        self.push(Op::EndLoop { depth, begin });
        let end = self.next();
        self.set(head, Op::Loop { depth, count, end });
        Ok(())
    }

    fn lock(&mut self, kind: LockKind, name: &str, rules: Rules) {
        let lock = LockId::at(self.tables.locks.number(name));
        let sleeps = rules.spin_locks_sleep;
        let outer = self.enter(lock_function(kind, sleeps));
        match kind {
            LockKind::Mutex => self.one(Op::MutexLock(lock)),
            // On RT these disable neither interrupts nor preemption.
            LockKind::Spin | LockKind::SpinIrq if sleeps => self.one(Op::RtLock(lock)),
            LockKind::SpinBh if sleeps => {
                self.push(Op::BhDisable);
                self.push(Op::RtLock(lock));
            }
            _ => {
                match kind {
                    LockKind::SpinIrq | LockKind::RawIrq => self.one(Op::IrqSave),
                    LockKind::SpinBh => self.one(Op::BhDisable),
                    _ => {}
                }
                self.push(Op::PreemptDisable);
                self.push(Op::Acquire(lock));
            }
        }
        self.leave(outer);
    }

    fn unlock(&mut self, kind: LockKind, name: &str, rules: Rules) {
        let lock = LockId::at(self.tables.locks.number(name));
        let sleeps = rules.spin_locks_sleep;
        let outer = self.enter(unlock_function(kind, sleeps));
        match kind {
            LockKind::Mutex => self.one(Op::MutexUnlock(lock)),
            LockKind::Spin | LockKind::SpinIrq if sleeps => self.one(Op::MutexUnlock(lock)),
            LockKind::SpinBh if sleeps => {
                self.push(Op::MutexUnlock(lock));
                self.push(Op::BhEnable);
            }
            LockKind::Spin | LockKind::Raw => {
                self.push(Op::Release(lock));
                self.push(Op::PreemptEnable);
            }
            // The order of the kernel: what came meanwhile is taken first, and preemption follows.
            LockKind::SpinIrq | LockKind::RawIrq => {
                self.push(Op::Release(lock));
                self.push(Op::IrqRestore);
                self.push(Op::PreemptEnable);
            }
            LockKind::SpinBh => {
                self.push(Op::Release(lock));
                self.push(Op::PreemptEnableNoResched);
                self.push(Op::BhEnable);
            }
        }
        self.leave(outer);
    }

    /// Every so many iterations: if somebody is to run, drop the lock, schedule, take it again, and
    /// begin anew or go on.
    fn lock_break(&mut self, lock_break: &LockBreak) -> Result<(), ImageError> {
        let &LockBreak { ref lock, every, restart } = lock_break;
        let Some(&(begin, count)) = self.loops.last() else {
            return Err(ImageError::Misplaced("lock_break stands outside a loop"));
        };
        if every == 0 {
            let (what, expected) = ("the iterations between two lock breaks", "1 or more");
            return Err(ImageError::Number { what, value: 0, expected });
        }
        let lock = LockId::at(self.tables.locks.number(lock));
        let depth = u8::try_from(self.loops.len() - 1).unwrap_or(0);
        let point = self.push(Op::BreakPoint { depth, every, end: 0 });
        self.push(Op::Broken(lock));
        self.push(Op::Release(lock));
        self.push(Op::PreemptEnable);
        self.push(Op::ReschedulePoint);
        self.push(Op::PreemptDisable);
        self.push(Op::Acquire(lock));
        if restart {
            self.push(Op::RestartLoop { depth, count, begin });
        }
        let end = self.next();
        self.set(point, Op::BreakPoint { depth, every, end });
        Ok(())
    }
}

/// The kernel's function that takes such a lock.
fn lock_function(kind: LockKind, sleeps: bool) -> &'static str {
    match kind {
        LockKind::Mutex => "mutex_lock",
        LockKind::Spin | LockKind::SpinIrq | LockKind::SpinBh if sleeps => "rt_spin_lock",
        LockKind::Spin | LockKind::Raw => "_raw_spin_lock",
        LockKind::SpinIrq | LockKind::RawIrq => "_raw_spin_lock_irqsave",
        LockKind::SpinBh => "_raw_spin_lock_bh",
    }
}

/// The one that gives it back. A stack taken where interrupts go on again begins with it.
fn unlock_function(kind: LockKind, sleeps: bool) -> &'static str {
    match kind {
        LockKind::Mutex => "mutex_unlock",
        LockKind::Spin | LockKind::SpinIrq | LockKind::SpinBh if sleeps => "rt_spin_unlock",
        LockKind::Spin | LockKind::Raw => "_raw_spin_unlock",
        LockKind::SpinIrq | LockKind::RawIrq => "_raw_spin_unlock_irqrestore",
        LockKind::SpinBh => "_raw_spin_unlock_bh",
    }
}

fn source_of(name: &str, names: &[String]) -> Result<SourceId, ImageError> {
    let index = names.iter().position(|known| known == name);
    let unknown = || ImageError::Unknown { kind: "interrupt", name: name.into() };
    Ok(SourceId::at(index.ok_or_else(unknown)? + RESCHEDULE.index() + 1))
}
