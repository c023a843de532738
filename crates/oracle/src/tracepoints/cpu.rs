//! What the tracer keeps of a CPU: its last events, and what an interrupt broke into.

use std::collections::{BTreeMap, VecDeque};

use wakescope_core::explain::{KnownSwitches, Taken};
use wakescope_core::units::MonoNs;
use wakescope_decode::{KernelEvent, KernelRunTimes, KernelTask, Payload};
use wakescope_model::image::{BudgetId, BudgetOf, Image, LockId, TaskId};
use wakescope_model::kernel::{FrameKind, Running};

use super::places::Broken;

/// The least priority of ordinary tasks, as the kernel counts.
pub(super) const FIRST_FAIR_PRIO: i32 = 100;
/// How many switches are kept although other events follow.
pub(crate) const SWITCHES: usize = 16;
/// How many events a CPU keeps.
pub(super) const RING: usize = 256;
/// How long lies at the most between functions of timers in one interrupt, nanoseconds.
const BETWEEN_TIMERS_NS: u64 = 10_000;
/// How many tasks the tracer knows of that ran.
const RUNNERS: usize = 8;
/// How many of them a wakeup usually gets.
const FEW: usize = 64;
/// What a clock of stolen time read when the machine booted, nanoseconds: 0 would mean that there is
/// no clock.
const STOLEN_AT_BOOT: u64 = 1_000;

/// A CPU, as the tracer knows it.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    ring: Vec<KernelEvent>,
    /// How many events it has room for.
    room: usize,
    /// Events that were written so far.
    pub(super) seen: usize,
    /// The last switches.
    kept: VecDeque<Kept>,
    /// Switches that were seen so far.
    pub(super) switches: usize,
    /// What interrupts, softirqs and NMIs took so far, nanoseconds; softirqs only while a wakeup waits.
    pub(super) interrupts_ns: u64,
    /// Of it softirqs, without what came into them, and NMIs.
    softirqs_ns: u64,
    nmis_ns: u64,
    /// When the softirq that goes on began, and what interrupts had taken by then, if a wakeup waited then.
    pub(super) softirq_entry: Option<(u64, u64)>,
    /// Wakeups that wait here.
    pub(super) open: u32,
    /// The softirq that it is in.
    pub(super) softirq: Option<u8>,
    /// Whether it is in an interrupt, and since when.
    pub(super) in_irq: bool,
    pub(super) irq_entry: u64,
    /// What `interrupts_ns` was then.
    irq_interrupts_ns: u64,
    /// When the scheduler was entered last.
    pub(super) sched_entry: u64,
    /// The last switch while a wakeup waited.
    pub(super) switched: u64,
    /// Wakeups that began in the interrupt that goes on.
    pub(super) woken: Vec<usize>,
    /// The wakeup that came last, and from when on it is late enough to look again.
    pub(super) waiting: Option<(usize, u64)>,
    pub(super) contended: Option<LockId>,
    /// What was stolen so far, as its clock has it, nanoseconds; `None` without one.
    stolen: Option<u64>,
    /// When the handler of an NMI began, and what takes the CPU by force.
    pub(super) nmi_began: u64,
    pub(super) steal_began: u64,
    /// When something came for the CPU to do that the hypervisor keeps from an idle one.
    pub(super) idle_kept: Option<Option<u64>>,
    /// What the interrupt that goes on broke into.
    pub(super) broken: Option<Broken>,
    /// What the last interrupt of a task broke into: its softirqs find the registers of that.
    pub(super) registers: Option<Broken>,
    /// When the timer was due whose function goes on.
    pub(super) timer_due: Option<u64>,
    /// Who runs.
    pub(super) runs: Option<TaskId>,
    /// Where it was just before the transition that comes next.
    pub(super) place: Option<Running>,
    /// When interrupts were enabled last, and where.
    pub(super) enabled: Option<(u64, Running)>,
    /// Since when interrupts are off, and the last time that they were: from when to when.
    pub(super) irqs_off: Option<u64>,
    pub(super) last_irqs_off: Option<(MonoNs, MonoNs)>,
    /// When the scheduler ended last.
    pub(super) sched_exit: u64,
    /// The last place in a task.
    pub(super) beneath: Option<Running>,
    /// Whether its real-time tasks are throttled.
    rt_throttled: bool,
    /// Whether they give way to the ordinary tasks that the fair server lets run.
    fair_server_runs: bool,
    /// How long it has been leaving its idle state, nanoseconds.
    pub(super) leaving_idle_ns: u64,
    /// For each budget how long it was used up here.
    throttles: Vec<Throttle>,
    /// How long each task has run up to the last switch, when that was, and what interrupts had taken by then.
    ran: RunTimes,
    turn_began: u64,
    turn_interrupts_ns: u64,
}

