//! In which order the runs of two sides were measured, and in which they should be.
//!
//! A machine drifts: it warms up, its memory fills, its neighbours come and go. Where one side was
//! measured after the other, such a drift is part of their difference, and no test can tell the two
//! apart. Runs that take turns share it.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::results::Results;
use super::words::{count_of, percent, word};
use super::{Labelled, Options, Verdict};
use wakescope_core::date::Date;
use wakescope_core::observation::Observation;
use wakescope_core::random::Random;
use wakescope_core::run::TimeDomain;

/// In which order runs were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The sides overlap in time.
    Mixed,
    /// In 95 % of all pairs of a new and an old run or more, that of the same side began after the other
    /// had ended; or the sides of watches have less than half of their time in common. Runs whose start is
    /// not known do not count.
    Blocks,
    /// When some of them began is not known, and the others are no blocks.
    #[default]
    Unknown,
    /// It makes no difference: virtual and simulated time have no drift.
    Irrelevant,
}

/// A side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What is compared.
    New,
    /// What it is compared with.
    Old,
}

/// By how much of all pairs of a new and an old run the one side must come first for a note.
const UNBALANCED: f64 = 0.75;

/// From this share of all pairs on, the sides are as good as blocks: one run that overlaps the other side, or
/// was measured again later, tells nothing of a drift.
const NEARLY_ALL: f64 = 0.95;

/// A run's times in seconds since 1970: its start, and its end.
type Times = (i64, i64);

impl Order {
    /// The order of these runs.
    pub(super) fn of(new: &[Labelled], old: &[Labelled]) -> Self {
        if new.iter().chain(old).all(|l| l.run.time_domain != TimeDomain::Real) {
            return Self::Irrelevant;
        }
        match (Blocks::of(&times(new), &times(old)), unknown(new, old)) {
            (Some(_), _) => Self::Blocks,
            (None, 0) => Self::Mixed,
            (None, _) => Self::Unknown,
        }
    }
}

/// Sides of which one was measured after the other.
struct Blocks {
    /// The side that was measured first.
    first: Side,
    /// In how large a part of all pairs of a new and an old run.
    share: f64,
}

impl Blocks {
    fn of(new: &[Times], old: &[Times]) -> Option<Self> {
        let later = share_of(new, old, after)?;
        let first = if later > 0.5 { Side::Old } else { Side::New };
        let share = later.max(1.0 - later);
        (share >= NEARLY_ALL).then_some(Self { first, share })
    }
}

/// The times of the runs whose start is known.
fn times(side: &[Labelled]) -> Vec<Times> {
    let times = |run: &Observation| {
        let start = start(run)?;
        let length = i64::try_from(run.duration_ns / 1_000_000_000).ok()?;
        Some((start, start.checked_add(length)?))
    };
    side.iter().filter_map(|l| times(l.run)).collect()
}

/// When a run began, in seconds since 1970; `None` if that is not known.
pub(super) fn start(run: &Observation) -> Option<i64> {
    // 1970 is what a file has that does not tell.
    Some(Date::parse(&run.started)?.seconds()).filter(|&start| start > 0)
}

/// Of how many runs the start is not known.
fn unknown(new: &[Labelled], old: &[Labelled]) -> usize {
    new.len() + old.len() - times(new).len() - times(old).len()
}

/// Whether the first run began after the second had ended, or the other way round; equal if they overlap.
/// Starts are in whole seconds, rounded down, so an end may seem to lie a second beyond the next start.
fn after(new: &Times, old: &Times) -> Ordering {
    let is_before = |first: &Times, next: &Times| first.0 < next.0 && first.1 <= next.0 + 1;
    match (is_before(old, new), is_before(new, old)) {
        (true, _) => Ordering::Greater,
        (_, true) => Ordering::Less,
        (false, false) => Ordering::Equal,
    }
}

/// Of all pairs of a new and an old run, the share in which the new one is later by this `order`; pairs that
/// are equal count half. `None` if there are no pairs.
fn share_of(
    new: &[Times],
    old: &[Times],
    order: impl Fn(&Times, &Times) -> Ordering,
) -> Option<f64> {
    let pairs = new.iter().flat_map(|new| old.iter().map(move |old| (new, old)));
    let later: f64 = pairs
        .map(|(new, old)| match order(new, old) {
            Ordering::Greater => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Less => 0.0,
        })
        .sum();
    let count = new.len() * old.len();
    (count > 0).then(|| later / count as f64)
}

/// How runs of both sides come to take turns.
pub(super) const RUNS: &str =
    "Measure the sides alternately (wakescope compare --interleave-plan 5)";

