//! Locks that spin, and locks that sleep with priority inheritance.

use super::{Environment, Frame, FrameKind, Kernel, Progress, TaskState, Violation};
use crate::image::{CpuId, Image, LockId, Op, TaskId};
use crate::trace::{LockUser, Transition};

/// How far priorities are handed on, from a lock's owner to the owner that it waits for.
const LONGEST_CHAIN: u32 = 64;

impl Kernel {
    /// Takes a spin lock, or spins: who waits gets it in the order of asking.
    pub(super) fn acquire(
        &mut self,
        cpu: CpuId,
        lock: LockId,
        env: &mut impl Environment,
    ) -> Progress {
        let spins = self.top(cpu).is_some_and(|top| top.spins);
        let state = &mut self.locks[lock.index()];
        match state.holder {
            Some(holder) if holder == cpu && spins => env.observe(cpu, Transition::SpinEnd(lock)),
            Some(holder) => {
                let waits_below = !spins && state.spinners.contains(&cpu);
                if holder == cpu || waits_below {
                    env.violated(cpu, Violation::SelfDeadlock(lock));
                }
                if !spins {
                    state.spinners.push(cpu);
                    if let Some(by) = self.lock_user(cpu) {
                        env.observe(cpu, Transition::LockAwaited { lock, by });
                    }
                    env.observe(cpu, Transition::SpinBegin(lock));
                    if let Some(top) = self.top_mut(cpu) {
                        top.spins = true;
                    }
                }
                return Progress::Spins;
            }
            None => {
                state.holder = Some(cpu);
                if let Some(by) = self.lock_user(cpu) {
                    env.observe(cpu, Transition::LockTaken { lock, by });
                }
            }
        }
        if let Some(top) = self.top_mut(cpu) {
            top.spins = false;
        }
        self.advance(cpu);
        Progress::Instant
    }

    /// Gives a spin lock to who asked first.
    pub(super) fn release(
        &mut self,
        image: &Image,
        cpu: CpuId,
        lock: LockId,
        env: &mut impl Environment,
    ) {
        let state = &mut self.locks[lock.index()];
        if state.holder != Some(cpu) {
            env.violated(cpu, Violation::NotHolder(lock));
        }
        state.holder = None;
        env.observe(cpu, Transition::LockReleased(lock));
        let state = &mut self.locks[lock.index()];
        if !state.spinners.is_empty() {
            let first = state.spinners.remove(0);
            state.holder = Some(first);
            if let Some(by) = self.spinner(image, first, lock) {
                env.observe(first, Transition::LockTaken { lock, by });
            }
            env.granted(first);
        }
    }

    /// Who spins for a lock on this CPU: interrupts may have come on top of it.
    fn spinner(&self, image: &Image, cpu: CpuId, lock: LockId) -> Option<LockUser> {
        let spins = |frame: &Frame| frame.spins && frame.op(image) == Some(Op::Acquire(lock));
        let state = &self.cpus[cpu.index()];
        match state.frames.iter().rev().find(|frame| spins(frame)) {
            Some(frame) => lock_user(frame.kind, state.current),
            None => state.current.map(LockUser::Task),
        }
    }

    /// Who takes locks on this CPU: what runs there.
    fn lock_user(&self, cpu: CpuId) -> Option<LockUser> {
        lock_user(self.top(cpu)?.kind, self.cpus[cpu.index()].current)
    }

    /// Takes a lock, or sleeps until its owner hands it over. Whether the task has it. `is_spin_lock`: one
    /// of RT, which is no sleep to RCU. Who asks must be allowed to sleep, also where the lock is free.
    pub(super) fn lock_or_sleep(
        &mut self,
        cpu: CpuId,
        lock: LockId,
        is_spin_lock: bool,
        env: &mut impl Environment,
    ) -> bool {
        if let Some(count) = self.atomic_count(cpu) {
            env.violated(cpu, Violation::AtomicSleep { count });
        }
        if !is_spin_lock {
            self.must_be_allowed_to_sleep(cpu, env);
        }
        let Some(task) = self.cpus[cpu.index()].current else { return false };
        let waits = self.tasks[task.index()].frame.sleeps;
        let state = &mut self.locks[lock.index()];
        match state.owner {
            Some(owner) if owner == task && waits => {}
            Some(owner) if owner == task => {
                env.violated(cpu, Violation::SelfDeadlock(lock));
                return false;
            }
            Some(owner) => {
                if !waits {
                    state.waiters.push(task);
                    let by = LockUser::Task(task);
                    env.observe(cpu, Transition::LockAwaited { lock, by });
                    self.task(task).frame.sleeps = true;
                    self.inherit(cpu, owner, task, env);
                }
                self.task(task).state = TaskState::Blocked(lock);
                self.enter_scheduler(cpu, false, env);
                return false;
            }
            None => {
                state.owner = Some(task);
                self.task(task).owns.push(lock);
                let by = LockUser::Task(task);
                env.observe(cpu, Transition::LockTaken { lock, by });
            }
        }
        self.task(task).frame.sleeps = false;
        true
    }

