//! E-divisive, for a series of numbers.

use std::ops::Range;

use crate::compare::{Ranges, mean};
use crate::permutation::splits;
use wakescope_core::random::Random;

/// The fewest numbers between two changes: two that are off together are no rarity.
pub const LEAST: usize = 3;

/// Of up to this many numbers all orders are counted: nine have 362,880.
const ALL_ORDERS: usize = 9;

/// The most permutations that are drawn.
pub(super) const MOST_DRAWN: usize = 99_999;

/// Permutations that are drawn to hold a change of a series of so many numbers against, at the level
/// `alpha`; `None` if all orders are counted. The more, the closer false alarms come to what is allowed:
/// with 4,999 to 0.3 % of all series, with 999 to 0.7 %. A smaller level takes more, up to 99,999. Time
/// grows with the square of a series' length.
pub fn permutations(count: usize, alpha: f64) -> Option<usize> {
    (count > ALL_ORDERS).then(|| drawn(count, alpha))
}

fn drawn(count: usize, alpha: f64) -> usize {
    let usual = if count <= 128 { 4_999 } else { 999 };
    // With these, a change of which no permutation looks as much like one has half of the level.
    let needed = (2.0 / alpha).ceil();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
    let needed = needed as usize;
    needed.clamp(usual, MOST_DRAWN)
}

/// The smallest p-value that a step of any size can have in a series of so many numbers, at the level
/// `alpha`: those before it may come in any order, those after it as well, and the sides may change
/// places.
pub(super) fn smallest_p(count: usize, alpha: f64) -> f64 {
    if count < 2 * LEAST {
        return 1.0;
    }
    let counted = 2.0 / splits(count / 2, count - count / 2) as f64;
    match permutations(count, alpha) {
        Some(drawn) => counted.max(1.0 / (drawn + 1) as f64),
        None => counted,
    }
}

/// The fewest numbers in which a step can be found at the level `alpha`; `None` if there are no
/// permutations enough for it.
pub(super) fn numbers_needed(alpha: f64) -> Option<usize> {
    (2 * LEAST..64).find(|&count| can_show(count, alpha))
}

/// Whether a series of so many numbers can show a step of any size at the level `alpha`.
pub(super) fn can_show(count: usize, alpha: f64) -> bool {
    smallest_p(count, alpha) <= alpha + 1e-9
}

/// A change in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The place of the first number after it.
    pub at: usize,
    /// The share of permutations, or of all orders, in which something looks as much like a change. Of
    /// values that are known only within bounds, the largest that these allow, or 1 if that is above the level.
    pub p_value: f64,
}

/// The changes in a series, in order, each with a p-value of at most `alpha`. `seed` matters only in
/// series of more than nine numbers.
///
/// The strongest is found first, then those in the parts that it leaves, until the strongest of
/// what is left could be chance: as likely as `alpha`, for a series in which nothing changed.
pub fn changes(series: &[f64], alpha: f64, seed: u64) -> Vec<Change> {
    search(series, alpha, &mut Random::new(seed)).0
}

/// The changes, and the parts that they leave, in order.
fn search(series: &[f64], alpha: f64, random: &mut Random) -> (Vec<Change>, Vec<Part>) {
    let mut found: Vec<Change> = Vec::new();
    let mut parts: Vec<Part> = vec![Part::of(0, series)];
    if !series.iter().all(|x| x.is_finite()) {
        return (found, parts);
    }
    loop {
        let strongest = (0..parts.len())
            .filter_map(|i| Some((i, parts[i].best?)))
            .max_by(|a, b| a.1.strength.total_cmp(&b.1.strength));
        let Some((place, best)) = strongest else { break };
        let drawn = drawn(series.len(), alpha);
        let Some(p_value) = chance(&parts, best.strength, alpha, drawn, random) else { break };
        let Part { begin, values, .. } = parts.swap_remove(place);
        let (left, right) = values.split_at(best.at);
        found.push(Change { at: begin + best.at, p_value });
        parts.push(Part::of(begin, left));
        parts.push(Part::of(begin + best.at, right));
    }
    found.sort_by_key(|change| change.at);
    parts.sort_by_key(|part| part.begin);
    (found, parts)
}

