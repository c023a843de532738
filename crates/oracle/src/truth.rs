//! What each nanosecond of a wakeup really went to.
//!
//! The simulation says who had the CPU in every stretch of time. From that, and from nothing that a
//! tracer sees, follow the cause and the culprit of each stretch between the expiry of a probe's timer
//! and the response:
//!
//! | what the CPU did | cause | culprit |
//! |---|---|---|
//! | the hypervisor ran something else | `steal` | the hypervisor |
//! | an NMI | `nmi` | its handler |
//! | it left an idle state | `idle_exit` | the state |
//! | an interrupt, up to its handler | `irq` | the delivery |
//! | a handler, in a timer's function | `irq` | that function |
//! | a handler, else | `irq` | the interrupt |
//! | before the timer's interrupt: code with interrupts off | `irq_off` | a function on its stack |
//! | after it: a softirq | `softirq` | the softirq |
//! | the scheduler; the probe itself on its way back | `scheduler` | |
//! | the probe itself in a page fault | `page_fault` | the probe |
//! | anything but these, while the probe's budget is used up | `throttled` | the probe |
//! | a task of higher priority | `higher_priority_task` | the task |
//! | one that the scheduler had not to leave | `equal_or_lower_task` | the task |
//! | kernel code that is to be left, with preemption off | `preempt_off` | a function on its stack |
//! | the same where the model does not leave kernel code | `no_preemption_point` | the same |
//! | the interrupt from another CPU is on its way | `remote_wakeup` | |
//!
//! Where a model does not leave kernel code at all, it would not help to have preemption on: that is
//! `no_preemption_point`, whatever the preempt count is. Spinning for a lock is what it does to the
//! others: interrupts off, or preemption off.
//!
//! Some stretches have no edge that any tracepoint shows. There a second answer is accepted as well, and
//! only there:
//!
//! - The way into an interrupt and out of it, around its handler: whatever the CPU did before, or after.
//!   The way out may also be the scheduler's way to the task.
//! - The scheduler up to the switch, where the kernel does not show its entry: what the CPU did before.
//! - An interrupt on its way to an idle CPU: the idle state, which is left by then or was none.
//! - The function of a timer: the timer's interrupt, which may do nothing else.
//! - An ordinary task that is to go for an ordinary probe: the task, or its kernel code. That
//!   `need_resched` is set is shown by no tracepoint before 6.15.
//! - A softirq that a thread executes on RT: the thread, or its kernel code.
//! - The probe is on its way to sleep when its timer expires: itself, as it was awake.
//! - A task of higher priority runs while the probe's budget is used up: that task.
//! - Another interrupt wakes an idle CPU while the probe's budget is used up: the budget.
//! - The probe's budget is refilled, and its CPU, which is idle, has not heard of it: the way of that.
//! - The CPU was asked to reschedule by another CPU, and has not taken that interrupt yet: the way of it.

mod waiting;

use wakescope_core::explain::Cause;
use wakescope_model::Image;
use wakescope_model::image::{
    BudgetId, BudgetOf, CpuId, RESCHEDULE, SourceId, SourceKind, StackId, TaskId,
};
use wakescope_model::kernel::{FrameKind, NeedResched, Running, Stage};
use wakescope_model::simulation::Sample;
use wakescope_model::trace::Transition;

use crate::tracepoints::{Followed, places};
use waiting::{Call, Places, Room, Waiting};

/// Who took a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Nobody by name.
    Any,
    /// What every interrupt takes to arrive.
    Delivery,
    /// A task.
    Task(TaskId),
    /// An interrupt or an NMI.
    Source(SourceId),
    /// The function of a timer that this source's handler runs: the innermost of the stack.
    Timer(StackId),
    /// A softirq.
    Softirq(u8),
    /// A function of this stack.
    Function(StackId),
    /// The scheduler, on behalf of these functions.
    Scheduler(StackId),
}

/// A cause and a culprit.
pub type Answer = (Cause, Who);

/// Time with the answers that are right, the best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// When it began, nanoseconds.
    pub from: u64,
    /// How long, nanoseconds.
    pub ns: u64,
    /// Which are right: at least one.
    pub answers: Vec<Answer>,
    edge: Edge,
}

impl Stretch {
    /// Whether `next` only prolongs it.
    fn goes_on_in(&self, next: &Self) -> bool {
        self.from + self.ns == next.from && self.edge == next.edge && self.answers == next.answers
    }
}

