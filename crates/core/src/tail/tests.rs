//! The whole, on simulated runs of which the truth is known.

use std::fmt::Write as _;
use std::io::Write as _;

use super::*;
use crate::distribution::Distribution;
use crate::explain::Cause;
use crate::explain::{CauseRow, Culprit, Explanation, Share};
use crate::histogram::Histogram;
use crate::maxima::Maxima;
use crate::random::Random;
use crate::run::{Episode, Thread};

/// More runs per world, and a table of what came out, for docs/tail.md.
const VARIABLE: &str = "WAKESCOPE_TAIL_RUNS";

/// Samples of a run, at 1 ms.
const SAMPLES: u32 = 20_000;

/// The largest lateness that is a mere offset, ns.
const BASE: f64 = 10_000.0;

const SCALE: f64 = 20_000.0;

/// Where late wakeups come from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum World {
    /// Generalized Pareto with this shape; 0 is exponential, -1 uniform.
    Pareto(f64),
    /// Each as late as the largest of so many exponential ones, itself and those before it.
    MovingMaximum(u32),
    /// Exponential, with a scale that doubles over the run.
    Drift,
    /// Exponential, twice as late in the second half.
    Step,
    /// Exponential, and one in 2,000 between ten and twelve times as late as those.
    RareMode,
    /// Normal, six standard deviations above the offset.
    Normal,
    /// Log-normal, the standard deviation of the logarithm is 1.
    LogNormal,
    /// Weibull of shape 1/2: the square of an exponential one.
    Weibull,
}

impl World {
    /// A run's samples, in order of time.
    fn samples(self, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed);
        let tail: Vec<f64> = (0..SAMPLES + 64).map(|_| random.uniform()).collect();
        let exponential = |at: usize| -tail[at].ln();
        let angles: Vec<f64> = tail.iter().map(|_| random.uniform()).collect();
        // By Box and Muller.
        let normal =
            |at: usize| (2.0 * exponential(at)).sqrt() * (std::f64::consts::TAU * angles[at]).cos();
        let late = |i: usize| {
            let gone = i as f64 / f64::from(SAMPLES);
            match self {
                Self::Pareto(0.0) => exponential(i),
                Self::Pareto(shape) => (-shape * tail[i].ln()).exp_m1() / shape,
                Self::MovingMaximum(length) => {
                    (i..i + length as usize).map(exponential).fold(0.0, f64::max)
                }
                Self::Drift => exponential(i) * (1.0 + gone),
                Self::Step => exponential(i) * if gone < 0.5 { 1.0 } else { 2.0 },
                Self::RareMode if tail[i] * 2_000.0 < 1.0 => 100.0 + tail[i] * 40_000.0,
                Self::RareMode => exponential(i),
                Self::Normal => 6.0 + normal(i),
                Self::LogNormal => normal(i).exp(),
                Self::Weibull => exponential(i).powi(2),
            }
        };
        (0..SAMPLES as usize).map(|i| whole_ns(BASE + SCALE * late(i))).collect()
    }

    /// The probability of a sample later than `ns`; `None` where it changes over the run.
    fn above(self, ns: u64) -> Option<f64> {
        let x = ((ns as f64 - BASE) / SCALE).max(0.0);
        Some(match self {
            Self::Pareto(0.0) => (-x).exp(),
            Self::Pareto(shape) => (1.0 + shape * x).max(0.0).powf(-1.0 / shape),
            Self::MovingMaximum(length) => 1.0 - (1.0 - (-x).exp()).powf(f64::from(length)),
            Self::Normal => normal_above(x - 6.0),
            Self::LogNormal => normal_above(x.ln()),
            Self::Weibull => (-x.sqrt()).exp(),
            _ => return None,
        })
    }

    /// What is exceeded by a share `tail` of samples.
    fn level(self, tail: f64) -> Option<f64> {
        self.above(0)?;
        let is_below = |x: f64| self.above(whole_ns(BASE + SCALE * x)).unwrap_or(0.0) > tail;
        Some(BASE + SCALE * count::bisect(0.0, 1e6, is_below))
    }
}

