//! Time and chance: when things come, and how long they take.

use wakescope_core::random::Random;

use super::Until;
use super::bandwidth::Bandwidth;
use super::fair;
use super::slots::{NEVER, Slots};
use super::watch::{Sample, Watch};
use crate::image::{BudgetId, CountId, CpuId, Image, LOCAL_TIMER, SourceId, TaskId};
use crate::kernel::{Environment, Kernel, Running, Sleep, Violation};
use crate::scenario::length::rounded;
use crate::scenario::{Arrivals, Count, TaskPolicy, draw};
use crate::trace::Transition;

/// The slice of `SCHED_RR`, nanoseconds. Being preempted does not renew it (`task_tick_rt`, kernel/sched/rt.c, 6.18).
const RR_SLICE_NS: u64 = 100_000_000;

/// What a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// Something that takes time.
    Busy,
    /// Nothing.
    Idle,
    /// It waits for a lock.
    Spins,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// What takes time on a CPU is over.
    Busy(CpuId),
    /// An interrupt.
    Arrival(SourceId),
    /// The end of a sleep.
    Timer(TaskId),
    /// The end of a budget's period.
    Period(BudgetId),
    /// The tick of a CPU.
    Tick(CpuId),
    /// The interrupt from another CPU.
    Reschedule(CpuId),
}

#[derive(Clone, Copy, Debug)]
struct CpuTime {
    activity: Activity,
    /// Since when it does that.
    since: u64,
    /// Who runs, and until when that was charged to it.
    task: Option<TaskId>,
    accounted: u64,
    /// Until when its time was charged to a budget.
    charged: u64,
    tick_is_due: bool,
    /// How long it takes to leave the state that it idles in.
    idle_exit_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct TaskTime {
    /// The next expiry of a probe, picoseconds.
    expiry_ps: u64,
    /// What ends its sleep, and where.
    sleeps_until: (CpuId, SourceId),
    /// See [`fair`].
    vruntime: u64,
    /// What it has run of its slice, nanoseconds.
    slice_ran: u64,
    /// When a deadline task has to have run.
    deadline: u64,
    /// Whether it has slept on its grid before.
    has_begun: bool,
    /// Whether `expiry_ps` is an expiry that it has not responded to.
    awaits: bool,
    missed: u64,
    work: u64,
}

#[derive(Clone, Debug)]
struct SourceTime {
    /// Where the next one comes, if each comes to another CPU.
    next_cpu: usize,
    /// Of a burst, those that are still to come; of recorded ones, those that have come.
    count: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Clock<'i, W> {
    pub(super) image: &'i Image,
    pub(super) now: u64,
    pub(super) random: Random,
    pub(super) events: u64,
    pub(super) samples: u64,
    pub(super) violation: Option<(Violation, CpuId)>,
    /// CPUs that have got the lock that they span for.
    pub(super) granted: Vec<CpuId>,
    pub(super) watch: W,
    slots: Slots,
    cpus: Vec<CpuTime>,
    tasks: Vec<TaskTime>,
    sources: Vec<SourceTime>,
    /// Tasks whose sleep has ended, and that nobody has woken yet.
    expired: Vec<TaskId>,
    bandwidth: Bandwidth,
}

impl<'i, W: Watch> Clock<'i, W> {
    pub(super) fn new(image: &'i Image, seed: u64, watch: W) -> Self {
        let cpus = usize::from(image.cpus);
        let slots = 3 * cpus + image.sources.len() + image.tasks.len() + image.budgets.len();
        let cpu = CpuTime {
            activity: Activity::Idle,
            since: 0,
            task: None,
            accounted: 0,
            charged: 0,
            tick_is_due: false,
            idle_exit_ns: 0,
        };
        let mut clock = Self {
            image,
            now: 0,
            random: Random::new(seed),
            events: 0,
            samples: 0,
            violation: None,
            granted: Vec::new(),
            watch,
            slots: Slots::new(slots),
            cpus: vec![cpu; cpus],
            tasks: Vec::new(),
            sources: vec![SourceTime { next_cpu: 0, count: 0 }; image.sources.len()],
            expired: Vec::new(),
            bandwidth: Bandwidth::new(image),
        };
        for task in &image.tasks {
            let phase = clock.random.below(1 << 30) as u64;
            let expiry_ps = task.period_ps.map_or(0, |period| {
                u64::try_from((u128::from(period) * u128::from(phase)) >> 30).unwrap_or(0)
            });
            clock.tasks.push(TaskTime {
                expiry_ps,
                sleeps_until: (CpuId(0), LOCAL_TIMER),
                vruntime: 0,
                slice_ran: 0,
                deadline: clock.relative_deadline(task.policy),
                has_begun: false,
                awaits: false,
                missed: 0,
                work: 0,
            });
        }
        for source in 0..image.sources.len() {
            clock.begin_arrivals(SourceId::at(source));
        }
        clock
    }

