//! Wakeups drawn at random, as a CPU saw them, and what must come of each.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use wakescope_core::explain::{Interrupt, Policy, Task, What};

use super::at;
use crate::shared::{
    CODE, CpuSwitch, Event as Raw, Irq, Nmi, OwnTime, Softirq, Switched, Task as RawTask,
    Timer as RawTimer, UNKNOWN, Wakeup as RawWakeup, kind,
};

/// When drawn wakeups are due, nanoseconds: events can lie before.
pub(super) const DUE: u64 = 1_000_000_000_000;

/// Vectors or lines of interrupts, names, and how they are shown.
const LINES: [(u32, u32, &str, &str); 6] = [
    (1, 0, "", "local_timer"),
    (2, 0, "", "reschedule"),
    (6, 0, "Rescheduling in", "reschedule"),
    (0, 7, "eth0", "eth0"),
    (0, 8, "", "irq 8"),
    (0, 9, "arch_timer", "arch_timer"),
];

const FUNCTIONS: [(u64, &str); 3] =
    [(at::WAKER, "hrtimer_wakeup"), (at::WORK, "do_work"), (at::NMI, "watchdog_nmi")];

/// Thread, name, priority, number of the policy, and the policy.
const TASKS: [(u32, &str, i16, u16, Policy); 6] = [
    (400, "probe", 9, 1, Policy::Fifo),
    (231, "logger", 120, 0, Policy::Other),
    (5, "spin", 4, 1, Policy::Fifo),
    (9, "rm", 120, 3, Policy::Batch),
    (6, "deadline", -1, 6, Policy::Deadline),
    (0, "swapper/1", 120, 0, Policy::Other),
];

/// The thread that wakes, of [`TASKS`].
const OWN: usize = 0;

/// What an event says. Numbers are places in the tables above.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Irq { line: usize, begins: bool },
    TimerEntry { function: usize, count: u32 },
    TimerExit,
    Softirq { number: u8, begins: bool },
    Nmi { handler: usize, length: u64 },
    Switch { from: usize, to: usize, throttled: bool },
    SchedEntry,
    Contention { begins: bool },
    Tracer { length: u64 },
    Deboost { thread: usize },
    Unknown,
}

/// An event that has its time.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    pub(super) at: u64,
    /// The clock of stolen time; 0 for none.
    pub(super) steal: u64,
    pub(super) kind: Kind,
}

/// An event, how long after the one before it, and how much was stolen in between.
type Step = (u64, u64, Kind);

/// A wakeup with all that its CPU saw around it, in order of time.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) head: Head,
    /// Entry and exit of the interrupt, the scheduler's entry, the switch to the task.
    pub(super) marks: [Option<u64>; 4],
    pub(super) response: u64,
    pub(super) events: Vec<Timed>,
    /// Events that had begun when it was due, and went on.
    pub(super) begun: Vec<Kind>,
}

/// What a record says beside times and events.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) stimulus: u32,
    pub(super) stimulus_cpu: u32,
    pub(super) waker: usize,
    pub(super) interrupted: usize,
    pub(super) looked: bool,
    pub(super) mode: u32,
    pub(super) idle: u32,
    pub(super) preempt_count: u32,
    pub(super) softirq: u32,
    pub(super) throttled: bool,
    pub(super) faults: u64,
    pub(super) stack: Vec<u64>,
    /// The task whose stack was taken as it gave up the CPU.
    pub(super) last: Option<usize>,
    /// How long before the interrupt interrupts went off and on.
    pub(super) edges: Option<(u64, u64)>,
    pub(super) has_steal_clock: bool,
    pub(super) stolen_at_last: u64,
    /// What quotas took; `None` where nobody knows.
    pub(super) quota: Option<u64>,
    pub(super) cpu: u32,
    pub(super) code: [u8; CODE],
}

/// Lengths of time near and between those that the rules of core depend on, nanoseconds: 3 µs for the
/// way back from an interrupt, 200 µs for a slow one, 1 ms for a long function, 10 ms for a tick, and
/// 25 ms without one; up to 50 ms.
pub(super) fn lengths() -> impl Strategy<Value = u64> {
    let near = |ns: u64| ns / 2..=ns * 2;
    prop_oneof![
        1 => Just(0_u64),
        4 => 0_u64..300,
        2 => near(3_000),
        1 => 6_000_u64..200_000,
        2 => near(200_000),
        2 => near(1_000_000),
        1 => near(10_000_000),
        1 => near(25_000_000),
    ]
}

