//! A wakeup whose task was moved to other CPUs while it waited: what was seen on each, as if of one CPU.

use wakescope_core::explain::{KnownSwitches, Taken};
use wakescope_core::units::MonoNs;

use crate::events::going_on;
use crate::kernel::{
    KernelEvent, KernelRunTimes, KernelTask, KernelWakeup, Payload, Switch, SwitchedFrom,
};

/// What was seen of a wakeup on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The wakeup until its response, or until its task was moved away, which is its response then.
    pub wakeup: KernelWakeup,
    /// Whether its task was moved away, and waits on.
    pub goes_on: bool,
    /// When its task was moved to this CPU while it waited; `None` of the CPU that it waited for first.
    pub moved_at: Option<MonoNs>,
    /// What this CPU's clock of stolen time read then, nanoseconds; 0 if there is none.
    pub moved_steal_ns: u64,
    /// The softirq that this CPU was in then, by its number.
    pub moved_softirq: Option<u32>,
    /// How many parts came before this one.
    pub before: u32,
    /// How long interrupts, softirqs and NMIs took on this CPU meanwhile, nanoseconds; `None` if that is not known.
    pub interrupts_ns: Option<u64>,
}

impl Part {
    /// When the wait for this CPU began.
    fn begin(&self) -> MonoNs {
        self.moved_at.unwrap_or(self.wakeup.marks.due)
    }

    /// Whether `next` goes on where this one ends.
    fn goes_on_with(&self, next: &Part) -> bool {
        let of = |part: &Part| (part.wakeup.task.pid, part.wakeup.marks.due);
        self.goes_on
            && of(self) == of(next)
            && next.before == self.before + 1
            && next.moved_at == Some(self.wakeup.marks.response)
    }

    /// From when on every switch on this CPU is known.
    fn known_switches(&self) -> Option<KnownSwitches> {
        match self.wakeup.lost {
            0 => {
                self.interrupts_ns.map(|ns| KnownSwitches { from: self.begin(), interrupts_ns: ns })
            }
            _ => self.wakeup.known_switches,
        }
    }

    /// The events while the task waited for this CPU, and of the first one those of before. What had begun before
    /// the task came and went on then, begins with it.
    fn events(&self) -> Vec<KernelEvent> {
        let end = self.wakeup.marks.response;
        let until_end = self.wakeup.events.iter().filter(|event| !self.goes_on || event.at <= end);
        let until_end = until_end.filter(|event| !self.is_of_before_it_came(event));
        let Some(moved_at) = self.moved_at else { return until_end.copied().collect() };
        let (before, during): (Vec<&KernelEvent>, Vec<&KernelEvent>) =
            until_end.partition(|event| event.at < moved_at);
        // Softirqs are written down only while somebody waits for their CPU.
        let is_softirq = |event: &&KernelEvent| matches!(event.payload, Payload::SoftirqEntry(_));
        let begun = going_on(before.into_iter()).into_iter().filter(|event| !is_softirq(event));
        let begun = begun.map(|event| KernelEvent { at: moved_at, steal_ns: 0, ..*event });
        let softirq = self.moved_softirq.filter(|&number| ends_next(number, &during));
        let payload = softirq.map(Payload::SoftirqEntry);
        let softirq = payload.map(|payload| KernelEvent { at: moved_at, steal_ns: 0, payload });
        begun.chain(softirq).chain(during.into_iter().copied()).collect()
    }

    /// Whether this is a switch between the time when the wakeup was due and that when it came here from another CPU.
    /// Such switches are recorded only while something else waits here, and the last of them need not have been the
    /// last. (Simulated: 137 us in which the CPU was idle, blamed on a task that had gone to sleep.)
    fn is_of_before_it_came(&self, event: &KernelEvent) -> bool {
        let KernelWakeup { marks, woken, stimulus_cpu, cpu, .. } = &self.wakeup;
        let is_first = self.moved_at.is_none() && stimulus_cpu != cpu;
        is_first
            && matches!(event.payload, Payload::Switch(_))
            && (marks.due..*woken).contains(&event.at)
    }

