//! The longest waits of a window, and who had the CPU meanwhile.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::explain::{Cause, Culprit, NamedTask};
use crate::watch::turns::MOST_OCCUPANTS;

/// The most episodes of a window, and of several together.
pub const MOST_EPISODES: usize = 8;

/// The most earlier queues of an episode.
pub(crate) const MOST_EARLIER_QUEUES: usize = 2;

/// The longest waits of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episodes {
    /// Shorter waits are no episodes, ns; the least of several watches.
    pub least_ns: u64,
    /// How many waits were as long as that or longer, on all CPUs, without those that ended at a
    /// switch which the kernel did not report.
    pub long_waits: u64,
    /// What is not measured, so that it is in the share of another or in none.
    pub not_measured: NotMeasured,
    /// The longest of the two longest of each CPU and interval, the longest first. All others are
    /// suppressed, and are in the histograms.
    pub longest: Vec<Episode>,
}

/// What is not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// What interrupts take: it is in the share of whom they interrupt. So it is without
    /// CONFIG_IRQ_TIME_ACCOUNTING, and where the kernel has no clock that is cheap enough for that.
    pub interrupts: bool,
    /// What the hypervisor takes of a guest: as well. So it is without CONFIG_PARAVIRT_TIME_ACCOUNTING, and
    /// until the hypervisor has reported some: not all do.
    pub steal: bool,
    /// What quotas take: without it a wait in a group with a quota may be taken for one of another cause.
    pub quota: bool,
}

/// A long wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// When it ended, from the start of the watch, ns; in a sum of windows, from that of the first one.
    pub end_ns: u64,
    /// The CPU on which it ended.
    pub cpu: u32,
    /// How long it was, ns.
    pub ns: u64,
    /// Who waited.
    pub task: NamedTask,
    /// Its cgroup, as in series.
    pub cgroup_id: u64,
    /// The path of that.
    pub cgroup: Option<String>,
    /// What took at least half of it, if that is certain.
    pub cause: Cause,
    /// Who that was.
    pub culprit: Culprit,
    /// What its own quota took of it at least, ns.
    pub throttled_ns: u64,
    /// What interrupts took at least of the CPUs for which it waited, ns.
    pub irq_ns: u64,
    /// What the hypervisor took of them at least, ns.
    pub steal_ns: u64,
    /// What it waited in queues of other CPUs before, ns.
    pub moved_ns: u64,
    /// What of this was in a queue that is known: all but that is a part of [`Self::unexplained_ns`], unless a quota
    /// took it. Windows of earlier versions know none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_queues: Vec<EarlierQueue>,
    /// Who ran meanwhile on the CPUs whose queues are known, whoever ran longest first.
    pub occupants: Vec<Occupant>,
    /// What nobody is known to have taken, ns.
    pub unexplained_ns: u64,
}

/// The queue of another CPU, in which a task waited before it was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierQueue {
    /// The CPU.
    pub cpu: u32,
    /// How long it waited there, ns.
    pub ns: u64,
}

/// Who ran on a CPU while another waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupant {
    /// The task; of several of one name, policy, priority and cgroup without a number.
    pub task: NamedTask,
    /// Its cgroup.
    pub cgroup_id: u64,
    /// The path of that.
    pub cgroup: Option<String>,
    /// How long it ran during the wait at least, ns: without interrupts and steal, where these
    /// are measured.
    pub ns: u64,
}

impl Episodes {
    /// Both together, of which the `later` ones come after these.
    #[must_use]
    pub fn plus(mut self, later: Self) -> Self {
        self.longest.extend(later.longest);
        self.least_ns = self.least_ns.min(later.least_ns);
        self.long_waits = self.long_waits.saturating_add(later.long_waits);
        self.not_measured = NotMeasured {
            interrupts: self.not_measured.interrupts || later.not_measured.interrupts,
            steal: self.not_measured.steal || later.not_measured.steal,
            quota: self.not_measured.quota || later.not_measured.quota,
        };
        self.keep_longest();
        self
    }

    /// Puts the longest first, and leaves out what is too much.
    pub(crate) fn keep_longest(&mut self) {
        self.longest.sort_by_key(|episode| (Reverse(episode.ns), episode.end_ns));
        self.longest.truncate(MOST_EPISODES);
    }

    /// What is wrong with these, if anything.
    pub(super) fn fault(&self) -> Option<String> {
        if self.longest.len() > MOST_EPISODES {
            return Some(format!("more than {MOST_EPISODES} are there"));
        }
        if self.longest.iter().any(|episode| episode.occupants.len() > MOST_OCCUPANTS) {
            return Some(format!("one has more than {MOST_OCCUPANTS} occupants"));
        }
        if self.longest.iter().any(|it| it.earlier_queues.len() > MOST_EARLIER_QUEUES) {
            return Some(format!("one has more than {MOST_EARLIER_QUEUES} earlier queues"));
        }
        if self.longest.len() as u64 > self.long_waits {
            return Some("there are more than long waits".into());
        }
        self.longest.iter().find_map(Episode::fault)
    }
}

