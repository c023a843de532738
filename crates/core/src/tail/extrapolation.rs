//! What a longer run would show, where the run passes the tests of what that rests on.

use std::fmt;

use super::bursts::{Blocks, Bursts, NoBursts};
use super::pareto::{Excesses, Fit, Grid};
use super::{series, whole_ns};
use crate::distribution::Distribution;
use crate::explain::Cause;
use crate::histogram::Bucket;
use crate::maxima::Maxima;
use crate::run::{Episode, Run};
use crate::units::counted;

/// How many times as long as the run that time is which is extrapolated to.
pub const TIMES_AS_LONG: u64 = 10;

/// The fewest excesses that a tail is fitted to.
const FEWEST: u64 = 50;

/// The most: with more, thresholds lie where the tail does not begin.
const MOST: u64 = 2_000;

/// The largest share of samples that is a tail.
const LARGEST_SHARE: u64 = 10;

/// Fewer buckets show no shape.
const FEWEST_BUCKETS: usize = 12;

/// Shapes at two thresholds may differ by so many standard errors of their difference. More than
/// two, as there are up to eleven to compare.
const STABLE: f64 = 2.5;

/// Tails that are held against simulated ones: that takes time if they do not fit.
const MOST_TESTED: usize = 4;

/// The interval spans those of so many tails: of the one that is fitted, and of those half and a quarter as large.
/// Some tails pass every test long before they have their limiting shape. Alone, the interval of the first held
/// the truth in 69 % of runs with a Weibull tail of shape 1/2 (docs/tail.md).
const SPANNED: usize = 3;

/// False alarms of each test.
const ALPHA: f64 = 0.05;

/// Bursts are taken to be there if the extremal index is surely below this.
const ALONE: f64 = 0.9;

/// Below, the likelihood is not regular (Smith, Biometrika 72, 1985).
const LEAST_SHAPE: f64 = -0.5;

/// The widest interval of the shape that still says something.
const WIDEST: f64 = 1.0;

/// What a run [`TIMES_AS_LONG`] as long would show: an estimate from the shape of the tail, not
/// something that was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extrapolation {
    /// One burst in that time is later than this, in the mean. By the extremal index, a burst has `1 / index` samples
    /// in the mean.
    pub level_ns: u64,
    /// Its 95 % interval.
    pub interval_ns: (u64, u64),
    /// What it rests on.
    pub fit: Fit,
    /// The 95 % interval of the fit's shape.
    pub shape: (f64, f64),
}

/// The same for one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct OfCause {
    /// The cause that has the largest share in each of the wakeups.
    pub cause: Cause,
    /// The extrapolation, or what stands against it.
    pub extrapolation: Result<Extrapolation, Vec<Obstacle>>,
}

/// What stands against an extrapolation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Obstacle {
    /// There are too few samples for a tail of them.
    TooFew {
        /// How many of them are in a tail at most.
        late: u64,
    },
    /// What the tests need of the course of the run is missing.
    NoCourse(NoBursts),
    /// Maxima grow, fall or jump over the run.
    Drift {
        /// The statistic of the test.
        statistic: f64,
    },
    /// Maxima know of those before them.
    Dependence {
        /// The probability of that by chance.
        p_value: f64,
    },
    /// Late wakeups come in bursts.
    Bursts {
        /// The extremal index.
        index: f64,
    },
    /// Wakeups of a cause come at times that no constant rate makes.
    UnevenTimes {
        /// The probability of that by chance.
        p_value: f64,
    },
    /// Late wakeups lie in too few buckets.
    TooCoarse,
    /// There is no threshold above which the tail has the shape that tails have in the limit, and
    /// keeps it above higher ones.
    NoShape,
    /// The tail ends at an edge, where intervals are not what they are called.
    Edge {
        /// The shape.
        shape: f64,
    },
    /// The shape is too uncertain to say anything.
    Uncertain {
        /// Its 95 % interval.
        shape: (f64, f64),
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooFew { late } => {
                write!(
                    f,
                    "the tail has {}, fewer than the {FEWEST} needed",
                    counted(late, "sample")
                )
            }
            Self::NoCourse(why) => why.fmt(f),
            Self::Drift { statistic } => write!(
                f,
                "the maxima drift over the run (KPSS {statistic:.2}, above {})",
                series::LEVEL_LIMIT
            ),
            Self::Dependence { p_value } => {
                write!(f, "maxima depend on those before them (Ljung-Box, {})", chance(p_value))
            }
            Self::Bursts { index } => {
                write!(f, "large samples come in bursts (extremal index {index:.2})")
            }
            Self::UnevenTimes { p_value } => {
                write!(f, "their rate is not constant (Kolmogorov-Smirnov, {})", chance(p_value))
            }
            Self::TooCoarse => f.write_str("large samples lie in too few buckets to show a shape"),
            Self::NoShape => f.write_str("the tail has no shape that holds above a threshold"),
            Self::Edge { shape } => {
                write!(f, "the tail ends at an edge (shape {shape:.2}), where no interval holds")
            }
            Self::Uncertain { shape: (low, high) } => {
                write!(f, "the shape of the tail is uncertain (from {low:.2} to {high:.2})")
            }
        }
    }
}

