//! What the emulator saw of a guest's CPU, as a course that can be replayed.

use std::collections::BTreeSet;

use wakescope_core::explain::Task;
use wakescope_core::scope::edges::{AskKind, Edge, EdgeKind, Edges, FunctionId, State, WayIn};

use super::idle::{WayOut, slow_exits};
use super::interrupts::of_others;
use super::own::{OwnWakeup, handlers, marked};
use super::section::{Context, Open, Place, Section};
use super::{At, Course, Interrupt, Mention, Point, SlowExit, Stretch};

/// A probe, as its tasks are known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its priority in the kernel's count: less is more urgent.
    pub prio: i32,
}

/// All that a replay takes from edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// What the CPU did.
    pub course: Course,
    /// Its sections, in order of their beginnings.
    pub sections: Vec<Section>,
    /// Where a task could give up the CPU, and in which function it is.
    pub mentions: Vec<Mention>,
    /// The probe's own wakeups, in order.
    pub own: Vec<OwnWakeup>,
    /// The interrupts, in order, each without what is the probe's own of it.
    pub interrupts: Vec<Interrupt>,
    /// The ways out of idle that take longer than others, in order.
    pub slow_exits: Vec<SlowExit>,
    /// Whether the kernel was seen to ask whether somebody else is to run.
    pub asks: bool,
    /// Whether all places are known where it does under any model.
    pub knows_asks: bool,
}

impl Seen {
    /// Follows `edges`. `preempts`: whether the model that ran preempts kernel code.
    #[cfg(test)]
    fn of(edges: &Edges, probe: Probe, preempts: bool) -> Self {
        Self::with_sections_of(edges, probe, preempts, 0)
    }

    /// The same with those sections only that last for `least_ns`. Most are shorter, and of no use: they are not broken
    /// up.
    pub(super) fn with_sections_of(
        edges: &Edges,
        probe: Probe,
        preempts: bool,
        least_ns: u64,
    ) -> Self {
        let mut follower = Follower { least_ns, ..Follower::new(edges, probe, preempts) };
        for edge in &edges.edges {
            follower.until(edge.at_ns);
            follower.edge(edge);
        }
        follower.until(edges.window_ns.end);
        follower.end()
    }
}

/// A wakeup of the probe that is under way.
#[derive(Clone, Copy, Default)]
struct Under {
    entered_ns: u64,
    handled_ns: Option<u64>,
    left_ns: Option<u64>,
    schedule_ns: Option<u64>,
    is_on: bool,
    /// How long interrupts took since then, ns.
    interrupted_ns: u64,
}

struct Follower<'a> {
    edges: &'a Edges,
    probe: Probe,
    preempts: bool,
    /// Shorter sections are not kept, ns.
    least_ns: u64,
    state: State,
    out: Seen,
    irqs: Open,
    preempt: Open,
    /// When interrupts that are not left yet began, ns.
    entered: Vec<u64>,
    /// When the interrupt that runs came, ns, and how many others and exceptions came into it.
    interrupt: Option<(u64, u32)>,
    /// The last stretch at whose beginning a task was preempted, until that is certain.
    preempting: Option<usize>,
    preempted: BTreeSet<u32>,
    /// How the kernel asked last, since the scheduler was entered.
    asked: Option<AskKind>,
    under: Option<Under>,
    /// When the scheduler was entered last, or gone back to from the interrupt of a wakeup, ns.
    last_schedule_ns: Option<u64>,
    /// How long interrupts took since then, ns.
    interrupted_ns: u64,
    /// Whether the scheduler was entered, and interrupts are still on in it: it has not chosen a task yet.
    is_to_choose: bool,
    /// When the idle task fell asleep first, and when an interrupt was left since it fell asleep last, ns; until it
    /// goes elsewhere.
    asleep: Option<(u64, Option<u64>)>,
    ways_out: Vec<WayOut>,
}

impl<'a> Follower<'a> {
    fn new(edges: &'a Edges, probe: Probe, preempts: bool) -> Self {
        let mut follower = Self {
            edges,
            probe,
            preempts,
            least_ns: 0,
            state: edges.start,
            out: Seen { knows_asks: edges.knows_asks, ..Seen::default() },
            irqs: Open::of_irqs(),
            preempt: Open::default(),
            entered: Vec::new(),
            interrupt: None,
            preempting: None,
            preempted: BTreeSet::new(),
            asked: None,
            under: None,
            last_schedule_ns: None,
            interrupted_ns: 0,
            is_to_choose: false,
            asleep: None,
            ways_out: Vec::new(),
        };
        // What the CPU was at is known from the first edge on. (6.1, idle: it slept for 0.92 ms before that one, which
        // came in an interrupt, with interrupts off.)
        if let Some(first) = edges.edges.first() {
            let begin_ns = edges.window_ns.start.min(first.at_ns);
            follower.stretch(begin_ns, Point::None);
            let stretches = &mut follower.out.course.stretches;
            if let Some(unknown) = stretches.last_mut().filter(|_| begin_ns < first.at_ns) {
                unknown.counts = false;
            }
        }
        follower
    }