/// How watches of both sides come to be of the same time.
pub(super) const WATCHES: &str =
    "Watch machines of both sides at the same time, or change sides several times";

/// Watches of sides that have less than this part of their time in common are as good as blocks.
const MOSTLY_TOGETHER: f64 = 0.5;

/// The order of watches. They are long: that one of a side begins just before all of the other end makes no
/// difference.
pub(super) fn of_watches(new: &[Labelled], old: &[Labelled]) -> Order {
    match share_together(&times(new), &times(old)) {
        Some(share) if share < MOSTLY_TOGETHER => Order::Blocks,
        _ => Order::of(new, old),
    }
}

/// Of the times from the first start to the last end of each side, what part of the shorter one is in both;
/// `None` if it has no length.
fn share_together(new: &[Times], old: &[Times]) -> Option<f64> {
    let extent =
        |side: &[Times]| Some((side.iter().map(|t| t.0).min()?, side.iter().map(|t| t.1).max()?));
    let (new, old) = (extent(new)?, extent(old)?);
    let shorter = (new.1 - new.0).min(old.1 - old.0);
    let common = new.1.min(old.1).saturating_sub(new.0.max(old.0)).max(0);
    (shorter > 0).then(|| common as f64 / shorter as f64)
}

/// Takes back what blocks cannot show, and says why: a reason if a verdict was taken back, with the
/// `remedy`. Limits stay, for each run stands to them alone.
pub(super) fn lower(
    found: &mut Results,
    verdict: Verdict,
    blocks: &str,
    remedy: &str,
) -> Option<String> {
    let loads = found.quantities.iter_mut().flat_map(|quantity| &mut quantity.throughput);
    loads.for_each(|load| load.effect.verdict = Verdict::Inconclusive);
    found.take_back().then(|| {
        format!(
            "{blocks} A drift of the machine could look like a difference. Without drift, the verdict \
             would be: {}. {remedy}, or accept the risk: --accept-blocks.",
            word(verdict)
        )
    })
}

/// What makes runs blocks.
pub(super) fn in_blocks(new: &[Labelled], old: &[Labelled]) -> String {
    let Some(blocks) = Blocks::of(&times(new), &times(old)) else {
        return "The sides have little of their time in common.".into();
    };
    let (first, then) = match blocks.first {
        Side::New => ("new", "old"),
        Side::Old => ("old", "new"),
    };
    let runs = match blocks.share < 1.0 {
        false => format!("All {then} runs were measured after all {first} ones"),
        true => format!(
            "Nearly all {then} runs were measured after the {first} ones: in {} of all pairs",
            percent(blocks.share)
        ),
    };
    match unknown(new, old) {
        0 => format!("{runs}."),
        unknown => format!(
            "{runs}. The start time of {} of {} is unknown.",
            count_of(unknown, "run"),
            new.len() + old.len()
        ),
    }
}

/// What one must know of the order beside the verdict.
pub(super) fn note(
    order: Order,
    new: &[Labelled],
    old: &[Labelled],
    options: &Options,
) -> Option<String> {
    match order {
        Order::Irrelevant => None,
        Order::Blocks if options.accept_blocks => Some(format!(
            "{} This was accepted (--accept-blocks): a drift of the machine could look like a \
             difference.",
            in_blocks(new, old)
        )),
        Order::Blocks => None,
        Order::Unknown => Some(format!(
            "The start time of {} of {} is unknown. The sides may have been measured one \
                 after the other, with a drift between them.",
            count_of(unknown(new, old), "run"),
            new.len() + old.len()
        )),
        Order::Mixed => {
            let later = share_of(&times(new), &times(old), |new, old| new.0.cmp(&old.0))?;
            let share = later.max(1.0 - later);
            let side = if later > 0.5 { "new" } else { "old" };
            (share >= UNBALANCED).then(|| {
                format!(
                    "The order is not balanced: in {} of all pairs of a new and an old run, the \
                     {side} one started later. A drift of the machine could look like part of the \
                     difference.",
                    percent(share)
                )
            })
        }
    }
}