/// Tasks by their numbers, and how long each has run on a CPU, without what interrupted it, nanoseconds.
pub(super) type RunTimes = BTreeMap<u32, (KernelTask, u64)>;

fn add_turn(ran: &mut RunTimes, task: KernelTask, turn_ns: u64) {
    let (last, ns) = ran.entry(task.pid).or_default();
    (*last, *ns) = (task, *ns + turn_ns);
}

/// A switch that is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// Its number among all events.
    number: usize,
    /// What `interrupts_ns` was then.
    interrupts_ns: u64,
    event: KernelEvent,
}

/// What a wakeup found when it began to wait for a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    pub(super) events: usize,
    switches: usize,
    interrupts_ns: u64,
    taken: SoFar,
}

/// What took a CPU from its tasks so far, nanoseconds: all, and of it softirqs and NMIs.
#[derive(Clone, Copy, Debug, Default)]
struct SoFar {
    all_ns: u64,
    softirqs_ns: u64,
    nmis_ns: u64,
}

/// What a record holds of a CPU's events.
pub(super) struct Recorded {
    pub(super) events: Vec<KernelEvent>,
    /// How many of the wakeup's own are missing.
    pub(super) missing: usize,
    /// What is known of switches although events are missing, unless it waited elsewhere as well.
    pub(super) known_switches: Option<KnownSwitches>,
}

/// How long a quota was used up on a CPU, as the kernel counts it for the queue of the group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Throttle {
    /// Until it was refilled the last time, nanoseconds.
    pub(super) sum: u64,
    /// Since when it is used up again.
    pub(super) since: Option<u64>,
}

impl Cpu {
    pub(super) fn new(room: usize, has_steal_clock: bool) -> Self {
        Self {
            ring: Vec::with_capacity(room),
            room,
            seen: 0,
            kept: VecDeque::with_capacity(SWITCHES),
            switches: 0,
            interrupts_ns: 0,
            softirqs_ns: 0,
            nmis_ns: 0,
            softirq_entry: None,
            open: 0,
            softirq: None,
            in_irq: false,
            irq_entry: 0,
            irq_interrupts_ns: 0,
            sched_entry: 0,
            switched: 0,
            woken: Vec::new(),
            waiting: None,
            contended: None,
            stolen: has_steal_clock.then_some(STOLEN_AT_BOOT),
            nmi_began: 0,
            steal_began: 0,
            idle_kept: None,
            broken: None,
            registers: None,
            timer_due: None,
            runs: None,
            place: None,
            enabled: None,
            irqs_off: None,
            last_irqs_off: None,
            sched_exit: u64::MAX,
            beneath: None,
            rt_throttled: false,
            fair_server_runs: false,
            leaving_idle_ns: 0,
            throttles: Vec::new(),
            ran: RunTimes::new(),
            turn_began: 0,
            turn_interrupts_ns: 0,
        }
    }

    /// A task makes room for another one; `None` for an idle CPU.
    pub(super) fn turn_ends(&mut self, task: Option<KernelTask>, now: u64) {
        let turn_ns = self.turn_ns(now);
        if let Some(task) = task {
            add_turn(&mut self.ran, task, turn_ns);
        }
        (self.turn_began, self.turn_interrupts_ns) = (now, self.interrupts_ns);
    }

    /// How long each task has run so far, where `runs` goes on to.
    pub(super) fn run_times(&self, runs: Option<KernelTask>, now: u64) -> RunTimes {
        let mut ran = self.ran.clone();
        if let Some(task) = runs {
            add_turn(&mut ran, task, self.turn_ns(now));
        }
        ran
    }

    /// How long who runs has done so since it was switched to, without what interrupted it.
    fn turn_ns(&self, now: u64) -> u64 {
        (now - self.turn_began).saturating_sub(self.interrupts_ns - self.turn_interrupts_ns)
    }

    /// How long each task has run since then, up to the last switch.
    pub(super) fn ran_since(&self, before: &RunTimes) -> KernelRunTimes {
        let ns_before = |pid: &u32| before.get(pid).map_or(0, |&(_, ns)| ns);
        let since =
            self.ran.iter().map(|(pid, (task, ns))| (*task, ns.saturating_sub(ns_before(pid))));
        let tasks: Vec<(KernelTask, u64)> = since.filter(|&(_, ns)| ns > 0).collect();
        let all_ns = |are_urgent: bool| {
            let of = tasks.iter().filter(|(task, _)| (task.prio < FIRST_FAIR_PRIO) == are_urgent);
            of.map(|(_, ns)| ns).sum()
        };
        let (ordinary_ns, urgent_ns) = (all_ns(false), all_ns(true));
        let known = tasks.iter().rev().take(RUNNERS).copied().collect();
        KernelRunTimes { tasks: known, ordinary_ns, urgent_ns }
    }

