//! A wakeup in the making, as the tracer's programs keep it.

use wakescope_core::explain::{KnownSwitches, Marks, Mode};
use wakescope_core::units::MonoNs;
use wakescope_decode::{
    GivenUpAt, Interrupted, KernelTask, KernelWakeup, Part, WakeupSource, joined,
};
use wakescope_model::image::BudgetId;

use super::cpu::{Before, Cpu, Recorded, RunTimes, Throttle};

/// Events that are searched for the last reading of the clock of stolen time before it was due.
const STEAL_LOOK_BACK: usize = 8;

/// Parts of one wakeup at most.
const MOST_PARTS: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// None goes on.
    #[default]
    Idle,
    /// Until the task is switched to.
    Woken,
    /// Until its answer is seen.
    Running,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Begun {
    pub(super) state: State,
    pub(super) source: WakeupSource,
    /// When the timer is due that is set, or was.
    pub(super) expiry: u64,
    /// When the probe was due and has answered, the last time.
    pub(super) answer: Option<(u64, u64)>,
    /// The task's own priority.
    pub(super) normal_prio: i32,
    /// Where it waits.
    pub(super) cpu: usize,
    pub(super) stimulus_cpu: usize,
    pub(super) woken: u64,
    pub(super) marks: Marks,
    pub(super) softirq: Option<u8>,
    pub(super) idle_state: Option<u32>,
    pub(super) interrupted: Option<Interrupted>,
    /// Who gave up the CPU, and whether it had to.
    pub(super) given_up: Option<(GivenUpAt, bool)>,
    /// When interrupts were off last before it began, if the kernel shows that.
    pub(super) irqs_off: Option<(MonoNs, MonoNs)>,
    /// Whether real-time tasks were throttled when it began.
    pub(super) throttled: bool,
    pub(super) before: Before,
    /// Page faults of the task, from the start, and when it was switched to.
    pub(super) faults: u64,
    pub(super) faults_before: u64,
    pub(super) events_elsewhere: usize,
    /// What was handed over of it at the last moves.
    pub(super) parts: Vec<Part>,
    /// When it was moved while it waited, and what the clock of stolen time of its CPU read then.
    pub(super) moved_at: Option<MonoNs>,
    pub(super) moved_steal: u64,
    /// The softirq that its CPU was in then.
    pub(super) moved_softirq: Option<u8>,
    /// Who ran where it waits, if it was moved there, or its stimulus was elsewhere.
    pub(super) ran_there: Option<KernelTask>,
    /// How often the task had been preempted when it was woken.
    pub(super) preempted_before: u64,
    pub(super) steal_after: u64,
    pub(super) stolen: u64,
    pub(super) steal_read: u64,
    pub(super) steal_read_at: u64,
    /// The quota that may stop it where it waits, with how long that was used up there when the wait began.
    pub(super) queue: Option<Queue>,
    /// What quotas took.
    pub(super) quota: u64,
    /// How long each task had run when a thread of others began to wait for its CPU; not known after a move.
    pub(super) ran_before: Option<RunTimes>,
}

/// A wait where a quota may stop it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) of: BudgetId,
    since: u64,
    throttle: Throttle,
}

impl Begun {
    pub(super) fn look_again(&mut self, task: usize, stack: Vec<u64>) {
        let softirq = self.softirq;
        let Some(seen) = &mut self.interrupted else { return };
        let own = super::pid(Some(wakescope_model::image::TaskId(
            u16::try_from(task).unwrap_or(u16::MAX),
        )));
        let is_bare = (seen.task.pid == 0 || seen.task.pid == own) && softirq.is_none();
        if seen.stack.is_empty() && seen.mode != Mode::User && !is_bare {
            seen.stack = stack;
        }
    }

    pub(super) fn begin_stolen(&mut self, waits: &mut Cpu, now: u64) {
        let (mut reading, mut at, mut before) = (waits.steal_ns(), now, 0);
        if reading == 0 {
            return;
        }
        for back in 1..=STEAL_LOOK_BACK {
            let Some(event) = waits.last(back) else { break };
            if event.at.0 < self.expiry {
                before = event.steal_ns;
                break;
            }
            (reading, at) = (event.steal_ns, event.at.0);
        }
        (self.steal_read, self.steal_read_at) = (before, self.expiry);
        self.add_stolen(reading, at);
    }

    pub(super) fn add_stolen(&mut self, reading: u64, at: u64) {
        let (before, since) = (self.steal_read, self.steal_read_at);
        if before != 0 && reading > before && at > since {
            self.stolen += (reading - before).min(at - since);
        }
        (self.steal_read, self.steal_read_at) = (reading, at);
    }