    fn task(&self) -> Option<&'a Task> {
        self.edges.task(self.state.task)
    }

    fn pid(&self) -> u32 {
        self.task().map_or(0, |task| task.pid)
    }

    fn is_probe(&self, task: Option<&Task>) -> bool {
        task.is_some_and(|task| task.policy.is_realtime() && task.prio == self.probe.prio)
    }

    /// Where the CPU is.
    fn at(&self) -> At {
        let task = self.task();
        let is_idle = task.is_some_and(|task| task.pid == 0);
        match task {
            // Interrupts and softirqs hold up the idle task as any other.
            _ if is_idle
                && (self.state.preempt.in_softirq() || self.state.preempt.in_interrupt()) =>
            {
                At::Kernel
            }
            _ if is_idle => At::Idle,
            Some(task) if !self.is_probe(Some(task)) && task.prio <= self.probe.prio => At::Urgent,
            _ if self.state.halted => At::Idle,
            _ if self.state.in_user => At::User,
            _ => At::Kernel,
        }
    }

    /// A stretch begins.
    fn stretch(&mut self, from_ns: u64, point: Point) {
        let counts = !self.is_probe(self.task()) && from_ns < self.edges.measured_until_ns;
        let stretch = Stretch {
            from_ns,
            irqs_off: self.state.irqs_off && !self.state.halted,
            preempt_off: self.state.preempt.is_off(),
            at: self.at(),
            task: self.pid(),
            point,
            counts,
            is_own: false,
        };
        let course = &mut self.out.course;
        if !course.goes_on_in(&stretch) {
            course.stretches.push(stretch);
        }
    }

    /// Time passes. Where the guest has measured, a stretch ends: what is due later does not count, for then it
    /// ends its probe, its tracer and itself.
    fn until(&mut self, at_ns: u64) {
        let end_ns = self.edges.measured_until_ns;
        let last = self.out.course.stretches.last().copied();
        if last.is_some_and(|last| last.from_ns < end_ns && end_ns < at_ns) {
            self.stretch(end_ns, Point::None);
        }
    }

    fn edge(&mut self, edge: &Edge) {
        let before = self.state;
        let point = self.point(edge);
        self.state = before.after(edge.what);
        self.interrupt(edge);
        self.idle(edge);
        self.wakeup(edge, before);
        self.sections(edge, before);
        let point = match (edge.what, point) {
            (EdgeKind::Switch(_), point) if self.preempted.remove(&self.pid()) => {
                if point == Point::None { point } else { Point::Resumed }
            }
            (_, point) => point,
        };
        self.stretch(edge.at_ns, point);
        if point == Point::Preempted {
            self.preempting = Some(self.out.course.stretches.len() - 1);
        }
        if let EdgeKind::Enter { way: WayIn::Interrupt | WayIn::Exception, .. } = edge.what {
            self.entered.push(edge.at_ns);
        }
        self.mention(edge);
        self.out.course.end_ns = edge.at_ns;
    }

    /// What happens at an edge, by which the CPU may be given up.
    fn point(&mut self, edge: &Edge) -> Point {
        match edge.what {
            EdgeKind::Leave { to_user: true } => Point::Looks,
            // It was seen where that was called, but for a module.
            EdgeKind::Ask(AskKind::Either) if self.out.knows_asks && edge.caller.is_some() => {
                Point::None
            }
            // With interrupts off nobody can have come meanwhile, so it is no loop that lets somebody in. (6.1, tick:
            // `resched_curr` looks whether it need ask at all, and again in a softirq.)
            EdgeKind::Ask(AskKind::NeedResched) => match edge.function {
                Some(function) if !self.state.irqs_off => Point::EndsEarly(function.0),
                _ => Point::None,
            },
            EdgeKind::Ask(kind) => {
                self.asked = Some(kind);
                if kind == AskKind::MightResched {
                    return Point::MightSleep;
                }
                self.out.asks = true;
                Point::Asks
            }
            // A wakeup whose interrupt came in the scheduler before this is chosen all the same.
            EdgeKind::IrqsOff if self.is_to_choose && self.is_in_scheduler(edge) => {
                self.is_to_choose = false;
                Point::Looks
            }
            EdgeKind::Schedule => {
                self.not_preempted();
                self.is_to_choose = true;
                let caller = self.edges.function(edge.caller).unwrap_or_default();
                let is_preempted = caller.starts_with("preempt_schedule");
                // Only voluntary gives up the CPU where the kernel might sleep.
                let is_voluntary = self.asked.take() == Some(AskKind::MightResched)
                    && (is_preempted || caller == "__cond_resched");
                match self.preempts && is_preempted || !self.preempts && is_voluntary {
                    true => Point::Preempted,
                    false => Point::Looks,
                }
            }
            EdgeKind::Switch(_) => {
                self.is_to_choose = false;
                if self.preempting.take().is_some() {
                    self.preempted.insert(self.pid());
                }
                Point::Looks
            }
            _ => Point::None,
        }
    }

    fn is_in_scheduler(&self, edge: &Edge) -> bool {
        self.edges.function(edge.function) == Some("__schedule")
    }

    /// The scheduler was entered for nothing: the task goes on.
    fn not_preempted(&mut self) {
        if let Some(place) = self.preempting.take() {
            self.out.course.stretches[place].point = Point::None;
        }
    }

    /// Follows interrupts: each from its beginning until it is left, or until it calls the scheduler.
    fn interrupt(&mut self, edge: &Edge) {
        self.interrupt = match (self.interrupt, edge.what) {
            (None, EdgeKind::Enter { way: WayIn::Interrupt, .. }) => Some((edge.at_ns, 0)),
            (Some((from_ns, depth)), EdgeKind::Enter { .. }) => Some((from_ns, depth + 1)),
            (Some((from_ns, depth)), EdgeKind::Leave { to_user: false }) if depth > 0 => {
                Some((from_ns, depth - 1))
            }
            (Some((from_ns, _)), EdgeKind::Leave { .. } | EdgeKind::Schedule) => {
                let length_ns = edge.at_ns - from_ns;
                self.out.interrupts.push(Interrupt { from_ns, length_ns });
                self.interrupted_ns += length_ns;
                if let Some(under) = self.under.as_mut().filter(|under| under.is_on) {
                    under.interrupted_ns += length_ns;
                }
                None
            }
            (open, _) => open,
        };
    }

    /// Follows the idle task from its first sleep to the scheduler.
    fn idle(&mut self, edge: &Edge) {
        let is_idle = self.task().is_some_and(|task| task.pid == 0);
        self.asleep = match (self.asleep, edge.what) {
            (None, EdgeKind::Halt) if is_idle => Some((edge.at_ns, None)),
            (Some((from_ns, _)), EdgeKind::Halt) => Some((from_ns, None)),
            (Some((from_ns, _)), EdgeKind::Leave { .. }) => Some((from_ns, Some(edge.at_ns))),
            (Some((from_ns, left_ns)), EdgeKind::Schedule) => {
                let way_out = left_ns.map(|left_ns| WayOut { from_ns, left_ns, to_ns: edge.at_ns });
                self.ways_out.extend(way_out);
                None
            }
            (_, EdgeKind::Switch(_)) => None,
            (asleep, _) => asleep,
        };
    }

    /// Follows the probe's own wakeups.
    fn wakeup(&mut self, edge: &Edge, before: State) {
        let is_left = matches!(edge.what, EdgeKind::Leave { .. } | EdgeKind::Schedule);
        if let Some(under) = self.under.as_mut().filter(|of| is_left && of.handled_ns.is_some()) {
            under.left_ns = under.left_ns.or(Some(edge.at_ns));
        }
        match edge.what {
            EdgeKind::Wake(id) if self.is_probe(self.edges.task(Some(id))) => {
                let Some(&entered_ns) = self.entered.last() else { return };
                self.finish(None);
                self.under = Some(Under { entered_ns, ..Under::default() });
            }
            EdgeKind::Leave { to_user } => {
                self.go_on(edge.at_ns);
                self.entered.pop();
                if to_user {
                    self.entered.clear();
                }
            }
            EdgeKind::PreemptCount(count)
                if before.preempt.in_interrupt() && !count.in_interrupt() =>
            {
                if let Some(under) = self.under.as_mut().filter(|under| under.handled_ns.is_none())
                {
                    under.handled_ns = Some(edge.at_ns);
                }
            }
            EdgeKind::Schedule => {
                (self.last_schedule_ns, self.interrupted_ns) = (Some(edge.at_ns), 0);
            }
            EdgeKind::Switch(id) => {
                let is_own = self.is_probe(self.edges.task(Some(id)));
                let (schedule_ns, interrupted_ns) = (self.last_schedule_ns, self.interrupted_ns);
                self.entered.clear();
                match self.under.as_mut() {
                    Some(under) if is_own => {
                        *under = Under { is_on: true, schedule_ns, interrupted_ns, ..*under };
                    }
                    Some(under) if under.is_on => self.finish(None),
                    _ => {}
                }
            }
            EdgeKind::UserClock => {
                if let Some(under) = self.under.filter(|under| under.is_on) {
                    self.finish(under.schedule_ns.map(|schedule_ns| (schedule_ns, edge.at_ns)));
                }
            }
            _ => {}
        }
    }

    /// An interrupt was left, at whose end the scheduler was not entered. If it woke the probe and had come in the
    /// scheduler, that goes on and is not entered again before the switch: for the wakeup it begins here.
    fn go_on(&mut self, at_ns: u64) {
        let handled_ns = self.under.filter(|under| !under.is_on).and_then(|under| under.handled_ns);
        if handled_ns.is_some() && self.last_schedule_ns < handled_ns {
            (self.last_schedule_ns, self.interrupted_ns) = (Some(at_ns), 0);
        }
    }

    /// A wakeup of the probe that was under way is over. `ran_ns`: see [`OwnWakeup::ran_ns`].
    fn finish(&mut self, ran_ns: Option<(u64, u64)>) {
        let Some(under) = self.under.take() else { return };
        let Under { entered_ns, handled_ns: Some(handled_ns), left_ns, interrupted_ns, .. } = under
        else {
            return;
        };
        let left_ns = left_ns.unwrap_or(handled_ns);
        let ran_ns = ran_ns.filter(|(schedule_ns, _)| handled_ns <= *schedule_ns);
        self.out.own.push(OwnWakeup { entered_ns, handled_ns, left_ns, ran_ns, interrupted_ns });
    }

    /// Follows sections, and what comes into them.
    fn sections(&mut self, edge: &Edge, before: State) {
        let by_entry = matches!(edge.what, EdgeKind::Enter { .. });
        let context = Context::of(self.state.preempt);
        let is_idle = context == Context::Task && self.task().is_some_and(|task| task.pid == 0);
        let can_be_broken = !by_entry && !is_idle && context <= Context::Softirq;
        let id = |id: Option<FunctionId>| id.map(|id| id.0);
        let place = Place {
            at_ns: edge.at_ns,
            owner: owner(self.edges, edge).filter(|_| can_be_broken),
            functions: [id(edge.function), id(edge.caller).filter(|_| !by_entry)],
        };
        let (least_ns, sections) = (self.least_ns, &mut self.out.sections);
        let mut ended = |section: Section| {
            if section.ns() >= least_ns {
                sections.push(section);
            }
        };
        let irqs_off = [before.irqs_off, self.state.irqs_off];
        self.irqs.follow(irqs_off, context.with_irqs_off(), place, &mut ended);
        let preempt_off = [before.preempt.is_off(), self.state.preempt.is_off()];
        self.preempt.follow(preempt_off, context, place, &mut ended);
    }

    /// A function in which the task could give up the CPU.
    fn mention(&mut self, edge: &Edge) {
        let Some(Stretch { irqs_off: false, preempt_off: false, at: At::Kernel, .. }) =
            self.out.course.stretches.last()
        else {
            return;
        };
        // An `iret` turns interrupts on in a function without a caller: nobody can ask there.
        let is_code = match edge.what {
            EdgeKind::Enter { .. } | EdgeKind::Leave { .. } => false,
            EdgeKind::IrqsOn => edge.caller.is_some(),
            _ => true,
        };
        if let Some(function) = owner(self.edges, edge).filter(|_| is_code) {
            self.out.mentions.push(Mention { at_ns: edge.at_ns, function });
        }
    }

    fn end(mut self) -> Seen {
        self.not_preempted();
        self.finish(None);
        self.out.course.end_ns = self.out.course.end_ns.max(self.edges.window_ns.end);
        self.out.sections.sort_by_key(|section| section.from_ns);
        self.out.sections.shrink_to_fit();
        self.out.interrupts = of_others(std::mem::take(&mut self.out.interrupts), &self.out.own);
        self.out.slow_exits = slow_exits(&self.ways_out, &self.out.own);
        let course = &mut self.out.course;
        let own = handlers(&self.out.own);
        course.stretches = marked(std::mem::take(&mut course.stretches), course.end_ns, &own);
        course.stretches.shrink_to_fit();
        self.out.mentions.shrink_to_fit();
        self.out
    }
}

/// The function that an edge is named after: not the lock, but whose it is.
fn owner(edges: &Edges, edge: &Edge) -> Option<u32> {
    const LOCKS: [&str; 8] = [
        "_raw_",
        "__raw_",
        "__local_bh",
        "local_bh",
        "preempt_count_",
        "__cond_resched",
        "__rcu_read",
        "rcu_read_",
    ];
    let name = edges.function(edge.function)?;
    let id =
        if LOCKS.iter().any(|lock| name.starts_with(lock)) { edge.caller } else { edge.function };
    id.map(|id| id.0)
}

#[cfg(test)]
mod tests;
