//! Runs against runs: is one side worse than the other, by how much, and how sure is that.
//! Documented by docs/reference/compare.schema.json.
//!
//! The unit is the run. Wakeups of one run share its boot, its load's mood and each other's
//! stalls; pooled over runs they would pass for independent, and every comparison would find a
//! difference. So each run gives one number per figure, and what decides is how much these numbers
//! differ within a side.

use serde::{Deserialize, Serialize};

use wakescope_core::finding;
use wakescope_core::limit::{Limit, Outcome};
use wakescope_core::observation::Observation;
use wakescope_core::run::TimeDomain;
use wakescope_core::source::Quantity;

mod bounded;
mod effect;
mod guard;
mod kernels;
mod limits;
mod measured;
mod order;
mod power;
mod reasons;
mod results;
mod single;
mod steps;
mod watches;
mod words;

pub use bounded::Bounded;
pub use effect::{Effect, Figure, IdleLoad, Throughput};
pub use guard::{Difference, Refusal, Value};
pub use limits::RunLimit;
pub use measured::{RunBounds, RunFigures};
pub use order::{Order, Side, interleaved};
pub use single::{Bounds, Within};
pub use wakescope_core::lab::Verdict;
pub use watches::{Means, OfGroup, OfWatches, OneSided, Watched, compare_watches};
pub use words::{factor, percent, probability, ratio_within, times, word};

pub(crate) use bounded::Ranges;
pub(crate) use effect::{geometric_mean, mean};
pub(crate) use guard::{
    differences, quantities, refuse_differences, refuse_repetitions, repetition,
};
pub(crate) use measured::{Measured, P999, count_of_maxima, of_lengths, of_shares, share_of};
pub(crate) use steps::steps_note;
pub(crate) use watches::{Watches, labelled};
pub(crate) use words::listed;

use results::Results;

/// The schema that this version writes.
pub const SCHEMA: &str = "wakescope.compare/1";

/// How likely alike sides may be to be called better or worse, unless the user says otherwise.
pub const ALPHA: f64 = 0.05;

/// By what share a figure must differ to count, unless the user says otherwise.
pub const MARGIN: f64 = 0.1;

/// Figures of a quantity that decide.
const FIGURES: usize = 2;

/// A run and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a> {
    /// A short name.
    pub label: &'a str,
    /// The run.
    pub run: &'a Observation,
}

/// What is asked of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// By what share a figure must differ to count: 0.1 for 10 %.
    pub margin: f64,
    /// How likely alike sides may be to be called better or worse.
    pub alpha: f64,
    /// The comparison fails only if a figure is shown to be worse by more than this share. It fails with a
    /// probability of at most `alpha` if none is, however many figures there are.
    pub max_regression: Option<f64>,
    /// Limits that each new run is held to.
    pub limits: Vec<Limit>,
    /// Compares also what is not alike.
    pub force: bool,
    /// Judges also where one side was measured after the other.
    pub accept_blocks: bool,
    /// Compares also values of different kinds, such as gaps with wakeup latencies.
    pub mix_quantities: bool,
    /// Of the splits that are drawn, where there are too many to count.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            margin: MARGIN,
            alpha: ALPHA,
            max_regression: None,
            limits: Vec::new(),
            force: false,
            accept_blocks: false,
            mix_quantities: false,
            seed: 1,
        }
    }
}

/// What runs say about new against old.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compare {
    /// [`SCHEMA`].
    pub schema: String,
    /// What all figures say together.
    pub verdict: Verdict,
    /// What follows for the exit code, limits included.
    pub outcome: Outcome,
    /// New / old, of the quantity that stands for the verdict.
    pub ratios: Ratios,
    /// The smallest corrected p-value of these; `null` if neither figure is known.
    pub p_value: Option<f64>,
    /// New and old runs of that quantity.
    pub runs: [usize; 2],
    /// Why the verdict is no clearer; a sentence each.
    pub reasons: Vec<String>,
    /// What else one must know of the runs; a sentence each.
    pub notes: Vec<String>,
    /// What was asked.
    pub settings: Settings,
    /// Which time the figures are in.
    pub time_domain: TimeDomain,
    /// Whether a tracer followed wakeups of any of the runs: in virtual time, its own time is in their figures.
    #[serde(default)]
    pub explained: bool,
    /// One per quantity: only files of other programs hold several.
    pub quantities: Vec<OfQuantity>,
    /// In which order the runs were measured. Unless that is accepted, `blocks` leave figures and
    /// verdicts inconclusive.
    pub order: Order,
    /// In what the runs are not alike.
    pub differences: Vec<Difference>,
    /// How the new runs stand to each limit.
    pub limits: Vec<RunLimit>,
    /// What watches hold beside all their waits together; `None` if the runs are no watches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watches: Option<OfWatches>,
    /// The new runs, in the order given.
    pub new: Vec<RunFigures>,
    /// The old runs, in the order given.
    pub old: Vec<RunFigures>,
}