fn kinds() -> BoxedStrategy<Kind> {
    let task = || 0..TASKS.len();
    let function = || 0..FUNCTIONS.len();
    prop_oneof![
        3 => (0..LINES.len(), any::<bool>()).prop_map(|(line, begins)| Kind::Irq { line, begins }),
        1 => (function(), 0_u32..3)
            .prop_map(|(function, count)| Kind::TimerEntry { function, count }),
        1 => Just(Kind::TimerExit),
        2 => (0_u8..10, any::<bool>())
            .prop_map(|(number, begins)| Kind::Softirq { number, begins }),
        1 => (function(), lengths()).prop_map(|(handler, length)| Kind::Nmi { handler, length }),
        3 => (task(), task(), any::<bool>())
            .prop_map(|(from, to, throttled)| Kind::Switch { from, to, throttled }),
        1 => Just(Kind::SchedEntry),
        1 => any::<bool>().prop_map(|begins| Kind::Contention { begins }),
        1 => lengths().prop_map(|length| Kind::Tracer { length }),
        1 => task().prop_map(|thread| Kind::Deboost { thread }),
        1 => Just(Kind::Unknown),
    ]
    .boxed()
}

/// Boxed, as all large ones: they would not fit on the stack of a test together.
fn steps(count: std::ops::Range<usize>) -> BoxedStrategy<Vec<Step>> {
    let stolen = prop_oneof![4 => Just(0_u64), 1 => lengths()];
    prop::collection::vec((lengths(), stolen, kinds()), count).boxed()
}

/// Whether more softirqs are pending when the one of this number ends.
fn leaves_others(number: u8) -> bool {
    number % 2 == 1
}

/// What goes on when the wakeup is due: of each at most one, each in the one before.
fn begun() -> impl Strategy<Value = Vec<Kind>> {
    let softirq = option::of((0_u8..10).prop_map(|number| Kind::Softirq { number, begins: true }));
    let irq = option::of((0..LINES.len()).prop_map(|line| Kind::Irq { line, begins: true }));
    let timer = option::of(
        (0..FUNCTIONS.len(), 1_u32..3)
            .prop_map(|(function, count)| Kind::TimerEntry { function, count }),
    );
    let lock = option::of(Just(Kind::Contention { begins: true }));
    (softirq, irq, timer, lock)
        .prop_map(|(a, b, c, d)| [a, b, c, d].into_iter().flatten().collect())
}

/// Pairs of what begins and ends before the wakeup is due.
fn ended() -> impl Strategy<Value = Vec<Kind>> {
    let pair = prop_oneof![
        (0..LINES.len()).prop_map(|line| [true, false].map(|begins| Kind::Irq { line, begins })),
        (0_u8..10).prop_map(|number| [true, false].map(|begins| Kind::Softirq { number, begins })),
        Just([Kind::TimerEntry { function: 0, count: 1 }, Kind::TimerExit]),
        Just([true, false].map(|begins| Kind::Contention { begins })),
    ];
    prop::collection::vec(pair, 0..3).prop_map(|pairs| pairs.into_iter().flatten().collect())
}

fn heads() -> impl Strategy<Value = Head> {
    let task = || 0..TASKS.len();
    let stacks = select(vec![
        vec![],
        vec![at::WORK, at::SYSCALL],
        vec![at::BPF, at::TRACE, at::ENTRY, at::WORK, at::SYSCALL],
        vec![at::BPF, at::ENTRY, at::SYSCALL],
    ]);
    let stimulus = (select(vec![0_u32, 1, 1, 1, 2, 3, 4]), 0_u32..2, task());
    let context = (task(), any::<bool>(), 0_u32..3, 0_u32..4, 0_u32..4, 0_u32..11, stacks);
    let rest = (any::<bool>(), 0_u64..2, option::of(task()), any::<bool>(), 0_u32..2);
    // Not read, instructions without meaning, and `sti` with one of them behind.
    let mut enables = [0x90; CODE];
    enables[CODE - 2] = 0xfb;
    let code = select(vec![[0; CODE], [0x90; CODE], enables]);
    let edges = (option::of((lengths(), lengths())), lengths(), option::of(lengths()), code);
    (stimulus, context, rest, edges).prop_map(|(stimulus, context, rest, edges)| {
        let (edges, stolen_at_last, quota, code) = edges;
        let (stimulus, stimulus_cpu, waker) = stimulus;
        let (interrupted, looked, mode, idle, preempt_count, softirq, stack) = context;
        let (throttled, faults, last, has_steal_clock, cpu) = rest;
        Head {
            stimulus,
            stimulus_cpu,
            waker,
            interrupted,
            looked,
            mode,
            idle,
            preempt_count,
            softirq,
            throttled,
            faults,
            stack,
            last,
            edges,
            has_steal_clock,
            stolen_at_last,
            quota,
            cpu,
            code,
        }
    })
}