    /// Whether this CPU held real-time tasks back, or one before did.
    fn is_throttled(&self) -> bool {
        let begin = self.begin().max(self.wakeup.woken);
        let events = self.events();
        let mut during = events.iter().filter(|event| event.at >= begin);
        let says_so = |payload| matches!(payload, Payload::Switch(switch) if switch.throttled);
        self.wakeup.throttled || during.any(|event| says_so(event.payload))
    }

    /// The wakeup alone, of which the parts before are missing.
    fn alone(self) -> KernelWakeup {
        if self.before == 0 && self.moved_at.is_none() {
            return KernelWakeup { events: self.events(), ..self.wakeup };
        }
        let (events, known_switches) = (self.events(), self.known_switches());
        let lost = self.wakeup.lost.max(1);
        KernelWakeup { events, lost, known_switches, ..self.wakeup }
    }
}

/// The wakeup that ends with `last`. `before` are the parts before it, in order; where these are not all that
/// there were, what they would tell is missing.
///
/// To whoever waits, to be moved is as if the CPU were switched: from who ran on the one to who runs on the other.
pub fn joined(before: &[Part], last: Part) -> KernelWakeup {
    let mut all: Vec<&Part> = before.iter().chain([&last]).collect();
    let is_whole = all[0].before == 0 && all.windows(2).all(|pair| pair[0].goes_on_with(pair[1]));
    if all.len() == 1 || !is_whole {
        return last.alone();
    }
    let throttled = all.iter().position(|part| part.is_throttled());
    let throttled_from = throttled.filter(|&number| number > 0).map(|number| all[number].begin());
    let first = all.remove(0);
    let mut course = Course::of(first);
    for part in all {
        course.go_on(part);
    }
    let Course { events, lost, known, steal, .. } = course;
    let wakeups = before.iter().map(|part| &part.wakeup).chain([&last.wakeup]);
    let mut interrupted = wakeups.clone().filter_map(|wakeup| wakeup.interrupted.as_ref());
    let with_stack = interrupted.clone().find(|interrupted| !interrupted.stack.is_empty());
    let interrupted = with_stack.or_else(|| interrupted.next_back()).cloned();
    let mut marks = last.wakeup.marks;
    // A CPU that had entered the scheduler before the task came has picked it all the same.
    marks.sched_entry = marks.sched_entry.map(|entry| entry.max(last.begin()));
    KernelWakeup {
        marks,
        events,
        lost,
        known_switches: known.filter(|_| lost > 0),
        // What is known of the last CPU would be the whole wait's.
        ran: KernelRunTimes::default(),
        taken: wakeups
            .fold(Taken::default(), |all, wakeup| all.with(wakeup.taken, u64::saturating_add)),
        interrupted,
        ran_there: first.wakeup.ran_there,
        softirq: first.wakeup.softirq,
        steal_after_ns: steal.last_ns,
        throttled_from,
        ..last.wakeup.clone()
    }
}

/// What the CPUs went through that the task waited for, one after the other.
struct Course {
    events: Vec<KernelEvent>,
    lost: u32,
    known: Option<KnownSwitches>,
    steal: Steal,
    /// The CPU that it has come to, and who runs there.
    cpu: u32,
    runs: SwitchedFrom,
}

impl Course {
    fn of(first: &Part) -> Self {
        let mut course = Self {
            events: Vec::new(),
            lost: 0,
            known: Some(KnownSwitches { from: first.begin(), interrupts_ns: 0 }),
            steal: Steal::default(),
            cpu: first.wakeup.cpu,
            runs: runs_first(first),
        };
        course.add(first);
        course
    }

    /// Goes on with `part`, on another CPU.
    fn go_on(&mut self, part: &Part) {
        let there = part.wakeup.ran_there.unwrap_or_default();
        let moved = Payload::Moved { from: self.cpu, to: part.wakeup.cpu };
        let switch = Switch { prev: self.runs, next: there, throttled: false };
        let steal_ns = self.steal.last_ns;
        let payloads = [moved, Payload::Switch(switch)];
        let at = part.begin();
        self.events.extend(payloads.map(|payload| KernelEvent { at, steal_ns, payload }));
        self.steal.move_to(part.moved_steal_ns);
        (self.cpu, self.runs) = (part.wakeup.cpu, left(&there));
        self.add(part);
    }

