//! Two groups of figures, unpaired: how far apart they are, and whether chance explains it.
//!
//! All that is assumed is that, were both alike, each figure could as well have come in the other
//! group. So p-values and intervals are counted over the ways to split the figures in two groups,
//! and never approximated by a distribution.

use wakescope_core::random::Random;

/// Up to this many ways to split, all are counted: 10 against 10 has 184,756.
pub(crate) const ALL_SPLITS: u64 = 200_000;

/// Where there are more, as many are counted as a decision takes, but no fewer than this: the split that
/// was seen, and the rest drawn at random. With them, p-values are whole multiples of 1 / 10,000.
const LEAST_COUNTED: u64 = 10_000;

/// No more than this are counted.
pub(crate) const MOST_COUNTED: u64 = 1_000_000;

/// What is asked of two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// The interval has the confidence 1 - `alpha`.
    pub alpha: f64,
    /// The difference that must not be exceeded.
    pub bar: f64,
    /// How many figures are looked at together: the more, the more splits are drawn.
    pub figures: usize,
    /// Of the splits that are drawn, where there are more than [`ALL_SPLITS`].
    pub seed: u64,
}

/// How far apart the means of two groups are.
#[derive(Clone, Debug, PartialEq)]
pub struct Apart {
    /// Mean of the first group less that of the second.
    pub difference: f64,
    /// Twice the share of splits whose difference is at least as far out on the side of the one that was
    /// seen, at most 1: both the split that was seen and those that tie with it count. Without a
    /// difference it is 1.
    pub p_value: f64,
    /// The same of one side: how likely a difference so large is, or a larger one, if the true one is the
    /// bar that is asked for, or below.
    pub p_above_bar: f64,
    /// Shifts of the first group that leave nothing to explain, at the confidence asked for: the
    /// test inverted. `None` at an end where there are too few splits for a limit. It holds the difference,
    /// and leaves 0 out only where the p-value allows it.
    pub interval: (Option<f64>, Option<f64>),
    /// Splits that were counted, the one that was seen included.
    pub splits: u64,
    /// Whether these were all there are.
    pub exact: bool,
}

/// Holds `first` against `second`. `None` if a group is empty, or a figure is not finite.
pub fn apart(first: &[f64], second: &[f64], asked: &Asked) -> Option<Apart> {
    let groups = Groups::of(first, second)?;
    let swaps = match groups.has_few_splits() {
        true => Swaps::all(&groups),
        false => {
            let [swaps] = Swaps::drawn([&groups], asked);
            swaps
        }
    };
    Some(groups.apart(swaps, asked))
}

/// The same of several figures, each of two groups. Groups of the same sizes are split in the same
/// ways, which are then drawn only once.
pub(crate) fn each_apart<const N: usize>(
    figures: &[[Vec<f64>; 2]; N],
    asked: &Asked,
) -> [Option<Apart>; N] {
    let one_by_one = || figures.each_ref().map(|[a, b]| apart(a, b, asked));
    let all = figures.each_ref().map(|[first, second]| Groups::of(first, second));
    let Some(first) = all.iter().flatten().next() else { return one_by_one() };
    let is_alike = |groups: &Option<Groups>| {
        groups.as_ref().is_some_and(|groups| groups.sizes() == first.sizes())
    };
    if first.has_few_splits() || !all.iter().all(is_alike) {
        return one_by_one();
    }
    let all_groups = all.each_ref().map(|groups| groups.as_ref().unwrap_or(first));
    let mut swaps = Swaps::drawn(all_groups, asked).into_iter();
    all.map(|groups| Some(groups?.apart(swaps.next()?, asked)))
}

