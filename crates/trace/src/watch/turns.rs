//! The longest waits that the program kept of each CPU, with who had the CPU meanwhile.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use wakescope_core::units::MonoNs;
use wakescope_core::watch::episode::{Episodes, MOST_EPISODES};
use wakescope_core::watch::turns::{LongWait, QueueClock, Runner, Stay, Turn};
use wakescope_decode::KernelTask;
use wakescope_sys::shared::Words;

use super::cgroups::Cgroups;
use super::layout::{LEAST_LONG, cpu, long_wait, stay, turn};
use super::rows::Rows;
use super::taken::{Taken, TakenTime};

/// How often a wait is read that is written meanwhile.
const TRIES: u32 = 3;

/// The memory for the turns of all CPUs, bytes. It is more where these are so many that each has the fewest.
const RINGS: usize = 8 << 20;

/// Turns of a CPU that there is room for, at least and at most: a switch every 61 µs takes 2 s to fill the latter.
const FEWEST: usize = 1_024;
const MOST: usize = 32_768;

/// How many turns of each of so many CPUs there is room for: a power of 2.
pub(super) fn per_cpu(cpus: u32) -> u32 {
    let all = RINGS / (turn::WORDS * size_of::<u64>());
    let share = all / usize::try_from(cpus).unwrap_or(all).max(1);
    1 << share.clamp(FEWEST, MOST).ilog2()
}

/// A turn as the program wrote it.
type TurnWords = [u64; turn::WORDS];

/// The program's long waits.
pub(super) struct LongWaits {
    /// Of each CPU: [`cpu`].
    cpus: Words,
    ring: Ring,
    /// Of each CPU, how many long waits of each bank there were when that was read last.
    before: Vec<[u64; cpu::BANKS]>,
    taken: TakenTime,
}

impl LongWaits {
    /// Those of the CPUs in `rows`, of which `turns` has so many each.
    pub(super) fn of(rows: &Rows, turns: Words, each: usize, taken: TakenTime) -> Self {
        let cpus = rows.cpus.clone();
        let before = vec![Default::default(); rows.runs().len()];
        Self { ring: Ring { cpus: cpus.clone(), turns, each }, cpus, before, taken }
    }

    /// The longest since the last reading. They end by the monotonic clock. A turn of a series whose row has been
    /// given to another is nobody's.
    pub(super) fn read(&mut self, rows: &Rows, cgroups: &mut Cgroups, now: MonoNs) -> Episodes {
        let taken = (0..self.before.len()).map(|cpu| self.ring.taken(cpu));
        let mut found = Episodes {
            least_ns: LEAST_LONG,
            not_measured: self.taken.judge(&taken.collect::<Vec<_>>(), now),
            ..Episodes::default()
        };
        let mut kept = Vec::new();
        for (number, before) in self.before.iter_mut().enumerate() {
            let at = number * cpu::WORDS;
            // From here on the program writes to the other bank, unless it is in the midst of a wait.
            let asked = self.cpus.load(at + cpu::ASKED);
            self.cpus.store(at + cpu::ASKED, asked.wrapping_add(1));
            let bank = usize::from(asked & 1 == 1);
            let places = (0..cpu::PLACES).map(|place| bank * cpu::PLACES + place);
            let places = places.map(|place| at + cpu::LONGEST + place * long_wait::WORDS);
            let waits = places.filter_map(|place| read_one(&self.cpus, place, asked));
            kept.extend(waits.map(|words| Kept { cpu: number, words }));
            // The program counts a wait before it keeps it: those that are kept are among these.
            let long_waits = self.cpus.load(at + cpu::LONG_WAITS + bank);
            found.long_waits += long_waits.saturating_sub(before[bank]);
            before[bank] = long_waits;
        }
        // A wait may have many turns: they are read of these only.
        kept.sort_by_key(|kept| (Reverse(kept.words[long_wait::NS]), kept.words[long_wait::AT]));
        kept.truncate(MOST_EPISODES);
        found.longest =
            kept.iter().map(|kept| kept.long_wait(&self.ring, rows).explained()).collect();
        for episode in &mut found.longest {
            episode.cgroup = cgroups.path(episode.cgroup_id);
            for occupant in &mut episode.occupants {
                occupant.cgroup = cgroups.path(occupant.cgroup_id);
            }
        }
        found
    }
}