    fn relative_deadline(&self, policy: TaskPolicy) -> u64 {
        match policy {
            TaskPolicy::Deadline(ns) => self.now.saturating_add(ns),
            _ => 0,
        }
    }

    /// What comes next, at which time it is then; `None` if nothing ever does.
    pub(super) fn next(&mut self) -> Option<Due> {
        let (slot, at) = self.slots.first();
        if at == NEVER {
            return None;
        }
        self.now = at;
        self.events += 1;
        let cpus = self.cpus.len();
        let (sources, tasks) = (self.sources.len(), self.tasks.len());
        Some(match slot {
            _ if slot < cpus => {
                self.slots.set(slot, NEVER);
                Due::Busy(CpuId::at(slot))
            }
            _ if slot < cpus + sources => Due::Arrival(SourceId::at(slot - cpus)),
            _ if slot < cpus + sources + tasks => Due::Timer(TaskId::at(slot - cpus - sources)),
            _ if slot < 2 * cpus + sources + tasks => {
                Due::Tick(CpuId::at(slot - cpus - sources - tasks))
            }
            _ if slot < 3 * cpus + sources + tasks => {
                self.slots.set(slot, NEVER);
                Due::Reschedule(CpuId::at(slot - 2 * cpus - sources - tasks))
            }
            _ => Due::Period(BudgetId::at(slot - 3 * cpus - sources - tasks)),
        })
    }

    fn source_slot(&self, source: SourceId) -> usize {
        self.cpus.len() + source.index()
    }

    fn task_slot(&self, task: TaskId) -> usize {
        self.cpus.len() + self.sources.len() + task.index()
    }

    fn tick_slot(&self, cpu: CpuId) -> usize {
        self.cpus.len() + self.sources.len() + self.tasks.len() + cpu.index()
    }

    fn reschedule_slot(&self, cpu: CpuId) -> usize {
        self.tick_slot(cpu) + self.cpus.len()
    }

    fn period_slot(&self, budget: BudgetId) -> usize {
        3 * self.cpus.len() + self.sources.len() + self.tasks.len() + budget.index()
    }

    pub(super) fn activity(&self, cpu: CpuId) -> Activity {
        self.cpus[cpu.index()].activity
    }

    pub(super) fn missed(&self, task: TaskId) -> u64 {
        self.tasks[task.index()].missed
    }

    pub(super) fn work(&self, task: TaskId) -> u64 {
        self.tasks[task.index()].work
    }

    /// Tells the watch what a CPU has done since it was last told, until now.
    pub(super) fn elapsed(&mut self, cpu: CpuId, kernel: &Kernel, image: &Image) {
        self.was_at(cpu, || kernel.running(image, cpu));
    }

    fn was_at(&mut self, cpu: CpuId, at: impl FnOnce() -> Running) {
        if W::FOLLOWS {
            let since = self.cpus[cpu.index()].since;
            if since < self.now {
                self.watch.ran(cpu, since, self.now, at());
            }
        }
        self.cpus[cpu.index()].since = self.now;
    }