/// The same of values that are known only within ranges, and may be larger only because runs are longer. Each change
/// comes with the values before and after it, as far as the next ones. The changes are those of the middles, and each
/// is tested once more with the values that make it the smallest: middles may differ only because values are known to
/// different steps.
pub(super) fn changes_within(ranges: &Ranges, alpha: f64, seed: u64) -> Vec<(Change, [Ranges; 2])> {
    let mut random = Random::new(seed);
    let (changes, parts) = search(&ranges.at(0.5), alpha, &mut random);
    let tested = changes.into_iter().zip(parts.windows(2)).map(|(mut change, around)| {
        let [before, after] = [&around[0], &around[1]].map(|part| ranges.part(part.places()));
        let sides = Ranges::at_equal_length([before, after]);
        if !sides.iter().all(Ranges::are_certain) {
            let rises = mean(&around[0].values) < mean(&around[1].values);
            let closest = closest(&sides, around[0].begin, rises);
            let split = closest.best.filter(|best| best.rises(&closest.values) == rises);
            let is_other = |part: &&Part| around.iter().all(|near| near.begin != part.begin);
            let mut all: Vec<Part> = parts.iter().filter(is_other).cloned().collect();
            all.push(closest);
            let drawn = drawn(ranges.least.len(), alpha);
            let p_value =
                split.and_then(|split| chance(&all, split.strength, alpha, drawn, &mut random));
            change.p_value = change.p_value.max(p_value.unwrap_or(1.0));
        }
        (change, sides)
    });
    tested.collect()
}

/// The part that begins at `begin`, with those values of both sides that make the change between them the smallest.
fn closest([before, after]: &[Ranges; 2], begin: usize, rises: bool) -> Part {
    let values = match rises {
        true => [before.most.clone(), after.lowest()],
        false => [before.lowest(), after.most.clone()],
    };
    Part::of(begin, &values.concat())
}

/// The share of permutations within the parts, or of all orders of short ones, whose strongest split is
/// of this `strength` or a larger one; `None` if it is above `alpha`.
fn chance(
    parts: &[Part],
    strength: f64,
    alpha: f64,
    drawn: usize,
    random: &mut Random,
) -> Option<f64> {
    // Sums of the same numbers in another order may differ in their last bits.
    let bar = strength * (1.0 - 1e-9);
    match parts.iter().all(|part| part.values.len() <= ALL_ORDERS) {
        _ if strength <= 0.0 => None,
        true => counted_chance(parts, bar, alpha),
        false => drawn_chance(parts, bar, alpha, drawn, random),
    }
}

/// A part of the series without a change so far.
#[derive(Clone)]
struct Part {
    begin: usize,
    values: Vec<f64>,
    best: Option<Split>,
}

impl Part {
    fn of(begin: usize, values: &[f64]) -> Self {
        Self { begin, values: values.to_vec(), best: best_split(values) }
    }

    /// Its places in the series.
    fn places(&self) -> Range<usize> {
        self.begin..self.begin + self.values.len()
    }
}

/// Where a part would split, and how strongly.
#[derive(Clone, Copy)]
struct Split {
    at: usize,
    /// Where the values end that are held against those before `at`.
    end: usize,
    strength: f64,
}

impl Split {
    /// Whether the `values` after it are larger.
    fn rises(self, values: &[f64]) -> bool {
        mean(&values[..self.at]) < mean(&values[self.at..self.end])
    }
}

/// The share of orders within the parts whose strongest split reaches `bar`, from all orders of each
/// part: parts are independent. `None` if it is above `alpha`.
fn counted_chance(parts: &[Part], bar: f64, alpha: f64) -> Option<f64> {
    let mut none_reaches = 1.0;
    for part in parts.iter().filter(|part| part.best.is_some()) {
        none_reaches *= 1.0 - share_of_orders(&part.values, bar, alpha)?;
    }
    let p_value: f64 = 1.0 - none_reaches;
    (p_value <= alpha + 1e-9).then_some(p_value)
}