/// The wait at `at`, if it is whole and was kept for this question.
fn read_one(words: &Words, at: usize, asked: u64) -> Option<Vec<u64>> {
    for _ in 0..TRIES {
        if words.load(at + long_wait::ASKED) != asked {
            return None;
        }
        let mut copy = vec![0; long_wait::WORDS];
        words.copy(at, &mut copy);
        let version = copy[long_wait::VERSION];
        if version % 2 == 0 && words.load(at + long_wait::VERSION) == version {
            // Before the first one, the place is all zero.
            let is_kept = copy[long_wait::ASKED] == asked && copy[long_wait::NS] > 0;
            return is_kept.then_some(copy);
        }
    }
    None
}

/// The last turns of each CPU, which the program goes on to write.
struct Ring {
    cpus: Words,
    turns: Words,
    /// How many of each CPU: a power of 2.
    each: usize,
}

impl Ring {
    /// How many turns of the CPU began so far.
    fn begun(&self, cpu: usize) -> u64 {
        self.cpus.load(cpu * cpu::WORDS + cpu::SWITCHES)
    }

    /// The words at the place of the turn with this number.
    fn at(&self, cpu: usize, number: u64) -> TurnWords {
        let place = usize::try_from(number % self.each as u64).unwrap_or(0);
        let mut words = TurnWords::default();
        self.turns.copy((cpu * self.each + place) * turn::WORDS, &mut words);
        words
    }

    /// The turns before the one with this number, the last one first, up to one that began at `begin` or before,
    /// or as far as the program has not written others in their places.
    fn back_from(&self, cpu: usize, number: u64, begin: u64) -> Vec<TurnWords> {
        // The program may be about to write the turn that is the next to begin.
        let first = |begun: u64| (begun + 1).saturating_sub(self.each as u64);
        let mut turns = Vec::new();
        for number in (first(self.begun(cpu))..number).rev() {
            let words = self.at(cpu, number);
            turns.push(words);
            if words[turn::CLOCK] <= begin {
                break;
            }
        }
        // It went on meanwhile.
        let whole = number.saturating_sub(first(self.begun(cpu)));
        turns.truncate(usize::try_from(whole).unwrap_or(usize::MAX));
        turns
    }

    /// What the CPU showed at its last turn; `None` before the first one.
    fn taken(&self, cpu: usize) -> Option<Taken> {
        let last = self.begun(cpu).checked_sub(1)?;
        let [irq, first_irq] =
            [cpu::IRQ, cpu::FIRST_IRQ].map(|word| self.cpus.load(cpu * cpu::WORDS + word));
        Some(Taken { irq: (first_irq, irq), steal: self.at(cpu, last)[turn::STEAL] })
    }
}

/// A wait as the program kept it.
struct Kept {
    cpu: usize,
    words: Vec<u64>,
}

impl Kept {
    /// The turn that ended it, and those before that were kept with it, the last one first.
    fn turns(&self) -> impl Iterator<Item = TurnWords> {
        let count = self.words[long_wait::TURN].saturating_add(1).min(long_wait::KEPT as u64);
        let turns = self.words[long_wait::TURNS..].chunks_exact(turn::WORDS);
        let turns = turns.map(|words| words.try_into().unwrap_or_default());
        turns.take(usize::try_from(count).unwrap_or(0))
    }

    /// The wait with all turns that are known.
    fn long_wait(&self, ring: &Ring, rows: &Rows) -> LongWait {
        let words = &self.words;
        let whose = [long_wait::CGROUP, long_wait::COMM, long_wait::COMM + 1];
        let own = words[long_wait::TURNS..].first_chunk().copied().unwrap_or_default();
        let mut runners = Runners::of(rows);
        LongWait {
            end_ns: words[long_wait::AT],
            ns: words[long_wait::NS],
            earlier: self.earlier(ring, &mut runners),
            last: self.last(ring, &mut runners),
            waiter: runner(whose.map(|word| words[word]), &own),
            runners: runners.all,
        }
    }