    /// Whether a simulation goes on.
    pub(super) fn is_before(&self, until: Until) -> bool {
        self.samples < until.samples && self.now < until.ns
    }

    /// Whether a CPU comes to the end of an operation of `ns` nanoseconds before anything else happens:
    /// then it is over, and that is now. Most operations are short, and need no place among what is to
    /// come.
    pub(super) fn passes(&mut self, cpu: CpuId, ns: u64, until: Until) -> bool {
        let end = self.now.saturating_add(ns);
        let (slot, at) = self.slots.first();
        // As `Slots` orders them.
        let is_next = end != NEVER && (end, cpu.index()) < (at, slot);
        // A CPU that was handed a lock is to run at this time.
        let is_alone = self.granted.is_empty() && self.violation.is_none();
        if !(is_next && is_alone && self.is_before(until)) {
            return false;
        }
        let state = &mut self.cpus[cpu.index()];
        (state.activity, state.since) = (Activity::Busy, self.now);
        self.now = end;
        self.events += 1;
        true
    }

    /// A CPU begins an operation that takes `ns` nanoseconds.
    pub(super) fn work_for(&mut self, cpu: CpuId, ns: u64) {
        let state = &mut self.cpus[cpu.index()];
        (state.activity, state.since) = (Activity::Busy, self.now);
        self.slots.set(cpu.index(), self.now.saturating_add(ns));
    }

    /// A CPU waits.
    pub(super) fn rest(&mut self, cpu: CpuId, activity: Activity) {
        let state = &mut self.cpus[cpu.index()];
        let begins = state.activity != activity;
        (state.activity, state.since) = (activity, self.now);
        self.slots.set(cpu.index(), NEVER);
        if activity == Activity::Idle && begins {
            self.slots.set(self.tick_slot(cpu), NEVER);
            self.cpus[cpu.index()].idle_exit_ns = self.choose_idle_state(cpu);
        }
    }

    /// The deepest state that pays until the next timer of this CPU.
    fn choose_idle_state(&self, cpu: CpuId) -> u64 {
        let timers = (0..self.tasks.len()).map(TaskId::at);
        let ours = timers.filter(|task| self.tasks[task.index()].sleeps_until.0 == cpu);
        let next = ours.map(|task| self.slots.get(self.task_slot(task))).min().unwrap_or(NEVER);
        let away = next.saturating_sub(self.now);
        let mut pays = self.image.idle_states.iter().filter(|state| state.residency_ns <= away);
        pays.next_back().map_or(0, |state| state.exit_ns)
    }

    /// How long the CPU takes to leave the state that it sleeps in; once, as it is awake then.
    pub(super) fn take_idle_exit_ns(&mut self, cpu: CpuId) -> u64 {
        std::mem::take(&mut self.cpus[cpu.index()].idle_exit_ns)
    }

    /// Stops the operation that a CPU executes, for an interrupt. Returns how much of it is left,
    /// nanoseconds; `None` if the CPU executed none.
    pub(super) fn stop(&mut self, cpu: CpuId) -> Option<u64> {
        let until = self.slots.get(cpu.index());
        self.slots.set(cpu.index(), NEVER);
        let is_busy = self.cpus[cpu.index()].activity == Activity::Busy;
        self.cpus[cpu.index()].activity = Activity::Busy;
        (is_busy && until != NEVER).then(|| until - self.now)
    }

    fn begin_arrivals(&mut self, source: SourceId) {
        let first = match &self.image.sources[source.index()].arrivals {
            None => NEVER,
            Some(Arrivals::Periodic(period)) => {
                let phase = self.random.uniform();
                rounded(*period as f64 * phase)
            }
            Some(Arrivals::Recorded(times)) => times.first().copied().unwrap_or(NEVER),
            Some(_) => self.next_arrival(source),
        };
        self.slots.set(self.source_slot(source), first);
    }