/// The probability that a normal variable is above `x`, by Laplace's continued fraction; at least that of 2
/// below that, where no tail ends.
fn normal_above(x: f64) -> f64 {
    let x = x.max(2.0);
    let fraction = (1..=100).rev().fold(x, |rest, i| x + f64::from(i) / rest);
    (-0.5 * x * x).exp() / (std::f64::consts::TAU.sqrt() * fraction)
}

/// A run of one CPU with these samples, at 1 ms.
fn run_of(samples: &[u64]) -> Run {
    const INTERVAL_NS: u64 = 1_000_000;
    let duration_ns = samples.len() as u64 * INTERVAL_NS;
    let mut slot_ns = crate::maxima::FIRST_SLOT_NS;
    while duration_ns / slot_ns >= 256 {
        slot_ns *= 2;
    }
    let mut maxima = Maxima { slot_ns, max_ns: Vec::new() };
    for (i, &sample) in (0_u64..).zip(samples) {
        let slot = usize::try_from(i * INTERVAL_NS / slot_ns).unwrap();
        maxima.max_ns.resize(maxima.max_ns.len().max(slot + 1), None);
        maxima.max_ns[slot] = maxima.max_ns[slot].max(Some(sample));
    }
    let expiries = Distribution { max_at_ns: Some(0), ..Distribution::of(samples.iter().copied()) };
    let woken = expiries.clone();
    let thread =
        Thread { cpu: Some(0), woken, expiries, maxima: Some(maxima), ..Default::default() };
    Run { duration_ns, threads: vec![thread], ..Default::default() }
}

/// What came out of many runs of a world, as shares of them.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    runs: f64,
    /// The mean of the extremal index.
    index: f64,
    /// The probability of a later sample than the maximum was within the bound.
    bounded: f64,
    /// There was an extrapolation.
    shown: f64,
    /// Of these: the true level was in the interval.
    covered: f64,
    /// Of these: the level over the true one, mean of logarithms.
    log_ratio: f64,
}

fn many(world: World, runs: u32) -> Seen {
    let mut seen = Seen { runs: f64::from(runs), ..Default::default() };
    for seed in 0..runs {
        let tail = Tail::of(&run_of(&world.samples(1_000 + u64::from(seed)))).unwrap();
        seen.index += tail.bound.bursts.as_ref().unwrap().index / seen.runs;
        if world.above(tail.max_ns).is_some_and(|p| p <= tail.bound.share) {
            seen.bounded += 1.0 / seen.runs;
        }
        let Ok(x) = tail.extrapolation else { continue };
        seen.shown += 1.0;
        let wanted = 1.0 / f64::from(SAMPLES) / TIMES_AS_LONG as f64;
        if let Some(level) = world.level(wanted) {
            let (low, high) = x.interval_ns;
            seen.covered += f64::from(low as f64 <= level && level <= high as f64);
            seen.log_ratio += (x.level_ns as f64 / level).ln();
        }
    }
    if seen.shown > 0.0 {
        seen.covered /= seen.shown;
        seen.log_ratio /= seen.shown;
    }
    seen.shown /= seen.runs;
    seen
}