/// Wakeups with up to `most` events while they wait.
pub(super) fn wakeups(most: usize) -> BoxedStrategy<Drawn> {
    let during =
        prop_oneof![2 => steps(0..5), 3 => steps(0..26), 1 => steps(50..100), 1 => steps(0..most)];
    // What comes before lasts until a switch, but for what goes on.
    let before = (option::of(steps(0..6)), ended(), begun(), steps(0..6), lengths()).boxed();
    // How many events come before each mark, and how long before it the last one is.
    let count = || prop_oneof![9 => 0_usize..6, 1 => 0_usize..80];
    let mark = || option::of((count(), lengths()));
    let marks = (prop::array::uniform4(mark()), lengths()).boxed();
    (heads().boxed(), before, during.boxed(), marks, steps(0..4))
        .prop_map(|(mut head, before, during, (marks, last), after)| {
            let (past, ended, begun, gaps, tail) = before;
            if let Some(Kind::Softirq { number, .. }) = begun.first() {
                head.softirq = u32::from(*number) + 1;
                // What was looked at is in the softirq of its own CPU.
                if head.looked {
                    head.stimulus_cpu = head.cpu;
                }
            }
            let mut gaps = gaps.into_iter().map(|(gap, stolen, _)| (gap, stolen));
            let switch = Kind::Switch { from: 1, to: 2, throttled: false };
            let end_of_past = past.as_ref().map(|_| (10, 0, switch));
            let known = ended.into_iter().chain(begun.clone());
            let known = known.map(|kind| {
                let (gap, stolen) = gaps.next().unwrap_or_default();
                (gap, stolen, kind)
            });
            let before: Vec<Step> =
                past.into_iter().flatten().chain(end_of_past).chain(known).collect();
            let clock = u64::from(head.has_steal_clock) * 5_000;
            let mut timer = Timer { at: 0, clock, events: Vec::new() };
            timer.at = DUE - 1 - tail - before.iter().map(|step| step.0).sum::<u64>();
            timer.run(&mut before.into_iter());
            timer.at = DUE;
            let (marks, response) = timer.marked(marks, last, during);
            timer.at = response + 1;
            timer.run(&mut after.into_iter());
            Drawn { head, marks, response, events: timer.events, begun }
        })
        .boxed()
}

/// Gives events their times.
struct Timer {
    at: u64,
    clock: u64,
    events: Vec<Timed>,
}

impl Timer {
    fn run(&mut self, steps: &mut dyn Iterator<Item = Step>) {
        for (gap, stolen, kind) in steps {
            self.at += gap;
            if self.clock > 0 {
                self.clock += stolen;
            }
            self.events.push(Timed { at: self.at, steal: self.clock, kind });
        }
    }

    /// Marks among `during`, and the response `last` after all of them.
    fn marked(
        &mut self,
        marks: [Option<(usize, u64)>; 4],
        last: u64,
        during: Vec<Step>,
    ) -> ([Option<u64>; 4], u64) {
        let mut during = during.into_iter();
        let marks = marks.map(|mark| {
            let (count, gap) = mark?;
            self.run(&mut during.by_ref().take(count));
            self.at += gap;
            Some(self.at)
        });
        self.run(&mut during);
        self.at += last;
        (marks, self.at)
    }
}

fn name(text: &str) -> [u8; 16] {
    std::array::from_fn(|i| text.as_bytes().get(i).copied().unwrap_or(0))
}

