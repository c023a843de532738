//! A wakeup with what follows from its events before any time is given to anybody.

use crate::tuning::{Tuning, percent_of};
use wakescope_core::explain::{
    Context, Event, Frame, Interrupt, Known, KnownSwitches, Marks, Mode, Task, Wakeup, What,
    WokenBy,
};
use wakescope_core::units::MonoNs;

/// What a timer's interrupt is called if no event says so: it is the CPU's own.
const TIMER_INTERRUPT: &str = "local_timer";

/// Interrupts of the CPU's own timer, whose handler only looks for timers that are due and sets the
/// next one: the functions of these are named by themselves.
pub(super) const TIMERS_INTERRUPTS: [&str; 2] = [TIMER_INTERRUPT, "arch_timer"];

/// The function of the timer that refills the quota of a group.
const QUOTA_TIMER: &str = "sched_cfs_period_timer";

/// A wakeup, and what is known of its course.
#[derive(Clone)]
pub(super) struct Case<'a> {
    pub(super) wakeup: &'a Wakeup,
    /// Who was to wake, with the rank that it had when it was woken, as far as that is known.
    own: Task,
    /// Whether it was lent another rank while it waited.
    was_lent: bool,
    pub(super) known: Known,
    /// Whether its CPU may hold it back.
    pub(super) throttled: bool,
    /// What its rules take for long.
    pub(super) tuning: Tuning,
    /// The marks that do not contradict each other, and those that events stand in for.
    pub(super) marks: Marks,
    /// Whether events are missing or out of order, so that none of them proves what came after.
    pub(super) doubtful: bool,
    /// Although events are missing: from when on who had the CPU from one switch to the next is known.
    pub(super) known_switches: Option<KnownSwitches>,
    /// How the wait begins.
    pub(super) opening: Opening,
    /// Whether the interrupt, or the waker, was on another CPU than the one that was watched.
    pub(super) remote: bool,
    /// The first switch after the timer's interrupt, if the timer woke the task in a thread that ran only then: so it is
    /// for timers of user space with PREEMPT_RT. What was seen is the thread, and not what the interrupt broke into.
    pub(super) woken_in_thread: Option<(MonoNs, &'a Task)>,
    /// When an interrupt from another CPU asked this one to reschedule.
    pub(super) asked: Option<MonoNs>,
    /// When the task had gone to sleep, if events tell that it was still awake when the wakeup was
    /// due: only then was there a timer to wait for.
    pub(super) asleep: Option<MonoNs>,
    /// What the interrupt is called whose time is from `irq_entry` to `irq_exit`, if that is known.
    pub(super) interrupt: Option<String>,
}

/// What a wakeup begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// The wait for an interrupt.
    Wait,
    /// The inside of an interrupt.
    Interrupt,
    /// Whatever the CPU is at, which was told to reschedule.
    Interrupted,
    /// The waker's own further work.
    Waker,
    /// The way from another CPU.
    Remote,
    /// The task itself, which is still awake.
    Awake,
    /// Something that is not seen.
    Unseen,
}

impl<'a> Case<'a> {
    pub(super) fn of(tuning: &Tuning, wakeup: &'a Wakeup, known: &Known) -> Self {
        let disordered = wakeup.events.windows(2).any(|w| w[1].at < w[0].at);
        let doubtful = wakeup.lost > 0 || disordered;
        let own = wakeup.task_alone();
        let mut case = Case {
            wakeup,
            was_lent: own.prio != wakeup.task.prio,
            own,
            known: *known,
            throttled: wakeup.throttled,
            tuning: *tuning,
            marks: wakeup.marks,
            doubtful,
            known_switches: wakeup.known_switches.filter(|_| doubtful && !disordered),
            opening: Opening::Unseen,
            remote: is_remote(wakeup),
            woken_in_thread: None,
            asked: None,
            asleep: None,
            interrupt: None,
        };
        case.marks = case.own_marks();
        if !doubtful && wakeup.woken_by != WokenBy::Awake {
            case.complete_marks();
        }
        case.opening = case.opening();
        case.interrupt = case.interrupt_name();
        case.woken_in_thread = case.switch_to_thread();
        case.asleep = case.fell_asleep();
        case
    }