/// An order in which to measure `runs` runs a side: pairs of both sides, of which each second one
/// is the mirror image of the one before, so that a steady drift hits both sides alike. Which side
/// comes first is drawn.
///
/// ```
/// use wakescope_stats::compare::{Side, interleaved};
/// let order = interleaved(5, 1);
/// assert_eq!(order.iter().filter(|&&side| side == Side::New).count(), 5);
/// assert_eq!(order, interleaved(5, 1));
/// ```
pub fn interleaved(runs: usize, seed: u64) -> Vec<Side> {
    let mut random = Random::new(seed);
    let mut order = Vec::with_capacity(2 * runs);
    while order.len() < 2 * runs {
        let [a, b] = match random.below(2) {
            0 => [Side::Old, Side::New],
            _ => [Side::New, Side::Old],
        };
        order.extend([a, b, b, a]);
    }
    order.truncate(2 * runs);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A run that began so many seconds after another, and took 10 s.
    fn begun(at: Option<i64>) -> Observation {
        let started = at.map_or_else(String::new, |at| {
            let (minute, second) = (at / 60, at % 60);
            format!("2026-11-21T01:{minute:02}:{second:02}Z")
        });
        Observation { started, duration_ns: 10_400_000_000, ..Observation::default() }
    }

    fn order(new: &[Observation], old: &[Observation]) -> Order {
        let new: Vec<Labelled> = new.iter().map(|run| Labelled { label: "new", run }).collect();
        let old: Vec<Labelled> = old.iter().map(|run| Labelled { label: "old", run }).collect();
        assert_eq!(Order::of(&old, &new), Order::of(&new, &old), "either way round");
        Order::of(&new, &old)
    }

    fn at(starts: &[i64]) -> Vec<Observation> {
        starts.iter().map(|&start| begun(Some(start))).collect()
    }

    #[test]
    fn sides_that_do_not_overlap_are_blocks() {
        for (new, old, want) in [
            (&[100, 120, 140][..], &[0, 20, 40][..], Order::Blocks),
            (&[0, 60], &[20, 40], Order::Mixed),
            // One began as soon as the other had ended, but for the part of a second.
            (&[10], &[0], Order::Blocks),
            (&[9], &[0], Order::Blocks),
            // At the same time, on two machines.
            (&[8], &[0], Order::Mixed),
            (&[0, 0], &[0, 0], Order::Mixed),
            // One of 25 pairs overlaps, or is the other way round; and two of 25.
            (&[88, 100, 120, 140, 160], &[0, 20, 40, 60, 80], Order::Blocks),
            (&[70, 100, 120, 140, 160], &[0, 20, 40, 50, 81], Order::Blocks),
            (&[55, 100, 120, 140, 160], &[0, 20, 40, 66, 81], Order::Mixed),
        ] {
            assert_eq!(order(&at(new), &at(old)), want, "{new:?} {old:?}");
        }
    }

    #[test]
    fn what_has_no_time_has_no_order() {
        assert_eq!(order(&[begun(None), begun(Some(5))], &at(&[0])), Order::Unknown);
        let epoch = Observation { started: "1970-01-01T00:00:00Z".into(), ..begun(None) };
        assert_eq!(order(&at(&[5]), std::slice::from_ref(&epoch)), Order::Unknown);
        // Runs of an unknown time leave the order of the others as it is.
        let with = |starts: &[i64]| [at(starts), vec![epoch.clone()]].concat();
        assert_eq!(order(&with(&[100, 120]), &with(&[0, 20])), Order::Blocks);
        assert_eq!(order(&with(&[0, 60]), &at(&[20, 40])), Order::Unknown);
        for time_domain in [TimeDomain::Virtual, TimeDomain::Simulated] {
            let of = |start| Observation { time_domain, ..begun(Some(start)) };
            assert_eq!(order(&[of(100)], &[of(0)]), Order::Irrelevant);
        }
    }

    #[test]
    fn plans_are_balanced_and_differ_by_seed() {
        let seeds: std::collections::HashSet<Vec<bool>> = (0..1_000)
            .map(|seed| interleaved(8, seed).iter().map(|&side| side == Side::New).collect())
            .collect();
        assert_eq!(seeds.len(), 16, "two ways for each four");
    }

    proptest! {
        #[test]
        fn a_steady_drift_hits_both_sides_of_a_plan_alike(runs in 2_usize..60, seed in any::<u64>()) {
            let order = interleaved(runs, seed);
            prop_assert_eq!(order.len(), 2 * runs);
            prop_assert!(order.chunks(2).all(|pair| pair[0] != pair[1]));
            let places = |side| {
                let all = order.iter().enumerate().filter(move |(_, s)| **s == side);
                all.map(|(place, _)| place as i64).collect::<Vec<i64>>()
            };
            let (new, old) = (places(Side::New), places(Side::Old));
            let apart = new.iter().sum::<i64>() - old.iter().sum::<i64>();
            prop_assert!(apart.abs() <= (runs % 2) as i64, "{apart}");
            let times = |places: &[i64]| places.iter().map(|p| (60 * p, 60 * p + 50)).collect::<Vec<_>>();
            let (new, old) = (times(&new), times(&old));
            prop_assert!(Blocks::of(&new, &old).is_none());
            prop_assert!((share_of(&new, &old, after).unwrap() - 0.5).abs() < 0.26);
        }
    }
}
