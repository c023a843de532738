//! What lies beneath interrupts and softirqs, from mark to mark and from switch to switch.

use super::super::case::{Opening, is_from_a_cpu};
use super::super::rules::{self, Split};
use super::{Ground, Sweep, Turn};
use crate::rule::Rule;
use wakescope_core::explain::{Context, Event, Mode, Task, What, WokenBy};

impl<'a> Sweep<'_, 'a> {
    fn open(&mut self) {
        match self.case.opening {
            Opening::Wait => self.wait(),
            Opening::Interrupt => self.enter(Ground::Handler, rules::handler(self.case)),
            Opening::Interrupted => self.resume(),
            Opening::Waker => self.continue_waker(),
            Opening::Remote => self.await_call(),
            Opening::Awake => {
                let runs = self.case.first_to_run().unwrap_or(&self.case.wakeup.task);
                self.runs = Some(runs.clone());
                self.wait();
            }
            Opening::Unseen => self.enter(Ground::Unseen, Split::unexplained(Rule::Unseen)),
        }
    }

    /// For the interrupt; but first for the task to go to sleep, if it had not when it was due.
    fn wait(&mut self) {
        let split = match self.case.asleep {
            Some(asleep) if self.done_to < asleep.0 => {
                let runs = self.runs.clone().or_else(|| self.case.first_to_run().cloned());
                rules::not_asleep(self.case, &runs.unwrap_or_default())
            }
            _ => rules::waiting(self.case),
        };
        self.enter(Ground::Wait, split);
    }

    fn enter(&mut self, ground: Ground, split: Split) {
        let by_marks =
            matches!(ground, Ground::Wait | Ground::Handler | Ground::Scheduler | Ground::Own);
        self.ground_split = match self.case.known_switches {
            _ if by_marks || !self.case.doubtful => split,
            Some(known) if self.done_to >= known.from.0 => {
                rules::beside_lost_interrupts(&split, known.interrupts_ns)
            }
            _ => Split::unexplained(Rule::LostEvents),
        };
        self.ground = ground;
        self.stretch += 1;
    }

    /// What was interrupted goes on.
    pub(super) fn resume(&mut self) {
        let context = self.context_now();
        let said = context.as_ref().map(|c| c.task.clone()).filter(Task::is_known);
        let contradicted =
            self.runs.as_ref().zip(said.as_ref()).is_some_and(|(a, b)| a.pid != b.pid);
        if self.confused || contradicted {
            return self.enter(Ground::Unseen, Split::unexplained(Rule::Contradiction));
        }
        self.runs = said.or(self.runs.take());
        let own = self.runs.as_ref().filter(|runs| self.case.is_own(runs));
        let is_awake = self.case.asleep.is_some_and(|asleep| self.done_to < asleep.0);
        if let Some(own) = own.filter(|_| is_awake) {
            let split = rules::not_asleep(self.case, own);
            return self.enter(Ground::Interrupted, split);
        }
        let softirq = context.as_ref().and_then(|c| c.softirq).filter(|&n| self.softirq_ends(n));
        self.enter(
            Ground::Interrupted,
            rules::interrupted(self.case, context.as_ref(), softirq.is_some()),
        );
        if let Some(number) = softirq {
            if !self.nesting.is_in_softirq(number) {
                self.nesting.open(What::SoftirqEntry(number));
            }
        }
    }

    /// What is known of what runs when the interrupt is over. The context of a remote stimulus may
    /// be the other CPU's: it counts where it names the task that ran here. So it is with one that a thread woke.
    fn context_now(&self) -> Option<Context> {
        let context = self.case.context();
        let runs = self.runs.clone().or_else(|| self.first_switched_from());
        match runs {
            Some(runs) if context.is_none_or(|context| !self.is_of_here(context, &runs)) => {
                let mode = if runs.is_idle() { Mode::Idle(String::new()) } else { Mode::Unknown };
                Some(Context { task: runs, mode, ..Context::default() })
            }
            _ => context.cloned(),
        }
    }

    /// Whether this is the context of the CPU that is watched, where this task runs. Every CPU has an idle task
    /// of the same number. (Simulated: 63 us of an idle CPU, blamed on a softirq of the CPU whose timer it was.)
    fn is_of_here(&self, context: &Context, runs: &Task) -> bool {
        let is_same = context.task.pid == runs.pid;
        let is_from_afar = matches!(context.mode, Mode::Idle(_)) && !context.task.is_known();
        let is_elsewhere =
            self.case.remote || self.has_moved || self.case.woken_in_thread.is_some();
        !is_elsewhere || (is_same && (!runs.is_idle() || is_from_afar))
    }

    /// Who ran until the first switch from here on.
    fn first_switched_from(&self) -> Option<Task> {
        self.remaining_events().find_map(|event| match &event.what {
            What::Switch { from, .. } => Some(from.clone()),
            _ => None,
        })
    }

    /// Events from here on. Several may have the same time.
    pub(super) fn remaining_events(&self) -> impl Iterator<Item = &'a Event> + use<'a> {
        let (now, response) = (self.done_to, self.case.marks.response);
        let events = self.case.wakeup.events[self.next_event..].iter();
        events.filter(move |event| event.at.0 >= now && event.at <= response)
    }

    /// Whether a softirq that was interrupted is seen to end, rather than to begin, and in the task that
    /// runs. (Where softirqs can be preempted, the programs tell of one until it ends, whoever runs.)
    fn softirq_ends(&self, number: u8) -> bool {
        let here = self.runs.as_ref().map(|task| task.pid);
        let mut runs = here;
        for event in self.remaining_events() {
            match &event.what {
                What::Switch { to, .. } => runs = Some(to.pid),
                What::SoftirqEntry(n) if *n == number => return false,
                What::SoftirqExit(n) if *n == number => return runs == here,
                // It went on until the task left its CPU.
                What::Moved { .. } => return runs == here,
                _ => {}
            }
        }
        false
    }

    fn continue_waker(&mut self) {
        let WokenBy::Waker { task, .. } = &self.case.wakeup.woken_by else {
            return self.resume();
        };
        // A softirq that it is in ends, and what it broke into goes on. (Simulated: 226 us of that, blamed on the
        // softirq's code.)
        let context = self.case.context().filter(|context| context.task.pid == task.pid);
        if context.is_some_and(|context| context.softirq.is_some()) {
            return self.resume();
        }
        if self.runs.as_ref().is_some_and(|runs| runs.pid != task.pid) {
            return self.enter(Ground::Unseen, Split::unexplained(Rule::Contradiction));
        }
        self.runs = Some(task.clone());
        self.enter(Ground::Interrupted, rules::waker(self.case, task));
    }

    /// Until another CPU's interrupt comes, if it is seen to come and had to. No CPU is called for a task that it
    /// holds back. (Simulated: 880 us of real-time throttling, blamed on the call that ended it.)
    fn await_call(&mut self) {
        match self.case.asked {
            Some(asked)
                if asked.0 >= self.done_to
                    && self.case.had_to_be_asked()
                    && !self.case.throttled =>
            {
                let split = match self.case.was_asked_late() {
                    true => Split::unexplained(Rule::AskedLate),
                    false => rules::remote(self.case),
                };
                self.enter(Ground::Remote, split);
            }
            _ => self.resume(),
        }
    }

    /// The task has been moved to a CPU that runs what has to make way. No scheduler has chosen that before the task:
    /// the CPU is still to be asked to reschedule. (6.18, FIFO 50 pushed away by FIFO 80: 22 of 138 such waits were
    /// called throttled.)
    fn arrive(&mut self) {
        let stays = |what: &What| !matches!(what, What::Switch { .. } | What::Moved { .. });
        let here: Vec<&What> = self
            .remaining_events()
            .map(|event| &event.what)
            .take_while(|what| stays(what))
            .collect();
        let is_call = |what: &&What| matches!(what, What::IrqEntry(by) if is_from_a_cpu(by));
        let call = here.iter().position(is_call).filter(|_| !self.case.throttled);
        // As where a call is awaited that another interrupt came before: it was not on its way yet.
        let is_late = |at: usize| here[..at].iter().any(|what| matches!(what, What::IrqExit(_)));
        match call.map(is_late) {
            Some(true) => self.enter(Ground::Remote, Split::unexplained(Rule::AskedLate)),
            Some(false) => self.enter(Ground::Remote, rules::called_after_move(self.case)),
            None => self.resume(),
        }
    }

    /// Whether the switch that is at hand stands for a move of the task.
    fn has_just_come(&self) -> bool {
        let before = self.next_event.checked_sub(2);
        before.is_some_and(|at| matches!(self.case.wakeup.events[at].what, What::Moved { .. }))
    }

    pub(super) fn turn(&mut self, turn: Turn) {
        match turn {
            Turn::Due => self.open(),
            Turn::Taken => {
                if let Some(name) = self.case.interrupt.as_ref().filter(|_| !self.case.remote) {
                    self.nesting.adopt_interrupt(name);
                }
                match self.case.marks.irq_exit {
                    Some(_) => self.enter(Ground::Handler, rules::handler(self.case)),
                    // Nobody knows where it ended.
                    None => self.enter(Ground::Unseen, Split::unexplained(Rule::Unseen)),
                }
            }
            Turn::Returned => {
                if self.case.remote {
                    return self.await_call();
                }
                self.drop_interrupts();
                self.resume();
            }
            Turn::Scheduler => {
                self.leave_contexts();
                self.enter(Ground::Scheduler, rules::scheduler(self.case));
            }
            Turn::Switched => {
                self.leave_contexts();
                self.runs = Some(self.case.task().clone());
                self.has_run = true;
                self.enter(Ground::Own, rules::own(self.case));
            }
        }
    }

    /// The scheduler, which is about to switch to another task than the one that wakes. (Simulated: 15 us
    /// of it blamed on a more urgent task that had gone to sleep.)
    pub(super) fn scheduler_begins(&mut self) {
        let is_known = matches!(self.ground, Ground::Interrupted | Ground::Running);
        if is_known && self.switches_next() {
            self.enter(Ground::Running, rules::switching_to_another());
        }
    }

    /// Whether a switch comes before the CPU is at anything else: the scheduler may find no other task.
    fn switches_next(&self) -> bool {
        let goes_on = |event: &&Event| match event.what {
            What::Switch { .. } => false,
            What::Steal(_) | What::Nmi(..) | What::Tracer(_) | What::Deboost(_) => true,
            What::ContentionBegin | What::ContentionEnd => true,
            _ => event.at.0 <= self.done_to,
        };
        let next = self.remaining_events().find(|event| !goes_on(event));
        next.is_some_and(|event| matches!(event.what, What::Switch { .. }))
    }

    pub(super) fn switch(&mut self, from: &Task, to: &Task) {
        let already = |runs: &Task| runs.pid == to.pid;
        if self.has_run && self.case.is_own(to) && self.runs.as_ref().is_some_and(already) {
            // The event of the switch that the mark has told of.
            return;
        }
        if self.runs.as_ref().is_some_and(|runs| runs.pid != from.pid) {
            self.refute_stretch();
        }
        self.suspend(from.pid);
        let resumed = self.suspended.remove(&to.pid).unwrap_or_default();
        self.nesting.restore(resumed);
        self.contended = false;
        self.runs = Some(to.clone());
        match self.ground {
            Ground::Wait if self.case.asleep.is_some() => self.wait(),
            Ground::Wait => {}
            // No CPU is switched in the middle of an interrupt.
            Ground::Handler => self.confused |= !self.case.remote,
            _ if self.has_just_come() && !to.is_known() => {
                self.enter(Ground::Unseen, Split::unexplained(Rule::Unseen));
            }
            _ if self.has_just_come() && self.case.comes_before(to) => self.arrive(),
            Ground::Remote if !self.has_moved && !to.comes_before(self.case.task()) => {}
            _ if self.case.is_own(to) && self.has_run => {
                self.enter(Ground::Running, rules::own(self.case));
            }
            _ if self.case.is_own(to) => {
                self.enter(Ground::Running, rules::own_too_early(self.case))
            }
            _ if self.has_run => {
                self.enter(Ground::Running, rules::running_instead(self.case, to));
            }
            _ => {
                let asked = !self.case.remote
                    || self.has_moved
                    || self.case.asked.is_some_and(|asked| asked.0 <= self.done_to);
                self.enter(Ground::Running, rules::running(self.case, to, asked));
            }
        }
    }
}
