//! How late wakeups would be under other preemption models, or with sections broken up, replayed from
//! what the emulator saw of a guest's kernel.

use serde::{Deserialize, Serialize};

use crate::preemption::Model;
use crate::unknown::{Unknown, keep_unknown};

/// What a record of these says it is.
pub const SCHEMA: &str = "wakescope.predict/1";

/// What other cells of the lab would measure than those that it was made from. All times are virtual.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Prediction {
    /// [`SCHEMA`].
    pub schema: String,
    /// The cells that it was made from: one at least. They differ in nothing but their seeds.
    pub cells: Vec<Cell>,
    /// The model that ran.
    pub recorded: Model,
    /// The time between two wakeups of the grid, ns.
    pub interval_ns: u64,
    /// Phases of the grid that were replayed, of each cell.
    pub phases: u32,
    /// Functions that were broken, as asked for.
    #[serde(default)]
    pub breaks: Vec<Break>,
    /// The longest section, as asked for, ns.
    #[serde(default)]
    pub limit_sections_ns: Option<u64>,
    /// Models, in the order of [`Model`].
    pub models: Vec<Predicted>,
    /// What to break up next.
    pub next: Option<Ranking>,
    /// Keys that this version does not know. They are kept.
    #[serde(skip)]
    pub other: Unknown,
}

keep_unknown!(Prediction);

impl Prediction {
    /// The record as JSON.
    pub fn to_json(&self) -> String {
        // Maps have string keys and numbers are finite: there is nothing that could fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// A cell that predictions were made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its key. This run repeated its result to the bit.
    pub key: String,
    /// What it is called: its kernel, preemption model, load and seed.
    pub label: String,
    /// Its seed.
    pub seed: u64,
    /// How long its guest measured, ns, as [`Scope::window_ns`](crate::scope::Scope::window_ns). The replay
    /// begins at the first edge in that time.
    pub window_ns: u64,
    /// How many wakeups it had.
    pub wakeups: u64,
    /// Whether its guest explained its wakeups: then the tracer's time is in all that is measured, replayed and
    /// predicted.
    #[serde(default)]
    pub explained: bool,
    /// How long a wakeup takes that nothing holds up.
    pub path: Path,
    /// What it measured.
    pub measured: Measured,
    /// What the replay of the model that ran gives for its own wakeups.
    pub replayed: Measured,
    /// Where replays of the model that ran do not come to what was measured: what they say of other models, and of
    /// sections broken up, can be off by as much.
    #[serde(default)]
    pub not_repeated: Vec<NotRepeated>,
}

/// From the interrupt to the probe's reading of the clock, without what holds it up in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// Wakeups of the probe that it was taken from.
    pub wakeups: u64,
    /// The shortest, ns.
    pub min_ns: u64,
    /// The median, ns.
    pub median_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
}

/// What a cell measured, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The median.
    pub p50_ns: Option<u64>,
    /// 99 % were not later.
    pub p99_ns: Option<u64>,
    /// 99.9 % were not later; `null` of fewer than 2,000 wakeups.
    pub p999_ns: Option<u64>,
    /// The latest.
    pub max_ns: Option<u64>,
}

/// A measured figure that the replay of the model that ran does not give: for the cell's own wakeups, or within the
/// range of what other cells would measure, by more than [`NotRepeated::NEAR_PERCENT`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRepeated {
    /// Which.
    pub figure: Figure,
    /// What was measured, ns.
    pub measured_ns: u64,
    /// What was replayed for the cell's own wakeups, ns; `null` if none was seen.
    pub replayed_ns: Option<u64>,
    /// [`Range::low_ns`] of the model that ran.
    pub low_ns: u64,
    /// [`Range::high_ns`] of the model that ran.
    pub high_ns: u64,
}

/// What is compared. Medians often lie beside a jump of the distribution, so they are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// 99 % were not later.
    P99,
    /// 99.9 % were not later.
    P999,
    /// The latest.
    #[default]
    Max,
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
        })
    }
}

impl NotRepeated {
    /// How far two figures may be apart, in percent of the smaller one. By chance one in ten lies outside of the range
    /// at all, for nine in ten are meant to lie in it.
    pub(crate) const NEAR_PERCENT: u64 = 10;

    /// All figures of which that is so. `replayed`: of the cell's own wakeups. Their recording has how code let go for
    /// them, so only `phases` show where the replay does not know that it would.
    pub fn of(measured: &Measured, replayed: &Measured, phases: &Latencies) -> Vec<Self> {
        let figures = [
            (Figure::P99, measured.p99_ns, replayed.p99_ns, phases.p99),
            (Figure::P999, measured.p999_ns, replayed.p999_ns, phases.p999),
            (Figure::Max, measured.max_ns, replayed.max_ns, phases.max),
        ];
        let is_above = |one: u64, other: u64| {
            u128::from(one) * 100 > u128::from(other) * u128::from(100 + Self::NEAR_PERCENT)
        };
        let apart =
            |(figure, measured_ns, replayed_ns, range): (_, Option<u64>, Option<u64>, _)| {
                let (measured_ns, Range { low_ns, high_ns, .. }) = (measured_ns?, range?);
                let is_outside = |low_ns, high_ns| {
                    is_above(measured_ns, high_ns) || is_above(low_ns, measured_ns)
                };
                let is_apart =
                    is_outside(low_ns, high_ns) || replayed_ns.is_some_and(|ns| is_outside(ns, ns));
                is_apart.then_some(Self { figure, measured_ns, replayed_ns, low_ns, high_ns })
            };
        figures.into_iter().filter_map(apart).collect()
    }
}

