//! The walk along a wakeup's events, from piece to piece.

mod beneath;

use std::collections::{HashMap, HashSet};

use super::case::{Case, Opening, is_from_a_cpu};
use super::nesting::{Nested, Nesting};
use super::piece::{
    Label, Piece, Pieces, in_place, known_by, label, unexplained, while_locked_out, with_stack,
};
use super::rules::{self, Split};
use crate::function::of_softirq;
use crate::rule::Rule;
use wakescope_core::explain::{
    Cause, Event, Evidence, Frame, Interrupt, Marks, Task, What, Within, WokenBy,
};

/// What a piece rests on, and falls with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Basis {
    /// That an interrupt or softirq with this number has both its ends.
    Nested(u32),
    /// That nothing is missing in this stretch of what lies beneath.
    Ground(u32),
    /// The marks alone.
    Marks,
}

/// What lies beneath interrupts and softirqs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    Wait,
    Handler,
    Interrupted,
    Remote,
    Running,
    Scheduler,
    Own,
    Unseen,
}

/// A mark that changes what lies beneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Due,
    Taken,
    Returned,
    Scheduler,
    Switched,
}

enum Moment<'a> {
    Turn(Turn),
    /// The event with this number among all.
    Event(usize, &'a What),
}

impl Moment<'_> {
    fn ends_softirqs(&self) -> bool {
        match self {
            Self::Turn(_) => true,
            Self::Event(_, what) => ends_softirqs(what),
        }
    }
}

/// Whether the kernel, which has just ended a softirq, is no more at softirqs when this comes. What is laid over the
/// pieces says nothing of that.
fn ends_softirqs(what: &What) -> bool {
    !matches!(what, What::Nmi(..) | What::Tracer(_) | What::Steal(_) | What::SoftirqsPending)
}

/// The end of a softirq after which the kernel is at softirqs for longer.
struct SoftirqEnd {
    /// The event.
    what: What,
    /// When it is no more.
    until: u64,
    /// How that is known.
    rule: Rule,
    evidence: Evidence,
}

/// Parts the wakeup into pieces.
pub(super) fn pieces(case: &Case) -> Pieces {
    let not_yet = case.not_yet_throttled();
    let mut sweep = Sweep::new(not_yet.as_ref().map_or(case, |(not_yet, _)| not_yet));
    for (at, moment) in moments(case) {
        sweep.advance(at);
        if not_yet.as_ref().is_some_and(|(_, until)| at >= until.0) {
            sweep.case = case;
        }
        if moment.ends_softirqs() {
            sweep.end_softirqs();
        }
        match moment {
            Moment::Turn(turn) => sweep.turn(turn),
            Moment::Event(number, what) => {
                sweep.next_event = number + 1;
                sweep.event(at, what);
            }
        }
    }
    sweep.advance(case.marks.response.0);
    sweep.finish()
}

/// Marks and events in order of time. Of those at one time, a mark comes right before the event that shows it:
/// what was recorded before that event ended first. (Simulated: a softirq whose end had the time of the scheduler's
/// entry seemed to go on when its thread ran again, for 72 us.)
fn moments<'a>(case: &Case<'a>) -> Vec<(u64, Moment<'a>)> {
    let marks = &case.marks;
    let turns = [
        (Some(marks.due), Turn::Due),
        (marks.irq_entry, Turn::Taken),
        (marks.irq_exit, Turn::Returned),
        (marks.sched_entry, Turn::Scheduler),
        (marks.switch_in, Turn::Switched),
    ];
    let mut last = (0, 0);
    let turns = turns.into_iter().filter_map(|(at, turn)| {
        let at = at?.0;
        // Marks at one time keep their order.
        last = last.max((at, place_of(case, at, turn)));
        // Events have odd places.
        Some((at, 2 * last.1, Moment::Turn(turn)))
    });
    let events = case.wakeup.events.iter().enumerate();
    let events = events.filter(|(_, event)| event.at <= marks.response);
    let events = events
        .map(|(number, event)| (event.at.0, 2 * number + 1, Moment::Event(number, &event.what)));
    let mut moments: Vec<_> = turns.chain(events).collect();
    moments.sort_by_key(|&(at, place, _)| (at, place));
    moments.into_iter().map(|(at, _, moment)| (at, moment)).collect()
}

