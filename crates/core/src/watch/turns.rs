//! From the turns on a CPU to who took the time of a wait.

use std::cmp::Reverse;

use crate::explain::{Cause, Culprit, NamedTask, Task};
use crate::watch::episode::{EarlierQueue, Episode, Occupant};

/// The most occupants of an episode.
pub(crate) const MOST_OCCUPANTS: usize = 3;

/// The clock of a CPU's run queue, and what was taken of it so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueClock {
    /// The clock, ns.
    pub clock_ns: u64,
    /// What interrupts and the hypervisor had taken of it by then, ns.
    pub lost_ns: u64,
    /// What of this the hypervisor had taken, ns.
    pub steal_ns: u64,
}

/// From when on a task ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// When it began.
    pub began: QueueClock,
    /// Which of [`LongWait::runners`] ran; `None` where that is not known, and of the idle task.
    pub runner: Option<usize>,
    /// The task's number.
    pub pid: u32,
}

/// Tasks of one name, policy, priority and cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runner {
    /// One of these tasks.
    pub task: Task,
    /// Their cgroup.
    pub cgroup_id: u64,
}

impl Runner {
    /// Whether these are tasks of one name, policy, priority and cgroup.
    pub fn is_one_with(&self, other: &Self) -> bool {
        let of = |runner: &Self| (runner.cgroup_id, runner.task.policy, runner.task.prio);
        of(self) == of(other) && self.task.comm == other.task.comm
    }
}

/// What of a wait was in the queue of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stay {
    /// The CPU.
    pub cpu: u32,
    /// When it ended, by the run queue of this CPU.
    pub ended: QueueClock,
    /// How long it was, ns.
    pub ns: u64,
    /// What a quota took of it, ns: at least, and at most.
    pub throttled_ns: (u64, u64),
    /// The turns on this CPU that are known of the time before it ended, one behind the other, the oldest first.
    pub turns: Vec<Turn>,
}

/// A long wait as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongWait {
    /// When it ended, ns.
    pub end_ns: u64,
    /// How long it was, ns.
    pub ns: u64,
    /// What of it was in queues of other CPUs before, as far as that is known.
    pub earlier: Vec<Stay>,
    /// What of it was in the queue of the CPU on which it ended.
    pub last: Stay,
    /// Who waited.
    pub waiter: Runner,
    /// The tasks that had these turns, each once.
    pub runners: Vec<Runner>,
}

impl LongWait {
    /// Who took it, as far as that is certain. Paths of cgroups are still to be found.
    pub fn explained(self) -> Episode {
        let mut shares = Shares::of(&self.runners);
        let stays = || self.earlier.iter().chain([&self.last]);
        stays().for_each(|stay| shares.add_stay(stay));
        shares.runners.retain(|share| share.part.ns > 0);
        shares.runners.sort_by_key(|share| Reverse(share.part.ns));
        let (cause, culprit) = shares.verdict(&self.waiter.task, self.ns);
        let known = shares.known.saturating_add(shares.throttled);
        let shown = shares.runners.iter().take(MOST_OCCUPANTS);
        let earlier = self.earlier.iter().map(|stay| EarlierQueue { cpu: stay.cpu, ns: stay.ns });
        Episode {
            end_ns: self.end_ns,
            cpu: self.last.cpu,
            ns: self.ns,
            task: self.waiter.task.named(),
            cgroup_id: self.waiter.cgroup_id,
            cgroup: None,
            cause,
            culprit,
            throttled_ns: shares.throttled,
            irq_ns: shares.irq.ns,
            steal_ns: shares.steal.ns,
            moved_ns: self.ns.saturating_sub(self.last.ns),
            earlier_queues: earlier.collect(),
            occupants: shown.map(Share::occupant).collect(),
            unexplained_ns: self.ns.saturating_sub(known),
        }
    }
}

/// What each took of all stays.
struct Shares<'a> {
    runners: Vec<Share<'a>>,
    irq: Part,
    steal: Part,
    /// What a quota took at least, ns.
    throttled: u64,
    /// What all others certainly took, ns.
    known: u64,
}