/// Whether a stretch has an edge of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    Seen,
    /// It cannot be told from what was before.
    Begin,
    /// It cannot be told from what comes after.
    End,
}

/// The truth of a wakeup: its stretches, in order of time. They add up to its latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Whose wakeup.
    pub task: TaskId,
    /// When it was due, nanoseconds.
    pub due: u64,
    /// When it was answered.
    pub response: u64,
    /// How often it was moved to another CPU while it waited.
    pub moves: u32,
    /// All time between.
    pub stretches: Vec<Stretch>,
    /// Stacks that were there when an interrupt was taken meanwhile: what a tracer can have seen.
    pub places: Vec<StackId>,
}

impl Truth {
    /// The number of its thread, as the tracer sees it.
    pub fn pid(&self) -> u32 {
        places::pid(Some(self.task))
    }

    /// How late it was, nanoseconds.
    pub fn latency_ns(&self) -> u64 {
        self.response - self.due
    }
}

/// Writes down the truth of all wakeups.
#[derive(Clone, Debug)]
pub struct Witness<'i> {
    image: &'i Image,
    shows_sched_entry: bool,
    followed: Followed,
    /// One for each task.
    waiting: Vec<Option<Waiting>>,
    /// For each CPU, where it was last.
    places: Vec<Places>,
    /// For each task, the priority that it has, as far as it was seen.
    prios: Vec<i16>,
    /// For each task, the CPU that it was on last.
    home: Vec<CpuId>,
    /// For each CPU, whether the function of a timer goes on that wakes a task.
    in_timer: Vec<bool>,
    /// For each CPU, how far a call to reschedule is that another one has sent it.
    calls: Vec<Call>,
    /// The CPU into whose queue another one has put a task last, and when.
    called_for: Option<(CpuId, u64)>,
    /// For each CPU, the budgets that are used up there: a bit for each.
    throttled: Vec<u32>,
    /// Wakeups that were answered so late are kept, nanoseconds.
    pub keep_ns: u64,
    /// What was kept of late wakeups.
    pub truths: Vec<Truth>,
    room: Room,
    /// Truths that do not add up to the latency: none, if all is right.
    pub faults: u64,
}

impl<'i> Witness<'i> {
    /// Of a kernel that shows the scheduler's entry or does not: that decides what can be known.
    pub fn new(image: &'i Image, shows_sched_entry: bool, followed: Followed) -> Self {
        let waiting = vec![None; image.tasks.len()];
        Self {
            image,
            shows_sched_entry,
            followed,
            waiting,
            places: vec![Places::default(); usize::from(image.cpus)],
            prios: image.tasks.iter().map(|task| task.policy.prio()).collect(),
            home: image.tasks.iter().map(|task| task.cpu.unwrap_or(CpuId(0))).collect(),
            in_timer: vec![false; usize::from(image.cpus)],
            calls: vec![Call::None; usize::from(image.cpus)],
            called_for: None,
            throttled: vec![0; usize::from(image.cpus)],
            keep_ns: 0,
            truths: Vec::new(),
            room: Room::default(),
            faults: 0,
        }
    }

    /// A task's timer was set.
    pub fn armed(&mut self, task: TaskId, on: CpuId, due: u64) {
        let is_probe = self.image.tasks[task.index()].period_ps.is_some();
        if is_probe || self.followed == Followed::Threads {
            self.waits(task, Some(Waiting::new(due, on)));
        }
    }

    fn waits(&mut self, task: TaskId, waiting: Option<Waiting>) {
        let before = std::mem::replace(&mut self.waiting[task.index()], waiting);
        self.room.left += before.map_or(0, |before| before.kept());
    }

    /// A task is made ready by what this CPU is at. Who runs there is awake, and waits for nothing.
    pub fn wakes(&mut self, cpu: CpuId, now: u64, task: TaskId, at: Running) {
        self.is_at(cpu, &at);
        if self.followed == Followed::Probes {
            return;
        }
        if at.task == Some(task) {
            return self.waits(task, None);
        }
        let home = self.home[task.index()];
        if self.in_timer[cpu.index()] {
            self.moved(task, now, cpu, home);
        } else {
            let mut waiting = Waiting::new(now, home);
            (waiting.is_woken, waiting.since) = (true, now);
            self.waits(task, Some(waiting));
        }
        if home == cpu {
            self.goes_on_after_waking(task, at);
        }
    }

