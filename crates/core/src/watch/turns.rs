//! From the turns on a CPU to who took the time of a wait.

use std::cmp::Reverse;

use crate::explain::{Cause, Culprit, Task};
use crate::watch::episode::{Episode, Occupant};

/// The most occupants of an episode.
pub const MOST_OCCUPANTS: usize = 3;

/// From when on a task ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// When it began, by the clock of the CPU's run queue, ns.
    pub clock_ns: u64,
    /// What interrupts and the hypervisor had taken of that clock by then, ns.
    pub lost_ns: u64,
    /// What of this the hypervisor had taken, ns.
    pub steal_ns: u64,
    /// Who ran; `None` where that is not known.
    pub task: Option<Task>,
    /// The task's cgroup.
    pub cgroup_id: u64,
}

/// A long wait as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongWait {
    /// When it ended, ns.
    pub end_ns: u64,
    /// The CPU on which it ended.
    pub cpu: u32,
    /// How long it was, ns.
    pub ns: u64,
    /// What of it was in the queue of this CPU, ns.
    pub here_ns: u64,
    /// What a quota took of it, ns: at least and at most.
    pub throttled_ns: (u64, u64),
    /// Who waited: its turn begins when the wait ends.
    pub waiter: Turn,
    /// The last turns on this CPU, the oldest first.
    pub turns: Vec<Turn>,
}

impl LongWait {
    /// Who took it, as far as that is certain. Paths of cgroups are still to be found.
    pub fn explained(self) -> Episode {
        let mut shares = Shares::default();
        let begin = self.waiter.clock_ns.saturating_sub(self.here_ns);
        let ends = self.turns.iter().skip(1).chain([&self.waiter]);
        for (turn, end) in self.turns.iter().zip(ends) {
            shares.add(turn, end, begin);
        }
        shares.occupants.sort_by_key(|occupant| Reverse(occupant.ns));
        let waiter = self.waiter.task.unwrap_or_default();
        let (throttled_ns, most_throttled) = self.throttled_ns;
        let (cause, culprit) = shares.verdict(&waiter, self.ns, self.throttled_ns);
        let taken = shares.occupants.iter().map(|occupant| occupant.ns).sum::<u64>();
        // Whoever ran while a quota stopped the task took nothing from it.
        let taken = taken.saturating_add(shares.irq).saturating_add(shares.steal);
        let known = taken.min(self.ns.saturating_sub(most_throttled)).saturating_add(throttled_ns);
        shares.occupants.truncate(MOST_OCCUPANTS);
        Episode {
            end_ns: self.end_ns,
            cpu: self.cpu,
            ns: self.ns,
            task: waiter.named(),
            cgroup_id: self.waiter.cgroup_id,
            cgroup: None,
            cause,
            culprit,
            throttled_ns,
            irq_ns: shares.irq,
            steal_ns: shares.steal,
            moved_ns: self.ns.saturating_sub(self.here_ns),
            occupants: shares.occupants,
            unexplained_ns: self.ns.saturating_sub(known),
        }
    }
}

/// What each took at least.
#[derive(Default)]
struct Shares {
    occupants: Vec<Occupant>,
    /// Of each occupant, how it is scheduled.
    tasks: Vec<Task>,
    irq: u64,
    steal: u64,
}

impl Shares {
    /// Adds a turn, which ended when another began, to a wait that began then.
    fn add(&mut self, turn: &Turn, end: &Turn, begin: u64) {
        let whole = end.clock_ns.saturating_sub(turn.clock_ns);
        let within = end.clock_ns.saturating_sub(begin.max(turn.clock_ns)).min(whole);
        let before = whole - within;
        // What was lost may have been before the wait began.
        let lost = end.lost_ns.saturating_sub(turn.lost_ns).min(whole);
        let steal = end.steal_ns.saturating_sub(turn.steal_ns).min(lost);
        self.steal += steal.saturating_sub(before).min(within);
        self.irq += (lost - steal).saturating_sub(before).min(within);
        let ns = within.saturating_sub(lost);
        let Some(task) = turn.task.as_ref().filter(|task| !task.is_idle() && ns > 0) else {
            return;
        };
        let is_same = |other: &Task| {
            (&other.comm, other.policy, other.prio) == (&task.comm, task.policy, task.prio)
        };
        let mut known = self.occupants.iter_mut().zip(&self.tasks);
        let known = known.find(|known| known.0.cgroup_id == turn.cgroup_id && is_same(known.1));
        if let Some((occupant, _)) = known {
            occupant.ns += ns;
            return;
        }
        let (cgroup_id, cgroup) = (turn.cgroup_id, None);
        self.occupants.push(Occupant { task: task.named(), cgroup_id, cgroup, ns });
        self.tasks.push(task.clone());
    }