fn chance(p_value: f64) -> String {
    if p_value < 0.001 { "p below 0.001".into() } else { format!("p = {p_value:.3}") }
}

/// Extrapolates from the tail of `all`, or names all that stands against it.
pub(super) fn of(
    all: &Distribution,
    course: Option<&Maxima>,
    duration_ns: u64,
    bursts: Result<&Bursts, &NoBursts>,
) -> Result<Extrapolation, Vec<Obstacle>> {
    let late = (all.count / LARGEST_SHARE).min(MOST);
    if late < FEWEST {
        return Err(vec![Obstacle::TooFew { late }]);
    }
    let bursts = bursts.map_err(|&why| vec![Obstacle::NoCourse(why)])?;
    let blocks = course
        .and_then(|course| Blocks::of(course, all.count, duration_ns))
        .ok_or_else(|| vec![Obstacle::NoCourse(NoBursts::TooShort)])?;
    let obstacles = of_the_course(&blocks, bursts);
    if !obstacles.is_empty() {
        return Err(obstacles);
    }
    let buckets = all.histogram.buckets();
    extrapolated(buckets, late, bursts.index).map_err(|obstacle| vec![obstacle])
}

fn of_the_course(blocks: &Blocks, bursts: &Bursts) -> Vec<Obstacle> {
    let logs = blocks.logs();
    let statistic = series::level(&logs);
    let p_value = series::independence(&logs);
    let tests = [
        (statistic > series::LEVEL_LIMIT, Obstacle::Drift { statistic }),
        (p_value < ALPHA, Obstacle::Dependence { p_value }),
        (bursts.interval.1 < ALONE, Obstacle::Bursts { index: bursts.index }),
    ];
    tests.into_iter().filter_map(|(failed, obstacle)| failed.then_some(obstacle)).collect()
}

/// Extrapolates from the at most `late` latest samples in `buckets`.
fn extrapolated(buckets: &[Bucket], late: u64, index: f64) -> Result<Extrapolation, Obstacle> {
    let tails = candidates(buckets, late)?;
    let tails = up_to_chosen(&tails)?;
    let excesses = tails.last().ok_or(Obstacle::NoShape)?;
    let fit = excesses.fit();
    if fit.pareto.shape < LEAST_SHAPE {
        return Err(Obstacle::Edge { shape: fit.pareto.shape });
    }
    let shape = excesses.shape_interval(&fit);
    if shape.1 - shape.0 > WIDEST || shape.1 >= 1.0 {
        return Err(Obstacle::Uncertain { shape });
    }
    let intervals = tails.iter().rev().step_by(2).take(SPANNED).map(|tail| {
        let fit = tail.fit();
        let (low, high) = tail.excess_interval(&fit, rarity(&fit, index));
        (level_ns(&fit, low), level_ns(&fit, high))
    });
    let (low, high) =
        intervals.fold((u64::MAX, 0), |(low, high), (from, to)| (low.min(from), high.max(to)));
    Ok(Extrapolation {
        level_ns: level_ns(&fit, fit.pareto.excess(rarity(&fit, index))),
        interval_ns: (low, high),
        fit,
        shape,
    })
}

/// The share of the excesses of `fit` that one independent excess in the time is, of so many that there would be.
fn rarity(fit: &Fit, index: f64) -> f64 {
    1.0 / (TIMES_AS_LONG as f64 * fit.count as f64 * index)
}