    /// An interrupt comes: on which CPU.
    pub(super) fn arrive(&mut self, source: SourceId) -> CpuId {
        let next = self.next_arrival(source);
        self.slots.set(self.source_slot(source), next);
        if let Some(cpu) = self.image.sources[source.index()].cpu {
            return cpu;
        }
        let state = &mut self.sources[source.index()];
        let cpu = state.next_cpu;
        state.next_cpu = (cpu + 1) % self.cpus.len();
        CpuId::at(cpu)
    }

    fn next_arrival(&mut self, source: SourceId) -> u64 {
        let state = &mut self.sources[source.index()];
        // At least 1 ns, so that time goes on.
        let after = match self.image.sources[source.index()].arrivals.as_ref() {
            None => return NEVER,
            Some(&Arrivals::Periodic(period)) => period,
            Some(&Arrivals::Poisson(mean)) => exponential(mean, &mut self.random),
            Some(&Arrivals::Bursts { every_ns, count, gap_ns }) => {
                if state.count > 0 {
                    state.count -= 1;
                    gap_ns
                } else {
                    state.count = (count as usize).saturating_sub(1);
                    exponential(every_ns, &mut self.random)
                }
            }
            Some(Arrivals::Recorded(times)) => {
                state.count += 1;
                return times.get(state.count).map_or(NEVER, |&at| at.max(self.now));
            }
        };
        self.now.saturating_add(after.max(1))
    }

    /// A sleep ends: where, and which interrupt reports it.
    pub(super) fn expire(&mut self, task: TaskId) -> (CpuId, SourceId) {
        self.slots.set(self.task_slot(task), NEVER);
        self.expired.push(task);
        self.tasks[task.index()].sleeps_until
    }

    pub(super) fn tick(&mut self, cpu: CpuId) {
        self.cpus[cpu.index()].tick_is_due = true;
        self.slots.set(self.tick_slot(cpu), self.now + self.image.tick_ns);
    }

    /// The period of a budget ends, and another one begins if it is used: where its timer is.
    pub(super) fn end_period(&mut self, budget: BudgetId) -> CpuId {
        let (cpu, goes_on) = self.bandwidth.end(budget);
        let period = self.image.budgets[budget.index()].period_ns;
        let next = if goes_on { self.now.saturating_add(period) } else { NEVER };
        self.slots.set(self.period_slot(budget), next);
        cpu
    }

    /// The CPU has just left idle, and ticks again, on the same grid as before.
    fn tick_again(&mut self, cpu: CpuId) {
        let tick = self.image.tick_ns;
        if tick != 0 && self.slots.get(self.tick_slot(cpu)) == NEVER {
            self.slots.set(self.tick_slot(cpu), (self.now / tick + 1) * tick);
        }
    }

    fn switched(&mut self, cpu: CpuId, from: Option<TaskId>, to: Option<TaskId>) {
        self.account(cpu);
        let state = &mut self.cpus[cpu.index()];
        (state.task, state.charged) = (to, self.now);
        if from.is_none() {
            self.tick_again(cpu);
        }
    }

    /// Charges a CPU's task with what it has run since this was last done, as `update_curr` does: before each
    /// decision that compares it, since one that goes on is not switched.
    fn account(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        let ran = self.now - std::mem::replace(&mut state.accounted, self.now);
        let Some(task) = state.task else { return };
        let policy = self.image.tasks[task.index()].policy;
        let state = &mut self.tasks[task.index()];
        state.vruntime = state.vruntime.saturating_add(fair::charged(policy, ran));
        state.slice_ran = state.slice_ran.saturating_add(ran);
    }

    /// Expiries that lie between that of a response and the response itself have no wakeup of their own.
    fn responded(&mut self, cpu: CpuId, task: TaskId) {
        self.samples += 1;
        let period = self.image.tasks[task.index()].period_ps.unwrap_or(u64::MAX);
        let late_ps = self.now.saturating_mul(1_000);
        let state = &mut self.tasks[task.index()];
        let expiry_ns = state.expiry_ps.div_ceil(1_000);
        let missed = late_ps.saturating_sub(state.expiry_ps) / period;
        state.expiry_ps += missed * period;
        state.missed += missed;
        state.awaits = false;
        self.watch.sample(Sample { task, expiry_ns, response_ns: self.now, missed, cpu });
    }