impl Episode {
    /// What it waited in queues that nobody knows, ns.
    pub fn elsewhere_ns(&self) -> u64 {
        self.moved_ns.saturating_sub(self.earlier_ns())
    }

    /// What it waited in the queues of other CPUs that are known, ns.
    fn earlier_ns(&self) -> u64 {
        self.earlier_queues.iter().fold(0, |sum, queue| sum.saturating_add(queue.ns))
    }

    /// Why its parts cannot be those of such a wait, if they cannot.
    fn fault(&self) -> Option<String> {
        let Self { ns, moved_ns, throttled_ns, unexplained_ns, .. } = *self;
        let parts = [("moved_ns", moved_ns), ("throttled_ns", throttled_ns)];
        let of_whole = parts.into_iter().chain([("unexplained_ns", unexplained_ns)]);
        for (key, part) in of_whole {
            if part > ns {
                return Some(format!("{key} is {part} of a wait of {ns} ns"));
            }
        }
        let earlier_ns = self.earlier_ns();
        if earlier_ns > moved_ns {
            return Some(format!("{earlier_ns} ns of earlier queues are of moved_ns, {moved_ns}"));
        }
        let in_known_ns = ns - self.elsewhere_ns();
        let occupants = self.occupants.iter().map(|occupant| occupant.ns);
        let taken = occupants.chain([self.irq_ns, self.steal_ns]).fold(0, u64::saturating_add);
        if taken > in_known_ns {
            return Some(format!(
                "{taken} ns were taken of the {in_known_ns} ns that one waited in known queues"
            ));
        }
        // What several occupants took that are left out is in no figure.
        let known = taken.saturating_add(throttled_ns).saturating_add(unexplained_ns);
        let is_all = self.occupants.len() < MOST_OCCUPANTS;
        (is_all && known < ns).then(|| format!("only {known} ns of a wait of {ns} ns have a share"))
    }
}

#[cfg(test)]
mod tests {
    use wakescope_testing::assert_told;

    use super::*;

    /// A wait of 100 ns, 10 of them elsewhere.
    fn wait(occupants: &[u64]) -> Episode {
        let occupants = occupants.iter().map(|&ns| Occupant { ns, ..Occupant::default() });
        Episode {
            ns: 100,
            moved_ns: 10,
            steal_ns: 5,
            unexplained_ns: 15,
            occupants: occupants.collect(),
            ..Episode::default()
        }
    }

    fn queues(all: &[u64]) -> Vec<EarlierQueue> {
        all.iter().map(|&ns| EarlierQueue { cpu: 3, ns }).collect()
    }

    #[test]
    fn parts_that_are_not_those_of_the_wait_are_found() {
        type Change = fn(&mut Episode);
        for (wait, change, want) in [
            (wait(&[50, 30]), (|_| ()) as Change, None),
            // Who took the rest is left out.
            (wait(&[20, 10, 10]), |_| (), None),
            // A quota may have stopped it while others ran.
            (wait(&[50, 30]), |wait| wait.throttled_ns = 90, None),
            (wait(&[50, 30]), |wait| wait.ns = 300, Some("only 100 ns of a wait of 300 ns")),
            (wait(&[50, 30]), |wait| wait.ns = 90, Some("85 ns were taken of the 80 ns")),
            (wait(&[50, u64::MAX]), |_| (), Some("were taken of the 90 ns")),
            (wait(&[50, 30]), |wait| wait.irq_ns = 6, Some("91 ns were taken of the 90 ns")),
            (wait(&[20, 20]), |_| (), Some("only 60 ns of a wait of 100 ns")),
            // Of an earlier queue it is known who ran.
            (wait(&[50, 40]), |wait| wait.earlier_queues = queues(&[6, 4]), None),
            (
                wait(&[50, 40]),
                |wait| wait.earlier_queues = queues(&[4]),
                Some("95 ns were taken of the 94 ns"),
            ),
            (
                wait(&[50, 30]),
                |wait| wait.earlier_queues = queues(&[6, 5]),
                Some("11 ns of earlier queues are of moved_ns, 10"),
            ),
            (
                wait(&[50, 30]),
                |wait| wait.earlier_queues = queues(&[u64::MAX, 5]),
                Some("ns of earlier queues are of moved_ns, 10"),
            ),
            (
                wait(&[50, 30]),
                |wait| wait.earlier_queues = queues(&[1, 1, 1]),
                Some("one has more than 2 earlier queues"),
            ),
            (wait(&[]), |wait| wait.moved_ns = 101, Some("moved_ns is 101 of a wait of 100 ns")),
            (wait(&[]), |wait| wait.throttled_ns = 101, Some("throttled_ns is 101 of a wait")),
            (wait(&[]), |wait| wait.unexplained_ns = 101, Some("unexplained_ns is 101 of a")),
        ] {
            let mut longest = wait;
            change(&mut longest);
            let all = Episodes { long_waits: 1, longest: vec![longest], ..Episodes::default() };
            assert_told(all.fault(), want);
        }
    }
}