    /// What of it was in the queue of this CPU.
    fn last(&self, ring: &Ring, runners: &mut Runners) -> Stay {
        let mut turns: Vec<TurnWords> = self.turns().collect();
        let (ended, ns) = (clock_of(&turns[0]), self.words[long_wait::HERE]);
        let begin = ended.clock_ns.saturating_sub(ns);
        let is_whole = turns.last().is_none_or(|oldest| oldest[turn::CLOCK] <= begin);
        if !is_whole {
            let before = self.words[long_wait::TURN].saturating_sub(turns.len() as u64 - 1);
            turns.extend(ring.back_from(self.cpu, before, begin));
        }
        let turns = turns.iter().skip(1).rev().map(|words| runners.turn(words)).collect();
        let throttled_ns =
            (self.words[long_wait::THROTTLED_LEAST], self.words[long_wait::THROTTLED_MOST]);
        Stay { cpu: u32::try_from(self.cpu).unwrap_or(u32::MAX), ended, ns, throttled_ns, turns }
    }

    /// What of it was in queues of other CPUs, with the turns that their rings still have.
    fn earlier(&self, ring: &Ring, runners: &mut Runners) -> Vec<Stay> {
        let stays = self.words[long_wait::STAYS..long_wait::TURN].chunks_exact(stay::WORDS);
        let noted = stays.filter(|words| words[stay::NS] > 0);
        let stay = |words: &[u64]| {
            let [cpu, _] = halves(words[stay::CPU]);
            let [clock_ns, lost_ns, steal_ns] =
                [stay::CLOCK, stay::LOST, stay::STEAL].map(|word| words[word]);
            let (ns, ended) = (words[stay::NS], QueueClock { clock_ns, lost_ns, steal_ns });
            let begin = clock_ns.saturating_sub(ns);
            let turns = ring.back_from(cpu as usize, words[stay::TURNS], begin);
            let turns = turns.iter().rev().map(|words| runners.turn(words)).collect();
            let throttled_ns = (words[stay::THROTTLED], words[stay::THROTTLED]);
            Stay { cpu, ended, ns, throttled_ns, turns }
        };
        noted.map(stay).collect()
    }
}

/// The tasks that ran, collected as turns are read.
struct Runners<'a> {
    rows: &'a Rows,
    all: Vec<Runner>,
    /// By tenure and schedule, which of all.
    known: BTreeMap<(u64, u32), Option<usize>>,
}

impl<'a> Runners<'a> {
    fn of(rows: &'a Rows) -> Self {
        Self { rows, all: Vec::new(), known: BTreeMap::new() }
    }

    fn turn(&mut self, words: &TurnWords) -> Turn {
        let [pid, schedule] = halves(words[turn::PID_AND_SCHEDULE]);
        let tenure = words[turn::TENURE];
        let Self { rows, all, known } = self;
        let runner = *known.entry((tenure, schedule)).or_insert_with(|| {
            let found = runner(rows.key_in(tenure)?, words);
            // A series may have had two rows, of which the first one rests.
            let same = all.iter().position(|other| other.is_one_with(&found));
            Some(same.unwrap_or_else(|| {
                all.push(found);
                all.len() - 1
            }))
        });
        Turn { began: clock_of(words), runner, pid }
    }
}

fn clock_of(words: &TurnWords) -> QueueClock {
    QueueClock {
        clock_ns: words[turn::CLOCK],
        lost_ns: words[turn::LOST],
        steal_ns: words[turn::STEAL],
    }
}

/// The task that has this turn, of a series with this key.
fn runner([cgroup_id, name @ ..]: [u64; 3], words: &TurnWords) -> Runner {
    let [pid, schedule] = halves(words[turn::PID_AND_SCHEDULE]);
    let [a, b, c, d] = schedule.to_ne_bytes();
    let mut comm = [0; 16];
    let bytes = name.iter().flat_map(|half| half.to_ne_bytes());
    comm.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    let (prio, policy) = (i16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]));
    let task = KernelTask { pid, prio: prio.into(), policy: policy.into(), comm };
    Runner { task: task.decoded(), cgroup_id }
}

/// The two numbers in a word, in the order of their addresses.
fn halves(word: u64) -> [u32; 2] {
    let bytes = word.to_ne_bytes();
    [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
}

#[cfg(test)]
mod tests;