    /// The expiry that a probe is to wait for: the one after that which it has responded to last, even
    /// if it is over because something held the probe up on its way to sleep. It is late for it then.
    fn next_expiry(&mut self, task: TaskId) -> Option<u64> {
        let period = self.image.tasks[task.index()].period_ps?;
        let now_ps = self.now.saturating_mul(1_000);
        let state = &mut self.tasks[task.index()];
        state.expiry_ps += period;
        if !state.has_begun && state.expiry_ps <= now_ps {
            // Nobody waits for what was due before the probe first slept.
            state.expiry_ps += ((now_ps - state.expiry_ps) / period + 1) * period;
        }
        state.has_begun = true;
        state.awaits = true;
        Some(state.expiry_ps.div_ceil(1_000))
    }

    /// The first expiry that a probe has not responded to, nanoseconds; `None` before it first slept.
    pub(super) fn unanswered(&self, task: TaskId) -> Option<u64> {
        let state = &self.tasks[task.index()];
        let period = self.image.tasks[task.index()].period_ps?;
        let next_ps = if state.awaits { state.expiry_ps } else { state.expiry_ps + period };
        state.has_begun.then(|| next_ps.div_ceil(1_000))
    }
}

impl<W: Watch> Environment for Clock<'_, W> {
    fn count(&mut self, count: CountId) -> u32 {
        match self.image.counts[count.index()] {
            Count::Fixed(count) => count,
            Count::Uniform(least, most) => {
                let span = (most.saturating_sub(least) as usize).saturating_add(1);
                least + u32::try_from(self.random.below(span)).unwrap_or(0)
            }
        }
    }

    #[inline]
    fn observe(&mut self, cpu: CpuId, what: Transition) {
        if W::FOLLOWS {
            self.watch.happened(cpu, self.now, what);
        }
        match what {
            Transition::Woken { task, .. } => {
                let deadline = self.relative_deadline(self.image.tasks[task.index()].policy);
                self.tasks[task.index()].deadline = deadline;
            }
            Transition::Switch { from, to, .. } => self.switched(cpu, from, to),
            Transition::Response(task) => self.responded(cpu, task),
            Transition::Work(task) => self.tasks[task.index()].work += 1,
            _ => {}
        }
    }

    fn wants_places(&self) -> bool {
        W::FOLLOWS
    }

    fn place(&mut self, cpu: CpuId, at: Running) {
        self.watch.place(cpu, self.now, at);
    }

    fn wakes(&mut self, cpu: CpuId, task: TaskId, at: Running) {
        self.watch.wakes(cpu, self.now, task, at);
    }

    /// A watch is to know what a task waited for on a CPU before it hears that it waits there no more.
    fn pulls_from(&mut self, other: CpuId, at: impl FnOnce() -> Running) {
        self.was_at(other, at);
    }

    fn joins(&mut self, on: CpuId, task: TaskId, others: impl Iterator<Item = TaskId>) {
        self.account(on);
        let least = others.map(|other| self.tasks[other.index()].vruntime).min();
        let policy = self.image.tasks[task.index()].policy;
        let state = &mut self.tasks[task.index()];
        state.slice_ran = 0;
        if let Some(least) = least {
            state.vruntime = fair::placed(policy, state.vruntime, least, self.image.tick_ns);
        }
    }

    fn first_of_fair(&mut self, cpu: CpuId, ready: &[TaskId]) -> usize {
        self.account(cpu);
        let vruntime = |&at: &usize| self.tasks[ready[at].index()].vruntime;
        (0..ready.len()).min_by_key(vruntime).unwrap_or(0)
    }

    fn fair_preempts(&mut self, on: CpuId, running: TaskId, woken: TaskId) -> bool {
        self.account(on);
        let [runs, woke] = [running, woken].map(|task| self.tasks[task.index()].vruntime);
        fair::preempts(runs, woke)
    }