    /// A CPU was at this.
    pub fn ran(&mut self, cpu: CpuId, from: u64, to: u64, at: Running) {
        self.is_at(cpu, &at);
        let (image, shown) = (self.image, self.shows_sched_entry);
        for (index, waiting) in self.waiting.iter_mut().enumerate() {
            let is_here = |waiting: &&mut Waiting| waiting.on == cpu && !waiting.is_lost;
            let Some(waiting) = waiting.as_mut().filter(is_here) else { continue };
            let from = from.max(waiting.due).max(waiting.since);
            if from < to {
                let throttled = self.throttled[cpu.index()];
                let probe = Probe {
                    image,
                    task: TaskId::at(index),
                    prio: self.prios[index],
                    shown,
                    throttled,
                    waiting,
                };
                let (answers, edge) = probe.classified(&at);
                waiting.ran(Stretch { from, ns: to - from, answers, edge }, &mut self.room);
            }
        }
    }

    fn is_at(&mut self, cpu: CpuId, at: &Running) {
        if at.kind == FrameKind::Task {
            self.places[cpu.index()].task_goes_on(at.stack);
        }
        if let Some(task) = at.task {
            self.prios[task.index()] = at.prio;
        }
    }

    /// Where a CPU is when it takes an interrupt, enables them, or switches.
    pub fn place(&mut self, cpu: CpuId, now: u64, at: Running) {
        self.is_at(cpu, &at);
        self.places[cpu.index()].last = at.stack;
        for waiting in self.waiting.iter_mut().flatten() {
            if waiting.on == cpu && waiting.due <= now {
                waiting.seen_at(at.stack, &mut self.room);
            }
        }
    }

    /// What woke a task goes on where that waits, up to an edge that may not be seen.
    fn goes_on_after_waking(&mut self, task: TaskId, at: Running) {
        let (image, shown) = (self.image, self.shows_sched_entry);
        let throttled = self.throttled[self.home[task.index()].index()];
        let prio = self.prios[task.index()];
        let Some(waiting) = self.waiting[task.index()].as_mut() else { return };
        let opening = Probe { image, task, prio, shown, throttled, waiting }.classified(&at).0;
        waiting.opening = opening;
        waiting.seen_at(at.stack, &mut self.room);
        // The handler of an interrupt is not what goes on: what that broke into is.
        let places = self.places[self.home[task.index()].index()];
        waiting.woken_at(places, &mut self.room);
    }

    /// Something happens on a CPU.
    pub fn happened(&mut self, cpu: CpuId, now: u64, what: Transition) {
        match what {
            Transition::TimerBegin(task) => {
                self.in_timer[cpu.index()] = true;
                if let Some(waiting) = &mut self.waiting[task.index()] {
                    waiting.is_woken = true;
                    waiting.woken_at(self.places[cpu.index()], &mut self.room);
                }
            }
            Transition::TimerEnd(_) => self.in_timer[cpu.index()] = false,
            Transition::IrqsOn => self.places[cpu.index()].let_interrupts_in(now),
            Transition::Taken(source) => {
                let kind = self.image.sources[source.index()].kind;
                self.places[cpu.index()].interrupted(kind, now);
            }
            Transition::Woken { task, on } => self.moved(task, now, cpu, on),
            Transition::Pulled(task) => self.moved(task, now, cpu, cpu),
            Transition::NeedResched { lazy: false } if self.called_for == Some((cpu, now)) => {
                self.called(cpu, Call::IfNeeded(now), Call::OnItsWay);
                self.calls[cpu.index()] = Call::OnItsWay;
            }
            Transition::Switch { to: Some(to), .. } => self.runs(cpu, now, to),
            Transition::Throttled(budget) => self.throttled[cpu.index()] |= 1 << budget.0,
            Transition::Unthrottled(budget) => {
                self.throttled[cpu.index()] &= !(1 << budget.0);
                self.runs_again(cpu, budget);
            }
            Transition::Boosted { owner, waiter } => self.lent(cpu, now, owner, waiter),
            Transition::Raised(source) if source == RESCHEDULE => {
                // Also for what is no wakeup, as where a budget is refilled: who is woken then needs no other call.
                self.calls[cpu.index()] = Call::Arrived;
                self.called(cpu, Call::OnItsWay, Call::Arrived);
            }
            Transition::HandlerBegin(source) if source == RESCHEDULE => {
                self.called(cpu, Call::Arrived, Call::None);
            }
            Transition::SchedEntry => {
                self.called(cpu, Call::OnItsWay, Call::None);
                self.called(cpu, Call::Arrived, Call::None);
            }
            _ => {}
        }
    }