fn raw_task(place: usize) -> RawTask {
    let (pid, comm, prio, policy, _) = TASKS[place];
    RawTask {
        pid,
        prio: prio.into(),
        policy: policy.into(),
        normal_prio: prio.into(),
        comm: name(comm),
    }
}

fn thread(place: usize) -> Switched {
    let (pid, _, prio, policy, _) = TASKS[place];
    Switched { pid, prio, policy }
}

impl Timed {
    /// As the programs write it.
    pub(super) fn raw(&self) -> Raw {
        let &Self { at, steal, ref kind } = self;
        let plain = |kind| Raw { at_ns: at, steal_ns: steal, kind, ..Raw::default() };
        let edge = |begins, entry, exit| plain(if begins { entry } else { exit });
        match *kind {
            Kind::Irq { line, begins } => {
                let (vector, line, text, _) = LINES[line];
                let irq = Irq { vector, line, name: name(text) };
                edge(begins, kind::IRQ_ENTRY, kind::IRQ_EXIT).with(irq)
            }
            Kind::TimerEntry { function, count } => {
                let function = FUNCTIONS[function].0;
                plain(kind::TIMER_ENTRY).with(RawTimer { function, count, pad: 0 })
            }
            Kind::TimerExit => plain(kind::TIMER_EXIT),
            Kind::Softirq { number, begins } => {
                let pending = leaves_others(number).into();
                let softirq = Softirq { number: number.into(), pending };
                edge(begins, kind::SOFTIRQ_ENTRY, kind::SOFTIRQ_EXIT).with(softirq)
            }
            Kind::Nmi { handler, length } => {
                plain(kind::NMI).with(Nmi { handler: FUNCTIONS[handler].0, duration_ns: length })
            }
            Kind::Switch { from, to, throttled } => plain(kind::SWITCH).with(CpuSwitch {
                prev: thread(from),
                next: thread(to),
                comm: name(TASKS[to].1),
                throttled: throttled.into(),
                pad: 0,
            }),
            Kind::SchedEntry => plain(kind::SCHED_ENTRY),
            Kind::Contention { begins } => {
                edge(begins, kind::CONTENTION_BEGIN, kind::CONTENTION_END)
            }
            Kind::Tracer { length } => plain(kind::TRACER).with(OwnTime { duration_ns: length }),
            Kind::Deboost { thread: place } => plain(kind::DEBOOST).with(thread(place)),
            Kind::Unknown => plain(99),
        }
    }
}

impl Drawn {
    /// As the programs write it.
    pub(super) fn raw(&self) -> RawWakeup {
        let head = &self.head;
        let [irq_entry, irq_exit, sched_entry, switch_in] =
            self.marks.map(Option::unwrap_or_default);
        let edges = head.edges.map(|(off, on)| {
            let on = self.marks[0].unwrap_or(DUE) - on;
            (on - off, on)
        });
        let (irqs_off, irqs_on) = edges.unwrap_or_default();
        let mut raw = RawWakeup {
            due: DUE,
            irq_entry,
            woken: irq_entry.max(DUE),
            irq_exit,
            sched_entry,
            switch_in,
            response: self.response,
            faults_before: 70,
            faults_after: 70 + head.faults,
            steal_after: self.steal_after(),
            stolen: self.head.stolen_at_last,
            quota: self.head.quota.unwrap_or(UNKNOWN),
            interrupted_ip: at::WORK,
            irqs_off,
            irqs_on,
            code: head.code,
            cpu: head.cpu,
            stimulus_cpu: head.stimulus_cpu,
            stimulus: head.stimulus,
            preempt_count: head.preempt_count,
            softirq: head.softirq,
            idle: head.idle,
            looked: head.looked.into(),
            mode: head.mode,
            throttled: head.throttled.into(),
            task: raw_task(OWN),
            interrupted: raw_task(head.interrupted),
            waker: raw_task(head.waker),
            ..RawWakeup::default()
        };
        if let Some(last) = head.last {
            raw.away_pid = TASKS[last].0;
            (raw.away[0], raw.away[1]) = (at::INNER_SCHEDULE, at::SYSCALL);
            raw.away_bytes = 16;
        }
        raw
    }