    /// Interrupts go on.
    pub(super) fn irqs_on(&mut self, now: u64) {
        if let Some(off) = self.irqs_off.take() {
            self.last_irqs_off = Some((MonoNs(off), MonoNs(now)));
        }
    }

    /// What its clock of stolen time reads; 0 without one.
    pub(super) fn steal_ns(&self) -> u64 {
        self.stolen.unwrap_or(0)
    }

    /// Whether what the interrupt broke into goes on with the softirq that was begun here. On RT its thread
    /// may have had to give the CPU up.
    pub(super) fn goes_on_with_softirq(&self, image: &Image) -> bool {
        let is_in_one = |broken: Broken| broken.at.softirq.is_some();
        !image.rules.softirqs_are_threads || self.broken.is_some_and(is_in_one)
    }

    /// A budget is used up here, or no more.
    pub(super) fn throttles(
        &mut self,
        image: &Image,
        budget: BudgetId,
        is_used_up: bool,
        now: u64,
    ) {
        self.throttles.resize(image.budgets.len(), Throttle::default());
        let throttle = &mut self.throttles[budget.index()];
        throttle.sum += throttle.since.take().map_or(0, |since| now - since);
        throttle.since = is_used_up.then_some(now);
        match image.budgets[budget.index()].of {
            BudgetOf::RealTime { fair_server: false } => self.rt_throttled = is_used_up,
            BudgetOf::RealTime { fair_server: true } => self.fair_server_runs = is_used_up,
            BudgetOf::Group => {}
        }
    }

    /// Whether the kernel shows that real-time tasks are held back while a task of this priority runs: in a
    /// field of the run queue, or in that task, which the fair server lets run.
    pub(super) fn holds_back(&self, runs: Option<i32>) -> bool {
        self.rt_throttled
            || (self.fair_server_runs && runs.is_some_and(|prio| prio >= FIRST_FAIR_PRIO))
    }

    pub(super) fn throttle(&self, budget: BudgetId) -> Throttle {
        self.throttles.get(budget.index()).copied().unwrap_or_default()
    }

    pub(super) fn has_stolen(&mut self, ns: u64) {
        self.stolen = self.stolen.map(|before| before + ns);
    }

    pub(super) fn event(&mut self, at: u64, payload: Payload) {
        let event = KernelEvent { at: MonoNs(at), steal_ns: self.steal_ns(), payload };
        let slot = self.seen % self.room;
        match self.ring.get_mut(slot) {
            Some(place) => *place = event,
            None => self.ring.push(event),
        }
        self.seen += 1;
    }

    /// The event that was written so many events ago: 1 is the last.
    pub(super) fn last(&mut self, back: usize) -> Option<&mut KernelEvent> {
        let known = back <= self.seen.min(self.room);
        let at = self.seen.wrapping_sub(back) % self.room;
        self.ring.get_mut(at).filter(|_| known)
    }

    /// Timers in a row that call one function are one event, if little time lies between them.
    pub(super) fn timer_event(&mut self, now: u64, function: u64) {
        let last_ends = self.last(1).is_some_and(|last| {
            last.payload == Payload::TimerExit && now.saturating_sub(last.at.0) < BETWEEN_TIMERS_NS
        });
        if let (true, Some(first)) = (last_ends, self.last(2)) {
            if let Payload::TimerEntry { function: before, count } = &mut first.payload {
                if *before == function {
                    *count += 1;
                    self.seen -= 1;
                    return;
                }
            }
        }
        self.event(now, Payload::TimerEntry { function, count: 1 });
    }

    /// The last event is a switch, which is kept although others follow.
    pub(super) fn keep_switch(&mut self) {
        let Some(&mut event) = self.last(1) else { return };
        if self.kept.len() == SWITCHES {
            self.kept.pop_front();
        }
        let (number, interrupts_ns) = (self.seen - 1, self.interrupts_ns);
        self.kept.push_back(Kept { number, interrupts_ns, event });
        self.switches += 1;
    }

    /// What interrupts, softirqs and NMIs took since then, nanoseconds.
    pub(super) fn interrupts_since(&self, before: Before) -> u64 {
        self.interrupts_ns - before.interrupts_ns
    }

    /// How it is now, for a wakeup whose wait begins at `begun`.
    pub(super) fn before(&self, begun: u64) -> Before {
        let Self { seen: events, switches, interrupts_ns, .. } = *self;
        Before { events, switches, interrupts_ns, taken: self.taken_until(begun) }
    }

    /// An interrupt begins.
    pub(super) fn irq_begins(&mut self, now: u64) {
        (self.in_irq, self.irq_entry, self.irq_interrupts_ns) = (true, now, self.interrupts_ns);
    }

    /// It ends, with the NMIs in it.
    pub(super) fn irq_ends(&mut self, now: u64) {
        self.interrupts_ns = self.irq_interrupts_ns + (now - self.irq_entry);
        self.in_irq = false;
    }

