use wakescope_core::watch::episode::NotMeasured;

use super::*;
use crate::watch::words;

/// A CPU whose ring has room for so many turns, which began 10 ns after each other, by two tasks in turn. Those on
/// another CPU are of a third one, and have another clock.
struct Cpu {
    rows: Rows,
    turns: Words,
    tenures: [u64; 3],
    each: usize,
}

impl Cpu {
    fn with(each: usize) -> Self {
        let rows = Rows::of(8, 2);
        let name = |letter: u8| [3, u64::from_ne_bytes([letter, 0, 0, 0, 0, 0, 0, 0]), 0];
        let tenures = [(4, b'a'), (5, b'b'), (7, b'c')];
        let tenures = tenures.map(|(row, letter)| rows.give(row, name(letter)));
        let turns = words(2 * each * turn::WORDS);
        Self { rows, turns, tenures, each }
    }

    fn turn(&self, number: u64) -> TurnWords {
        self.turn_of(usize::try_from(number % 2).unwrap(), 10 * number)
    }

    /// A turn of one of the three tasks, which begins then.
    fn turn_of(&self, which: usize, clock: u64) -> TurnWords {
        let pid = [100_u32, 101, 102][which];
        let [p, q, r, s] = pid.to_ne_bytes();
        let ([a, b], [c, d]) = (120_i16.to_ne_bytes(), 0_u16.to_ne_bytes());
        let task = u64::from_ne_bytes([p, q, r, s, a, b, c, d]);
        [clock, 0, 0, self.tenures[which], task]
    }

    /// The same as [`Self::switch`] on the other CPU.
    fn switch_other(&self, begun: u64) {
        for number in self.rows.cpus.load(cpu::WORDS + cpu::SWITCHES)..begun {
            let at = (self.each + usize::try_from(number).unwrap() % self.each) * turn::WORDS;
            let turn = self.turn_of(2, OTHER_CLOCK + 10 * number);
            (at..).zip(turn).for_each(|(word, value)| self.turns.store(word, value));
            self.rows.cpus.store(cpu::WORDS + cpu::SWITCHES, number + 1);
        }
    }

    /// Notes that what is kept of the wait was not all: the task waited so long on the other CPU, up to 5 ns after
    /// the last turn began there.
    fn note_stay(&self, place: usize, ns: u64) {
        let turns = self.rows.cpus.load(cpu::WORDS + cpu::SWITCHES);
        let clock = OTHER_CLOCK + 10 * turns - 5;
        let at = cpu::LONGEST + long_wait::STAYS + place * stay::WORDS;
        let [a, b, c, d] = 1_u32.to_ne_bytes();
        let number = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
        let words = [ns, clock, 0, 0, 0, turns, number];
        (at..).zip(words).for_each(|(word, value)| self.rows.cpus.store(word, value));
        let all = self.rows.cpus.load(cpu::LONGEST + long_wait::NS);
        self.rows.cpus.store(cpu::LONGEST + long_wait::NS, all + ns);
    }

    /// Switches until so many turns have begun.
    fn switch(&self, begun: u64) {
        for number in self.rows.cpus.load(cpu::SWITCHES)..begun {
            let at = usize::try_from(number).unwrap() % self.each * turn::WORDS;
            for (word, value) in self.turn(number).into_iter().enumerate() {
                self.turns.store(at + word, value);
            }
            self.rows.cpus.store(cpu::SWITCHES, number + 1);
        }
    }

    /// Keeps a wait of `ns` that ended when the last turn began, for the first question.
    fn keep(&self, ns: u64) {
        self.begin_to_keep(0, 0).end(ns);
    }

    /// Begins to keep a wait in one of the places for this question.
    fn begin_to_keep(&self, asked: u64, place: usize) -> Keeping<'_> {
        let bank = usize::from(asked % 2 == 1);
        let waits = cpu::LONG_WAITS + bank;
        self.rows.cpus.store(waits, self.rows.cpus.load(waits) + 1);
        let place = cpu::LONGEST + (bank * cpu::PLACES + place) * long_wait::WORDS;
        let version = self.rows.cpus.load(place + long_wait::VERSION) + 1;
        self.rows.cpus.store(place + long_wait::VERSION, version);
        Keeping { cpu: self, asked, place, version }
    }

    /// Empties the bank for this question, as the program does before it keeps the first wait there.
    fn empty_bank(&self, asked: u64) {
        let bank = usize::from(asked % 2 == 1) * cpu::PLACES;
        for place in bank..bank + cpu::PLACES {
            let at = cpu::LONGEST + place * long_wait::WORDS + long_wait::NS;
            self.rows.cpus.store(at, 0);
        }
    }

    fn long_waits(&self) -> LongWaits {
        let taken = TakenTime::of(NotMeasured::default(), false);
        LongWaits::of(&self.rows, self.turns.clone(), self.each, taken)
    }

    /// The occupants of the one wait that is kept, with how long they ran, and the time that is not explained.
    fn explained(&self) -> (Vec<(String, Option<u32>, u64)>, u64) {
        // Whoever read before has asked for the other bank.
        self.rows.cpus.store(cpu::ASKED, 0);
        let mut cgroups = Cgroups::default();
        let found = self.long_waits().read(&self.rows, &mut cgroups, MonoNs(0));
        let [episode] = &found.longest[..] else { panic!("{found:?}") };
        let ran = episode.occupants.iter();
        let ran = ran.map(|it| (it.task.comm.clone(), it.task.pid, it.ns));
        (ran.collect(), episode.unexplained_ns)
    }
}