/// For how long somebody had the CPU.
#[derive(Clone, Copy, Default)]
struct Part {
    /// In all stays, ns.
    ns: u64,
    /// In the stay that is added now, ns.
    in_stay: u64,
    /// What of all this was certainly not while a quota stopped the task, ns: so much was taken from it.
    certain: u64,
}

impl Part {
    fn add(&mut self, ns: u64) {
        self.ns += ns;
        self.in_stay += ns;
    }

    /// Ends a stay, of which a quota took at most so much.
    fn end_stay(&mut self, most_throttled: u64) {
        self.certain += std::mem::take(&mut self.in_stay).saturating_sub(most_throttled);
    }
}

/// The share of tasks that are one occupant.
struct Share<'a> {
    whose: &'a Runner,
    part: Part,
    /// The number of the task, if it was one alone.
    pid: Option<u32>,
}

impl Share<'_> {
    fn task(&self) -> NamedTask {
        NamedTask { pid: self.pid, ..self.whose.task.named() }
    }

    fn occupant(&self) -> Occupant {
        let cgroup_id = self.whose.cgroup_id;
        Occupant { task: self.task(), cgroup_id, cgroup: None, ns: self.part.ns }
    }
}

impl<'a> Shares<'a> {
    /// Shares of these tasks, which took nothing so far.
    fn of(runners: &'a [Runner]) -> Self {
        let none = |whose| Share { whose, part: Part::default(), pid: None };
        Self {
            runners: runners.iter().map(none).collect(),
            irq: Part::default(),
            steal: Part::default(),
            throttled: 0,
            known: 0,
        }
    }

    /// Adds what each had of this stay.
    fn add_stay(&mut self, stay: &Stay) {
        let Stay { cpu: _, ended, ns, throttled_ns: (least, most), turns } = stay;
        let begin = ended.clock_ns.saturating_sub(*ns);
        let ends = turns.iter().skip(1).map(|turn| turn.began).chain([*ended]);
        for (turn, end) in turns.iter().zip(ends) {
            self.add(*turn, end, begin);
        }
        let tasks = self.runners.iter_mut().map(|share| &mut share.part);
        let parts = tasks.chain([&mut self.irq, &mut self.steal]);
        let mut taken = 0_u64;
        for part in parts {
            taken = taken.saturating_add(part.in_stay);
            part.end_stay(*most);
        }
        // Whoever ran while a quota stopped the task took nothing from it.
        self.known = self.known.saturating_add(taken.min(ns.saturating_sub(*most)));
        self.throttled = self.throttled.saturating_add(*least);
    }

    /// Adds a turn, which ended then, to a wait that began at `begin`.
    fn add(&mut self, turn: Turn, end: QueueClock, begin: u64) {
        let Turn { began, runner, pid } = turn;
        let whole = end.clock_ns.saturating_sub(began.clock_ns);
        let within = end.clock_ns.saturating_sub(begin.max(began.clock_ns)).min(whole);
        let before = whole - within;
        // What was lost may have been before the wait began.
        let lost = end.lost_ns.saturating_sub(began.lost_ns).min(whole);
        let steal = end.steal_ns.saturating_sub(began.steal_ns).min(lost);
        self.steal.add(steal.saturating_sub(before).min(within));
        self.irq.add((lost - steal).saturating_sub(before).min(within));
        let ns = within.saturating_sub(lost);
        let share = runner.and_then(|runner| self.runners.get_mut(runner));
        let Some(share) = share.filter(|_| ns > 0) else { return };
        let is_first = share.part.ns == 0;
        share.pid = Some(pid).filter(|_| is_first || share.pid == Some(pid));
        share.part.add(ns);
    }