    /// Whether its CPU may have stood still at any time and nothing tells: in a guest without a clock of stolen
    /// time. (Simulated: of 98,800 late wakeups, 1,300 in which the hypervisor had most of the time that was
    /// given to what it had stopped.)
    pub(super) fn may_have_been_stopped_unseen(&self) -> bool {
        let has_clock = self.wakeup.events.iter().any(|event| matches!(event.what, What::Steal(_)));
        self.known.guest && !has_clock
    }

    /// The same up to when it comes to a CPU that may hold it back; `None` if the first one may.
    pub(super) fn not_yet_throttled(&self) -> Option<(Self, MonoNs)> {
        let until = self.wakeup.throttled_from.filter(|_| self.throttled)?;
        Some((Self { throttled: false, ..self.clone() }, until))
    }

    /// Who was to wake. A task that waits for it may have lent it a priority meanwhile: a record has that of the
    /// end. (Simulated: 353 us of a real-time task that an ordinary one waited for, called no more urgent.)
    pub(super) fn task(&self) -> &Task {
        &self.own
    }

    /// The last edges of interrupts, if they make sense.
    pub(super) fn irqs_off(&self) -> Option<(MonoNs, MonoNs)> {
        let entry = self.marks.irq_entry?;
        self.wakeup.irqs_off.filter(|&(off, on)| off <= on && on <= entry)
    }

    /// When an interrupt was taken while the wakeup's own was due.
    pub(super) fn interrupt_before(&self) -> Option<MonoNs> {
        let entry = self.marks.irq_entry.filter(|_| !self.remote)?;
        let mut events = self.events().take_while(|event| event.at < entry);
        let taken = events.find(|event| matches!(event.what, What::IrqEntry(_)))?;
        Some(taken.at)
    }

    /// Whether the CPU's own timer came without the task's while that was due, and the task asleep as far
    /// as that is seen. Each interrupt of it looks at all timers of its CPU: the task's was not there.
    /// Where its own timer broke into the task, and no switch from it was seen before, it never slept.
    pub(super) fn timer_was_not_there(&self) -> bool {
        let Some(entry) = self.marks.irq_entry.filter(|_| !self.remote) else { return false };
        let awake = self.context().is_some_and(|context| self.is_own(&context.task));
        if awake && self.asleep.is_none() {
            return false;
        }
        let asleep = self.asleep.unwrap_or(self.marks.due);
        let mut waiting = self.events().filter(|event| event.at > asleep && event.at < entry);
        waiting.any(|event| {
            matches!(&event.what, What::IrqEntry(i) if TIMERS_INTERRUPTS.contains(&i.0.as_str()))
        })
    }

    /// Whether `task` is the one that was to wake.
    pub(super) fn is_own(&self, task: &Task) -> bool {
        task.pid == self.task().pid && !task.is_idle()
    }