/// The number of the event that this mark comes right before: the one that shows it; else the first at that time, but
/// for what was before it in any case.
fn place_of(case: &Case, at: u64, turn: Turn) -> usize {
    let events = &case.wakeup.events;
    let then: Vec<usize> = (0..events.len()).filter(|&number| events[number].at.0 == at).collect();
    let shows = |what: &What| match (turn, what) {
        (Turn::Scheduler, What::SchedEntry) => true,
        (Turn::Switched, What::Switch { to, .. }) => case.is_own(to),
        _ => false,
    };
    let waker = match &case.wakeup.woken_by {
        WokenBy::Waker { task, .. } if case.opening == Opening::Waker => Some(task.pid),
        _ => None,
    };
    let wakers_softirq = case.context().filter(|_| waker.is_some()).and_then(|c| c.softirq);
    let is_before = |number: usize| match (turn, &events[number].what) {
        // It is within the interrupt that ends then.
        (_, What::TimerExit) => true,
        // Who wakes had the CPU already.
        (Turn::Due, What::Switch { to, .. }) => Some(to.pid) == waker,
        // Who wakes in a softirq has come to it already.
        (Turn::Due, What::SoftirqEntry(softirq)) => Some(*softirq) == wakers_softirq,
        // To whoever waits, a move is a switch: it has come to the CPU that it is switched to on.
        (Turn::Scheduler | Turn::Switched, What::Switch { .. }) => {
            number > 0 && matches!(events[number - 1].what, What::Moved { .. })
        }
        _ => false,
    };
    let shown = then.iter().copied().find(|&number| shows(&events[number].what));
    let after = then.iter().copied().rfind(|&number| is_before(number)).map(|number| number + 1);
    shown.or(after).or(then.first().copied()).unwrap_or(events.len())
}

struct Sweep<'c, 'a> {
    case: &'c Case<'a>,
    done_to: u64,
    /// The number of the first event that it has not come to.
    next_event: usize,
    pieces: Vec<(Piece, Basis)>,
    refuted: HashSet<Basis>,
    nesting: Nesting,
    ground: Ground,
    ground_split: Split,
    stretch: u32,
    /// Who runs beneath, if a switch or the context says so.
    runs: Option<Task>,
    /// Whether events contradict what the context will say.
    confused: bool,
    /// Whether the exit of the interrupt that wakes the task has been seen.
    exit_seen: bool,
    /// Whether a lock is waited for.
    contended: bool,
    /// Whether the task has been switched to for good.
    has_run: bool,
    /// The event of a softirq's end that the kernel is still at softirqs after.
    softirq_end: Option<SoftirqEnd>,
    /// Whether the task was moved to another CPU than it waited for first.
    has_moved: bool,
    /// Softirqs of tasks that were switched from, where softirqs can be.
    suspended: HashMap<u32, Vec<Nested>>,
}

impl<'c, 'a> Sweep<'c, 'a> {
    fn new(case: &'c Case<'a>) -> Self {
        Self {
            case,
            done_to: case.marks.due.0,
            next_event: 0,
            pieces: Vec::new(),
            refuted: HashSet::new(),
            nesting: Nesting::default(),
            ground: Ground::Unseen,
            ground_split: Split::unexplained(Rule::Unseen),
            stretch: 0,
            runs: None,
            confused: false,
            exit_seen: false,
            contended: false,
            has_run: false,
            softirq_end: None,
            has_moved: false,
            suspended: HashMap::new(),
        }
    }