    /// Hands a lock to the most urgent of those that wait, and gives back what it lent.
    pub(super) fn unlock_and_wake(
        &mut self,
        image: &Image,
        cpu: CpuId,
        lock: LockId,
        env: &mut impl Environment,
    ) {
        let Some(task) = self.cpus[cpu.index()].current else { return };
        if self.locks[lock.index()].owner != Some(task) {
            env.violated(cpu, Violation::NotHolder(lock));
            return;
        }
        self.locks[lock.index()].owner = None;
        env.observe(cpu, Transition::LockReleased(lock));
        self.task(task).owns.retain(|&owned| owned != lock);
        let prio = self.lent_prio(task);
        let falls = prio > self.tasks[task.index()].prio;
        if falls {
            env.observe(cpu, Transition::Deboosted(task));
        }
        self.task(task).prio = prio;
        let waiters = &self.locks[lock.index()].waiters;
        let urgency = |&at: &usize| self.tasks[waiters[at].index()].prio;
        if let Some(first) = (0..waiters.len()).min_by_key(urgency) {
            let next = self.locks[lock.index()].waiters.remove(first);
            self.locks[lock.index()].owner = Some(next);
            self.task(next).owns.push(lock);
            let by = LockUser::Task(next);
            env.observe(cpu, Transition::LockTaken { lock, by });
            self.task(next).prio = self.lent_prio(next);
            self.wake(image, cpu, next, env);
        }
        if falls {
            self.preempt_for_first(image, cpu, env);
        }
    }

    /// Who no longer has a priority that was lent may have to give way.
    fn preempt_for_first(&mut self, image: &Image, cpu: CpuId, env: &mut impl Environment) {
        let ready = &self.cpus[cpu.index()].ready;
        let urgency = |task: &&TaskId| self.tasks[task.index()].prio;
        let may_run = |task: &&TaskId| self.may_run(image, cpu, **task);
        if let Some(&first) = ready.iter().filter(may_run).min_by_key(urgency) {
            self.preempt_for(image, cpu, cpu, first, env);
        }
    }

    /// Lends the priority of a `waiter` to the owner of its lock, and to whom that waits for.
    fn inherit(&mut self, cpu: CpuId, owner: TaskId, waiter: TaskId, env: &mut impl Environment) {
        let prio = self.tasks[waiter.index()].prio;
        let mut owner = owner;
        for _ in 0..LONGEST_CHAIN {
            if self.tasks[owner.index()].prio <= prio {
                return;
            }
            self.task(owner).prio = prio;
            env.observe(cpu, Transition::Boosted { owner, waiter });
            let on = self.tasks[owner.index()].cpu;
            let waits_elsewhere = self.cpus[on.index()].ready.contains(&owner) && on != cpu;
            if waits_elsewhere {
                self.set_need(cpu, on, super::NeedResched::Now, env);
            }
            let TaskState::Blocked(lock) = self.tasks[owner.index()].state else { return };
            let Some(next) = self.locks[lock.index()].owner else { return };
            owner = next;
        }
    }

    /// The priority that a task has: its own, or a more urgent one of who waits for its locks.
    fn lent_prio(&self, task: TaskId) -> i16 {
        let task = &self.tasks[task.index()];
        let waiters = task.owns.iter().flat_map(|lock| &self.locks[lock.index()].waiters);
        let lent = waiters.map(|waiter| self.tasks[waiter.index()].prio).min();
        lent.map_or(task.own_prio, |lent| lent.min(task.own_prio))
    }
}

/// Who it is that runs as a frame of this kind on top of a task.
fn lock_user(kind: FrameKind, task: Option<TaskId>) -> Option<LockUser> {
    match kind {
        FrameKind::Interrupt(source) => Some(LockUser::Interrupt(source)),
        FrameKind::Softirq { number, .. } => Some(LockUser::Softirq(number)),
        FrameKind::Task | FrameKind::Scheduler { .. } => task.map(LockUser::Task),
    }
}