    /// What certainly took at least half of a wait of `ns`.
    fn verdict(&self, waiter: &Task, ns: u64, throttled: (u64, u64)) -> (Cause, Culprit) {
        let is_half = |part: u64| part > 0 && part >= ns - part.min(ns);
        let (least, most) = throttled;
        if is_half(least) {
            return (Cause::Throttled, Culprit::None);
        }
        // As much as a quota may have taken of what others seem to have.
        let beside = |part: u64| is_half(part.saturating_sub(most));
        if beside(self.steal) {
            return (Cause::Steal, Culprit::Hypervisor);
        }
        if beside(self.irq) {
            return (Cause::Irq, Culprit::None);
        }
        let longest = self.occupants.iter().max_by_key(|occupant| occupant.ns);
        let Some(first) = longest.filter(|occupant| beside(occupant.ns)) else {
            return (Cause::Unexplained, Culprit::None);
        };
        let at = self.tasks.iter().position(|task| task.named() == first.task);
        let task = at.map(|at| &self.tasks[at]).cloned().unwrap_or_default();
        let cause = match () {
            () if task.comes_before(waiter) => Cause::HigherPriorityTask,
            // The scheduler would have run the one that waited: something kept it from that.
            () if waiter.comes_before(&task) => Cause::Unexplained,
            () => Cause::EqualOrLowerTask,
        };
        (cause, Culprit::Task(first.task.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Policy;

    fn task(pid: u32, comm: &str, policy: Policy, prio: i32) -> Option<Task> {
        Some(Task { pid, comm: comm.into(), policy, prio })
    }

    fn turn(clock_ns: u64, lost_ns: u64, steal_ns: u64, task: Option<Task>) -> Turn {
        Turn { clock_ns, lost_ns, steal_ns, task, cgroup_id: 7 }
    }

    /// A wait of 100 ns that ends at 1,000, during these turns.
    fn wait(turns: Vec<Turn>, lost_ns: u64, steal_ns: u64) -> LongWait {
        let waiter = turn(1_000, lost_ns, steal_ns, task(1, "waiter", Policy::Other, 120));
        LongWait { ns: 100, here_ns: 100, waiter, turns, ..LongWait::default() }
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
        urgent.waiter.task = task(1, "waiter", Policy::Fifo, 10);
        check(urgent, Cause::Unexplained, "b", &[70, 30], 0);
    }

    #[test]
    fn turns_of_one_name_are_one_occupant() {
        let (a, b, c) = (other(2, "a"), other(3, "b"), other(4, "a"));
        let turns = vec![turn(890, 0, 0, a.clone()), turn(930, 0, 0, b), turn(970, 0, 0, c)];
        let found = check(wait(turns, 0, 0), Cause::EqualOrLowerTask, "a", &[60, 40], 0);
        assert_eq!(found.occupants[0].task.pid, Some(2));
    }

    #[test]
    fn time_without_a_known_turn_is_unexplained() {
        // Nobody, idle, and time before the first turn that is remembered.
        let turns = vec![
            turn(920, 0, 0, None),
            turn(940, 0, 0, other(0, "")),
            turn(980, 0, 0, other(2, "a")),
        ];
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
        let stopped =
            |least, most| LongWait { throttled_ns: (least, most), ..wait(turns.clone(), 0, 0) };
        check(stopped(80, 80), Cause::Throttled, "", &[100], 0);
        check(stopped(10, 10), Cause::EqualOrLowerTask, "a", &[100], 0);
        // It may have taken most of it.
        check(stopped(0, 90), Cause::Unexplained, "", &[100], 90);
    }

    #[test]
    fn shares_are_never_more_than_the_wait() {
        let mut random = crate::random::Random::new(7);
        for _ in 0..2_000 {
            let mut number = |below: u64| random.below(usize::try_from(below).unwrap()) as u64;
            let mut clock = 1_000_u64;
            let turns: Vec<Turn> = (0..number(6))
                .map(|_| {
                    clock += number(300);
                    turn(clock, number(1_000), number(1_000), other(2, "a"))
                })
                .collect();
            let mut wait = wait(turns, number(1_000), number(1_000));
            wait.waiter.clock_ns = clock + number(300);
            wait.ns = number(2_000);
            wait.here_ns = number(wait.ns + 1);
            let least = number(wait.ns + 1);
            wait.throttled_ns = (least, least + number(wait.ns + 1 - least));
            let here = wait.here_ns;
            let found = wait.explained();
            let occupants: u64 = found.occupants.iter().map(|occupant| occupant.ns).sum();
            assert!(occupants + found.irq_ns + found.steal_ns <= here, "{found:?}");
            assert!(found.unexplained_ns <= found.ns, "{found:?}");
        }
    }
}