/// The share of all orders of `values` whose strongest split reaches `bar`; `None` as soon as it is above
/// `alpha`. Each order differs from the one before in two places (B. Heap, 1963).
fn share_of_orders(values: &[f64], bar: f64, alpha: f64) -> Option<f64> {
    let mut values = values.to_vec();
    let all: usize = (1..=values.len()).product();
    let most = alpha * all as f64 + 1e-6;
    let mut swapped = vec![0; values.len()];
    let (mut reaching, mut place) = (0_usize, 0);
    loop {
        reaching += usize::from(reaches(&values, bar));
        if reaching as f64 > most {
            return None;
        }
        while place < values.len() && swapped[place] == place {
            swapped[place] = 0;
            place += 1;
        }
        if place == values.len() {
            return Some(reaching as f64 / all as f64);
        }
        values.swap(place, if place % 2 == 0 { 0 } else { swapped[place] });
        swapped[place] += 1;
        place = 0;
    }
}

fn reaches(values: &[f64], bar: f64) -> bool {
    best_split(values).is_some_and(|split| split.strength >= bar)
}

/// The share of permutations within the parts whose strongest split reaches `bar`, with the one that is
/// seen; `None` as soon as it is above `alpha`.
fn drawn_chance(
    parts: &[Part],
    bar: f64,
    alpha: f64,
    drawn: usize,
    random: &mut Random,
) -> Option<f64> {
    let mut shuffled: Vec<Vec<f64>> = parts.iter().map(|part| part.values.clone()).collect();
    let mut reaching = 1_usize;
    for _ in 0..drawn {
        let mut any_reaches = false;
        for values in &mut shuffled {
            let count = values.len();
            random.draw(values, count);
            any_reaches |= reaches(values, bar);
        }
        reaching += usize::from(any_reaches);
        if reaching as f64 / (drawn + 1) as f64 > alpha {
            return None;
        }
    }
    Some(reaching as f64 / (drawn + 1) as f64)
}

/// The split of `values` whose sides are furthest apart, measured by the energy statistic: twice
/// the mean distance between sides less the mean distances within each, weighted by the sides'
/// sizes. What comes after it may be only the beginning of the rest, so that a change that is taken
/// back later does not hide (the paper's κ). `None` if there are too few values.
fn best_split(values: &[f64]) -> Option<Split> {
    let count = values.len();
    if count < 2 * LEAST {
        return None;
    }
    // Distances within values[at..end], row by row from the right: `row[end]` for the current `at`.
    // Those of the left side are the row of 0.
    let from_first = within_from(values);
    let mut row = vec![0.0; count + 1];
    let mut best: Option<Split> = None;
    for at in (LEAST..count).rev() {
        let mut to_first = 0.0;
        for end in at + 1..=count {
            // row[end] was that of `at` + 1.
            to_first += (values[end - 1] - values[at]).abs();
            row[end] += to_first;
        }
        for end in at + LEAST..=count {
            let strength = strength(from_first[at], row[end], from_first[end], at, end - at);
            if best.is_none_or(|best| strength > best.strength) {
                best = Some(Split { at, end, strength });
            }
        }
    }
    best
}

/// The sums of distances within values[..end], by `end`.
fn within_from(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; values.len() + 1];
    for end in 1..=values.len() {
        let last = values[end - 1];
        let new: f64 = values[..end - 1].iter().map(|x| (x - last).abs()).sum();
        sums[end] = sums[end - 1] + new;
    }
    sums
}