    fn event(&mut self, at: u64, what: &What) {
        match what {
            What::IrqEntry(interrupt) => self.interrupt_begins(at, interrupt, what),
            What::IrqExit(interrupt) => self.interrupt_ends(interrupt, what),
            What::SoftirqEntry(_) => self.softirq_begins(what),
            What::TimerEntry(..) => self.nesting.open(what.clone()),
            What::SoftirqExit(_) => {
                self.softirq_end = self.more_of_softirqs(at, what);
                if self.softirq_end.is_none() {
                    self.close(what);
                }
            }
            What::TimerExit => self.close(what),
            What::Switch { from, to } => self.switch(from, to),
            What::Moved { .. } => self.move_away(),
            What::ContentionBegin => self.contended = true,
            What::ContentionEnd => self.contended = false,
            What::SchedEntry => self.scheduler_begins(),
            // They are laid over the pieces.
            What::Nmi(..) | What::Tracer(_) | What::Steal(_) => {}
            // The end of the softirq has looked for it.
            What::SoftirqsPending => {}
            // It says of the whole stretch that the task was lent a priority: see `Case::changed_rank`.
            What::Deboost(_) => {}
        }
    }

    fn interrupt_begins(&mut self, at: u64, interrupt: &Interrupt, what: &What) {
        let is_own = self.ground == Ground::Handler
            && !self.case.remote
            && self.case.marks.irq_entry.is_some_and(|entry| entry.0 == at);
        if is_own {
            return;
        }
        if self.ground == Ground::Remote && is_from_a_cpu(interrupt) {
            self.resume();
        }
        self.nesting.open(what.clone());
    }

    fn interrupt_ends(&mut self, interrupt: &Interrupt, what: &What) {
        let is_own = !self.case.remote
            && !self.exit_seen
            && !self.nesting.is_in_interrupt()
            && match self.ground {
                Ground::Handler => true,
                // Its mark may be a little earlier.
                Ground::Interrupted => {
                    self.case.marks.irq_exit.is_some()
                        && self.case.interrupt.as_ref() == Some(&interrupt.0)
                }
                _ => false,
            };
        if is_own { self.exit_seen = true } else { self.close(what) }
    }

    /// How the kernel is at softirqs for longer than until the `end` of this one.
    ///
    /// It may go on to another one, without a task's code in between. (7.2: 766 ns between three of them were the
    /// scheduler's, because the task that wakes had the CPU.) Or it leaves those that are pending to their thread,
    /// and makes that ready. (6.1: 1.7 us of that were given to the code that was interrupted, more than the
    /// softirq itself had taken.)
    fn more_of_softirqs(&self, at: u64, end: &What) -> Option<SoftirqEnd> {
        let What::SoftirqExit(number) = end else { return None };
        if !self.nesting.is_in_softirq(*number) {
            return None;
        }
        let next = self.remaining_events().find(|event| ends_softirqs(&event.what));
        let until = next.filter(|next| self.is_next_softirq(at, next)).map(|next| next.at.0);
        let known = until.map(|until| (until, Rule::Softirq, Evidence::Edge));
        let (until, rule, evidence) = known.or_else(|| {
            let until = at.saturating_add(self.case.tuning.to_ksoftirqd_ns);
            self.are_softirqs_left().then_some((until, Rule::SoftirqsLeft, Evidence::Bound))
        })?;
        Some(SoftirqEnd { what: end.clone(), until, rule, evidence })
    }

    /// Whether `next` is a softirq that the kernel goes on to from one that ended then.
    fn is_next_softirq(&self, ended: u64, next: &Event) -> bool {
        let Marks { irq_exit, sched_entry, switch_in, .. } = self.case.marks;
        let mut marks = [irq_exit, sched_entry, switch_in].into_iter().flatten();
        matches!(next.what, What::SoftirqEntry(_))
            && next.at.0.saturating_sub(ended) <= self.case.tuning.next_softirq_ns
            && !marks.any(|mark| (ended..=next.at.0).contains(&mark.0))
    }

