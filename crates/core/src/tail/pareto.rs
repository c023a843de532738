//! The generalized Pareto distribution, fitted to buckets.
//!
//! What lies above a high threshold has this distribution, whatever the whole one is, if anything
//! has a limit at all (Pickands, Ann. Statist. 3, 1975). Samples are known by their buckets only, so
//! it is the buckets' probabilities that are made as large as possible, not densities: no sample is
//! moved to the middle of its bucket.

use crate::histogram::{Bucket, bucket_of, edges_of};
use crate::random::Random;

/// Shapes beyond these are no lateness: below, the largest value is the likeliest; above, there is
/// no mean.
const SHAPES: (f64, f64) = (-1.0, 1.5);

/// Buckets are put together into about so many before they are fitted.
const CELLS: u64 = 32;

/// Half of what the log-likelihood may fall within a 95 % interval. It is the 98 % quantile of a
/// chi-square: with that of 95 %, 3.841, nine in ten intervals held the truth, as the threshold is
/// chosen from the same data (docs/tail.md).
const FALL: f64 = 5.412 / 2.0;

/// Simulated data sets, at most, that a fit is held against.
const REPLICATES: u32 = 99;

/// So many of them that fit no better are enough to accept a fit: 5 %.
const ENOUGH: u32 = 5;

/// A generalized Pareto distribution of excesses over a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pareto {
    /// In ns.
    pub scale: f64,
    /// 0 for an exponential tail, above for a heavier one, below for one that ends.
    pub shape: f64,
}

impl Pareto {
    /// The logarithm of the probability of a larger excess.
    fn log_above(self, excess: f64) -> f64 {
        let x = excess / self.scale;
        if self.shape.abs() < 1e-9 {
            return -x;
        }
        let inner = self.shape * x;
        if inner <= -1.0 { f64::NEG_INFINITY } else { -inner.ln_1p() / self.shape }
    }

    /// The excess that a larger one has the probability `tail` of.
    pub fn excess(self, tail: f64) -> f64 {
        self.scale * shape_term(self.shape, tail)
    }
}

/// The excess at `tail` for a scale of 1.
fn shape_term(shape: f64, tail: f64) -> f64 {
    if shape.abs() < 1e-9 { -tail.ln() } else { (-shape * tail.ln()).exp_m1() / shape }
}

/// How finely samples are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Grid {
    /// As on our scale.
    Scale,
    /// In buckets of this width.
    Width(u64),
}

impl Grid {
    /// That of a histogram's buckets.
    pub(super) fn of(buckets: &[Bucket]) -> Self {
        let on_scale = |b: &Bucket| edges_of(bucket_of(b.lower)) == (b.lower, b.upper);
        if buckets.iter().all(on_scale) {
            return Self::Scale;
        }
        let mut widths: Vec<u64> = buckets.iter().map(|b| b.upper - b.lower).collect();
        widths.sort_unstable();
        Self::Width(widths[widths.len() / 2].max(1))
    }

    fn bucket(self, value: f64) -> (u64, u64) {
        let value = super::whole_ns(value.floor());
        match self {
            Self::Scale => edges_of(bucket_of(value)),
            Self::Width(width) => {
                let lower = value / width * width;
                (lower, lower.saturating_add(width))
            }
        }
    }
}

/// Excesses of a threshold, in buckets.
#[derive(Clone, Debug)]
pub(super) struct Excesses {
    threshold: u64,
    /// Ascending; none begins below the threshold.
    buckets: Vec<Bucket>,
    pub(super) count: u64,
    grid: Grid,
}

/// A part of the tail that is fitted as one: from, to, samples.
#[derive(Clone, Copy)]
struct Cell(f64, f64, f64);

impl Excesses {
    pub(super) fn new(buckets: &[Bucket], grid: Grid) -> Option<Self> {
        let threshold = buckets.first()?.lower;
        let count = buckets.iter().map(|b| b.count).sum();
        Some(Self { threshold, buckets: buckets.to_vec(), count, grid })
    }

    /// From the threshold.
    fn edge(&self, value: u64) -> f64 {
        (value - self.threshold) as f64
    }

    /// The buckets, neighbours put together where there are many, but not the largest ones.
    fn cells(&self) -> Vec<Cell> {
        const KEPT: usize = 16;
        let enough = (self.count / CELLS).max(1) as f64;
        let mut cells: Vec<Cell> = Vec::new();
        for (i, b) in self.buckets.iter().enumerate() {
            let (from, to) = (self.edge(b.lower), self.edge(b.upper));
            let is_kept = i + KEPT >= self.buckets.len();
            match cells.last_mut() {
                Some(last) if last.2 < enough && !is_kept => {
                    (last.1, last.2) = (to, last.2 + b.count as f64);
                }
                _ => cells.push(Cell(from, to, b.count as f64)),
            }
        }
        cells
    }