    /// A softirq ends that began while a wakeup waited, with what interrupted it.
    pub(super) fn softirq_ends(&mut self, now: u64) {
        let Some((began, before)) = self.softirq_entry.take().filter(|_| self.open > 0) else {
            return;
        };
        let all_ns = before + (now - began);
        self.softirqs_ns += all_ns - self.interrupts_ns;
        self.interrupts_ns = all_ns;
    }

    /// An NMI has taken so long.
    pub(super) fn nmi_took(&mut self, ns: u64) {
        self.interrupts_ns += ns;
        self.nmis_ns += ns;
    }

    /// What took it from its tasks up to `now`, with what goes on.
    fn taken_until(&self, now: u64) -> SoFar {
        let (mut all_ns, mut softirqs_ns) = (self.interrupts_ns, self.softirqs_ns);
        if self.in_irq && now > self.irq_entry {
            all_ns = self.irq_interrupts_ns + (now - self.irq_entry);
        }
        if let Some((began, before)) = self.softirq_entry.filter(|(began, _)| now > *began) {
            let own_ns = (now - began).saturating_sub(all_ns - before);
            (all_ns, softirqs_ns) = (all_ns + own_ns, softirqs_ns + own_ns);
        }
        SoFar { all_ns, softirqs_ns, nmis_ns: self.nmis_ns }
    }

    /// What took it from its tasks since then.
    pub(super) fn taken_since(&self, before: Before) -> Taken {
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let SoFar { all_ns, softirqs_ns, nmis_ns } = before.taken;
        let softirqs_ns = since(self.softirqs_ns, softirqs_ns);
        let nmis_ns = since(self.nmis_ns, nmis_ns);
        let all_ns = since(self.interrupts_ns, all_ns);
        let interrupts_ns = all_ns.saturating_sub(softirqs_ns).saturating_sub(nmis_ns);
        Taken { interrupts_ns, softirqs_ns, nmis_ns }
    }

    /// What a wakeup gets that found this when it began to wait here. Of the oldest events that there is room
    /// for, the switches that are kept take the place, if events of its own are missing.
    pub(super) fn recorded(&self, before: Before) -> Recorded {
        let few = FEW.min(self.room);
        let room = if self.seen - before.events > few / 2 { self.room } else { few };
        let first = self.seen.saturating_sub(room);
        let missing = first.saturating_sub(before.events);
        let from = |first: usize| (first..self.seen).map(|at| self.ring[at % self.room]);
        if missing == 0 {
            return Recorded { events: from(first).collect(), missing, known_switches: None };
        }
        let whole_from = first + SWITCHES;
        let own = self.switches - before.switches;
        let newest = self.kept.iter().rev().take(own).filter(|kept| kept.number < whole_from);
        let mut events: Vec<KernelEvent> = newest.map(|kept| kept.event).collect();
        events.reverse();
        let missing = missing + SWITCHES - events.len();
        let whole = from(whole_from).next();
        let known_switches = match self.kept.front() {
            _ if own <= SWITCHES => Some((0, self.interrupts_ns - before.interrupts_ns)),
            Some(oldest) if oldest.number < whole_from => {
                Some((oldest.event.at.0, self.interrupts_ns - oldest.interrupts_ns))
            }
            _ => whole.map(|event| (event.at.0, 0)),
        };
        let known_switches = known_switches
            .map(|(from, interrupts_ns)| KnownSwitches { from: MonoNs(from), interrupts_ns });
        events.extend(from(whole_from));
        Recorded { events, missing, known_switches }
    }

    /// Whether so many events are all that there was room for.
    pub(super) fn is_full(&self, events: usize) -> bool {
        events == self.room || events == FEW
    }

    /// The CPU was at this.
    pub(super) fn ran(&mut self, at: Running, ns: u64) {
        match at.stage {
            wakescope_model::kernel::Stage::LeavingIdle => self.leaving_idle_ns += ns,
            _ if at.kind == FrameKind::Task => {
                self.leaving_idle_ns = 0;
                self.beneath = Some(at);
            }
            _ => {}
        }
    }

    /// The idle state that it is in, by its number: that which takes as long to leave.
    pub(super) fn idle_state(&self, image: &Image) -> Option<u32> {
        let states = image.idle_states.iter();
        let mut all = states.map(|state| state.exit_ns);
        let at = all.position(|exit_ns| exit_ns == self.leaving_idle_ns)?;
        u32::try_from(at).ok()
    }

    /// The idle state that it is in, seen from another CPU: only that it is one is known here, so the first.
    pub(super) fn sleeps_elsewhere(&self, image: &Image) -> Option<u32> {
        (self.runs.is_none() && !image.idle_states.is_empty()).then_some(0)
    }
}