    fn add(&mut self, part: &Part) {
        self.lost = self.lost.saturating_add(part.wakeup.lost);
        self.known = match (self.known, part.known_switches()) {
            (Some(before), Some(here)) if part.wakeup.lost == 0 => Some(KnownSwitches {
                interrupts_ns: before.interrupts_ns.saturating_add(here.interrupts_ns),
                ..before
            }),
            (_, here) => here,
        };
        for event in part.events() {
            // What was switched to before the task came has been switched from.
            if let Payload::Switch(switch) = event.payload {
                if event.at >= part.begin() {
                    self.runs = left(&switch.next);
                }
            }
            let steal_ns = self.steal.read(event.steal_ns);
            self.events.push(KernelEvent { steal_ns, ..event });
        }
        self.steal.read(part.wakeup.steal_after_ns);
    }
}

/// Clocks of stolen time, of which each CPU has its own, as one that goes on.
#[derive(Default)]
struct Steal {
    /// The last reading, as of the first CPU's clock; 0 for none.
    last_ns: u64,
    /// What the clock of this CPU is behind that one.
    behind_ns: u64,
    /// Whether a CPU had no clock, so that nothing is known any more.
    stopped: bool,
}

impl Steal {
    /// A reading of this CPU's clock; 0 for none.
    fn read(&mut self, reading_ns: u64) -> u64 {
        if reading_ns == 0 || self.stopped {
            return 0;
        }
        let continued = reading_ns.wrapping_add(self.behind_ns);
        self.last_ns = continued;
        continued
    }

    /// To a CPU whose clock reads that.
    fn move_to(&mut self, reading_ns: u64) {
        self.stopped |= reading_ns == 0 || self.last_ns == 0;
        self.behind_ns = self.last_ns.wrapping_sub(reading_ns);
        if self.stopped {
            self.last_ns = 0;
        }
    }
}

/// Whether the first that is seen of this softirq is its end.
fn ends_next(number: u32, events: &[&KernelEvent]) -> bool {
    let first = events.iter().find_map(|event| match event.payload {
        Payload::SoftirqEntry(of) if of == number => Some(false),
        Payload::SoftirqExit { number: of, .. } if of == number => Some(true),
        _ => None,
    });
    first == Some(true)
}

/// Who ran on the CPU when the wait for it began.
fn runs_first(part: &Part) -> SwitchedFrom {
    let wakeup = &part.wakeup;
    let events = part.events();
    let mut during = events.iter().filter(|event| event.at >= part.begin());
    let switched = during.find_map(|event| match event.payload {
        Payload::Switch(switch) => Some(switch.prev),
        _ => None,
    });
    let is_here = part.moved_at.is_none() && wakeup.stimulus_cpu == wakeup.cpu;
    let interrupted = wakeup.interrupted.as_ref().filter(|_| is_here);
    let seen = interrupted.map(|interrupted| interrupted.task).or(wakeup.ran_there);
    switched.unwrap_or_else(|| left(&seen.unwrap_or_default()))
}