    fn is_earlier(&self, one: TaskId, other: TaskId) -> bool {
        self.tasks[one.index()].deadline < self.tasks[other.index()].deadline
    }

    fn sleep(&mut self, cpu: CpuId, task: TaskId, how: Sleep) -> bool {
        let (until, source) = match how {
            Sleep::OnGrid => {
                let Some(expiry) = self.next_expiry(task) else { return false };
                if expiry <= self.now {
                    return false;
                }
                self.watch.armed(task, cpu, expiry);
                (expiry, LOCAL_TIMER)
            }
            Sleep::For(length, source) => {
                let until = self.now.saturating_add(self.draw(length));
                if source == LOCAL_TIMER {
                    self.watch.armed(task, cpu, until);
                }
                (until, source)
            }
        };
        self.tasks[task.index()].sleeps_until = (cpu, source);
        self.slots.set(self.task_slot(task), until.max(self.now));
        true
    }

    fn next_sleeper(&mut self, cpu: CpuId, source: SourceId) -> Option<TaskId> {
        let is_ours = |task: &TaskId| {
            let (on, by) = self.tasks[task.index()].sleeps_until;
            by == source && (on == cpu || source != LOCAL_TIMER)
        };
        let at = self.expired.iter().position(is_ours)?;
        Some(self.expired.remove(at))
    }

    fn take_tick(&mut self, cpu: CpuId) -> bool {
        std::mem::take(&mut self.cpus[cpu.index()].tick_is_due)
    }

    fn has_used_its_slice(&mut self, cpu: CpuId, task: TaskId, _others_wait: bool) -> bool {
        self.account(cpu);
        let slice = match self.image.tasks[task.index()].policy {
            TaskPolicy::Other(_) => fair::SLICE_NS,
            TaskPolicy::RoundRobin(_) => RR_SLICE_NS,
            TaskPolicy::Fifo(_) | TaskPolicy::Deadline(_) => return false,
        };
        let ran = &mut self.tasks[task.index()].slice_ran;
        let is_over = *ran >= slice;
        if is_over {
            *ran = 0;
        }
        is_over
    }

    fn is_used_up(&mut self, cpu: CpuId, budget: BudgetId, runs: bool) -> bool {
        let slot = self.period_slot(budget);
        if self.slots.get(slot) == NEVER {
            let period = self.image.budgets[budget.index()].period_ns;
            self.slots.set(slot, self.now.saturating_add(period));
            self.bandwidth.timer_is_on(budget, cpu);
        }
        let state = &mut self.cpus[cpu.index()];
        let since = if runs { std::mem::replace(&mut state.charged, self.now) } else { self.now };
        self.bandwidth.charge(cpu, budget, self.now - since)
    }

    fn runs_over(&mut self, cpu: CpuId, budget: BudgetId) {
        let state = &mut self.cpus[cpu.index()];
        let since = std::mem::replace(&mut state.charged, self.now);
        self.bandwidth.charge(cpu, budget, self.now - since);
    }

    fn next_period(&mut self, cpu: CpuId) -> Option<BudgetId> {
        self.bandwidth.next_ended(cpu)
    }

    fn is_refilled(&mut self, cpu: CpuId, budget: BudgetId) -> bool {
        self.bandwidth.refill(cpu, budget)
    }

    fn send_reschedule(&mut self, cpu: CpuId) {
        let slot = self.reschedule_slot(cpu);
        let at = self.now.saturating_add(self.draw(self.image.costs.ipi));
        if at < self.slots.get(slot) {
            self.slots.set(slot, at);
        }
    }

    fn granted(&mut self, cpu: CpuId) {
        self.granted.push(cpu);
    }

    fn violated(&mut self, cpu: CpuId, what: Violation) {
        self.violation.get_or_insert((what, cpu));
    }
}

fn exponential(mean: u64, random: &mut Random) -> u64 {
    rounded(mean as f64 * draw::exponential(random))
}