/// The lateness of an excess.
fn level_ns(fit: &Fit, excess: f64) -> u64 {
    fit.threshold_ns.saturating_add(whole_ns(excess))
}

/// Tails of 50, 71, 100, … samples, as far as buckets allow, and `late` at most.
fn candidates(buckets: &[Bucket], late: u64) -> Result<Vec<Excesses>, Obstacle> {
    let grid = Grid::of(buckets);
    let mut tails: Vec<Excesses> = Vec::new();
    let (mut wanted, mut count) = (FEWEST as f64, 0);
    for at in (0..buckets.len()).rev() {
        count += buckets[at].count;
        if count > late {
            break;
        }
        if count as f64 >= wanted && buckets.len() - at >= FEWEST_BUCKETS {
            tails.extend(Excesses::new(&buckets[at..], grid));
            while wanted <= count as f64 {
                wanted *= std::f64::consts::SQRT_2;
            }
        }
    }
    if tails.is_empty() { Err(Obstacle::TooCoarse) } else { Ok(tails) }
}

/// The tails up to the largest one that fits, and whose shape is that of all smaller ones, within their errors. Of
/// those each is tried that is half as large as the one before, four at most.
fn up_to_chosen(tails: &[Excesses]) -> Result<&[Excesses], Obstacle> {
    let fits: Vec<Fit> = tails.iter().map(Excesses::fit).collect();
    let agree = |large: &Fit, small: &Fit| {
        // The smaller is part of the larger: the variance of their difference is that of theirs.
        let variance = small.shape_error().powi(2) - large.shape_error().powi(2);
        let difference = (small.pareto.shape - large.pareto.shape).abs();
        difference <= STABLE * variance.max(0.0).sqrt().max(0.01)
    };
    let is_stable = |i: &usize| fits[..*i].iter().all(|small| agree(&fits[*i], small));
    let fitted = |i: &usize| tails[*i].is_fitted_by(&fits[*i]);
    let mut order = (0..tails.len()).rev().filter(is_stable).step_by(2).take(MOST_TESTED);
    order.find(fitted).map(|i| &tails[..=i]).ok_or(Obstacle::NoShape)
}

/// Extrapolates for each cause that has the largest share in enough of the latest wakeups. All
/// wakeups later than the least of them are known, so they are a tail by themselves.
pub(super) fn of_causes(run: &Run) -> Vec<OfCause> {
    let with_cause = |cause: Cause| {
        let of_cause = |episode: &&Episode| {
            episode.blame.iter().max_by_key(|share| share.ns).is_some_and(|s| s.cause == cause)
        };
        run.worst.iter().filter(of_cause).collect::<Vec<&Episode>>()
    };
    let explained = run.worst.iter().filter(|episode| !episode.blame.is_empty()).count();
    if explained < run.worst.len() {
        // Any of the others may be of any cause.
        return Vec::new();
    }
    let known = Cause::ALL.into_iter().filter(|&cause| cause != Cause::Unexplained);
    known
        .map(|cause| (cause, with_cause(cause)))
        .filter(|(_, episodes)| episodes.len() as u64 >= FEWEST)
        .map(|(cause, episodes)| OfCause { cause, extrapolation: of_episodes(&episodes, run) })
        .collect()
}

fn of_episodes(episodes: &[&Episode], run: &Run) -> Result<Extrapolation, Vec<Obstacle>> {
    let duration = run.duration_ns.max(1) as f64;
    let mut times: Vec<f64> = episodes.iter().map(|e| e.expiry_ns as f64 / duration).collect();
    let p_value = series::evenness(&mut times);
    if p_value < ALPHA {
        return Err(vec![Obstacle::UnevenTimes { p_value }]);
    }
    let mut late: Vec<u64> = episodes.iter().map(|e| e.wakeup_latency_ns).collect();
    late.sort_unstable();
    let mut buckets: Vec<Bucket> = Vec::new();
    for lower in late {
        match buckets.last_mut() {
            Some(last) if last.lower == lower => last.count += 1,
            _ => buckets.push(Bucket { lower, upper: lower.saturating_add(1), count: 1 }),
        }
    }
    extrapolated(&buckets, MOST, 1.0).map_err(|obstacle| vec![obstacle])
}