    /// `by` puts a task into the run queue of the CPU `on`, which it has to call if that is another one.
    fn moved(&mut self, task: TaskId, now: u64, by: CpuId, on: CpuId) {
        self.home[task.index()] = on;
        if by != on {
            self.called_for = Some((on, now));
        }
        let Some(waiting) = &mut self.waiting[task.index()] else { return };
        if waiting.due > now {
            return;
        }
        if waiting.on != on {
            (waiting.on, waiting.since) = (on, now);
            waiting.moves += 1;
        }
        waiting.call = match self.calls[on.index()] {
            _ if by == on => Call::None,
            Call::None => Call::IfNeeded(now),
            // Whoever was woken before it has had that CPU called.
            on_its_way => on_its_way,
        };
    }

    /// A task is lent the priority of another one, by this CPU. It may have to call that of the first.
    fn lent(&mut self, by: CpuId, now: u64, owner: TaskId, waiter: TaskId) {
        let lent = self.prios[waiter.index()];
        let prio = &mut self.prios[owner.index()];
        *prio = lent.min(*prio);
        if let Some(waiting) = self.waiting[owner.index()].as_mut().filter(|w| w.is_woken) {
            if waiting.on != by && waiting.call == Call::None {
                waiting.call = Call::IfNeeded(now);
                self.called_for = Some((waiting.on, now));
            }
        }
    }

    /// A task runs from now on: where it says nothing of itself, that is its response.
    fn runs(&mut self, cpu: CpuId, now: u64, task: TaskId) {
        self.home[task.index()] = cpu;
        if self.followed == Followed::Probes {
            return;
        }
        let Some(waiting) = self.waiting[task.index()].take_if(|waiting| waiting.is_woken) else {
            return;
        };
        let (due, response) = (waiting.due, now);
        self.answered(
            waiting,
            Sample { task, expiry_ns: due, response_ns: response, missed: 0, cpu },
        );
    }

    /// Another CPU may have to tell this one of it.
    fn runs_again(&mut self, cpu: CpuId, budget: BudgetId) {
        for (index, waiting) in self.waiting.iter_mut().enumerate() {
            let Some(waiting) = waiting.as_mut().filter(|waiting| waiting.on == cpu) else {
                continue;
            };
            if budget_of(self.image, TaskId::at(index)) == Some(budget) && waiting.is_woken {
                waiting.runs_again = true;
            }
        }
    }

    fn called(&mut self, cpu: CpuId, from: Call, to: Call) {
        if self.calls[cpu.index()] == from {
            self.calls[cpu.index()] = to;
        }
        for waiting in self.waiting.iter_mut().flatten() {
            if waiting.on == cpu && waiting.call == from {
                waiting.call = to;
            }
        }
    }

    /// A probe has responded.
    pub fn responded(&mut self, sample: Sample) {
        if self.followed == Followed::Probes {
            if let Some(waiting) = self.waiting[sample.task.index()].take() {
                self.answered(waiting, sample);
            }
        }
    }

    fn answered(&mut self, waiting: Waiting, sample: Sample) {
        let kept = waiting.kept();
        let truth =
            if sample.latency_ns() < self.keep_ns { None } else { self.truth(sample, waiting) };
        match truth {
            Some(truth) => self.truths.push(truth),
            None => self.room.left += kept,
        }
    }

    /// The truth of a late wakeup, unless it was lost.
    fn truth(&mut self, sample: Sample, waiting: Waiting) -> Option<Truth> {
        if waiting.is_lost {
            return None;
        }
        let mut stretches = waiting.stretches;
        let all: u64 = stretches.iter().map(|stretch| stretch.ns).sum();
        let gaps = stretches.windows(2).any(|pair| pair[0].from + pair[0].ns != pair[1].from);
        if all != sample.latency_ns() || gaps || waiting.due != sample.expiry_ns {
            self.faults += 1;
            return None;
        }
        accept_neighbours(waiting.opening, &mut stretches);
        stretches.shrink_to_fit();
        Some(Truth {
            task: sample.task,
            due: waiting.due,
            response: sample.response_ns,
            moves: waiting.moves,
            stretches,
            places: waiting.places.into_iter().collect(),
        })
    }