fn left(task: &KernelTask) -> SwitchedFrom {
    SwitchedFrom { pid: task.pid, prio: task.prio, policy: task.policy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Interrupted, Irq, Vector, WakeupSource};
    use wakescope_core::explain::{Marks, Mode};

    const DUE: u64 = 10_000;
    const MOVED: u64 = 14_000;
    const TIMER: Irq = Irq::Vector(Vector::LocalTimer);

    fn task(pid: u32) -> KernelTask {
        KernelTask { pid, prio: 120, ..KernelTask::default() }
    }

    fn event(at: u64, steal_ns: u64, payload: Payload) -> KernelEvent {
        KernelEvent { at: MonoNs(at), steal_ns, payload }
    }

    fn switch(from: u32, to: u32) -> Payload {
        Payload::Switch(Switch { prev: left(&task(from)), next: task(to), throttled: false })
    }

    fn entry() -> Payload {
        Payload::IrqEntry { irq: TIMER, name: [0; 16] }
    }

    /// Of thread 7, which waits for CPU 0 behind thread 20.
    fn first() -> Part {
        let marks = Marks { due: MonoNs(DUE), response: MonoNs(MOVED), ..Marks::default() };
        let interrupted =
            Interrupted { task: task(20), mode: Mode::User, ..Interrupted::default() };
        Part {
            wakeup: KernelWakeup {
                task: task(7),
                stimulus: WakeupSource::Timer,
                marks,
                softirq: Some(3),
                interrupted: Some(interrupted),
                steal_after_ns: 500,
                // Who ran before it was due, and what the CPU went on to after it was left.
                events: vec![
                    event(9_000, 300, switch(20, 19)),
                    event(9_500, 300, switch(19, 20)),
                    event(10_100, 400, entry()),
                    event(MOVED + 1, 700, Payload::IrqExit(TIMER)),
                ],
                ..KernelWakeup::default()
            },
            goes_on: true,
            interrupts_ns: Some(11),
            ..Part::default()
        }
    }

    /// The rest of it, on CPU 1, where thread 30 ran.
    fn last() -> Part {
        let marks = Marks {
            sched_entry: Some(MonoNs(13_900)),
            switch_in: Some(MonoNs(17_000)),
            response: MonoNs(17_500),
            ..first().wakeup.marks
        };
        Part {
            wakeup: KernelWakeup {
                cpu: 1,
                marks,
                softirq: None,
                ran_there: Some(task(30)),
                steal_after_ns: 90_050,
                events: vec![
                    event(13_000, 90_000, switch(31, 30)),
                    event(13_500, 90_000, entry()),
                    event(13_600, 90_000, Payload::SoftirqEntry(2)),
                    event(14_500, 90_020, Payload::SoftirqExit { number: 1, pending: false }),
                    event(14_600, 0, Payload::IrqExit(TIMER)),
                    event(17_000, 90_050, switch(30, 7)),
                ],
                ..first().wakeup
            },
            goes_on: false,
            moved_at: Some(MonoNs(MOVED)),
            moved_steal_ns: 90_010,
            moved_softirq: Some(1),
            before: 1,
            interrupts_ns: Some(22),
        }
    }

    fn of(wakeup: &KernelWakeup) -> Vec<(u64, u64, Payload)> {
        wakeup.events.iter().map(|event| (event.at.0, event.steal_ns, event.payload)).collect()
    }

    #[test]
    fn a_move_is_as_if_the_cpu_were_switched() {
        let joined = joined(&[first()], last());
        let want = [
            (9_000, 300, switch(20, 19)),
            (9_500, 300, switch(19, 20)),
            (10_100, 400, entry()),
            (MOVED, 500, Payload::Moved { from: 0, to: 1 }),
            (MOVED, 500, switch(20, 30)),
            // What goes on where it came: of softirqs what the CPU says, not what was not seen to end.
            (MOVED, 0, entry()),
            (MOVED, 0, Payload::SoftirqEntry(1)),
            // The clock of the second CPU read 90,010 when that of the first read 500.
            (14_500, 510, Payload::SoftirqExit { number: 1, pending: false }),
            (14_600, 0, Payload::IrqExit(TIMER)),
            (17_000, 540, switch(30, 7)),
        ];
        assert_eq!(of(&joined), want);
        assert_eq!((joined.cpu, joined.first_cpu()), (1, 0));
        assert_eq!((joined.lost, joined.known_switches, joined.softirq), (0, None, Some(3)));
        assert_eq!((joined.steal_after_ns, joined.ran_there), (540, None));
        // The scheduler of the second CPU was entered before the task came.
        let marks = Marks { sched_entry: Some(MonoNs(MOVED)), ..last().wakeup.marks };
        assert_eq!(joined.marks, marks);
    }

    /// Throttling on the second CPU was once that of the whole wait.
    #[test]
    fn a_cpu_is_throttled_from_when_the_task_came_to_it() {
        let throttled = |part: Part| {
            let wakeup = KernelWakeup { throttled: true, ..part.wakeup };
            Part { wakeup, ..part }
        };
        let switched = |mut part: Part, at| {
            let to_another = Switch { prev: left(&task(20)), next: task(21), throttled: true };
            part.wakeup.events.push(event(at, 0, Payload::Switch(to_another)));
            part.wakeup.events.sort_by_key(|event| event.at);
            part
        };
        let from = |first, last| joined(&[first], last).throttled_from.map(|at| at.0);
        assert_eq!(from(first(), last()), None);
        assert_eq!(from(first(), throttled(last())), Some(MOVED));
        assert_eq!(from(first(), switched(last(), MOVED + 100)), Some(MOVED));
        assert_eq!(from(throttled(first()), throttled(last())), None);
        assert_eq!(from(switched(first(), DUE + 500), last()), None);
        // Before it was due, or came, or after it had left.
        assert_eq!(from(switched(first(), DUE - 500), throttled(last())), Some(MOVED));
        assert_eq!(from(switched(first(), MOVED + 500), throttled(last())), Some(MOVED));
        assert_eq!(from(first(), switched(last(), MOVED - 500)), None);
    }

    #[test]
    fn who_ran_when_it_was_moved_is_who_was_switched_to_last() {
        let with = |events: Vec<KernelEvent>, interrupted, ran_there| {
            let wakeup = KernelWakeup { events, interrupted, ran_there, ..first().wakeup };
            let joined = joined(&[Part { wakeup, ..first() }], last());
            let at = |payload: &Payload| matches!(payload, Payload::Moved { .. });
            let at = joined.events.iter().position(|event| at(&event.payload)).unwrap();
            match joined.events[at + 1].payload {
                Payload::Switch(switch) => switch.prev.pid,
                other => panic!("{other:?}"),
            }
        };
        let interrupted = || first().wakeup.interrupted;
        let before = || event(9_000, 0, switch(1, 2));
        assert_eq!(with(vec![before()], interrupted(), None), 20);
        assert_eq!(with(vec![before()], None, Some(task(21))), 21);
        assert_eq!(with(vec![before(), event(12_000, 0, switch(20, 22))], interrupted(), None), 22);
        // Idle is nobody.
        assert_eq!(with(vec![before()], None, None), 0);
    }

    /// Switches on a CPU are recorded while somebody waits there: before the task came from another CPU that was
    /// somebody else, whose wait may have ended since.
    #[test]
    fn who_ran_before_the_task_came_is_not_who_ran_when_it_came() {
        let runs_then = |stimulus_cpu, switched_at| {
            let events = vec![event(switched_at, 0, switch(20, 22))];
            let wakeup = KernelWakeup {
                stimulus_cpu,
                woken: MonoNs(11_000),
                events,
                interrupted: None,
                ran_there: Some(task(0)),
                ..first().wakeup
            };
            let joined = joined(&[Part { wakeup, ..first() }], last());
            joined.events.iter().find_map(|event| match event.payload {
                Payload::Switch(Switch { prev, next, .. }) if next.pid == 30 => Some(prev.pid),
                _ => None,
            })
        };
        assert_eq!(runs_then(3, 10_999), Some(0), "of before");
        assert_eq!(runs_then(3, 11_000), Some(22));
        assert_eq!(runs_then(0, 10_999), Some(22), "it came from nowhere else");
        // Of one that is never moved as well.
        let stale = vec![event(10_999, 0, switch(20, 22)), event(11_000, 0, switch(0, 7))];
        let marks = Marks { switch_in: Some(MonoNs(11_000)), ..first().wakeup.marks };
        let woken = MonoNs(11_000);
        let wakeup =
            KernelWakeup { stimulus_cpu: 3, woken, events: stale, marks, ..first().wakeup };
        let alone = joined(&[], Part { wakeup, goes_on: false, ..first() });
        assert_eq!(of(&alone), [(11_000, 0, switch(0, 7))]);
    }

    #[test]
    fn without_a_clock_on_either_cpu_nothing_is_known_of_stolen_time() {
        let silent = |mut part: Part| {
            part.wakeup.events.iter_mut().for_each(|event| event.steal_ns = 0);
            Part {
                wakeup: KernelWakeup { steal_after_ns: 0, ..part.wakeup },
                moved_steal_ns: 0,
                ..part
            }
        };
        let after = |first, last| {
            let joined = joined(&[first], last);
            let moved = joined.events.iter().filter(|event| event.at.0 > MOVED);
            (joined.steal_after_ns, moved.map(|event| event.steal_ns).max().unwrap())
        };
        assert_eq!(after(first(), silent(last())), (0, 0));
        assert_eq!(after(silent(first()), last()), (0, 0));
        assert_eq!(after(silent(first()), silent(last())), (0, 0));
    }

    #[test]
    fn switches_are_known_from_when_on_none_was_lost() {
        let known = |from, interrupts_ns| KnownSwitches { from: MonoNs(from), interrupts_ns };
        let lossy = |part: Part, lost, known_switches| {
            let wakeup = KernelWakeup { lost, known_switches, ..part.wakeup };
            Part { wakeup, ..part }
        };
        let of = |first: Part, last: Part| {
            let joined = joined(&[first], last);
            (joined.lost, joined.known_switches)
        };
        let (early, late) = (Some(known(12_000, 5)), Some(known(15_000, 6)));
        assert_eq!(of(lossy(first(), 4, early), last()), (4, Some(known(12_000, 5 + 22))));
        assert_eq!(of(first(), lossy(last(), 5, late)), (5, late));
        assert_eq!(of(lossy(first(), 4, early), lossy(last(), 5, late)), (9, late));
        assert_eq!(of(first(), lossy(last(), 5, None)), (5, None));
        // Of the second CPU all is known.
        assert_eq!(of(lossy(first(), 4, None), last()), (4, Some(known(MOVED, 22))));
        let unsure = Part { interrupts_ns: None, ..last() };
        assert_eq!(of(lossy(first(), 4, early), unsure), (4, None));
    }

    #[test]
    fn what_was_taken_on_each_cpu_is_put_together() {
        let taken = |part: Part, of: [u64; 3]| {
            let [interrupts_ns, softirqs_ns, nmis_ns] = of;
            let taken = Taken { interrupts_ns, softirqs_ns, nmis_ns };
            Part { wakeup: KernelWakeup { taken, ..part.wakeup }, ..part }
        };
        let parts = (taken(first(), [100, 20, 3]), taken(last(), [5, u64::MAX, 0]));
        let joined = joined(&[parts.0], parts.1);
        let all = Taken { interrupts_ns: 105, softirqs_ns: u64::MAX, nmis_ns: 3 };
        assert_eq!(joined.taken, all);
    }

    #[test]
    fn what_does_not_fit_together_is_not_joined() {
        let alone = || joined(&[], last());
        assert_eq!((alone().lost, alone().first_cpu()), (1, 1));
        assert_eq!(
            alone().known_switches,
            Some(KnownSwitches { from: MonoNs(MOVED), interrupts_ns: 22 })
        );
        assert!(alone().events.iter().all(|event| event.at.0 >= MOVED));
        let second = Part { before: 1, moved_at: Some(MonoNs(12_000)), goes_on: true, ..last() };
        for before in [
            vec![Part { goes_on: false, ..first() }],
            vec![Part { before: 1, ..first() }],
            vec![first(), first()],
            vec![second.clone()],
            vec![first(), second],
        ] {
            assert_eq!(joined(&before, last()), alone(), "{before:?}");
        }
        let other = |wakeup| joined(&[Part { wakeup, ..first() }], last());
        let marks = |due, response| Marks {
            due: MonoNs(due),
            response: MonoNs(response),
            ..Marks::default()
        };
        assert_eq!(other(KernelWakeup { task: task(8), ..first().wakeup }), alone());
        assert_eq!(other(KernelWakeup { marks: marks(DUE + 1, MOVED), ..first().wakeup }), alone());
        assert_eq!(other(KernelWakeup { marks: marks(DUE, MOVED - 1), ..first().wakeup }), alone());
        // One that was never moved is what it is.
        let whole = Part { goes_on: false, ..first() };
        assert_eq!(joined(&[], whole.clone()), whole.wakeup);
    }
}