    /// The clock of stolen time when it had answered.
    fn steal_after(&self) -> u64 {
        if !self.head.has_steal_clock {
            return 0;
        }
        let last = self.events.iter().rfind(|event| event.at <= self.response);
        last.map_or(5_000, |event| event.steal) + self.head.stolen_at_last
    }

    /// The events that must come back, but for readings of stolen time.
    pub(super) fn expected(&self) -> Vec<(u64, What)> {
        let while_due = |event: &&Timed| event.at >= DUE && event.at <= self.response;
        let during = self.events.iter().filter(while_due).map(|event| (event.at, &event.kind));
        let begun = self.begun.iter().map(|kind| (DUE, kind));
        let mut named: Vec<usize> = Vec::new();
        let all = begun.chain(during);
        let shown = all.filter_map(|(at, kind)| Some((at, self.shown(kind, &mut named)?)));
        let with_those_left = shown.flat_map(|(at, what)| {
            let leaves = matches!(what, What::SoftirqExit(number) if leaves_others(number));
            [Some((at, what)), leaves.then_some((at, What::SoftirqsPending))].into_iter().flatten()
        });
        with_those_left.collect()
    }

    /// What an event means. `named`: interrupts whose entry was seen, which has their name.
    fn shown(&self, kind: &Kind, named: &mut Vec<usize>) -> Option<What> {
        let function = |place: usize| FUNCTIONS[place].1.to_owned();
        Some(match *kind {
            Kind::Irq { line, begins: true } => {
                named.push(line);
                What::IrqEntry(Interrupt(LINES[line].3.into()))
            }
            Kind::Irq { line, begins: false } => {
                let shown = LINES[line].3;
                let is_named = named.contains(&line);
                What::IrqExit(Interrupt(if is_named { shown } else { "" }.into()))
            }
            Kind::TimerEntry { function: place, count } => What::TimerEntry(function(place), count),
            Kind::TimerExit => What::TimerExit,
            Kind::Softirq { number, begins: true } => What::SoftirqEntry(number),
            Kind::Softirq { number, begins: false } => What::SoftirqExit(number),
            Kind::Nmi { handler, length } => What::Nmi(function(handler), length),
            Kind::Switch { from, to, .. } => What::Switch { from: self.left(from), to: task(to) },
            Kind::SchedEntry => What::SchedEntry,
            Kind::Contention { begins: true } => What::ContentionBegin,
            Kind::Contention { begins: false } => What::ContentionEnd,
            Kind::Tracer { length } => What::Tracer(length),
            Kind::Deboost { thread } => What::Deboost(self.left(thread)),
            Kind::Unknown => return None,
        })
    }

    /// A task that is left: a switch gives its number alone, so its name is known only from elsewhere.
    fn left(&self, place: usize) -> Task {
        let task = task(place);
        if task.pid == 0 {
            return Task { comm: "swapper".into(), ..task };
        }
        // Before it is left, or again later.
        let comes = |event: &Timed| matches!(event.kind, Kind::Switch { to, .. } if to == place);
        let head = &self.head;
        let is_named = place == OWN
            || place == head.interrupted
            || (matches!(head.stimulus, 2 | 3) && place == head.waker)
            || self.events.iter().any(comes);
        Task { comm: if is_named { task.comm } else { String::new() }, ..task }
    }

    /// The readings of stolen time that must come back: those that differ from the one before.
    pub(super) fn readings(&self) -> Vec<(u64, u64)> {
        if !self.head.has_steal_clock {
            return Vec::new();
        }
        let before = self.events.iter().rfind(|event| event.at < DUE);
        let before = before.map(|event| (DUE, event.steal));
        let while_due = |event: &&Timed| event.at >= DUE && event.at <= self.response;
        let during = self.events.iter().filter(while_due).map(|event| (event.at, event.steal));
        let mut all: Vec<(u64, u64)> = before.into_iter().chain(during).collect();
        if !all.is_empty() {
            all.push((self.response, self.steal_after()));
        }
        all.dedup_by_key(|reading| reading.1);
        all
    }
}

/// A task of the table.
fn task(place: usize) -> Task {
    let (pid, comm, prio, _, policy) = TASKS[place];
    Task { pid, comm: comm.into(), policy, prio: prio.into() }
}