/// A wait that is being written.
struct Keeping<'a> {
    cpu: &'a Cpu,
    asked: u64,
    place: usize,
    version: u64,
}

impl Keeping<'_> {
    fn end(self, ns: u64) {
        let Self { cpu, asked, place, version } = self;
        let last = cpu.rows.cpus.load(cpu::SWITCHES) - 1;
        let to = |word, value| cpu.rows.cpus.store(place + word, value);
        for (word, value) in [
            (long_wait::ASKED, asked),
            (long_wait::NS, ns),
            (long_wait::HERE, ns),
            (long_wait::TURN, last),
        ] {
            to(word, value);
        }
        for (back, number) in (0..=last).rev().take(long_wait::KEPT).enumerate() {
            let at = long_wait::TURNS + back * turn::WORDS;
            (at..).zip(cpu.turn(number)).for_each(|(word, value)| to(word, value));
        }
        to(long_wait::VERSION, version + 1);
    }
}

fn both(a: u64, b: u64) -> Vec<(String, Option<u32>, u64)> {
    vec![("a".into(), Some(100), a), ("b".into(), Some(101), b)]
}

/// By how much the clocks of both CPUs differ.
const OTHER_CLOCK: u64 = 7_000_000;

/// Of a wait that ended on another CPU than it began on, the turns are in the rings of both.
#[test]
fn turns_of_the_cpu_that_a_task_was_moved_from_are_known() {
    let of_c = |ns: u64| [both(20, 20), vec![("c".into(), Some(102), ns)]].concat();
    // The turns of the other CPU that began before the move, how long the task had waited there then, the turns that
    // began after it; how long "c" ran, and what is not known.
    for (begun, ns, since, c_ns, unexplained) in [
        // Half of the last turn alone, then with those before it.
        (600, 5, 0, 5, 0),
        (600, 105, 0, 105, 0),
        (600, 105, 7, 105, 0),
        // It began before the first turn that was seen.
        (10, 105, 0, 95, 10),
        (0, 105, 7, 0, 105),
        // The ring goes on: 11 turns are of the wait.
        (2_000, 105, 1_024 - 12, 105, 0),
        (2_000, 105, 1_024 - 11, 95, 10),
        (2_000, 105, 1_024 - 2, 5, 100),
        (2_000, 105, 1_024 - 1, 0, 105),
        (2_000, 105, 5_000, 0, 105),
    ] {
        let cpu = Cpu::with(1_024);
        cpu.switch(501);
        cpu.keep(40);
        cpu.switch_other(begun);
        cpu.note_stay(0, ns);
        cpu.switch_other(begun + since);
        let (mut ran, not_known) = cpu.explained();
        ran.sort();
        let want = if c_ns > 0 { of_c(c_ns) } else { both(20, 20) };
        assert_eq!((ran, not_known), (want, unexplained), "{begun} {ns} {since}");
    }
}

#[test]
fn each_stay_before_is_of_its_own_time() {
    let cpu = Cpu::with(1_024);
    cpu.switch(501);
    cpu.keep(40);
    cpu.switch_other(100);
    cpu.note_stay(0, 25);
    cpu.switch_other(110);
    cpu.note_stay(1, 15);
    let mut found = cpu.explained();
    found.0.sort();
    assert_eq!(found, ([both(20, 20), vec![("c".into(), Some(102), 40)]].concat(), 0));
    // Whoever had the row that is another's by now is not known.
    cpu.rows.retire(7);
    cpu.rows.clear(7);
    cpu.rows.give(7, [3, 9, 9]);
    let mut found = cpu.explained();
    found.0.sort();
    assert_eq!(found, (both(20, 20), 40));
}

