use super::timer::{Alarm, Timer};
use super::*;

/// A machine that wakes each sleeper `lateness` late, in turn, and is away from home when told.
#[derive(Clone, Copy)]
struct Simulated<'a> {
    now: u64,
    lateness: &'a [u64],
    turn: usize,
}

impl Alarm for Simulated<'_> {
    fn sleep_until(&mut self, expiry: MonoNs) -> Result<MonoNs, Waited> {
        let late = self.lateness[self.turn % self.lateness.len()];
        self.turn += 1;
        self.now = self.now.max(expiry.0) + late;
        Ok(MonoNs(self.now))
    }
}

/// A thread that is found away from home at one of its wakeups.
struct SimulatedPlace {
    turn: usize,
    away_at: Option<usize>,
    home_exists: bool,
}

impl Place for SimulatedPlace {
    fn is_home(&mut self) -> bool {
        self.turn += 1;
        self.away_at != Some(self.turn)
    }
    fn go_home(&mut self) -> bool {
        self.home_exists
    }
}

fn home() -> SimulatedPlace {
    SimulatedPlace { turn: 0, away_at: None, home_exists: true }
}

fn timer(lateness: &[u64], interval: u64, points: u64) -> Timer<Simulated<'_>> {
    let mut timer = Timer::new(Simulated { now: 0, lateness, turn: 0 });
    timer.begin(Grid { start: ORIGIN, interval: SpanNs(interval), points });
    timer
}

const ORIGIN: MonoNs = MonoNs(1_000);

fn run(
    stimulus: &mut impl WaitForStimulus,
    place: &mut SimulatedPlace,
    recorder: &Recorder,
) -> Ending {
    let stop = Stop::default();
    sample(stimulus, place, u64::MAX, ORIGIN, recorder, None, &stop)
}

#[track_caller]
fn check(lateness: &[u64], interval: u64, expiries: u64, want_woken: u64) {
    let recorder = Recorder::new(4);
    let end = run(&mut timer(lateness, interval, expiries), &mut home(), &recorder);
    let seen = recorder.snapshot();
    assert_eq!(end, Ending::Done);
    assert_eq!(seen.expiries.count, expiries, "every expiry of the grid counts once");
    assert_eq!(seen.woken.count, want_woken);
    assert_eq!(seen.missed, expiries - want_woken);
}

#[test]
fn each_expiry_counts_once_whatever_the_stalls() {
    check(&[5], 1_000, 100, 100);
    check(&[999], 1_000, 100, 100);
    check(&[1_000], 1_000, 100, 50); // Just at the next expiry: that one has passed.
    check(&[100_300, 5, 5, 5], 1_000, 500, 17); // One wakeup in four takes 101 expiries.
    check(&[1 << 40], 1_000, 500, 1); // A stall beyond the end takes what is left, no more.
}

#[test]
fn the_time_between_wakeups_is_compared_with_the_interval() {
    // Late by 5, 900, 5, then one that swallows an expiry, and one that comes after it.
    for (lateness, want) in [
        (&[5][..], &[0, 0, 0, 0, 0, 0, 0][..]),
        (&[5, 900, 5, 1_200], &[895, -895, 1_195, -195, 895, -895]),
    ] {
        let recorder = Recorder::new(0);
        let ending = run(&mut timer(lateness, 1_000, 8), &mut home(), &recorder);
        let seen = recorder.snapshot();
        let got = seen.deviation.figures().unwrap();
        assert_eq!((ending, got.count), (Ending::Done, want.len() as u64), "{lateness:?}");
        // There is one less of them than wakeups: what came before the first does not count.
        assert_eq!(got.count, seen.woken.count - 1);
        assert_eq!(Some(got.min_ns), want.iter().min().copied());
        assert_eq!(Some(got.max_ns), want.iter().max().copied());
        let sum = want.iter().sum::<i64>() as f64;
        assert!((got.mean_ns * want.len() as f64 - sum).abs() < 1e-6, "{got:?}");
    }
    // Whoever is woken by another thread keeps no interval.
    let recorder = Recorder::new(0);
    let woken = |at| Waited::Woken(Wakeup { due: MonoNs(at), woken: MonoNs(at), missed: 0 });
    run(&mut Given(vec![woken(5_000), woken(9_000)].into_iter()), &mut home(), &recorder);
    assert_eq!(recorder.snapshot().deviation.count(), 0);
}