    /// Drops the truths that `is_kept` does not accept.
    pub fn retain(&mut self, is_kept: impl Fn(&Truth) -> bool) {
        let Self { truths, room, .. } = self;
        truths.retain(|truth| {
            let keep = is_kept(truth);
            if !keep {
                room.left += truth.stretches.len() + truth.places.len();
            }
            keep
        });
    }
}

/// Adds the answers of what is on the other side of an edge that nobody sees. `opening` is what was there
/// before the first stretch.
fn accept_neighbours(opening: Vec<Answer>, stretches: &mut [Stretch]) {
    let mut before = opening;
    for stretch in stretches.iter_mut() {
        match stretch.edge {
            Edge::Begin => stretch.answers.extend(&before),
            _ => before.clone_from(&stretch.answers),
        }
    }
    let mut after: Option<Answer> = None;
    for stretch in stretches.iter_mut().rev() {
        match stretch.edge {
            Edge::End => stretch.answers.extend(after),
            _ => after = stretch.answers.first().copied(),
        }
    }
}

/// The least priority of the fair class, as the kernel counts.
const FIRST_FAIR_PRIO: i16 = 100;

/// The budget that a task uses with its own priority.
fn budget_of(image: &Image, task: TaskId) -> Option<BudgetId> {
    let task = &image.tasks[task.index()];
    match task.policy.prio() {
        ..=-1 => None,
        0..FIRST_FAIR_PRIO => image.rt_budget,
        _ => task.budget,
    }
}

struct Probe<'a> {
    image: &'a Image,
    task: TaskId,
    /// With what was lent to it.
    prio: i16,
    shown: bool,
    /// Budgets that are used up on its CPU.
    throttled: u32,
    waiting: &'a Waiting,
}