/// Two groups of figures, relative to one of them, so that little is lost where they are large and
/// close.
struct Groups {
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Groups {
    /// `None` if a group is empty, or a figure is not finite.
    fn of(first: &[f64], second: &[f64]) -> Option<Self> {
        let is_finite = first.iter().chain(second).all(|x| x.is_finite());
        if second.is_empty() || !is_finite {
            return None;
        }
        let zero = first.first()?;
        let centred = |xs: &[f64]| -> Vec<f64> { xs.iter().map(|x| x - zero).collect() };
        Some(Self { first: centred(first), second: centred(second) })
    }

    fn sizes(&self) -> (usize, usize) {
        (self.first.len(), self.second.len())
    }

    /// Whether all splits are counted.
    fn has_few_splits(&self) -> bool {
        splits(self.first.len(), self.second.len()) <= ALL_SPLITS
    }

    fn apart(&self, mut swaps: Swaps, asked: &Asked) -> Apart {
        let all = self.first.iter().chain(&self.second);
        let spread = all.fold(0.0_f64, |most, x| most.max(x.abs()));
        // Sums of the same figures in another order may differ in their last bits.
        let tolerance = spread * 1e-9;
        let difference = mean(&self.first) - mean(&self.second);
        let (low, high) = swaps.interval(asked.alpha);
        Apart {
            difference,
            p_value: swaps.p_value(difference, tolerance),
            p_above_bar: swaps.share(|gain| gain <= asked.bar + tolerance),
            interval: (low.map(|low| low.min(difference)), high.map(|high| high.max(difference))),
            splits: swaps.splits(),
            exact: self.has_few_splits(),
        }
    }
}

/// In how many ways `first` + `second` figures split in groups of these sizes. Saturates.
pub fn splits(first: usize, second: usize) -> u64 {
    let small = first.min(second) as u128;
    let all = first as u128 + second as u128;
    let mut ways = 1_u128;
    for i in 0..small {
        ways = ways * (all - i) / (i + 1);
        if ways > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    u64::try_from(ways).unwrap_or(u64::MAX)
}

/// How many splits of groups of these sizes are counted where `figures` are looked at together at the
/// level `alpha`: all, or as many as Holm's first step takes within bounds.
fn counted(first: usize, second: usize, figures: usize, alpha: f64) -> u64 {
    match splits(first, second) {
        all if all <= ALL_SPLITS => all,
        _ => {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
            let needed = (2.0 * figures.max(1) as f64 / alpha).floor() as u64;
            needed.saturating_add(1).clamp(LEAST_COUNTED, MOST_COUNTED)
        }
    }
}

/// The smallest p-value that [`apart`] finds for groups of these sizes where `figures` are looked at
/// together at the level `alpha`.
pub(crate) fn smallest_p(first: usize, second: usize, figures: usize, alpha: f64) -> f64 {
    (2.0 / counted(first, second, figures, alpha) as f64).min(1.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What other splits do, each seen as a swap of `k` figures of the first group for `k` of the
/// second: mean of those given away less mean of those taken. The split is at least as far on the
/// first's side as what was seen if that is not above 0; if the first group were shifted by δ
/// beforehand, if it is not above δ. So a list of these numbers is the test at every shift.
struct Swaps {
    gains: Vec<f64>,
    /// Splits that swap nothing: at least as far as what was seen on both sides. One is what was
    /// seen itself.
    unchanged: u64,
}

impl Swaps {
    fn all(Groups { first, second }: &Groups) -> Self {
        let most = first.len().min(second.len());
        let (given, taken) = (sums_by_size(first, most), sums_by_size(second, most));
        let mut gains = Vec::new();
        for size in 1..=most {
            for given in &given[size] {
                gains.extend(taken[size].iter().map(|taken| (given - taken) / size as f64));
            }
        }
        Self { gains, unchanged: 1 }
    }

    /// Those of figures whose groups have the same sizes.
    fn drawn<const N: usize>(figures: [&Groups; N], asked: &Asked) -> [Self; N] {
        // The smaller group is drawn anew; the other is what remains.
        let is_first_small = figures.iter().all(|groups| groups.first.len() <= groups.second.len());
        let sign = if is_first_small { 1.0 } else { -1.0 };
        let sides = figures.map(|Groups { first, second }| match is_first_small {
            true => (first, second),
            false => (second, first),
        });
        let size = sides.iter().map(|(small, _)| small.len()).min().unwrap_or(0);
        let count = sides.iter().map(|(small, large)| small.len() + large.len()).min().unwrap_or(0);
        let at = |place| {
            sides
                .map(|(small, large)| if place < size { small[place] } else { large[place - size] })
        };
        let values: Vec<[f64; N]> = (0..count).map(at).collect();
        let seen = sides.map(|(small, _)| small.iter().sum::<f64>());
        let mut places: Vec<usize> = (0..count).collect();
        let mut random = Random::new(asked.seed);
        let counted = counted(size, count - size, asked.figures, asked.alpha);
        let mut all = sides.map(|_| Self { gains: Vec::new(), unchanged: 1 });
        for _ in 1..counted {
            let (mut sums, mut swapped) = ([0.0; N], 0_u32);
            random.draw_each(&mut places, size, |&place| {
                let values = &values[place];
                for (figure, sum) in sums.iter_mut().enumerate() {
                    *sum += values[figure];
                }
                swapped += u32::from(place >= size);
            });
            for ((swaps, sum), seen) in all.iter_mut().zip(sums).zip(seen) {
                match swapped {
                    0 => swaps.unchanged += 1,
                    count => swaps.gains.push(sign * (seen - sum) / f64::from(count)),
                }
            }
        }
        all
    }

    fn splits(&self) -> u64 {
        self.gains.len() as u64 + self.unchanged
    }

    /// Of skewed figures, few splits may lie on the other side of a difference: with one far outlier in a
    /// large second group, nearly all lie above 0, and a small difference above 0 is lower than those.
    /// That shows no difference below 0, so only the side of the difference counts.
    fn p_value(&self, difference: f64, tolerance: f64) -> f64 {
        let share = match difference {
            _ if difference > tolerance => self.share(|gain| gain <= tolerance),
            _ if difference < -tolerance => self.share(|gain| gain >= -tolerance),
            _ => 1.0,
        };
        (2.0 * share).min(1.0)
    }

    /// The share of splits that reach what is asked, with those that swap nothing.
    fn share(&self, reaches: impl Fn(f64) -> bool) -> f64 {
        let reaching = self.gains.iter().filter(|&&gain| reaches(gain)).count() as u64;
        (self.unchanged + reaching) as f64 / self.splits() as f64
    }

    /// The shifts at which neither side's share of splits is `alpha` / 2 or less.
    fn interval(&mut self, alpha: f64) -> (Option<f64>, Option<f64>) {
        // So many splits, with what was seen, are few enough to reject a shift.
        let few = (self.splits() as f64 * alpha / 2.0 + 1e-9).floor();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most the splits.
        let Some(rank) = (few as u64).checked_sub(self.unchanged) else { return (None, None) };
        let (rank, count) = (usize::try_from(rank).unwrap_or(usize::MAX), self.gains.len());
        if rank >= count {
            return (None, None);
        }
        let low = *self.gains.select_nth_unstable_by(rank, f64::total_cmp).1;
        let high = *self.gains.select_nth_unstable_by(count - 1 - rank, f64::total_cmp).1;
        (Some(low), Some(high))
    }
}

/// The sums of all subsets of up to `most` values, by their size.
fn sums_by_size(values: &[f64], most: usize) -> Vec<Vec<f64>> {
    let mut sums: Vec<Vec<f64>> = vec![Vec::new(); most + 1];
    sums[0].push(0.0);
    for value in values {
        for size in (1..=most).rev() {
            let with: Vec<f64> = sums[size - 1].iter().map(|sum| sum + value).collect();
            sums[size].extend(with);
        }
    }
    sums
}

#[cfg(test)]
mod tests;