impl Compare {
    /// The record as JSON, on lines that people can read.
    pub fn to_json(&self) -> String {
        // Only a map with keys that are no text, or a failing writer, could make this fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// The ratios that decide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// Of the 99.9th percentile.
    pub p999: Option<Ratio>,
    /// Of the maximum, at equal count.
    pub max: Option<Ratio>,
}

/// New / old.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The ratio of the geometric means over the runs. Where runs have only bounds, the one closest to 1
    /// that these allow.
    pub value: f64,
    /// With 95 % (or 1 - alpha), the ratio is not below this; `null` if that cannot be said.
    pub low: Option<f64>,
    /// With as much, it is not above this.
    pub high: Option<f64>,
}

/// What was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// By what share a figure must differ to count: 0.1 for 10 %.
    pub margin: f64,
    /// How likely alike sides may be to be called better or worse, over all figures.
    pub alpha: f64,
    /// By what share a figure must be shown to be worse for the comparison to fail; `null` if the
    /// verdict decides.
    pub max_regression: Option<f64>,
    /// Of the splits that were drawn, where there were too many to count.
    pub seed: u64,
    /// Whether runs were compared though they are not alike in what matters.
    pub forced: bool,
    /// Whether runs were judged though one side was measured after the other.
    pub accepted_blocks: bool,
    /// The command that repeats it.
    pub repeat: String,
}

impl Settings {
    /// What was asked of runs with these differences, and whether it had to be.
    fn of(options: &Options, differences: &[Difference], order: Order) -> Self {
        Self {
            margin: options.margin,
            alpha: options.alpha,
            max_regression: options.max_regression,
            seed: options.seed,
            forced: options.force && differences.iter().any(|d| d.matters),
            accepted_blocks: options.accept_blocks && order == Order::Blocks,
            repeat: String::new(),
        }
    }
}

/// What the runs say about one quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfQuantity {
    /// What the values are.
    pub quantity: Quantity,
    /// What its figures say together.
    pub verdict: Verdict,
    /// New and old runs.
    pub runs: [usize; 2],
    /// Maxima are those of so many samples: as many as the shortest run has that counts
    /// ([`equal_count`](crate::equal_count::equal_count)); 0 if none does.
    pub count: u64,
    /// The median, to look at: it decides nothing.
    pub p50: Option<Figure>,
    /// The 99th percentile, to look at.
    pub p99: Option<Figure>,
    /// The 99.9th percentile.
    pub p999: Option<Figure>,
    /// The maximum, at equal count.
    pub max: Option<Figure>,
    /// What loads got done, where they count it. A ratio above 1 is more work.
    pub throughput: Vec<Throughput>,
    /// Loads that did no work in some runs, or of which these record none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_loads: Vec<IdleLoad>,
    /// With one run a side: what its samples say.
    pub within: Vec<Within>,
    /// Why the verdict is no clearer; a sentence each.
    pub reasons: Vec<String>,
    /// Of how many runs only bounds of p99.9, and of the maximum, are known.
    #[serde(skip)]
    pub(crate) bounded: [usize; 2],
}