impl Probe<'_> {
    fn classified(&self, at: &Running) -> (Vec<Answer>, Edge) {
        let (local, edge) = self.local(at);
        let on_the_way = (Cause::RemoteWakeup, Who::Any);
        let is_force = matches!(at.kind, FrameKind::Interrupt(_));
        match self.waiting.call {
            Call::OnItsWay if !is_force => ([vec![on_the_way], local].concat(), edge),
            Call::OnItsWay | Call::Arrived => ([local, vec![on_the_way]].concat(), edge),
            Call::None | Call::IfNeeded(_) => (local, edge),
        }
    }

    /// By what the CPU itself did.
    fn local(&self, at: &Running) -> (Vec<Answer>, Edge) {
        match at.kind {
            FrameKind::Interrupt(source) => self.interrupt(at, source),
            FrameKind::Softirq { number, .. } if self.waiting.is_woken => {
                (vec![(Cause::Softirq, Who::Softirq(number))], Edge::Seen)
            }
            FrameKind::Softirq { .. } => (vec![self.irq_off(at)], Edge::Seen),
            FrameKind::Scheduler { .. } if self.waiting.is_woken => {
                let scheduler = std::iter::once((Cause::Scheduler, Who::Any));
                match self.shown {
                    true => (scheduler.collect(), Edge::Seen),
                    false => (scheduler.chain(self.of_task(at)).collect(), Edge::Begin),
                }
            }
            FrameKind::Scheduler { .. } => {
                let mut answers = vec![(Cause::IrqOff, Who::Scheduler(at.stack))];
                if at.task == Some(self.task) {
                    answers.push((Cause::EqualOrLowerTask, Who::Task(self.task)));
                }
                (answers, Edge::Seen)
            }
            FrameKind::Task => (self.of_task(at), Edge::Seen),
        }
    }

    /// The task, or the softirq that it executes.
    fn of_task(&self, at: &Running) -> Vec<Answer> {
        let softirq = at.softirq.filter(|_| self.waiting.is_woken);
        let softirq = softirq.map(|number| (Cause::Softirq, Who::Softirq(number)));
        softirq.into_iter().chain(self.task(at)).collect()
    }

    fn interrupt(&self, at: &Running, source: SourceId) -> (Vec<Answer>, Edge) {
        let kind = self.image.sources[source.index()].kind;
        let named = (Cause::Irq, Who::Source(source));
        match (kind, at.stage) {
            (SourceKind::Steal, _) => (vec![(Cause::Steal, Who::Any)], Edge::Seen),
            (_, Stage::LeavingIdle) => {
                let stopped = self.waiting.is_woken && self.is_stopped(at);
                let throttled = stopped.then_some((Cause::Throttled, Who::Task(self.task)));
                (
                    std::iter::once((Cause::IdleExit, Who::Any)).chain(throttled).collect(),
                    Edge::Seen,
                )
            }
            (SourceKind::Nmi, stage) => {
                let edge = match stage {
                    Stage::Code => Edge::Seen,
                    Stage::Entry | Stage::LeavingIdle => Edge::Begin,
                    Stage::Exit => Edge::End,
                };
                (vec![(Cause::Nmi, Who::Source(source))], edge)
            }
            (_, Stage::Entry) => {
                let mut answers = vec![(Cause::Irq, Who::Delivery), named];
                match at.task {
                    None => answers.push((Cause::IdleExit, Who::Any)),
                    // It may have been switched to right before.
                    Some(_) if self.waiting.is_woken => answers.extend(self.task(at)),
                    Some(_) => {}
                }
                (answers, Edge::Begin)
            }
            (_, Stage::Exit) => (vec![named, (Cause::Scheduler, Who::Any)], Edge::End),
            (SourceKind::LocalTimer, Stage::Code) if at.stack != StackId(0) => {
                (vec![(Cause::Irq, Who::Timer(at.stack)), named], Edge::Seen)
            }
            (_, Stage::Code) => (vec![named], Edge::Seen),
        }
    }

    fn irq_off(&self, at: &Running) -> Answer {
        (Cause::IrqOff, Who::Function(at.stack))
    }

    /// Whether it may not run, as its budget is used up. Of real-time tasks before `fair_server` only while
    /// an ordinary one wants the CPU, and so runs.
    fn is_stopped(&self, at: &Running) -> bool {
        let Some(budget) = budget_of(self.image, self.task) else { return false };
        let is_ordinary = at.prio >= FIRST_FAIR_PRIO && at.task.is_some();
        self.throttled & (1 << budget.0) != 0
            && match self.image.budgets[budget.index()].of {
                BudgetOf::RealTime { fair_server } => !fair_server || is_ordinary,
                BudgetOf::Group => true,
            }
    }

    fn task(&self, at: &Running) -> Vec<Answer> {
        let throttled = (Cause::Throttled, Who::Task(self.task));
        let is_stopped = self.waiting.is_woken && at.task != Some(self.task) && self.is_stopped(at);
        let own = self.prio;
        match at.task {
            // Whoever else runs is not the reason, unless it comes first anyway.
            Some(runs) if is_stopped && at.prio < own.min(FIRST_FAIR_PRIO) => {
                return vec![throttled, (Cause::HigherPriorityTask, Who::Task(runs))];
            }
            _ if is_stopped => return vec![throttled],
            // It may run again, and the CPU has not heard of it.
            None if self.waiting.runs_again => {
                return vec![(Cause::RemoteWakeup, Who::Any), throttled];
            }
            _ => {}
        }
        let Some(runs) = at.task else {
            // Nobody runs: the task is on its way here, or the idle task is about to be left.
            let is_awake = self.waiting.call == Call::None;
            let idle = is_awake.then_some((Cause::IdleExit, Who::Any));
            return std::iter::once((Cause::RemoteWakeup, Who::Any)).chain(idle).collect();
        };
        if runs == self.task {
            let own = (Cause::Scheduler, Who::Any);
            return match at.in_page_fault {
                true => vec![(Cause::PageFault, Who::Task(runs))],
                false => vec![own],
            };
        }
        if !self.waiting.is_woken {
            return vec![self.irq_off(at)];
        }
        if at.prio < own.min(FIRST_FAIR_PRIO) || (own < 100 && at.prio < own) {
            return vec![(Cause::HigherPriorityTask, Who::Task(runs))];
        }
        let is_to_go = match own {
            100.. => at.need_resched != NeedResched::No,
            _ => at.prio > own,
        };
        if !is_to_go || at.is_user {
            return vec![(Cause::EqualOrLowerTask, Who::Task(runs))];
        }
        let may_leave = self.image.rules.interrupt_return_schedules;
        let kernel = match may_leave && at.count != 0 {
            true => (Cause::PreemptOff, Who::Function(at.stack)),
            false => (Cause::NoPreemptionPoint, Who::Function(at.stack)),
        };
        match own {
            100.. => vec![kernel, (Cause::EqualOrLowerTask, Who::Task(runs))],
            _ => vec![kernel],
        }
    }
}

#[cfg(test)]
mod tests;