    /// What certainly took at least half of a wait of `ns`.
    fn verdict(&self, waiter: &Task, ns: u64) -> (Cause, Culprit) {
        let is_half = |part: u64| part > 0 && part >= ns - part.min(ns);
        if is_half(self.throttled) {
            return (Cause::Throttled, Culprit::None);
        }
        if is_half(self.steal.certain) {
            return (Cause::Steal, Culprit::Hypervisor);
        }
        if is_half(self.irq.certain) {
            return (Cause::Irq, Culprit::None);
        }
        let Some(first) = self.runners.iter().find(|share| is_half(share.part.certain)) else {
            return (Cause::Unexplained, Culprit::None);
        };
        let task = &first.whose.task;
        let cause = match () {
            () if task.comes_before(waiter) => Cause::HigherPriorityTask,
            // The scheduler would have run the one that waited: something kept it from that.
            () if waiter.comes_before(task) => Cause::Unexplained,
            () => Cause::EqualOrLowerTask,
        };
        (cause, Culprit::Task(first.task()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Policy;

    fn task(pid: u32, comm: &str, policy: Policy, prio: i32) -> Option<Task> {
        Some(Task { pid, comm: comm.into(), policy, prio })
    }

    /// When a turn began, and whose it is.
    type Began = (QueueClock, Option<Task>);

    fn turn(clock_ns: u64, lost_ns: u64, steal_ns: u64, task: Option<Task>) -> Began {
        (QueueClock { clock_ns, lost_ns, steal_ns }, task)
    }

    /// A wait of 100 ns that ends at 1,000, during these turns.
    fn wait(turns: Vec<Began>, lost_ns: u64, steal_ns: u64) -> LongWait {
        let mut wait = LongWait {
            ns: 100,
            last: Stay {
                ns: 100,
                ended: QueueClock { clock_ns: 1_000, lost_ns, steal_ns },
                ..Stay::default()
            },
            waiter: Runner { task: other(1, "waiter").unwrap(), cgroup_id: 7 },
            ..LongWait::default()
        };
        wait.last.turns = turns_of(turns, &mut wait.runners);
        wait
    }

    fn turns_of(all: Vec<Began>, runners: &mut Vec<Runner>) -> Vec<Turn> {
        let turns = all.into_iter().map(|(began, task)| {
            let pid = task.as_ref().map_or(0, |task| task.pid);
            let runner = task.map(|task| {
                let found = Runner { task, cgroup_id: 7 };
                let same = runners.iter().position(|other| other.is_one_with(&found));
                same.unwrap_or_else(|| {
                    runners.push(found);
                    runners.len() - 1
                })
            });
            Turn { began, runner, pid }
        });
        turns.collect()
    }

    fn other(pid: u32, comm: &str) -> Option<Task> {
        task(pid, comm, Policy::Other, 120)
    }

    /// The cause, who it was, the ns of each occupant, and what is unexplained.
    #[track_caller]
    fn check(
        wait: LongWait,
        cause: Cause,
        who: &str,
        occupants: &[u64],
        unexplained: u64,
    ) -> Episode {
        let found = wait.explained();
        let name = match &found.culprit {
            Culprit::Task(task) => task.comm.as_str(),
            Culprit::Hypervisor => "hypervisor",
            _ => "",
        };
        let ns: Vec<u64> = found.occupants.iter().map(|occupant| occupant.ns).collect();
        let got = (found.cause, name, ns.as_slice(), found.unexplained_ns);
        assert_eq!(got, (cause, who, occupants, unexplained), "{found:?}");
        found
    }

    #[test]
    fn whoever_ran_for_most_of_the_wait_took_it() {
        let turns = || vec![turn(500, 0, 0, other(2, "a")), turn(930, 0, 0, other(3, "b"))];
        check(wait(turns(), 0, 0), Cause::EqualOrLowerTask, "b", &[70, 30], 0);
        let fifo = task(4, "hog", Policy::Fifo, 40);
        let hogged = vec![turn(500, 0, 0, other(2, "a")), turn(910, 0, 0, fifo)];
        check(wait(hogged.clone(), 0, 0), Cause::HigherPriorityTask, "hog", &[90, 10], 0);
        // One that comes before what ran was kept from running by something else.
        let mut urgent = wait(turns(), 0, 0);
        urgent.waiter.task = task(1, "waiter", Policy::Fifo, 10).unwrap();
        check(urgent, Cause::Unexplained, "b", &[70, 30], 0);
    }

    #[test]
    fn turns_of_one_name_are_one_occupant() {
        let (a, b, c) = (other(2, "a"), other(3, "b"), other(4, "a"));
        let all = vec![turn(900, 0, 0, a.clone()), turn(930, 0, 0, b), turn(970, 0, 0, c)];
        let found = check(wait(all.clone(), 0, 0), Cause::EqualOrLowerTask, "a", &[60, 40], 0);
        // Several tasks ran under the one name, and one alone under the other.
        let pids = found.occupants.iter().map(|occupant| occupant.task.pid);
        assert_eq!(pids.collect::<Vec<_>>(), [None, Some(3)]);
        assert_eq!(found.culprit, Culprit::Task(found.occupants[0].task.clone()));
        // A turn that was over before the wait began is none of it.
        let mut shorter = wait(all, 0, 0);
        (shorter.ns, shorter.last.ns) = (60, 60);
        let found = check(shorter, Cause::EqualOrLowerTask, "a", &[30, 30], 0);
        assert_eq!(found.occupants[0].task.pid, Some(4));
    }

    #[test]
    fn each_of_thousands_of_turns_is_known() {
        let names = ["a", "b", "c", "d", "e"];
        let turns = (0..10_000)
            .map(|n: u32| turn(100 * u64::from(n), 0, 0, other(2 + n % 5, names[n as usize % 5])));
        let mut whole = wait(turns.collect(), 0, 0);
        (whole.ns, whole.last.ns, whole.last.ended.clock_ns) = (1_000_000, 1_000_000, 1_000_000);
        let found = check(whole, Cause::Unexplained, "", &[200_000; MOST_OCCUPANTS], 0);
        assert!(found.occupants.iter().all(|occupant| occupant.task.pid.is_some()), "{found:?}");
    }

    #[test]
    fn time_without_a_known_turn_is_unexplained() {
        // Nobody, and time before the first turn that is remembered.
        let turns =
            vec![turn(920, 0, 0, None), turn(940, 0, 0, None), turn(980, 0, 0, other(2, "a"))];
        check(wait(turns, 0, 0), Cause::Unexplained, "", &[20], 80);
        check(wait(Vec::new(), 0, 0), Cause::Unexplained, "", &[], 100);
        // What was waited elsewhere.
        let moved = LongWait { ns: 300, ..wait(vec![turn(800, 0, 0, other(2, "a"))], 0, 0) };
        let found = check(moved, Cause::Unexplained, "", &[100], 200);
        assert_eq!(found.moved_ns, 200);
    }

    #[test]
    fn what_was_stolen_is_of_nobody_who_ran() {
        // 80 of the 100 ns of a turn that is wholly within the wait.
        let turns = vec![turn(900, 5, 5, other(2, "a"))];
        let found = check(wait(turns.clone(), 85, 85), Cause::Steal, "hypervisor", &[20], 0);
        assert_eq!((found.steal_ns, found.irq_ns), (80, 0));
        let found = check(wait(turns, 85, 5), Cause::Irq, "", &[20], 0);
        assert_eq!((found.steal_ns, found.irq_ns), (0, 80));
        // It may have been before the wait began.
        let longer = vec![turn(800, 5, 5, other(2, "a"))];
        check(wait(longer, 85, 85), Cause::Unexplained, "", &[20], 80);
    }

    #[test]
    fn a_quota_comes_before_whoever_ran_meanwhile() {
        let turns = vec![turn(500, 0, 0, other(2, "a"))];
        let stopped = |least, most| {
            let mut wait = wait(turns.clone(), 0, 0);
            wait.last.throttled_ns = (least, most);
            wait
        };
        check(stopped(80, 80), Cause::Throttled, "", &[100], 0);
        check(stopped(10, 10), Cause::EqualOrLowerTask, "a", &[100], 0);
        // It may have taken most of it.
        check(stopped(0, 90), Cause::Unexplained, "", &[100], 90);
    }

    /// A wait of 300 ns: the last 100 on its CPU, where "a" ran for the last 60, and the others on CPU 3, by whose
    /// clock it left at 5,000.
    fn moved(turns: Vec<Began>, earlier_ns: u64, ended: QueueClock) -> LongWait {
        let mut wait = wait(vec![turn(940, 0, 0, other(2, "a"))], 0, 0);
        let turns = turns_of(turns, &mut wait.runners);
        let earlier = vec![Stay { cpu: 3, ended, ns: earlier_ns, turns, ..Stay::default() }];
        LongWait { ns: 300, earlier, ..wait }
    }

    fn left_at_5000(lost_ns: u64) -> QueueClock {
        QueueClock { clock_ns: 5_000, lost_ns, ..QueueClock::default() }
    }

    #[test]
    fn who_ran_on_the_cpu_before_is_known_up_to_the_move() {
        use Cause::{EqualOrLowerTask, HigherPriorityTask, Unexplained};
        let hog = || task(9, "hog", Policy::Fifo, 49);
        let queues = |found: &Episode| {
            found.earlier_queues.iter().map(|it| (it.cpu, it.ns)).collect::<Vec<_>>()
        };
        let turns = || vec![turn(4_000, 0, 0, hog())];
        let found =
            check(moved(turns(), 200, left_at_5000(0)), HigherPriorityTask, "hog", &[200, 60], 40);
        assert_eq!((found.moved_ns, found.elsewhere_ns()), (200, 0));
        assert_eq!(queues(&found), [(3, 200)]);
        // What it waited elsewhere before that is not known.
        let found = check(moved(turns(), 140, left_at_5000(0)), Unexplained, "", &[140, 60], 100);
        assert_eq!((found.elsewhere_ns(), queues(&found)), (60, vec![(3, 140)]));
        // Nobody knows who had the first turns, because the ring has lost them or because of their row.
        for before in [vec![], vec![turn(4_000, 0, 0, None)]] {
            let turns = [before, vec![turn(4_900, 0, 0, hog())]].concat();
            check(moved(turns, 200, left_at_5000(0)), Unexplained, "", &[100, 60], 140);
        }
        // The same tasks ran on both.
        let turns = || vec![turn(4_000, 0, 0, other(2, "a"))];
        let found = check(moved(turns(), 200, left_at_5000(0)), EqualOrLowerTask, "a", &[260], 40);
        assert_eq!(found.occupants[0].task.pid, Some(2));
        // A quota may have stopped it on its own CPU, but not before.
        let mut stopped = moved(turns(), 200, left_at_5000(0));
        stopped.last.throttled_ns = (0, 90);
        check(stopped, EqualOrLowerTask, "a", &[260], 90);
        // An interrupt took some of a turn that may have begun before the wait did.
        let found = check(moved(turns(), 200, left_at_5000(30)), EqualOrLowerTask, "a", &[230], 70);
        assert_eq!(found.irq_ns, 0);
        let found = check(
            moved(vec![turn(4_800, 0, 0, other(2, "a"))], 200, left_at_5000(30)),
            EqualOrLowerTask,
            "a",
            &[230],
            40,
        );
        assert_eq!(found.irq_ns, 30);
    }

    #[test]
    fn a_quota_took_only_what_was_in_the_queue_that_it_stopped() {
        use Cause::{EqualOrLowerTask, HigherPriorityTask, Throttled, Unexplained};
        let hog = || task(9, "hog", Policy::Fifo, 49);
        let stopped = |before: (u64, u64), last: (u64, u64)| {
            let mut wait = moved(vec![turn(4_000, 0, 0, hog())], 200, left_at_5000(0));
            wait.earlier[0].throttled_ns = before;
            wait.last.throttled_ns = last;
            wait
        };
        let both = &[200, 60][..];
        let found = check(stopped((150, 150), (0, 0)), Throttled, "", both, 40);
        assert_eq!(found.throttled_ns, 150);
        // Of two queues together.
        let found = check(stopped((100, 100), (50, 50)), Throttled, "", both, 0);
        assert_eq!(found.throttled_ns, 150);
        // Most of what seems to be the hog's was the quota's, perhaps.
        check(stopped((0, 150), (0, 0)), Unexplained, "", both, 190);
        // Where the hog ran, nothing was stopped.
        check(stopped((50, 50), (40, 100)), HigherPriorityTask, "hog", both, 60);
        // The one that ran longest may have taken nothing, and another one took half.
        let mut wait = stopped((0, 200), (0, 0));
        wait.last.ns = 200;
        wait.last.turns[0].began.clock_ns = 800;
        wait.ns = 400;
        wait.earlier[0].turns[0].began.clock_ns = 4_799;
        check(wait, EqualOrLowerTask, "a", &[200, 200], 200);
    }

    /// Turns of a CPU on which "a" and others ran, and how long "a" ran in the last `ns` before they end.
    fn random_stay(random: &mut crate::random::Random, runners: &mut Vec<Runner>) -> (Stay, u64) {
        let mut number = |below: u64| random.below(usize::try_from(below).unwrap()) as u64;
        let mut clock_ns = 1_000 + number(1_000_000);
        let ns = number(2_000);
        let count = number(6);
        let began: Vec<(u64, bool)> = (0..count)
            .map(|_| {
                clock_ns += number(600);
                (clock_ns, number(2) == 0)
            })
            .collect();
        clock_ns += number(600);
        let begin = clock_ns - ns.min(clock_ns);
        let ends = began.iter().skip(1).map(|turn| turn.0).chain([clock_ns]);
        let of_a = began.iter().zip(ends).filter(|((_, is_a), _)| *is_a);
        let a_ns = of_a.map(|(turn, end)| end.saturating_sub(turn.0.max(begin))).sum();
        let turns = began
            .iter()
            .map(|&(clock, is_a)| turn(clock, 0, 0, if is_a { other(2, "a") } else { None }));
        let turns = turns_of(turns.collect(), runners);
        let ended = QueueClock { clock_ns, ..QueueClock::default() };
        (Stay { cpu: 3, ended, ns, turns, ..Stay::default() }, a_ns)
    }

    /// Whatever the clocks of the queues say, each stay is looked up in the turns of its own CPU.
    #[test]
    fn nobody_is_named_for_time_in_which_the_queue_says_otherwise() {
        for seed in 0..2_000 {
            let mut random = crate::random::Random::new(seed);
            let mut runners = Vec::new();
            let mut stays: Vec<(Stay, u64)> =
                (0..3).map(|_| random_stay(&mut random, &mut runners)).collect();
            let unknown_ns = random.below(500) as u64;
            let known_ns: u64 = stays.iter().map(|(stay, _)| stay.ns).sum();
            let a_ns: u64 = stays.iter().map(|(_, a_ns)| a_ns).sum();
            let (last, _) = stays.pop().unwrap();
            let wait = LongWait {
                ns: known_ns + unknown_ns,
                earlier: stays.into_iter().map(|(stay, _)| stay).collect(),
                last,
                runners,
                ..wait(Vec::new(), 0, 0)
            };
            let found = wait.explained();
            let ran: u64 = found.occupants.iter().map(|occupant| occupant.ns).sum();
            assert_eq!(
                (ran, ran + found.unexplained_ns),
                (a_ns, found.ns),
                "seed {seed}: {found:?}"
            );
            assert_eq!(found.elsewhere_ns(), unknown_ns, "seed {seed}: {found:?}");
        }
    }

    #[test]
    fn shares_are_never_more_than_the_wait() {
        let mut random = crate::random::Random::new(7);
        for _ in 0..2_000 {
            let mut number = |below: u64| random.below(usize::try_from(below).unwrap()) as u64;
            let mut clock = 1_000_u64;
            let turns: Vec<Began> = (0..number(6))
                .map(|_| {
                    clock += number(300);
                    turn(clock, number(1_000), number(1_000), other(2, "a"))
                })
                .collect();
            let mut wait = wait(turns, number(1_000), number(1_000));
            wait.last.ended.clock_ns = clock + number(300);
            wait.ns = number(2_000);
            wait.last.ns = number(wait.ns + 1);
            let least = number(wait.ns + 1);
            wait.last.throttled_ns = (least, least + number(wait.ns + 1 - least));
            let here = wait.last.ns;
            let found = wait.explained();
            let occupants: u64 = found.occupants.iter().map(|occupant| occupant.ns).sum();
            assert!(occupants + found.irq_ns + found.steal_ns <= here, "{found:?}");
            assert!(found.unexplained_ns <= found.ns, "{found:?}");
        }
    }
}