    /// It goes on to wait where the clock reads that.
    pub(super) fn go_on_stolen(&mut self, reading: u64) {
        self.moved_steal = reading;
        self.steal_read = reading;
    }

    /// It waits on this CPU since then.
    pub(super) fn begin_quota(&mut self, quota: Option<BudgetId>, cpu: &Cpu, since: u64) {
        let queue = |of: BudgetId| Queue { of, since, throttle: cpu.throttle(of) };
        self.queue = quota.map(queue);
    }

    /// That wait is over.
    pub(super) fn end_quota(&mut self, cpu: &Cpu, now: u64) {
        let Some(Queue { of, since, throttle: before }) = self.queue.take() else { return };
        let taken = cpu.throttle(of).sum.saturating_sub(before.sum);
        let earlier = before.since.map_or(0, |used_up| since.saturating_sub(used_up));
        self.quota += taken.saturating_sub(earlier).min(now.saturating_sub(since));
    }

    /// The record of it that leaves the kernel, read again, with what left it before.
    pub(super) fn record(&mut self, task: KernelTask, cpu: &Cpu) -> KernelWakeup {
        let last = self.part(task, cpu);
        joined(&self.parts, last)
    }

    /// Its task is moved away from this CPU then, where it has waited. What was seen there leaves the kernel if it is
    /// so late already.
    pub(super) fn leave(&mut self, task: KernelTask, cpu: &Cpu, now: u64, worth_ns: u64) {
        self.steal_after = cpu.steal_ns();
        self.add_stolen(self.steal_after, now);
        self.ran_before = None;
        let late = now.saturating_sub(self.marks.due.0);
        if late >= worth_ns && self.parts.len() < MOST_PARTS {
            let marks = Marks { response: MonoNs(now), ..self.marks };
            let part = Self { marks, ..self.clone() }.part(task, cpu);
            self.parts.push(Part { goes_on: true, ..part });
            self.events_elsewhere = 0;
        } else {
            self.events_elsewhere += 1 + cpu.seen.saturating_sub(self.before.events);
        }
        self.moved_at = Some(MonoNs(now));
    }

    /// What was seen of it on this CPU, where it waits or has waited.
    fn part(&mut self, task: KernelTask, cpu: &Cpu) -> Part {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let Recorded { events, missing, known_switches } = cpu.recorded(self.before);
        let lost = missing + self.events_elsewhere;
        let begin = self.moved_at.unwrap_or(self.marks.due);
        let first_at = events.first().map(|event| event.at);
        let is_cut = cpu.is_full(events.len()) && lost == 0;
        let cut = first_at.filter(|&first_at| is_cut && first_at > begin);
        let known_switches = known_switches
            .map(|known| KnownSwitches { from: known.from.max(begin), ..known })
            .or_else(|| {
                let interrupts_ns = cpu.interrupts_since(self.before);
                (lost > 0).then_some(KnownSwitches { from: begin, interrupts_ns })
            })
            .or(cut.map(|from| KnownSwitches { from, interrupts_ns: 0 }));
        let late = self.marks.response.0.saturating_sub(self.marks.due.0);
        let wakeup = KernelWakeup {
            cpu: number(self.cpu),
            task,
            normal_prio: Some(self.normal_prio),
            stimulus: self.source,
            stimulus_cpu: number(self.stimulus_cpu),
            marks: self.marks,
            woken: MonoNs(self.woken),
            throttled: self.throttled,
            throttled_from: None,
            page_faults: self.faults - self.faults_before,
            stolen_ns: self.stolen.min(late),
            quota_ns: Some(self.quota),
            steal_after_ns: self.steal_after,
            softirq: self.softirq.map(u32::from),
            idle_state: self.idle_state,
            interrupted: self.interrupted.take(),
            ran_there: self.ran_there,
            given_up: self.given_up.take().map(|(given_up, _)| given_up),
            events,
            lost: number(lost).max(u32::from(cut.is_some())),
            known_switches,
            taken: cpu.taken_since(self.before),
            ran: self.ran_before.as_ref().map(|before| cpu.ran_since(before)).unwrap_or_default(),
            irqs_off: self.irqs_off,
        };
        Part {
            wakeup,
            goes_on: false,
            moved_at: self.moved_at,
            moved_steal_ns: self.moved_steal,
            moved_softirq: self.moved_softirq.map(u32::from),
            before: number(self.parts.len()),
            interrupts_ns: Some(cpu.interrupts_since(self.before)),
        }
    }
}