/// A function that is broken up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Break {
    /// Its name.
    pub function: String,
    /// The longest time that it keeps the CPU, ns.
    pub every_ns: u64,
    /// Its sections in the replayed time that are longer than that, of all cells.
    pub sections: u64,
}

/// What is predicted of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicted {
    /// The model.
    pub model: Model,
    /// How far the prediction goes.
    pub reach: Reach,
    /// Without anything broken; `null` where nothing can be said.
    pub as_recorded: Option<Latencies>,
    /// With what was asked for broken; `null` if nothing was.
    pub broken: Option<Latencies>,
}

/// How far a prediction goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// All places at which the CPU can be given up under this model were seen.
    #[default]
    Whole,
    /// Some of those places were not seen, so wakeups may be earlier.
    AtMost,
    /// Some of the places that were seen may not be such under this model, so wakeups may be later.
    AtLeast,
    /// Nothing is predicted: RT turns spin locks into locks that sleep, and the recording does not show which
    /// sections are spin locks.
    SpinLocks,
    /// What ran was an RT kernel, whose locks and handlers are others: nothing is predicted.
    OtherKernel,
}

/// Latencies of the cells that one may run, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// The median.
    pub p50: Option<Range>,
    /// 99 % are not later.
    pub p99: Option<Range>,
    /// 99.9 % are not later.
    pub p999: Option<Range>,
    /// The latest.
    pub max: Option<Range>,
    /// The latest of all that could be due at any moment of the replayed time, in any cell.
    pub longest_ns: u64,
}

/// A figure of the cells that one may run, which differ in the phase of their timer, in their course and in what they
/// meet by chance: of ten of them, nine are meant to measure it from [`Self::low_ns`] to [`Self::high_ns`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The median over the phases, ns.
    pub median_ns: u64,
    /// One cell of twenty is meant to measure less, ns.
    pub low_ns: u64,
    /// One cell of twenty is meant to measure more, ns.
    pub high_ns: u64,
}

/// What to break up next, step by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranking {
    /// Under this model.
    pub model: Model,
    /// How long what is broken keeps the CPU at most, ns.
    pub every_ns: u64,
    /// One after the other; each includes those before.
    pub steps: Vec<Step>,
}

/// What to break up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Functions, all of which hold up the same wakeup.
    pub functions: Vec<String>,
    /// The latest wakeup before, ns.
    pub before_ns: u64,
    /// The latest wakeup with it, ns.
    pub after_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_replay_of_the_same_model_does_not_repeat() {
        let of = |max_ns| Measured { p99_ns: Some(150), max_ns, ..Measured::default() };
        let range = Some(Range { median_ns: 150, low_ns: 100, high_ns: 200 });
        let phases = Latencies { p99: range, p999: range, max: range, ..Latencies::default() };
        // By the phases, and by the cell's own wakeups.
        for (measured_ns, own_ns, want) in [
            (None, None, false),
            (Some(0), None, true),
            (Some(90), None, true),
            (Some(91), None, false),
            (Some(150), None, false),
            (Some(220), None, false),
            (Some(221), None, true),
            (Some(u64::MAX), None, true),
            (Some(150), Some(150), false),
            (Some(150), Some(165), false),
            (Some(150), Some(166), true),
            (Some(150), Some(137), false),
            (Some(150), Some(136), true),
            // Both agree on what no phase has.
            (Some(221), Some(221), true),
        ] {
            let got = NotRepeated::of(&of(measured_ns), &of(own_ns), &phases);
            let figures: Vec<Figure> = got.iter().map(|one| one.figure).collect();
            let want = if want { vec![Figure::Max] } else { vec![] };
            assert_eq!(figures, want, "{measured_ns:?} {own_ns:?}");
        }
        let measured = Measured { p99_ns: Some(9), p999_ns: Some(9), ..Measured::default() };
        let got = NotRepeated::of(&measured, &Measured::default(), &phases);
        let want = [Figure::P99, Figure::P999].map(|figure| NotRepeated {
            figure,
            measured_ns: 9,
            replayed_ns: None,
            low_ns: 100,
            high_ns: 200,
        });
        assert_eq!(got, want);
        assert_eq!(NotRepeated::of(&measured, &measured, &Latencies::default()), []);
    }
}
