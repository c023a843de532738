//! In which order the runs of two sides were measured, and in which they should be.
//!
//! A machine drifts: it warms up, its memory fills, its neighbours come and go. Where one side was
//! measured after the other, such a drift is part of their difference, and no test can tell the two
//! apart. Runs that take turns share it.

use serde::{Deserialize, Serialize};

use super::words::{count_of, percent, word};
use super::{Labelled, Options, Results, Verdict};
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
    /// All runs of one side began after those of the other had ended, or the sides of watches have less
    /// than half of their time in common.
    Blocks,
    /// When some of them began is not known.
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

/// A run's times in seconds since 1970: its start, and its end.
type Times = (i64, i64);

impl Order {
    /// The order of these runs.
    pub(super) fn of(new: &[Labelled], old: &[Labelled]) -> Self {
        if new.iter().chain(old).all(|l| l.run.time_domain != TimeDomain::Real) {
            return Self::Irrelevant;
        }
        let (Some(new), Some(old)) = (times(new), times(old)) else { return Self::Unknown };
        match is_before(&new, &old) || is_before(&old, &new) {
            true => Self::Blocks,
            false => Self::Mixed,
        }
    }
}

fn times(side: &[Labelled]) -> Option<Vec<Times>> {
    let times = |run: &Observation| {
        let start = Date::parse(&run.started)?.seconds();
        let length = i64::try_from(run.duration_ns / 1_000_000_000).ok()?;
        // 1970 is what a file has that does not tell.
        (start > 0).then_some((start, start.checked_add(length)?))
    };
    side.iter().map(|l| times(l.run)).collect()
}

/// Whether all of `first` ended before any of `then` began. Starts are in whole seconds, rounded
/// down, so an end may seem to lie a second beyond the next start.
fn is_before(first: &[Times], then: &[Times]) -> bool {
    let (Some(start), Some(end)) =
        (first.iter().map(|t| t.0).max(), first.iter().map(|t| t.1).max())
    else {
        return false;
    };
    then.iter().all(|next| start < next.0 && end <= next.0 + 1)
}

/// Of all pairs of a new and an old run, the share in which the new one began later; pairs that began
/// in the same second count half.
fn share_of_later(new: &[Times], old: &[Times]) -> f64 {
    let pairs = new.iter().flat_map(|new| old.iter().map(move |old| new.0.cmp(&old.0)));
    let later: f64 = pairs
        .map(|order| match order {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        })
        .sum();
    later / (new.len() * old.len()).max(1) as f64
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
    let order = Order::of(new, old);
    let together = times(new).zip(times(old)).and_then(|(new, old)| share_together(&new, &old));
    match together {
        Some(share) if share < MOSTLY_TOGETHER => Order::Blocks,
        _ => order,
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
    let Some((new, old)) = times(new).zip(times(old)) else { return String::new() };
    let (first, then) = match (is_before(&new, &old), is_before(&old, &new)) {
        (true, _) => ("new", "old"),
        (false, true) => ("old", "new"),
        (false, false) => return "The sides have little of their time in common.".into(),
    };
    format!("All {then} runs were measured after all {first} ones.")
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
        Order::Unknown => {
            let unknown = |l: &&Labelled| times(&[**l]).is_none();
            let all: Vec<&Labelled> = new.iter().chain(old).collect();
            let count = all.iter().filter(|l| unknown(l)).count();
            Some(format!(
                "The start time of {} of {} is unknown. The sides may have been measured one \
                 after the other, with a drift between them.",
                count_of(count, "run"),
                all.len()
            ))
        }
        Order::Mixed => {
            let (new, old) = (times(new)?, times(old)?);
            let later = share_of_later(&new, &old);
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
        ] {
            assert_eq!(order(&at(new), &at(old)), want, "{new:?} {old:?}");
        }
    }

    #[test]
    fn what_has_no_time_has_no_order() {
        assert_eq!(order(&[begun(None), begun(Some(5))], &at(&[0])), Order::Unknown);
        let epoch = Observation { started: "1970-01-01T00:00:00Z".into(), ..begun(None) };
        assert_eq!(order(&at(&[5]), &[epoch]), Order::Unknown);
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
            prop_assert!(!is_before(&new, &old) && !is_before(&old, &new));
            prop_assert!((share_of_later(&new, &old) - 0.5).abs() < 0.26);
        }
    }
}