#[test]
fn the_grid_of_a_rate_does_not_drift() {
    // At 2048 Hz, 488,281.25 ns, and no nanosecond more or less in a day; also across stalls.
    for lateness in [&[5][..], &[5, 488_277, 12, 1_953_120, 1_953_125, 900_000_000]] {
        let points = 2_048 * 3_600;
        let mut timer = Timer::of_rate(Simulated { now: 0, lateness, turn: 0 });
        timer.begin(Grid { start: ORIGIN, interval: SpanNs(488_281), points });
        let mut index = 0_u64;
        while let Waited::Woken(Wakeup { due, woken, missed }) = timer.wait() {
            let at = |index: u64| ORIGIN.0 + index * 1_000_000_000 / 2_048;
            assert_eq!(due.0, at(index));
            let passed = at(index + missed) <= woken.0 && at(index + missed + 1) > woken.0;
            assert!(passed || index + missed + 1 == points, "{index} {missed}");
            index += missed + 1;
        }
        assert_eq!(index, points);
    }
}

#[test]
fn a_number_of_wakeups_ends_the_run_too() {
    let (recorder, stop) = (Recorder::new(0), Stop::default());
    let ring = Ring::new(64);
    let mut timer = timer(&[3_500, 1], 1_000, u64::MAX);
    let end = sample(&mut timer, &mut home(), 10, ORIGIN, &recorder, Some(&ring), &stop);
    assert_eq!((end, recorder.snapshot().woken.count), (Ending::Done, 10));
    assert_eq!(ring.pop(), Some(Sample { due_ns: 0, late_ns: 3_500 }));
    assert_eq!(ring.pop(), Some(Sample { due_ns: 4_000, late_ns: 1 }));
}

#[test]
fn a_cpu_that_is_gone_ends_the_loop_and_one_that_is_not_counts_a_migration() {
    for (home_exists, want_woken) in [(false, 4), (true, 20)] {
        let recorder = Recorder::new(0);
        let mut place = SimulatedPlace { turn: 0, away_at: Some(5), home_exists };
        let end = run(&mut timer(&[1], 1_000, 20), &mut place, &recorder);
        let seen = recorder.snapshot();
        assert_eq!(seen.woken.count, want_woken);
        assert_eq!(seen.migrated, u64::from(home_exists));
        let want = if home_exists { Ending::Done } else { Ending::CpuLost(SpanNs(4_000)) };
        assert_eq!(end, want);
    }
}

#[test]
fn a_stopped_loop_takes_no_further_sample() {
    let (recorder, stop) = (Recorder::new(0), Stop::default());
    stop.at(MonoNs(ORIGIN.0 - 1));
    let mut timer = timer(&[1], 1_000, 20);
    let end = sample(&mut timer, &mut home(), 20, ORIGIN, &recorder, None, &stop);
    assert_eq!((end, recorder.snapshot().woken.count), (Ending::Stopped, 0));
}

/// A stimulus without a grid: it comes when it likes.
struct Given(std::vec::IntoIter<Waited>);

impl WaitForStimulus for Given {
    fn begin(&mut self, _: Grid) {}
    fn wait(&mut self) -> Waited {
        self.0.next().unwrap_or(Waited::Stopped)
    }
    fn period(&self) -> SpanNs {
        SpanNs(1_000)
    }
}

#[test]
fn a_stimulus_needs_no_grid_and_one_that_finds_nobody_asleep_is_no_sample() {
    let woken = |due: u64, late: u64, missed| {
        let due = MonoNs(ORIGIN.0 + due);
        Waited::Woken(Wakeup { due, woken: due.after(SpanNs(late)), missed })
    };
    let early = Wakeup { due: MonoNs(9_000), woken: MonoNs(8_999), missed: 0 };
    for (waits, want_end, want) in [
        (vec![woken(17, 5, 0), woken(1_900, 7, 0), Waited::Done], Ending::Done, (2, 0, 0, 12)),
        (
            vec![Waited::NotAsleep, woken(17, 5, 0), Waited::NotAsleep],
            Ending::Stopped,
            (1, 2, 0, 5),
        ),
        (vec![woken(3, 2_500, 2), Waited::Done], Ending::Done, (1, 0, 0, 2_500)),
        (vec![Waited::Woken(early), Waited::Done], Ending::Done, (1, 0, 1, 0)),
    ] {
        let recorder = Recorder::new(1);
        let end = run(&mut Given(waits.into_iter()), &mut home(), &recorder);
        let seen = recorder.snapshot();
        let got = (seen.woken.count, seen.not_asleep, seen.early, seen.woken.sum_ns);
        assert_eq!((end, got), (want_end, want));
    }
}