impl OfQuantity {
    /// The figures that decide, by name.
    pub fn deciding(&self) -> [(&'static str, Option<&Figure>); 2] {
        [("p99.9", self.p999.as_ref()), ("max", self.max.as_ref())]
    }

    fn deciding_mut(&mut self) -> impl Iterator<Item = &mut Figure> {
        self.p999.iter_mut().chain(&mut self.max)
    }
}

/// Holds `new` against `old`.
///
/// Of each quantity the 99.9th percentile and the maximum decide; their p-values are corrected for
/// the number of all figures that do. A figure is worse if its corrected p-value is at most `alpha`
/// and its ratio above 1 + `margin`; better accordingly. It does not differ if the interval of the
/// ratio lies within the margin. Otherwise the runs do not tell.
///
/// New is worse if a figure is and none is better; better accordingly; no different if neither
/// figure differs.
///
/// Where one side was measured after the other, a drift of the machine is part of the difference:
/// nothing is worse, better or the same then, unless that order is accepted.
///
/// # Errors
/// If a run holds nothing or is given twice, if the sides hold different quantities that are not to
/// be mixed, and, unless forced, if runs are not alike in what matters.
pub fn compare(
    new: &[Labelled],
    old: &[Labelled],
    options: &Options,
) -> Result<Compare, Box<Refusal>> {
    judged(new, old, None, options)
}

/// The same, where runs may be watches, whose groups of tasks are compared as well.
fn judged(
    new: &[Labelled],
    old: &[Labelled],
    watches: Option<&Watches>,
    options: &Options,
) -> Result<Compare, Box<Refusal>> {
    let all: Vec<Labelled> = new.iter().chain(old).copied().collect();
    guard::refuse_nothing(new, old)?;
    let mixture = guard::mixture(new, old, options.mix_quantities)?;
    let mut differences = allowed_differences(&all, [new, old], watches, options)?;
    let quantities = guard::quantities(new);
    let mut sides = match watches {
        None => [new, old].map(|side| side.iter().map(Measured::of).collect::<Vec<_>>()),
        Some(watches) => watches.measured(),
    };
    if let Some(mixture) = mixture {
        differences.insert(0, mixture);
        // What is asked for is one figure of all, under the name of the new runs.
        sides.iter_mut().flatten().for_each(|m| m.quantity = quantities[0]);
    }
    let mut found = Results::of(&quantities, &sides, watches, options);
    let mut verdict = found.decide(options);
    let order = match watches {
        None => Order::of(new, old),
        Some(_) => order::of_watches(new, old),
    };
    let mut reasons = found.reasons(options.alpha);
    if order == Order::Blocks && !options.accept_blocks {
        let remedy = if watches.is_some() { order::WATCHES } else { order::RUNS };
        let why = order::lower(&mut found, verdict, &order::in_blocks(new, old), remedy);
        verdict = Verdict::Inconclusive;
        reasons.splice(..0, why);
    }
    if let Some(why) = watches.and_then(|_| watches::lower(&mut found, verdict, options)) {
        verdict = Verdict::Inconclusive;
        reasons.insert(0, why);
    }
    let limits = limits::judge(new, &options.limits);
    let outcome = outcome(verdict, &found, &limits, options);
    let accepted_load = watches.and_then(|_| watches::accepted_load(&found, options));
    let Results { quantities, watches: of_watches } = found;
    let telling = quantities.iter().find(|q| q.verdict == verdict).or(quantities.first());
    let mut notes: Vec<String> = order::note(order, new, old, options).into_iter().collect();
    notes.extend(measured::lengths(&sides, &quantities, of_watches.as_ref()));
    notes.extend(guard::of_seeds(new, old));
    notes.extend(steps_note(&all));
    notes.extend(accepted_load);
    notes.extend(watches.iter().flat_map(|watches| watches.notes()));
    notes.extend(of_watches.iter().flat_map(|of| of.notes([new.len(), old.len()])));
    Ok(Compare {
        schema: SCHEMA.into(),
        verdict,
        outcome,
        ratios: telling.map(ratios).unwrap_or_default(),
        p_value: telling.and_then(smallest_p),
        runs: telling.map(|q| q.runs).unwrap_or_default(),
        reasons,
        notes,
        settings: Settings::of(options, &differences, order),
        time_domain: all.first().map(|l| l.run.time_domain).unwrap_or_default(),
        explained: all.iter().any(|l| l.run.tracing.explained),
        order,
        differences,
        limits,
        watches: of_watches,
        new: sides[0].iter().map(|m| m.figures(&quantities)).collect(),
        old: sides[1].iter().map(|m| m.figures(&quantities)).collect(),
        quantities,
    })
}

/// In what the runs are not alike.
///
/// # Errors
/// If a run is given twice, and, unless forced, if runs are not alike in what matters.
fn allowed_differences(
    all: &[Labelled],
    [new, old]: [&[Labelled]; 2],
    watches: Option<&Watches>,
    options: &Options,
) -> Result<Vec<Difference>, Box<Refusal>> {
    guard::refuse_repetitions(all)?;
    let mut differences = guard::repetitions(all, [new, old]);
    differences.extend(guard::differences(all));
    differences.extend(kernels::differences(new, old));
    differences.extend(watches.iter().flat_map(|watches| watches.differences()));
    guard::refuse_differences(differences, options.force)
}

/// What follows for the exit code: the gravest of what was asked.
fn outcome(verdict: Verdict, found: &Results, limits: &[RunLimit], options: &Options) -> Outcome {
    let of_figures = match options.max_regression {
        Some(_) => found
            .deciding()
            .map(|effect| effect.and_then(|effect| effect.regression))
            .map(|regression| regression.unwrap_or(Outcome::Inconclusive))
            .max()
            .unwrap_or(Outcome::Inconclusive),
        None => match verdict {
            Verdict::Worse => Outcome::Fail,
            Verdict::Better | Verdict::NoDifference => Outcome::Pass,
            Verdict::Inconclusive => Outcome::Inconclusive,
        },
    };
    limits.iter().map(|limit| limit.outcome).fold(of_figures, Outcome::max)
}

fn ratios(of: &OfQuantity) -> Ratios {
    let ratio = |figure: &Figure| Ratio {
        value: figure.effect.ratio,
        low: figure.effect.low,
        high: figure.effect.high,
    };
    Ratios { p999: of.p999.as_ref().map(ratio), max: of.max.as_ref().map(ratio) }
}

fn smallest_p(of: &OfQuantity) -> Option<f64> {
    let p_values = of.deciding().into_iter().filter_map(|(_, figure)| figure);
    p_values.map(|figure| figure.effect.p_adjusted).min_by(f64::total_cmp)
}

/// Whether a run can be judged at all.
fn is_invalid(run: &Observation) -> bool {
    run.validity.verdict == finding::Verdict::Invalid
}

#[cfg(test)]
mod tests;