/// Fails unless what is said of runs of `world` is as it should be, as far as chance lets one tell.
#[track_caller]
fn check(world: World, good: impl FnOnce(&Seen) -> bool) {
    let asked = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    let seen = many(world, asked.unwrap_or(30));
    if asked.is_some() {
        let mut line = format!("{world:?}: index {:.3}", seen.index);
        let _ = write!(line, ", bounded {:.1} %", seen.bounded * 100.0);
        let _ = write!(line, ", shown {:.1} %", seen.shown * 100.0);
        let _ = write!(line, ", covered {:.1} %", seen.covered * 100.0);
        let _ = write!(line, ", level {:+.1} %", seen.log_ratio.exp_m1() * 100.0);
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    assert!(good(&seen), "{world:?}: {seen:?}");
}

#[test]
fn independent_samples_are_extrapolated() {
    for shape in [0.0, 0.2, -0.2] {
        check(World::Pareto(shape), |seen| {
            (0.85..=1.0).contains(&seen.index)
                && seen.bounded >= 0.85
                && seen.shown >= 0.6
                && seen.covered >= 0.8
                && seen.log_ratio.abs() < 0.15
        });
    }
}

/// Tails whose limiting shape is not reached with 20,000 samples.
#[test]
fn tails_that_are_far_from_their_limit_are_extrapolated() {
    for world in [World::Normal, World::LogNormal, World::Weibull] {
        check(world, |seen| {
            (0.85..=1.0).contains(&seen.index)
                && seen.bounded >= 0.85
                && seen.covered >= 0.8
                && seen.log_ratio.abs() < 0.3
        });
    }
}

#[test]
fn bursts_are_found_and_counted_as_one() {
    for length in [2, 5] {
        let truth = 1.0 / f64::from(length);
        check(World::MovingMaximum(length), |seen| {
            (seen.index / truth - 1.0).abs() < 0.2 && seen.bounded >= 0.85 && seen.shown <= 0.1
        });
    }
}

#[test]
fn what_has_no_tail_that_lasts_is_not_extrapolated() {
    check(World::Drift, |seen| seen.shown <= 0.2);
    check(World::Step, |seen| seen.shown <= 0.1);
    check(World::RareMode, |seen| seen.shown <= 0.3);
    // Uniform: the tail is an edge.
    check(World::Pareto(-1.0), |seen| seen.shown <= 0.1 && seen.bounded >= 0.85);
}

#[test]
fn what_is_missing_is_named() {
    let samples = World::Pareto(0.0).samples(1);
    let of = |run: &Run| Tail::of(run).unwrap();
    let mut run = run_of(&samples);
    run.threads[0].maxima = None;
    let tail = of(&run);
    assert_eq!(tail.bound.bursts, Err(NoBursts::NoCourse));
    assert_eq!(tail.extrapolation, Err(vec![Obstacle::NoCourse(NoBursts::NoCourse)]));
    assert!((tail.bound.effective - 20_000.0).abs() < 1e-9, "{tail:?}");

    let tail = of(&run_of(&samples[..300]));
    assert_eq!(tail.bound.bursts, Err(NoBursts::TooShort));
    assert_eq!(tail.extrapolation, Err(vec![Obstacle::TooFew { late: 30 }]));

    // As another program has them that knows of whole 100 µs only.
    let coarse: Vec<u64> = samples.iter().map(|s| s / 100_000 * 100_000).collect();
    let tail = of(&run_of(&coarse));
    assert_eq!(tail.bound.bursts, Err(NoBursts::TooCoarse));

    // Of which 1 in 1.9 and 1 in 2.2 are not excluded.
    assert_eq!(Tail::of(&run_of(&[1, 2, 3, 4])), None);
    assert!(Tail::of(&run_of(&[1, 2, 3, 4, 5])).is_some_and(|tail| tail.bound.share < 0.5));
    assert_eq!(Tail::of(&Run::default()), None);
}

#[test]
fn one_bound_for_shares_and_times() {
    for world in [World::Pareto(0.0), World::MovingMaximum(5)] {
        let mut run = run_of(&world.samples(7));
        run.summarize();
        let tail = Tail::of(&run).unwrap();
        let every_ns = tail.bound.every_ns.unwrap() as f64;
        // As many expiries pass in that time as the share says.
        let expiries = every_ns * tail.count as f64 / tail.duration_ns as f64;
        assert!((expiries * tail.bound.share - 1.0).abs() < 1e-6, "{tail:?}");
        assert_eq!(run.summary.not_excluded_every_ns, tail.bound.every_ns, "as in the record");
        // Whoever measures as long as this run can claim no more than it proves.
        let needed = tail.time_needed_ns(tail.bound.every_ns.unwrap()) as f64;
        assert!((needed / tail.duration_ns as f64 - 1.0).abs() < 0.01, "{tail:?}");
    }
    let alone = Tail::of(&run_of(&World::Pareto(0.0).samples(7))).unwrap().bound;
    let together = Tail::of(&run_of(&World::MovingMaximum(5).samples(7))).unwrap().bound;
    assert!(together.every_ns < alone.every_ns.map(|ns| ns / 3), "bursts are counted");
    // Where it is not known how long was measured, the share is.
    let mut run = run_of(&World::Pareto(0.0).samples(7));
    run.duration_ns = 0;
    run.summarize();
    assert_eq!(run.summary.not_excluded_every_ns, None);
    assert_eq!(Tail::of(&run).unwrap().bound.every_ns, None);
}

#[test]
fn causes_have_rates_and_tails_of_their_own() {
    let mut run = run_of(&World::Pareto(0.0).samples(1));
    let row = |cause, episodes| CauseRow {
        cause,
        culprit: Culprit::interrupt("x"),
        episodes,
        ..Default::default()
    };
    run.causes = vec![row(Cause::Irq, 12), row(Cause::Unexplained, 7), row(Cause::Softirq, 0)];
    let mut random = Random::new(3);
    let mut episode = |cause| {
        let late = whole_ns(50_000.0 - 20_000.0 * random.uniform().ln());
        Episode {
            expiry_ns: whole_ns(run.duration_ns as f64 * random.uniform()),
            wakeup_latency_ns: late,
            blame: vec![Share { cause, ns: late, ..Default::default() }],
            ..Default::default()
        }
    };
    let worst = (0..240).map(|i| episode(if i % 6 == 0 { Cause::Softirq } else { Cause::Irq }));
    run.worst = worst.collect();
    let tail = Tail::of(&run).unwrap();
    let [rate] = tail.causes.as_slice() else { panic!("{tail:?}") };
    // 20 s; the interval of 12 events is that of reference.rs.
    assert_eq!((rate.every_ns, rate.episodes), (1_666_666_667, 12));
    assert!((rate.interval_ns.0 as f64 / 0.954e9 - 1.0).abs() < 0.01, "{rate:?}");
    assert!((rate.interval_ns.1 as f64 / 3.226e9 - 1.0).abs() < 0.01, "{rate:?}");
    // If one in 4 was taken for the causes, no more than 3 events may have been seen.
    run.explanation = Some(Explanation { one_in: Some(4), ..Explanation::default() });
    let sampled = &Tail::of(&run).unwrap().causes[0];
    assert_eq!((sampled.every_ns, sampled.episodes), (1_666_666_667, 12));
    let (low, high) = poisson_interval(3);
    assert_eq!(sampled.interval_ns, (whole_ns(5e9 / high), whole_ns(5e9 / low)));
    run.explanation = None;
    let [of_irq] = tail.of_causes.as_slice() else { panic!("{tail:?}") };
    let x = of_irq.extrapolation.as_ref().unwrap();
    let truth = 50_000.0 + 20_000.0 * 2_000_f64.ln();
    assert!(x.interval_ns.0 as f64 <= truth && truth <= x.interval_ns.1 as f64, "{x:?}");
    // One without an explanation may be of any cause.
    run.worst[0].blame.clear();
    assert_eq!(Tail::of(&run).unwrap().of_causes, []);
}

#[test]
fn numbers_at_the_limits_do_no_harm() {
    for late in [0, 1, u64::MAX / 40_000, u64::MAX - 1] {
        for spread in [1, 1 << 20, 1 << 40] {
            let mut samples: Vec<u64> =
                (0..2_000).map(|i| late.saturating_sub(i % 97 * spread)).collect();
            samples[7] = 5;
            let mut run = run_of(&[0; 2_000]);
            let d = &mut run.threads[0].expiries;
            (d.max_ns, d.histogram) = (Some(late), Histogram::of(samples.iter().copied()));
            for duration_ns in [0, 1, run.duration_ns, u64::MAX] {
                run.duration_ns = duration_ns;
                let tail = Tail::of(&run);
                assert!(tail.is_none_or(|tail| tail.bound.effective.is_finite()));
            }
        }
    }
}