/// How far two sides of `left` and `right` values are apart, from the sums of distances within each
/// and within both together.
fn strength(
    within_left: f64,
    within_right: f64,
    within_all: f64,
    left: usize,
    right: usize,
) -> f64 {
    let (n, m) = (left as f64, right as f64);
    let between = within_all - within_left - within_right;
    let energy = 2.0 * between / (n * m)
        - 2.0 * within_left / (n * (n - 1.0))
        - 2.0 * within_right / (m * (m - 1.0));
    energy * n * m / (n + m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(series: &[f64], want: &[usize]) {
        let got = changes(series, 0.025, 1);
        let places: Vec<usize> = got.iter().map(|change| change.at).collect();
        assert_eq!(places, want, "{series:?}: {got:?}");
        assert!(
            got.iter().all(|change| change.p_value > 0.0 && change.p_value <= 0.025),
            "{got:?}"
        );
    }

    /// Numbers from 0 to 1 around each level, `count` of each.
    fn levels(levels: &[f64], count: usize) -> Vec<f64> {
        let mut random = Random::new(3);
        let mut noise = || random.below(1_000) as f64 / 1_000.0;
        levels.iter().flat_map(|level| vec![*level; count]).map(|level| level + noise()).collect()
    }

    #[test]
    fn changes_are_found_where_they_are() {
        check(&[], &[]);
        check(&[1.0; 30], &[]);
        check(&[f64::NAN; 30], &[]);
        check(&levels(&[0.0], 40), &[]);
        check(&levels(&[0.0, 2.0], 10), &[10]);
        check(&levels(&[0.0, 2.0, 0.0], 10), &[10, 20]);
        check(&levels(&[0.0, 2.0, 4.0, 1.0], 12), &[12, 24, 36]);
        check(&[&[1.0; 20][..], &[1.1; 20]].concat(), &[20]);
        check(&levels(&[0.0, 2.0], 2), &[]);
    }

    #[test]
    fn the_seed_repeats_it() {
        let series = levels(&[0.0, 0.7], 15);
        assert_eq!(changes(&series, 0.5, 9), changes(&series, 0.5, 9));
    }

    /// A step after so many of `count` numbers that differ a little.
    fn step(at: usize, count: usize) -> Vec<f64> {
        let mut series = levels(&[0.0], count);
        series[at..].iter_mut().for_each(|x| *x += 100.0);
        series
    }

    #[test]
    fn of_few_numbers_all_orders_are_counted() {
        // Two of the ways to split them so, whatever the seed.
        for (at, count, splits) in
            [(3, 6, 20.0), (3, 7, 35.0), (4, 8, 70.0), (3, 9, 84.0), (5, 9, 126.0)]
        {
            for seed in 1..4 {
                let got = changes(&step(at, count), 0.2, seed);
                let [change] = got[..] else { panic!("{got:?}") };
                assert!((change.p_value - 2.0 / splits).abs() < 1e-12, "{count}: {change:?}");
                assert_eq!(change.at, at);
            }
        }
        // As many are drawn, so they agree with those that are counted.
        let series = [1.0, 5.0, 2.0, 4.0, 6.0, 7.0, 3.0, 8.0];
        let parts = [Part::of(0, &series)];
        let bar = parts[0].best.unwrap().strength * (1.0 - 1e-9);
        let counted = counted_chance(&parts, bar, 1.0).unwrap();
        let drawn = drawn_chance(&parts, bar, 1.0, 20_000, &mut Random::new(1)).unwrap();
        assert!((counted - drawn).abs() < 0.015, "{counted} {drawn}");
        // Of two parts, either can reach it.
        let both = [Part::of(0, &series), Part::of(8, &series)];
        let of_both = counted_chance(&both, bar, 1.0).unwrap();
        assert!((of_both - (1.0 - (1.0 - counted) * (1.0 - counted))).abs() < 1e-12);
    }

    #[test]
    fn a_series_is_long_enough_if_its_clearest_step_is_found() {
        for alpha in [0.2, 0.1, 0.05, 0.025, 0.0125, 0.001, 1.5e-4, 2e-5] {
            let needed = numbers_needed(alpha).unwrap();
            for count in [needed - 1, needed] {
                let found = !changes(&step(count / 2, count), alpha, 1).is_empty();
                assert_eq!((found, can_show(count, alpha)), (count == needed, count == needed));
            }
        }
        assert_eq!([0.1, 0.05, 0.025].map(numbers_needed), [Some(6), Some(8), Some(9)]);
        // More permutations than that are not drawn.
        assert_eq!((numbers_needed(9e-6), can_show(500, 9e-6)), (None, false));
        assert_eq!((permutations(9, 0.025), permutations(10, 0.025)), (None, Some(4_999)));
        assert_eq!(
            (permutations(129, 0.025), permutations(129, 1.5e-4)),
            (Some(999), Some(13_334))
        );
    }

    #[test]
    fn alike_numbers_change_as_rarely_as_allowed() {
        let mut random = Random::new(5);
        let mut noise = || random.below(1_000_000) as f64;
        let found = |_: &u32| {
            let series: Vec<f64> = (0..12).map(|_| noise()).collect();
            !changes(&series, 0.05, 1).is_empty()
        };
        let count = (0..200).filter(found).count();
        // 10 are expected; the standard deviation is 3.1.
        assert!((1..=19).contains(&count), "{count} of 200");
    }

    /// Half of a series that is alike throughout is cut off to whole steps, as by another program. Its middles
    /// alone differ from the other half.
    #[test]
    fn another_step_is_no_change() {
        let mut random = Random::new(7);
        let mut normal = || (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
        let (mut of_middles, mut of_ranges) = (0, 0);
        for _ in 0..200 {
            let values: Vec<f64> = (0..12).map(|_| 0.98 + 0.05 * normal()).collect();
            let range = |(i, value): (usize, &f64)| match i < 6 {
                true => (value.floor(), value.floor() + 1.0),
                false => (*value, *value),
            };
            let (least, most): (Vec<f64>, Vec<f64>) = values.iter().enumerate().map(range).unzip();
            let mut ranges = Ranges::default();
            (ranges.least, ranges.most, ranges.lengths) = (least, most, vec![0.0; 12]);
            of_middles += usize::from(!changes(&ranges.at(0.5), 0.05, 1).is_empty());
            let found = changes_within(&ranges, 0.05, 1);
            of_ranges += usize::from(found.iter().any(|(change, _)| change.p_value <= 0.05));
        }
        assert!(of_middles > 60 && of_ranges <= 10, "{of_middles} {of_ranges} of 200");
    }

    /// The strongest split, by the definition.
    fn by_definition(values: &[f64]) -> Option<(usize, f64)> {
        let mean = |xs: &[f64], ys: &[f64]| {
            let sum: f64 = xs.iter().flat_map(|x| ys.iter().map(move |y| (x - y).abs())).sum();
            (sum, xs.len() as f64, ys.len() as f64)
        };
        let mut best: Option<(usize, f64)> = None;
        for at in LEAST..values.len() {
            for end in at + LEAST..=values.len() {
                let (x, y) = (&values[..at], &values[at..end]);
                let ((between, n, m), within_x, within_y) =
                    (mean(x, y), mean(x, x).0, mean(y, y).0);
                let energy = 2.0 * between / (n * m)
                    - within_x / (n * (n - 1.0))
                    - within_y / (m * (m - 1.0));
                let strength = energy * n * m / (n + m);
                if best.is_none_or(|(_, most)| strength > most) {
                    best = Some((at, strength));
                }
            }
        }
        best
    }

    proptest! {
        #[test]
        fn the_sums_are_those_of_the_definition(
            values in prop::collection::vec(-100.0_f64..100.0, 0..24)
        ) {
            match (best_split(&values), by_definition(&values)) {
                (Some(got), Some((_, want))) => prop_assert!((got.strength - want).abs() < 1e-6),
                (got, want) => prop_assert_eq!(got.is_some(), want.is_some()),
            }
        }
    }
}