    /// Whether the kernel leaves softirqs that are pending to their thread.
    fn are_softirqs_left(&self) -> bool {
        let mut at_its_end =
            self.remaining_events().take_while(|event| !ends_softirqs(&event.what));
        at_its_end.any(|event| event.what == What::SoftirqsPending)
    }

    /// The kernel is at softirqs no more.
    fn end_softirqs(&mut self) {
        if let Some(end) = self.softirq_end.take() {
            self.close(&end.what);
        }
    }

    /// Softirqs do not break into each other. One that seems to go on has ended, and nobody saw it: their
    /// events are recorded only while a wakeup waits. (Simulated: 79 us of the way from another CPU blamed
    /// on a softirq of before.)
    fn softirq_begins(&mut self, what: &What) {
        let unended = self.nesting.drop_softirqs();
        self.refuted.extend(unended.into_iter().map(Basis::Nested));
        self.nesting.open(what.clone());
    }

    /// Ends what `what` ends. If that never began, something is missing: nothing that was thought
    /// to go on here is certain.
    fn close(&mut self, what: &What) {
        let closed = self.nesting.close(what);
        self.refuted.extend(closed.unended.iter().map(|&id| Basis::Nested(id)));
        // That what began it was lost says nothing of switches.
        if !closed.found && self.case.known_switches.is_none() {
            self.refute_stretch();
        }
    }

    /// What was thought to go on until now is uncertain. What comes now is not.
    fn refute_stretch(&mut self) {
        self.refuted.insert(Basis::Ground(self.stretch));
        self.stretch += 1;
    }

    /// Leaves interrupts, which should have ended, and softirqs of the task that runs.
    fn leave_contexts(&mut self) {
        let runs = self.runs.as_ref().map_or(0, |task| task.pid);
        self.suspend(runs);
        self.contended = false;
    }

    /// Leaves the CPU, with all that goes on there: what has begun went on until now. A guest's CPU may have been
    /// stopped since its last event: its clock of stolen time says so when it goes on. (Simulated: 30 us that the
    /// hypervisor had, blamed on the softirq that it had broken into.)
    fn move_away(&mut self) {
        if let Some((last, _)) = self.pieces.last_mut().filter(|_| self.case.known.guest) {
            last.label = known_by(last.label.rule, &last.label, Evidence::Bound);
        }
        self.nesting.take();
        self.suspended.clear();
        self.contended = false;
        self.has_moved = true;
    }

    fn suspend(&mut self, pid: u32) {
        self.drop_interrupts();
        let softirqs = self.nesting.take();
        if !softirqs.is_empty() {
            self.suspended.insert(pid, softirqs);
        }
    }

    fn drop_interrupts(&mut self) {
        let unended = self.nesting.drop_interrupts();
        self.refuted.extend(unended.into_iter().map(Basis::Nested));
    }

    /// Gives away the time up to `at`.
    fn advance(&mut self, at: u64) {
        if let Some(until) = self.softirq_end.as_ref().map(|end| end.until) {
            self.give(at.min(until));
            if at >= until {
                self.end_softirqs();
            }
        }
        self.give(at);
    }

    /// Gives the time up to `at` to what the CPU is at.
    fn give(&mut self, at: u64) {
        if at <= self.done_to {
            return;
        }
        match self.nested_label() {
            Some((label, basis)) => self.push(at, label, basis),
            None => {
                let split = self.done_to.saturating_add(self.ground_split.at_most_ns).min(at);
                self.ground_split.at_most_ns -= split - self.done_to;
                let basis = match self.ground {
                    Ground::Wait if self.case.doubtful => Basis::Marks,
                    Ground::Handler => Basis::Marks,
                    _ => Basis::Ground(self.stretch),
                };
                let (first, then) = (
                    self.with_lock_wait(&self.ground_split.first),
                    self.with_lock_wait(&self.ground_split.then),
                );
                self.push(split, first, basis);
                self.push(at, then, basis);
            }
        }
    }