    /// The distribution that makes these excesses likeliest.
    pub(super) fn fit(&self) -> Fit {
        let cells = self.cells();
        let (pareto, log_likelihood) = climb(&cells, start(&cells, self.count as f64));
        Fit { pareto, log_likelihood, count: self.count, threshold_ns: self.threshold }
    }

    /// The 95 % interval of the shape: those shapes with which the likelihood does not fall by more
    /// than it may, each with its best scale.
    pub(super) fn shape_interval(&self, fit: &Fit) -> (f64, f64) {
        let cells = self.cells();
        let falls = |shape: f64| {
            let best =
                |log_scale: f64| likelihood(&cells, Pareto { scale: log_scale.exp(), shape });
            fit.log_likelihood - maximum(near(fit.pareto.scale.ln(), 3.0), best) > FALL
        };
        sides(fit.pareto.shape, SHAPES, falls)
    }

    /// The 95 % interval of the excess that has the probability `tail`, by the same rule.
    pub(super) fn excess_interval(&self, fit: &Fit, tail: f64) -> (f64, f64) {
        let cells = self.cells();
        let falls = |log_excess: f64| {
            let best = |shape: f64| {
                let scale = log_excess.exp() / shape_term(shape, tail);
                likelihood(&cells, Pareto { scale, shape })
            };
            fit.log_likelihood - maximum(SHAPES, best) > FALL
        };
        let at = fit.pareto.excess(tail).ln();
        let (low, high) = sides(at, near(at, 5.0), falls);
        (low.exp(), high.exp())
    }

    /// Whether excesses simulated from `fit`, in the same buckets and fitted in the same way, fit as
    /// badly often enough: in 5 % at least (Anderson and Darling's distance; Besag and Clifford,
    /// Biometrika 78, 1991, for stopping as soon as that is sure).
    pub(super) fn is_fitted_by(&self, fit: &Fit) -> bool {
        let observed = self.distance(fit.pareto);
        let mut random = Random::new(0x7a11 ^ self.count);
        let mut worse = 0;
        for _ in 0..REPLICATES {
            let replicate = self.simulated(fit.pareto, &mut random);
            if replicate.distance(replicate.fit().pareto) >= observed {
                worse += 1;
                if worse == ENOUGH {
                    return true;
                }
            }
        }
        false
    }

    /// As many excesses, drawn from `pareto`.
    fn simulated(&self, pareto: Pareto, random: &mut Random) -> Self {
        let threshold = self.threshold as f64;
        let mut edges: Vec<(u64, u64)> = (0..self.count)
            .map(|_| self.grid.bucket(threshold + pareto.excess(random.uniform())))
            .collect();
        edges.sort_unstable();
        let mut buckets: Vec<Bucket> = Vec::new();
        for (lower, upper) in edges {
            match buckets.last_mut() {
                Some(last) if last.upper == upper => last.count += 1,
                _ => buckets.push(Bucket { lower: lower.max(self.threshold), upper, count: 1 }),
            }
        }
        Self { buckets, ..self.clone() }
    }

    /// How far the excesses are from `pareto`: Anderson and Darling's square distance, at the edges
    /// of buckets.
    fn distance(&self, pareto: Pareto) -> f64 {
        let count = self.count as f64;
        let (mut seen, mut before, mut sum) = (0.0, 0.0, 0.0);
        for b in &self.buckets {
            seen += b.count as f64;
            let above = pareto.log_above(self.edge(b.upper)).exp();
            let below = 1.0 - above;
            let weight = below * above;
            if weight > 0.0 {
                sum += (seen / count - below).powi(2) / weight * (below - before);
            } else {
                // More likely impossible than not: these are values the distribution does not have.
                sum += 1.0 - seen / count;
            }
            before = below;
        }
        sum * count
    }
}

/// A fitted distribution of excesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The distribution.
    pub pareto: Pareto,
    /// Excesses that it was fitted to.
    pub count: u64,
    /// What they exceed.
    pub threshold_ns: u64,
    /// At its maximum.
    pub(super) log_likelihood: f64,
}

impl Fit {
    /// The standard error of the shape, for many excesses (Smith, Biometrika 72, 1985).
    pub(super) fn shape_error(&self) -> f64 {
        (1.0 + self.pareto.shape).max(0.5) / (self.count as f64).sqrt()
    }
}

fn likelihood(cells: &[Cell], pareto: Pareto) -> f64 {
    if !pareto.scale.is_finite() || pareto.scale <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let of_cell = |&Cell(from, to, count): &Cell| {
        let above = pareto.log_above(from);
        // The difference of two probabilities that may be nearly equal.
        let inside = -(pareto.log_above(to) - above).exp_m1();
        count * (above + inside.ln())
    };
    let sum: f64 = cells.iter().map(of_cell).sum();
    if sum.is_nan() { f64::NEG_INFINITY } else { sum }
}

