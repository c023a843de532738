//! The longest waits that the program kept of each CPU, with whose turns there were meanwhile.

use wakescope_core::units::MonoNs;
use wakescope_core::watch::episode::Episodes;
use wakescope_core::watch::turns::{LongWait, Turn};
use wakescope_decode::KernelTask;
use wakescope_sys::shared::Words;

use super::cgroups::Cgroups;
use super::layout::{LEAST_LONG, cpu_turns, long_wait, turn};
use super::taken::{Taken, TakenTime};

/// How often a wait is read that is written meanwhile.
const TRIES: u32 = 3;

/// The program's long waits.
pub(super) struct LongWaits {
    words: Words,
    /// Of each CPU, the version of each place that was read last, and how many long waits there were.
    cpus: Vec<([u64; cpu_turns::BANKS * cpu_turns::PLACES], u64)>,
    taken: TakenTime,
}

impl LongWaits {
    /// Those in the memory of so many CPUs.
    pub(super) fn of(words: Words, cpus: u32, taken: TakenTime) -> Self {
        Self { words, cpus: vec![Default::default(); cpus as usize], taken }
    }

    /// The longest since the last reading. They end by the monotonic clock.
    pub(super) fn read(&mut self, cgroups: &mut Cgroups, now: MonoNs) -> Episodes {
        let taken = (0..self.cpus.len()).map(|cpu| taken(&self.words, cpu * cpu_turns::WORDS));
        let mut found = Episodes {
            least_ns: LEAST_LONG,
            not_measured: self.taken.judge(&taken.collect::<Vec<_>>(), now),
            ..Episodes::default()
        };
        for (number, (versions, before)) in (0..).zip(&mut self.cpus) {
            let cpu = number as usize * cpu_turns::WORDS;
            // From here on the program writes to the other bank.
            let asked = self.words.load(cpu + cpu_turns::ASKED);
            self.words.store(cpu + cpu_turns::ASKED, asked.wrapping_add(1));
            let long_waits = self.words.load(cpu + cpu_turns::LONG_WAITS);
            found.long_waits += long_waits.saturating_sub(*before);
            *before = long_waits;
            let bank = usize::from(asked & 1 == 1) * cpu_turns::PLACES;
            let places = versions.iter_mut().enumerate().skip(bank).take(cpu_turns::PLACES);
            for (place, before) in places {
                let at = cpu + cpu_turns::LONGEST + place * long_wait::WORDS;
                if let Some((version, wait)) = read_one(&self.words, at, *before, number) {
                    *before = version;
                    found.longest.push(wait.explained());
                }
            }
        }
        found.keep_longest();
        for episode in &mut found.longest {
            episode.cgroup = cgroups.path(episode.cgroup_id);
            for occupant in &mut episode.occupants {
                occupant.cgroup = cgroups.path(occupant.cgroup_id);
            }
        }
        found
    }
}

/// What the CPU whose words begin at `at` showed at its last turn.
fn taken(words: &Words, at: usize) -> Option<Taken> {
    let last = words.load(at + cpu_turns::SEEN).checked_sub(1)?;
    let turn = at + cpu_turns::TURNS + place(last) * turn::WORDS;
    let [_, irq] = halves(words.load(turn + turn::POLICY_AND_IRQ));
    let first_irq = u32::try_from(words.load(at + cpu_turns::FIRST_IRQ)).unwrap_or(0);
    Some(Taken { irq: (first_irq, irq), steal: words.load(turn + turn::STEAL) })
}

/// Where the turn with this number is.
fn place(number: u64) -> usize {
    usize::try_from(number % turn::COUNT as u64).unwrap_or(0)
}

/// The two numbers in a word, in the order of their addresses.
fn halves(word: u64) -> [u32; 2] {
    let bytes = word.to_ne_bytes();
    [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
}

/// The wait at `at`, with its version, if that is not the one `before`.
fn read_one(words: &Words, at: usize, before: u64, cpu: u32) -> Option<(u64, LongWait)> {
    for _ in 0..TRIES {
        let version = words.load(at + long_wait::VERSION);
        if version == before {
            return None;
        }
        let copy: Vec<u64> = (0..long_wait::WORDS).map(|word| words.load(at + word)).collect();
        let is_whole = version % 2 == 0 && words.load(at + long_wait::VERSION) == version;
        if is_whole {
            return Some((version, wait_of(&copy, cpu)));
        }
    }
    None
}

fn wait_of(words: &[u64], cpu: u32) -> LongWait {
    let seen = words[long_wait::SEEN];
    let at = |number: u64| {
        let from = long_wait::TURNS + place(number) * turn::WORDS;
        turn_of(&words[from..from + turn::WORDS])
    };
    // The waiter's own has taken the place of the oldest.
    let first = seen.saturating_sub(turn::COUNT as u64 - 1);
    LongWait {
        end_ns: words[long_wait::AT],
        cpu,
        ns: words[long_wait::NS],
        here_ns: words[long_wait::HERE],
        throttled_ns: (words[long_wait::THROTTLED_LEAST], words[long_wait::THROTTLED_MOST]),
        turns: (first..seen).map(at).collect(),
        waiter: at(seen),
    }
}

fn turn_of(words: &[u64]) -> Turn {
    let [pid, prio] = halves(words[turn::PID_AND_PRIO]);
    let [policy, _] = halves(words[turn::POLICY_AND_IRQ]);
    let mut comm = [0; 16];
    let halves = words[turn::COMM..][..2].iter().flat_map(|half| half.to_ne_bytes());
    comm.iter_mut().zip(halves).for_each(|(to, from)| *to = from);
    let task = KernelTask {
        pid,
        prio: i32::from_ne_bytes(prio.to_ne_bytes()),
        policy,
        // What is left there of another task is not idle's.
        comm: if pid == 0 { Default::default() } else { comm },
    };
    Turn {
        clock_ns: words[turn::CLOCK],
        lost_ns: words[turn::LOST],
        steal_ns: words[turn::STEAL],
        task: (pid != turn::NOBODY).then(|| task.decoded()),
        cgroup_id: words[turn::CGROUP],
    }
}