    fn push(&mut self, to: u64, label: Label, basis: Basis) {
        if to > self.done_to {
            self.pieces.push((Piece { from: self.done_to, to, label }, basis));
            self.done_to = to;
        }
    }

    /// The label of the innermost interrupt or softirq, where that counts: the other CPU's wait and
    /// handler are not held up by what happens here, and softirqs do not hold up an interrupt.
    fn nested_label(&self) -> Option<(Label, Basis)> {
        let elsewhere = self.case.remote && matches!(self.ground, Ground::Wait | Ground::Handler);
        if elsewhere {
            return None;
        }
        let nested = match self.ground {
            Ground::Wait | Ground::Handler if self.case.opening != Opening::Awake => {
                self.nesting.innermost_interrupt()
            }
            _ => self.nesting.innermost(),
        }?;
        match (self.case.doubtful, self.ground) {
            (true, Ground::Handler) => None,
            (true, _) => Some((unexplained(Rule::LostEvents), Basis::Marks)),
            (false, _) => Some((self.nested_share(nested), Basis::Nested(nested.id))),
        }
    }

    fn nested_share(&self, nested: &Nested) -> Label {
        let (rule, cause, culprit) = nested.blame();
        let mut within = Within::default();
        match (&nested.what, &self.runs) {
            (What::SoftirqEntry(_), Some(task)) if task.is_known() => {
                within.task = Some(task.named());
            }
            (What::TimerEntry(..), _) => {
                let outer = self.nesting.interrupt_around(nested.id);
                let outer = outer.or(self.case.interrupt.as_deref());
                within.interrupt = outer.filter(|name| !name.is_empty()).map(str::to_owned);
            }
            _ => {}
        }
        let bare = in_place(&label(rule, cause, culprit, Evidence::Edge), within);
        match &nested.what {
            What::SoftirqEntry(number) => {
                let known = self.softirq_end.as_ref().map(|end| (end.rule, end.evidence));
                let (rule, evidence) = known.unwrap_or((rule, Evidence::Edge));
                let share = with_stack(&bare, self.stack_in_softirq(*number));
                known_by(rule, &share, evidence)
            }
            _ => bare,
        }
    }

    /// The stack that was taken in the softirq, if one was.
    fn stack_in_softirq(&self, number: u8) -> &'a [Frame] {
        let context = self.case.context().filter(|context| context.softirq == Some(number));
        context.map_or(&[], |context| of_softirq(&context.stack, number))
    }

    /// `label`, with the wait for a lock if there is one.
    fn with_lock_wait(&self, label: &Label) -> Label {
        if !self.contended || self.case.doubtful || label.cause == Cause::Unexplained {
            return label.clone();
        }
        while_locked_out(label)
    }

    /// The pieces, those unexplained that rest on what turned out not to be so. Within the interrupt
    /// that wakes the task all is at least that interrupt's.
    fn finish(mut self) -> Pieces {
        self.end_softirqs();
        self.drop_interrupts();
        let unended = self.nesting.take();
        self.refuted.extend(unended.iter().map(|nested| Basis::Nested(nested.id)));
        let handler = rules::handler(self.case).then;
        let (entry, exit) = (self.case.marks.irq_entry, self.case.marks.irq_exit);
        let handled = exit.map(|exit| (entry.unwrap_or(self.case.marks.due).0, exit.0));
        let pieces = self.pieces.into_iter().map(|(mut piece, basis)| {
            if self.refuted.contains(&basis) {
                let inside = handled.is_some_and(|(a, b)| piece.from >= a && piece.to <= b);
                piece.label = match inside {
                    true => handler.clone(),
                    false => unexplained(Rule::Contradiction),
                };
            }
            piece
        });
        Pieces::of(pieces.collect())
    }
}