/// Where to begin: the distribution with the same mean and variance.
fn start(cells: &[Cell], count: f64) -> Pareto {
    let middle = |c: &Cell| f64::midpoint(c.0, c.1);
    let mean = (cells.iter().map(|c| c.2 * middle(c)).sum::<f64>() / count).max(0.5);
    let square = |c: &Cell| c.2 * (middle(c) - mean).powi(2);
    let variance = (cells.iter().map(square).sum::<f64>() / count).max(mean * mean / 100.0);
    let ratio = mean * mean / variance;
    let shape = (0.5 * (1.0 - ratio)).clamp(-0.5, 0.5);
    let largest = cells.last().map_or(1.0, |c| c.1);
    let scale = (mean * (1.0 - shape)).max(-shape * largest * 1.05);
    Pareto { scale, shape }
}

/// Nelder and Mead's simplex (Computer J. 7, 1965), on the logarithm of the scale and the shape.
fn climb(cells: &[Cell], from: Pareto) -> (Pareto, f64) {
    const STEPS: usize = 200;
    const CLOSE: f64 = 1e-5;
    type Point = [f64; 2];
    let value = |p: Point| {
        let [log_scale, shape] = p;
        let inside = (SHAPES.0..=SHAPES.1).contains(&shape);
        let pareto = Pareto { scale: log_scale.exp(), shape };
        if inside { likelihood(cells, pareto) } else { f64::NEG_INFINITY }
    };
    let at = |p: Point| (p, value(p));
    let [x, y] = [from.scale.ln(), from.shape];
    let mut simplex = [at([x, y]), at([x + 0.2, y]), at([x, y + 0.15])];
    for _ in 0..STEPS {
        simplex.sort_by(|a, b| b.1.total_cmp(&a.1));
        let [best, good, worst] = simplex;
        let apart = |i: usize| (best.0[i] - worst.0[i]).abs().max((best.0[i] - good.0[i]).abs());
        if apart(0).max(apart(1)) < CLOSE {
            break;
        }
        // From the middle of the better two, `by` times the way to the worst.
        let along = |by: f64| {
            let one = |i: usize| {
                let middle = f64::midpoint(best.0[i], good.0[i]);
                middle + by * (worst.0[i] - middle)
            };
            at([one(0), one(1)])
        };
        let mirrored = along(-1.0);
        simplex[2] = if mirrored.1 > best.1 {
            let further = along(-2.0);
            if further.1 > mirrored.1 { further } else { mirrored }
        } else if mirrored.1 > good.1 {
            mirrored
        } else {
            let nearer = along(if mirrored.1 > worst.1 { -0.5 } else { 0.5 });
            if nearer.1 > worst.1.max(mirrored.1) {
                nearer
            } else {
                let half =
                    |p: Point| at([f64::midpoint(p[0], best.0[0]), f64::midpoint(p[1], best.0[1])]);
                simplex[1] = half(good.0);
                half(worst.0)
            }
        };
    }
    simplex.sort_by(|a, b| b.1.total_cmp(&a.1));
    let ([log_scale, shape], log_likelihood) = simplex[0];
    (Pareto { scale: log_scale.exp(), shape }, log_likelihood)
}

fn near(at: f64, by: f64) -> (f64, f64) {
    (at - by, at + by)
}

/// The largest value of `of` within `range`, by the golden section.
fn maximum((mut low, mut high): (f64, f64), of: impl Fn(f64) -> f64) -> f64 {
    const RATIO: f64 = 0.618_033_988_749_894_9;
    let (mut a, mut b) = (high - RATIO * (high - low), low + RATIO * (high - low));
    let (mut of_a, mut of_b) = (of(a), of(b));
    for _ in 0..34 {
        // Where neither is possible, what is possible lies at the side of larger scales.
        if of_a > of_b {
            (high, b, of_b) = (b, a, of_a);
            a = high - RATIO * (high - low);
            of_a = of(a);
        } else {
            (low, a, of_a) = (a, b, of_b);
            b = low + RATIO * (high - low);
            of_b = of(b);
        }
    }
    of_a.max(of_b)
}

/// How far one can go from `at` to either side within `limits` before `falls`.
fn sides(at: f64, limits: (f64, f64), falls: impl Fn(f64) -> bool) -> (f64, f64) {
    const PRECISION: f64 = 1_000.0;
    let side = |limit: f64| {
        if !falls(limit) {
            return limit;
        }
        // From 0 at the middle to 1 at the limit, to a thousandth.
        let (mut low, mut high) = (0.0, 1.0);
        while high - low > 1.0 / PRECISION {
            let middle = f64::midpoint(low, high);
            if falls(at + (limit - at) * middle) { high = middle } else { low = middle }
        }
        at + (limit - at) * low
    };
    (side(limits.0), side(limits.1))
}