    /// The context that was broken into, if anything is known of it.
    pub(super) fn context(&self) -> Option<&'a Context> {
        self.wakeup.interrupted.as_ref().filter(|c| c.mode != Mode::Unknown || c.task.is_known())
    }

    /// Where the program of `task` was while it held up the wakeup; empty if nobody looked.
    pub(super) fn user_stack(&self, task: &Task) -> &'a [Frame] {
        let interrupted = self.wakeup.interrupted.iter().map(|c| (c.task.pid, &c.user_stack));
        let last = self.wakeup.given_up.iter().map(|last| (last.pid, &last.user_stack));
        let mut stacks = interrupted.chain(last).filter(|_| task.is_known() && !task.is_idle());
        let own = stacks.find(|(pid, stack)| *pid == task.pid && !stack.is_empty());
        own.map(|(_, stack)| stack.as_slice()).unwrap_or_default()
    }

    /// Where in the kernel `task` gave up the CPU in the end; empty if somebody else did, or nobody
    /// looked.
    pub(super) fn given_up_at(&self, task: &Task) -> &'a [Frame] {
        let last = self.wakeup.given_up.as_ref().filter(|last| last.pid == task.pid);
        last.map(|last| last.stack.as_slice()).unwrap_or_default()
    }

    /// Whether it is seen when the CPU was given up to the task.
    pub(super) fn end_is_seen(&self) -> bool {
        self.marks.sched_entry.is_some() || self.marks.switch_in.is_some()
    }

    /// Whether this task, which was seen to run, changed its rank meanwhile: it gave up the CPU as more urgent
    /// than the task that wakes and was not so before, or the other way round. One of them was lent a priority
    /// in between, or gave one back, and no event says when.
    pub(super) fn changed_rank(&self, runs: &Task) -> bool {
        if !runs.is_known() || runs.is_idle() {
            return false;
        }
        let own = self.task();
        let rank = |own: &Task| (runs.comes_before(own), own.comes_before(runs));
        if self.was_lent && rank(own) != rank(&self.wakeup.task) {
            return true;
        }
        let later = self.wakeup.events.iter().filter_map(|event| match &event.what {
            What::Switch { from, .. } | What::Deboost(from) if from.pid == runs.pid => Some(from),
            _ => None,
        });
        let mut later = later.filter(|later| later.comes_before(own) != runs.comes_before(own));
        later.next().is_some()
    }

    /// Whether a quota of CPU time may have stopped the task that wakes: the kernel counts how long, and
    /// not when. Where that was not read, whether one was refilled meanwhile, of whomever.
    pub(super) fn a_quota_may_have_stopped_it(&self) -> bool {
        let refills = |event: &Event| matches!(&event.what, What::TimerEntry(function, _) if function == QUOTA_TIMER);
        match self.wakeup.quota_ns {
            Some(ns) => ns > 0,
            None => !self.task().is_urgent() && self.events().any(refills),
        }
    }

    /// The marks that concern this stimulus and do not contradict each other.
    fn own_marks(&self) -> Marks {
        let mut marks = self.wakeup.marks;
        if let WokenBy::Waker { in_interrupt, .. } = self.wakeup.woken_by {
            marks.irq_entry = None;
            marks.irq_exit = marks.irq_exit.filter(|_| in_interrupt && !self.remote);
        }
        if self.remote && marks.irq_entry.is_some() {
            // The other CPU's handler may go on while this CPU is already at work.
            let passed = [marks.sched_entry, marks.switch_in].into_iter().flatten().min();
            marks.irq_exit = earliest(marks.irq_exit, passed);
        }
        marks.consistent()
    }

    /// Adds the marks that events can stand in for.
    fn complete_marks(&mut self) {
        self.add(Marks { switch_in: self.marks.switch_in.or(self.switched_in()), ..self.marks });
        let sched_entry = self.marks.sched_entry.or(self.scheduler_entered());
        self.add(Marks { sched_entry, ..self.marks });
        if self.remote {
            self.asked = self.asked_to_reschedule();
            if self.marks.irq_entry.is_some() {
                let irq_exit = earliest(self.marks.irq_exit, self.asked);
                self.add(Marks { irq_exit, ..self.marks });
            }
        } else if self.marks.irq_exit.is_none() && self.begins_in_interrupt() {
            let irq_exit = self.first_exit().map(|event| event.at);
            self.add(Marks { irq_exit, ..self.marks });
        }
    }

    /// Takes over `marks` unless they contradict each other.
    fn add(&mut self, marks: Marks) {
        if marks.consistent() == marks {
            self.marks = marks;
        }
    }

    fn begins_in_interrupt(&self) -> bool {
        let of_waker = matches!(self.wakeup.woken_by, WokenBy::Waker { in_interrupt: true, .. });
        let of_softirq = self.wakeup.interrupted.as_ref().is_some_and(|c| c.softirq.is_some());
        self.marks.irq_entry.is_some()
            || (of_waker && !of_softirq && !self.was_woken_after_handler())
    }

    /// Whether an interrupt woke the task after it had reported its handler's end, as it does the thread of an
    /// interrupt: none was going on by its events, although none of these are missing.
    pub(super) fn was_woken_after_handler(&self) -> bool {
        matches!(self.wakeup.woken_by, WokenBy::Waker { in_interrupt: true, .. })
            && !(self.remote || self.doubtful)
            && self.marks.irq_exit.is_none()
            && self.entry_event().is_none()
            && self.first_exit().is_none()
    }

    fn opening(&self) -> Opening {
        let Marks { irq_entry, irq_exit, .. } = self.marks;
        match &self.wakeup.woken_by {
            // What events there are may have come after one that is lost.
            WokenBy::Awake if self.doubtful => Opening::Unseen,
            WokenBy::Awake => Opening::Awake,
            WokenBy::Waker { .. } if self.remote => Opening::Remote,
            // One that is not known is no idle task: the kernel may have chosen this CPU once it was woken.
            WokenBy::Waker { task, in_interrupt: false, .. } if task.is_known() => Opening::Waker,
            _ if irq_entry.is_some() => Opening::Wait,
            _ if irq_exit.is_some() => Opening::Interrupt,
            // Without its interrupt nobody can say how long a timer waited for it.
            WokenBy::Timer { .. } => Opening::Unseen,
            WokenBy::Waker { .. } if self.begins_in_interrupt() => Opening::Unseen,
            WokenBy::Waker { .. } | WokenBy::Unknown => Opening::Interrupted,
        }
    }

    fn fell_asleep(&self) -> Option<MonoNs> {
        if self.opening == Opening::Awake {
            return Some(self.marks.response);
        }
        let entry = self.marks.irq_entry.filter(|_| !self.doubtful && !self.remote)?;
        if let Some((at, _)) = self.woken_in_thread.filter(|(_, from)| self.is_own(from)) {
            return Some(at);
        }
        let switches = self.events().filter(|event| event.at <= entry);
        let (at, to) = switches.rev().find_map(|event| self.own_switch(event))?;
        Some(if to { entry } else { at })
    }

    /// See [`Self::woken_in_thread`]. Where an interrupt itself wakes the task, the first switch after it is one from
    /// whom it broke into.
    fn switch_to_thread(&self) -> Option<(MonoNs, &'a Task)> {
        let context = self.context().filter(|context| context.softirq.is_some())?;
        let by_timer = matches!(self.wakeup.woken_by, WokenBy::Timer { .. });
        let entry = self.marks.irq_entry.filter(|_| by_timer && !self.remote)?;
        self.switch_after(entry).filter(|(_, from)| from.pid != context.task.pid)
    }

    /// When the task was switched to or from, and whether to.
    fn own_switch(&self, event: &Event) -> Option<(MonoNs, bool)> {
        match &event.what {
            What::Switch { to, .. } if self.is_own(to) => Some((event.at, true)),
            What::Switch { from, .. } if self.is_own(from) => Some((event.at, false)),
            _ => None,
        }
    }

    /// Who ran when the wakeup was due, by the first switch after that.
    pub(super) fn first_to_run(&self) -> Option<&'a Task> {
        self.first_switch().map(|(_, from)| from)
    }

    /// The first switch after the wakeup was due: when, and from which task.
    pub(super) fn first_switch(&self) -> Option<(MonoNs, &'a Task)> {
        self.events().find_map(switched_from)
    }

    /// The first switch after `at`: when, and from which task.
    pub(super) fn switch_after(&self, at: MonoNs) -> Option<(MonoNs, &'a Task)> {
        self.events().filter(|event| event.at > at).find_map(switched_from)
    }

    /// Events from when the wakeup was due to its response.
    pub(super) fn events(&self) -> impl DoubleEndedIterator<Item = &'a Event> {
        let Marks { due, response, .. } = self.marks;
        self.wakeup.events.iter().filter(move |event| event.at >= due && event.at <= response)
    }

    /// How long it takes from an interrupt to the scheduler, through code that holds nothing up, nanoseconds:
    /// what the run's shortest such way says. 0 if that is not known, as on another CPU.
    ///
    /// Where the kernel does not show the scheduler's entry, the shortest way is one to the response. What this
    /// task took after the switch is no part of it.
    pub(super) fn way_out_of_section_ns(&self) -> u64 {
        let Some(least_ns) = self.known.least_sched_latency_ns.filter(|_| !self.remote) else {
            return 0;
        };
        let Marks { switch_in, response, .. } = self.marks;
        let way_ns = match (self.known.scheduling_ns, switch_in) {
            (Some(_), _) => percent_of(self.tuning.way_out_percent, least_ns),
            (None, Some(switch_in)) => least_ns.saturating_sub(response.since(switch_in).0),
            (None, None) => 0,
        };
        way_ns.min(self.tuning.return_path_ns)
    }

    /// How long the tracer had the CPU between two marks, nanoseconds; 0 where one of them is not seen.
    pub(super) fn traced_ns(&self, from: Option<MonoNs>, to: Option<MonoNs>) -> u64 {
        let Some((from, to)) = from.zip(to) else { return 0 };
        let between = self.events().filter(|event| event.at > from && event.at <= to);
        let lengths = between.map(|event| match event.what {
            What::Tracer(length_ns) => length_ns.min(event.at.since(from).0),
            _ => 0,
        });
        lengths.fold(0, u64::saturating_add)
    }

    /// Where events begin to count. Of a remote stimulus only after the interrupt, which was on another
    /// CPU.
    pub(super) fn counted_from(&self) -> u64 {
        match (self.remote, self.marks.irq_exit) {
            (true, Some(exit)) => exit.0,
            _ => self.marks.due.0,
        }
    }

    /// The events that count; of the readings before, the last.
    pub(super) fn counted_events(&self) -> impl Iterator<Item = &'a Event> + use<'a> {
        let (from, response) = (self.counted_from(), self.marks.response.0);
        let events = &self.wakeup.events;
        let reading = |event: &&Event| matches!(event.what, What::Steal(_)) && event.at.0 < from;
        let last = events.iter().rfind(reading);
        let rest = events.iter().filter(move |event| event.at.0 >= from && event.at.0 <= response);
        last.into_iter().chain(rest)
    }

    fn switched_in(&self) -> Option<MonoNs> {
        let last = self.events().rev().find(|event| matches!(event.what, What::Switch { .. }))?;
        matches!(&last.what, What::Switch { to, .. } if self.is_own(to)).then_some(last.at)
    }

    /// The last time that the scheduler was entered before the task was switched to, unless it
    /// picked another one then.
    fn scheduler_entered(&self) -> Option<MonoNs> {
        let end = self.marks.switch_in?;
        let last = self.events().rev().filter(|event| event.at <= end).find(|event| {
            let elsewhere = matches!(&event.what, What::Switch { to, .. } if !self.is_own(to));
            elsewhere || event.what == What::SchedEntry
        })?;
        (last.what == What::SchedEntry).then_some(last.at)
    }

    /// A scheduler that chose a less urgent task did not know of the wakeup yet. If it chose another, an
    /// interrupt that comes later may be for something else.
    fn asked_to_reschedule(&self) -> Option<MonoNs> {
        let from = self.marks.irq_entry.unwrap_or(self.marks.due);
        // Once the task was moved, another CPU's interrupt is for something else.
        let here = self.events().take_while(|event| !matches!(event.what, What::Moved { .. }));
        let mut events = here.filter(|event| event.at >= from);
        let asked_or_not = events.find_map(|event| match &event.what {
            What::IrqEntry(interrupt) if is_from_a_cpu(interrupt) => Some(Some(event.at)),
            What::Switch { to, .. } if !self.own.comes_before(to) && !to.is_idle() => Some(None),
            _ => None,
        });
        asked_or_not.flatten()
    }

    /// Whether the CPU had to be asked: not for a task that who ran there did not have to make way for. Among
    /// ordinary tasks nobody knows.
    pub(super) fn had_to_be_asked(&self) -> bool {
        self.first_to_run().is_some_and(|runs| self.comes_before(runs))
    }

    /// Whether the task comes before who runs, as far as it is known.
    pub(super) fn comes_before(&self, runs: &Task) -> bool {
        runs.is_idle() || (runs.is_known() && self.task().comes_before(runs))
    }

    /// Whether the CPU took another interrupt before the one that asked it to reschedule: that was not on its way
    /// yet. (Simulated: 4.7 ms in which real-time tasks were throttled.)
    pub(super) fn was_asked_late(&self) -> bool {
        let from = self.marks.irq_exit.filter(|_| self.remote).unwrap_or(self.marks.due);
        let until = self.asked.unwrap_or(self.marks.response);
        let mut events = self.events().filter(|event| event.at > from && event.at < until);
        events.any(|event| matches!(event.what, What::IrqExit(_)))
    }

    /// The exit of the interrupt that the wakeup is in at `irq_entry`, or from the beginning.
    fn first_exit(&self) -> Option<&'a Event> {
        let begin = self.marks.irq_entry.unwrap_or(self.marks.due);
        let mut nested = 0_u32;
        self.events().filter(|event| event.at >= begin).find(|event| {
            match event.what {
                // The interrupt's own entry has the time of its mark.
                What::IrqEntry(_) if event.at > begin => nested += 1,
                What::IrqExit(_) if nested == 0 => return true,
                What::IrqExit(_) => nested -= 1,
                _ => {}
            }
            false
        })
    }

    /// From the events of its entry or exit, which have the times of its marks. A waker's interrupt
    /// is the one that had begun when the wakeup was due.
    fn interrupt_name(&self) -> Option<String> {
        let usual = match self.wakeup.woken_by {
            WokenBy::Timer { .. } | WokenBy::Awake => Some(TIMER_INTERRUPT),
            WokenBy::Waker { .. } | WokenBy::Unknown => None,
        };
        // Of a remote one there are no events: they are of the CPU that was watched.
        let seen = if self.remote { None } else { self.entry_event().or(self.exit_event()) };
        // An end whose beginning was lost has no name.
        let name = seen.and_then(|event| interrupt_of(&event.what)).filter(|name| !name.is_empty());
        name.or(usual).map(str::to_owned)
    }

    fn entry_event(&self) -> Option<&'a Event> {
        let events = self.wakeup.events.iter();
        match self.marks.irq_entry {
            Some(entry) => {
                let mut entries = events.filter(|e| matches!(e.what, What::IrqEntry(_)));
                entries.find(|event| event.at == entry)
            }
            None => {
                let mut before = events.filter(|event| event.at <= self.marks.due);
                let last = before.rfind(|event| interrupt_of(&event.what).is_some());
                last.filter(|event| matches!(event.what, What::IrqEntry(_)))
            }
        }
    }

    fn exit_event(&self) -> Option<&'a Event> {
        self.first_exit().filter(|event| Some(event.at) == self.marks.irq_exit)
    }
}

fn switched_from(event: &Event) -> Option<(MonoNs, &Task)> {
    match &event.what {
        What::Switch { from, .. } => Some((event.at, from)),
        _ => None,
    }
}

fn interrupt_of(what: &What) -> Option<&str> {
    match what {
        What::IrqEntry(Interrupt(name)) | What::IrqExit(Interrupt(name)) => Some(name),
        _ => None,
    }
}

/// Whether this is an interrupt with which one CPU calls another.
pub(super) fn is_from_a_cpu(interrupt: &Interrupt) -> bool {
    let name = interrupt.0.as_str();
    name == "reschedule"
        || name.starts_with("call_function")
        || name.starts_with("IPI")
        || name.starts_with("Rescheduling")
}

fn is_remote(wakeup: &Wakeup) -> bool {
    match wakeup.woken_by {
        WokenBy::Timer { on } | WokenBy::Waker { on, .. } => on != wakeup.first_cpu(),
        WokenBy::Awake | WokenBy::Unknown => false,
    }
}

fn earliest(a: Option<MonoNs>, b: Option<MonoNs>) -> Option<MonoNs> {
    a.into_iter().chain(b).min()
}