#[test]
fn all_turns_of_a_wait_are_known_that_the_ring_still_has() {
    // The turns that began, how long the wait was, those that began since; what is known.
    for (begun, ns, since, want) in [
        // Those kept with it are enough: 40 turns, or 39 and half of another.
        (1_001, 400, 0, (both(200, 200), 0)),
        (1_001, 395, 0, (both(195, 200), 0)),
        (1_001, 395, 5_000, (both(195, 200), 0)),
        // From the ring, up to its oldest.
        (1_001, 10_000, 0, (both(5_000, 5_000), 0)),
        (5_001, 10_000, 0, (both(5_000, 5_000), 0)),
        (5_001, 10_000, 22, (both(5_000, 5_000), 0)),
        (5_001, 10_000, 23, (both(4_990, 5_000), 10)),
        (5_001, 10_000, 123, (both(4_490, 4_500), 1_010)),
        // All of the ring is overwritten: the 63 turns that were kept are known.
        (5_001, 10_000, 1_023, (both(310, 320), 9_370)),
        (5_001, 10_000, 5_000, (both(310, 320), 9_370)),
        // It began before the first turn that was seen.
        (11, 400, 0, (both(50, 50), 300)),
        (1, 400, 0, (Vec::new(), 400)),
    ] {
        let cpu = Cpu::with(1_024);
        cpu.switch(begun);
        cpu.keep(ns);
        cpu.switch(begun + since);
        let mut found = cpu.explained();
        found.0.sort();
        assert_eq!(found, want, "{begun} {ns} {since}");
    }
}

#[test]
fn turns_of_a_row_that_was_given_to_another_are_of_nobody() {
    let mut cpu = Cpu::with(1_024);
    cpu.switch(501);
    cpu.keep(2_000);
    cpu.rows.retire(5);
    let mut found = cpu.explained();
    found.0.sort();
    assert_eq!(found, (both(1_000, 1_000), 0));
    // The series has another row from now on, and still is one.
    cpu.tenures[1] = cpu.rows.give(6, cpu.rows.key(5));
    cpu.switch(601);
    cpu.keep(2_000);
    let mut found = cpu.explained();
    found.0.sort();
    assert_eq!(found, (both(1_000, 1_000), 0));
    cpu.rows.clear(5);
    let less_of_b = (both(1_000, 500), 500);
    assert_eq!(cpu.explained(), less_of_b);
    cpu.rows.give(5, [3, 9, 9]);
    assert_eq!(cpu.explained(), less_of_b);
}

#[test]
fn rings_are_as_long_as_memory_allows() {
    for (cpus, want) in [
        (0, 32_768),
        (1, 32_768),
        (2, 32_768),
        (6, 32_768),
        (7, 16_384),
        (16, 8_192),
        (64, 2_048),
        (256, 1_024),
        (8_192, 1_024),
    ] {
        assert_eq!(per_cpu(cpus), want, "{cpus} CPUs");
    }
}

/// The program may be in the midst of a wait when its bank is read: the place then still holds what it held before, or
/// a part of each. It writes the rest into the bank that is read next but one.
#[test]
fn a_wait_that_is_kept_too_late_is_only_counted() {
    // Whether the place held a wait of that bank before, and whether another wait comes when the bank has its turn.
    for (was_used, comes_another) in [(false, false), (false, true), (true, false), (true, true)] {
        let cpu = Cpu::with(1_024);
        cpu.switch(501);
        let mut waits = cpu.long_waits();
        let mut read = || {
            let found = waits.read(&cpu.rows, &mut Cgroups::default(), MonoNs(0));
            let ns: Vec<_> = found.longest.iter().map(|episode| episode.ns).collect();
            (found.long_waits, ns)
        };
        let keep = |asked, place, ns| cpu.begin_to_keep(asked, place).end(ns);
        let before = if was_used { vec![40] } else { Vec::new() };
        if was_used {
            keep(0, 0, 40);
            keep(0, 1, 30);
        }
        let late = cpu.begin_to_keep(0, 1);
        let label = format!("{was_used} {comes_another}");
        assert_eq!(read(), (2 * u64::from(was_used) + 1, before), "{label}");
        late.end(50);
        keep(1, 0, 60);
        assert_eq!(read(), (1, vec![60]), "{label}");
        let mut another = (0, Vec::new());
        if comes_another {
            cpu.empty_bank(2);
            keep(2, 0, 20);
            another = (1, vec![20]);
        }
        assert_eq!(read(), another, "{label}");
        assert_eq!(read(), (0, Vec::new()), "{label}");
    }
}

/// The program may have been asked anew before it counts a wait, and after: both are read together later.
#[test]
fn no_more_waits_are_kept_than_are_counted() {
    let cpu = Cpu::with(1_024);
    cpu.switch(501);
    let mut waits = cpu.long_waits();
    let late = cpu.begin_to_keep(1, 0);
    let mut read = || {
        let found = waits.read(&cpu.rows, &mut Cgroups::default(), MonoNs(0));
        (found.long_waits, found.longest.len())
    };
    assert_eq!(read(), (0, 0));
    late.end(50);
    assert_eq!(read(), (1, 1));
}
