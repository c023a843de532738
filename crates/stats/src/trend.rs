//! A series of runs: where did a figure change.
//!
//! The unit is the run, as in [`crate::compare`]: each gives one number per figure. Where these
//! changed is found by E-divisive (D. Matteson and N. James, "A Nonparametric Approach for Multiple
//! Change Point Analysis of Multivariate Data", JASA 109, 2014): it assumes no distribution, and
//! tests each change by permutations.

use serde::{Deserialize, Serialize};
use wakescope_core::units::{counted, grouped, one_or_many};

use crate::compare::{
    Difference, Labelled, MARGIN, Measured, P999, Ranges, Refusal, RunFigures, Watched, Watches,
    count_of_maxima, differences, geometric_mean, labelled, listed, mean, of_lengths, of_shares,
    probability, quantities, ratio_within, refuse_differences, refuse_repetitions, repetition,
    share_of, steps_note, times,
};
use crate::equal_count;
use wakescope_core::run::TimeDomain;
use wakescope_core::source::Quantity;
use wakescope_core::watch::scale::RESOLUTION;

mod divisive;

pub use divisive::{Change, LEAST, changes, permutations};

use divisive::{MOST_DRAWN, can_show, changes_within, numbers_needed, smallest_p};

/// The schema that this version writes.
pub const SCHEMA: &str = "wakescope.trend/1";

/// How likely a series in which nothing changed may be said to have changed.
pub const ALPHA: f64 = 0.05;

/// The most runs of a series: time and memory grow with the square of their number.
pub const MOST: usize = 1_000;

/// The least change of a figure of which some runs have only bounds. It must be so large for all values within the
/// bounds: a smaller one may come of a value that crossed the edge of a step.
const LEAST_OF_BOUNDED: f64 = 1.0 + 1.0 / 16.0;

/// Figures of a quantity that are followed.
const FIGURES: usize = 2;

/// What is asked of a series.
#[derive(Clone, Debug)]
pub struct Options {
    /// How likely a series in which nothing changed may be said to have changed.
    pub alpha: f64,
    /// Takes also runs that are not alike in what matters.
    pub force: bool,
    /// Of the permutations.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { alpha: ALPHA, force: false, seed: 1 }
    }
}

/// What became of the figures of a series of runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// [`SCHEMA`].
    pub schema: String,
    /// How likely a series in which nothing changed may be said to have changed, over all figures.
    pub alpha: f64,
    /// Of the permutations.
    pub seed: u64,
    /// The command that repeats it.
    pub repeat: String,
    /// Which time the figures are in.
    pub time_domain: TimeDomain,
    /// Whether a tracer followed wakeups of any of the runs: in virtual time, its own time is in their figures.
    #[serde(default)]
    pub explained: bool,
    /// One per quantity: only files of other programs hold several.
    pub series: Vec<Series>,
    /// In what the runs are not alike.
    pub differences: Vec<Difference>,
    /// What else one must know; a sentence each.
    pub notes: Vec<String>,
}

impl Trend {
    /// How likely each figure may be said to have changed though it did not.
    pub fn alpha_per_figure(&self) -> f64 {
        alpha_per_figure(self.alpha, self.series.len())
    }

    /// The record as JSON, on lines that people can read.
    pub fn to_json(&self) -> String {
        // Only a map with keys that are no text, or a failing writer, could make this fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// The runs of one quantity, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What the values are.
    pub quantity: Quantity,
    /// Maxima are those of so many samples: as many as the shortest run has that counts
    /// ([`equal_count`](crate::equal_count::equal_count)); 0 if none does.
    pub count: u64,
    /// The runs.
    pub runs: Vec<RunFigures>,
    /// Changes of the 99.9th percentile, in order; `null` where not all runs carry it, they are too few to
    /// show a change of any size, or some have only bounds of it and no change is certain to be larger; also if
    /// runs became longer or shorter at each change that was found, which may be all of it.
    pub p999: Option<Vec<Step>>,
    /// Changes of the maximum, at equal count, over the runs with as many samples; `null` likewise.
    pub max: Option<Vec<Step>>,
    /// Where the 99.9th percentile changed, and runs became longer or shorter, which may be all of the change: none
    /// of these is in [`Self::p999`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p999_unclear: Vec<Unclear>,
    /// The same of the maximum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub max_unclear: Vec<Unclear>,
    /// Of how many runs only bounds of p99.9, at the share at which it is followed, and of the maximum are known.
    #[serde(skip)]
    pub bounded: [usize; 2],
}

/// A change that may be only one of the lengths of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unclear {
    /// The place of the first run after it, counted from 0.
    pub at: usize,
    /// The label of that run.
    pub after: String,
}

/// A change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The place of the first run after it, counted from 0.
    pub at: usize,
    /// The label of the last run before it.
    pub before: String,
    /// The label of the first run after it.
    pub after: String,
    /// Geometric mean of the runs since the last change that was found, also one that steps or lengths may be all
    /// of, or the first run, in nanoseconds. Where files of other programs tell values only to a step, this and the
    /// next one are as close to each other as these allow.
    pub before_ns: f64,
    /// Geometric mean of the runs until the next change that was found, or the last run.
    pub after_ns: f64,
    /// After / before. Where runs became longer or shorter, the one closest to 1 that lengths allow.
    pub ratio: f64,
    /// The least and the largest ratio that files of other programs allow, and that the lengths of runs do where
    /// these changed, too; `None` if the figure of each run is known to 6.25 %, and lengths did not change by more
    /// than a tenth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_within: Option<[f64; 2]>,
    /// How likely a change that looks so large is to be found somewhere, were there none.
    pub p_value: f64,
}

impl Step {
    /// `1.50 ×`; where some runs have only bounds, `at least 1.33 ×` or `at most 0.75 ×`.
    pub fn ratio_in_words(&self) -> String {
        self.ratio_within.map_or_else(|| times(self.ratio), ratio_within)
    }
}

/// Finds the changes in a series of runs.
///
/// # Errors
/// If there are no runs, if one holds nothing or is given twice, or, unless forced, if they are not alike in
/// what matters.
pub fn trend(runs: &[Labelled], options: &Options) -> Result<Trend, Box<Refusal>> {
    // Copies of a run are alike, so a series of them changes where the run does, and the test takes that for
    // certain.
    refuse_repetitions(runs)?;
    let mut all: Vec<Difference> = repetition(runs).into_iter().collect();
    all.extend(differences(runs));
    let measured: Vec<Measured> = runs.iter().map(Measured::of).collect();
    let mut trend = followed(runs, &measured, all, 0.0, options)?;
    trend.notes.extend(steps_note(runs.iter()));
    Ok(trend)
}

/// The same of watches, of which each is one run: all its waits together. A change of their load is stated,
/// because waits may be longer for that alone.
///
/// # Errors
/// As those of [`trend`].
pub fn trend_of_watches(watches: &[Watched], options: &Options) -> Result<Trend, Box<Refusal>> {
    let (runs, series) = (labelled(watches), Watches::series(watches));
    let mut all = differences(&runs);
    all.extend(series.differences());
    let [measured, _] = series.measured();
    let mut trend = followed(&runs, &measured, all, RESOLUTION, options)?;
    trend.notes.extend(series.notes());
    trend.notes.extend(of_load(&runs, options));
    Ok(trend)
}

/// A series of runs, with what each comes to, that differ in this. Figures may be above their true values by the share `resolution`.
fn followed(
    runs: &[Labelled],
    measured: &[Measured],
    differences: Vec<Difference>,
    resolution: f64,
    options: &Options,
) -> Result<Trend, Box<Refusal>> {
    if runs.is_empty() {
        return Err(Box::new(Refusal::NoRuns));
    }
    if let Some(empty) = measured.iter().find(|m| m.expiries.count == 0) {
        return Err(Box::new(Refusal::NoSamples(empty.label.into())));
    }
    let differences = refuse_differences(differences, options.force)?;
    let quantities = quantities(runs);
    let alpha = alpha_per_figure(options.alpha, quantities.len());
    let series: Vec<Series> = quantities
        .into_iter()
        .map(|quantity| {
            let of = measured.iter().filter(|m| m.quantity == quantity);
            of_quantity(quantity, &of.collect::<Vec<_>>(), alpha, resolution, options.seed)
        })
        .collect();
    Ok(Trend {
        schema: SCHEMA.into(),
        alpha: options.alpha,
        seed: options.seed,
        repeat: String::new(),
        time_domain: runs[0].run.time_domain,
        explained: runs.iter().any(|l| l.run.tracing.explained),
        notes: series
            .iter()
            .flat_map(|of| {
                let runs = measured.iter().filter(|m| m.quantity == of.quantity);
                notes(of, &runs.collect::<Vec<_>>(), series.len(), alpha)
            })
            .collect(),
        series,
        differences,
    })
}

fn of_quantity(
    quantity: Quantity,
    runs: &[&Measured],
    alpha: f64,
    resolution: f64,
    seed: u64,
) -> Series {
    let count = count_of_maxima([runs, &[]]);
    let figures: Vec<RunFigures> = runs.iter().map(|m| m.figures_at(count)).collect();
    let steps = |range: &dyn Fn(&Measured) -> Option<(u64, u64)>, places: &[usize]| {
        let followed: Vec<&Measured> = places.iter().map(|&place| runs[place]).collect();
        let ranges = Ranges::of(&followed, range, resolution);
        let have_all = ranges.least.len() == places.len();
        if !have_all || !can_show(places.len(), alpha) {
            return (None, Vec::new(), ranges.bounded);
        }
        let (changes, unclear) = steps(&figures, places, &ranges, alpha, seed);
        // Bounds hide what they hold, so without a change nothing is known.
        let is_open = !unclear.is_empty() || ranges.bounded > 0;
        ((!is_open || !changes.is_empty()).then_some(changes), unclear, ranges.bounded)
    };
    let all: Vec<usize> = (0..runs.len()).collect();
    let share = share_of(P999, [runs, &[]]);
    let (p999, p999_unclear, bounded_p999) = steps(&|run| run.range_at_share(share?), &all);
    let (max, max_unclear, bounded_max) =
        steps(&|run| run.maximum_range(count), &long_enough(&figures, count));
    let bounded = [bounded_p999, bounded_max];
    Series { quantity, count, runs: figures, p999, max, p999_unclear, max_unclear, bounded }
}

/// The places of the runs that have a maximum of `count` samples.
fn long_enough(runs: &[RunFigures], count: u64) -> Vec<usize> {
    let places = runs.iter().enumerate().filter(|(_, run)| (1..=run.count).contains(&count));
    places.map(|(place, _)| place).collect()
}

/// Each figure may be wrong as often as its part of what is allowed.
fn alpha_per_figure(alpha: f64, quantities: usize) -> f64 {
    alpha / (FIGURES * quantities.max(1)) as f64
}

/// The changes of a figure of the runs at these places that every value within its ranges shows, and the others that
/// runs of one length might not show.
fn steps(
    runs: &[RunFigures],
    places: &[usize],
    ranges: &Ranges,
    alpha: f64,
    seed: u64,
) -> (Vec<Step>, Vec<Unclear>) {
    let is_bounded = ranges.bounded > 0;
    let least_change = if is_bounded { LEAST_OF_BOUNDED.ln() } else { 0.0 };
    let (mut steps, mut unclear) = (Vec::new(), Vec::new());
    for (change, [before, after]) in &changes_within(ranges, alpha, seed) {
        let is_certain = change.p_value <= alpha + 1e-9;
        let lengths_differ = before.longer > 0.0 || after.longer > 0.0;
        let (least, most) = (
            mean(&after.lowest()) - mean(&before.most),
            mean(&after.most) - mean(&before.lowest()),
        );
        let (ratio, before, after) = match (least, most) {
            _ if is_certain && least >= least_change => (least, &before.most, &after.least),
            _ if is_certain && most <= -least_change => (most, &before.least, &after.most),
            // The steps of the files, or the lengths of the runs, may be all that differs.
            _ => {
                if lengths_differ {
                    let at = places[change.at];
                    unclear.push(Unclear { at, after: runs[at].label.clone() });
                }
                continue;
            }
        };
        steps.push(Step {
            at: places[change.at],
            before: runs[places[change.at - 1]].label.clone(),
            after: runs[places[change.at]].label.clone(),
            before_ns: geometric_mean(before),
            after_ns: geometric_mean(after),
            ratio: ratio.exp(),
            ratio_within: (is_bounded || lengths_differ).then(|| [least.exp(), most.exp()]),
            p_value: change.p_value,
        });
    }
    (steps, unclear)
}

/// Where the load of watches changed by more than what makes a difference in a comparison.
fn of_load(runs: &[Labelled], options: &Options) -> Option<String> {
    let loads = runs.iter().map(|l| l.run.load.first().map(|load| load.per_second.max(1e-9).ln()));
    let logs = loads.collect::<Option<Vec<f64>>>()?;
    let found = changes(&logs, options.alpha, options.seed);
    let ends = found.iter().skip(1).map(|change| change.at).chain([logs.len()]);
    let begins = [0].into_iter().chain(found.iter().map(|change| change.at));
    let steps = begins.zip(found.iter().zip(ends)).map(|(begin, (change, end))| {
        (change.at, mean(&logs[change.at..end]) - mean(&logs[begin..change.at]))
    });
    let listed: Vec<String> = steps
        .filter(|(_, step)| step.abs() > (1.0 + MARGIN).ln())
        .map(|(at, step)| format!("{} as many from {} on", times(step.exp()), runs[at].label))
        .collect();
    (!listed.is_empty()).then(|| {
        format!(
            "The load changed, too: switches per second are {}. Waits may have changed because of the load.",
            listed.join(", ")
        )
    })
}

/// Why nothing can be said of a series' figures, each of which is held to `alpha`, and which runs have no
/// maximum.
fn notes(series: &Series, runs: &[&Measured], quantities: usize, alpha: f64) -> Vec<String> {
    let mut notes = Vec::new();
    let (all, long) = (series.runs.len(), long_enough(&series.runs, series.count).len());
    if !can_show(all, alpha) {
        notes.push(too_few(all, FIGURES * quantities, alpha));
    } else if series.count == 0 {
        notes.push(format!("max is not followed: it needs {} samples.", equal_count::LEAST));
    } else if !can_show(long, alpha) {
        let why = too_few(long, FIGURES * quantities, alpha);
        notes.push(format!(
            "max is not followed: of the runs with {} samples, {why}",
            grouped(series.count)
        ));
    }
    if series.runs.iter().any(|run| run.p999_range_ns().is_none()) {
        notes.push("p99.9 is not followed: every run must have 2,000 samples.".into());
    }
    notes.extend(of_lengths(runs, series.count));
    if series.p999.is_some() {
        notes.extend(of_shares([runs, &[]], &[P999]));
    }
    let [of_p999, of_max] = series.bounded;
    notes.extend(of_unclear("p99.9", &series.p999_unclear, series.p999.is_some()));
    notes.extend(of_unclear("The maximum", &series.max_unclear, series.max.is_some()));
    notes.extend(of_bounds("p99.9", of_p999, series.p999.is_some()));
    notes.extend(of_bounds("The maximum", of_max, series.max.is_some()));
    notes
}

/// Where runs became longer or shorter as a figure changed, and what follows; `None` if they did not.
fn of_unclear(name: &str, unclear: &[Unclear], is_followed: bool) -> Option<String> {
    let labels: Vec<String> = unclear.iter().map(|it| it.after.clone()).collect();
    let first = listed(&labels);
    (!labels.is_empty()).then(|| match is_followed {
        true => format!(
            "{name} may have changed more often: runs became longer or shorter from {first} on, which may be all of \
             a change there. Measure runs of one length."
        ),
        false => format!(
            "{name} is not followed: runs became longer or shorter where it changed, from {first} on, which may be \
             all of the change. Measure runs of one length."
        ),
    })
}

/// That only bounds of a figure are known in so many runs, and what follows.
fn of_bounds(name: &str, runs: usize, changed: bool) -> Option<String> {
    let runs_have = match runs {
        0 => return None,
        1 => "1 run has".to_owned(),
        _ => format!("{} have", counted(runs as u64, "run")),
    };
    Some(match changed {
        true => format!(
            "{name}: {runs_have} only bounds of it that are further apart than 6.25 %. A change is reported only if it \
             is larger than 6.25 % for every value within them, so there may be others."
        ),
        false => format!(
            "{name} is not followed: {runs_have} only bounds of it that are further apart than 6.25 %, and none of \
             its changes is certain to be larger than that. Measure with finer steps, or with a histogram that \
             reaches further."
        ),
    })
}

/// Why so many runs cannot show a change in any of `figures`.
fn too_few(runs: usize, figures: usize, alpha: f64) -> String {
    let Some(needed) = numbers_needed(alpha) else {
        return format!(
            "No series can show a change at so small a level (--alpha): at most {} permutations are drawn.",
            grouped(MOST_DRAWN as u64)
        );
    };
    let why = match runs < 2 * LEAST {
        true => {
            let more = if needed > 2 * LEAST { ", and more to be significant" } else { "" };
            format!("a change point needs {LEAST} runs before it and {LEAST} after{more}")
        }
        false => format!(
            "they cannot show a change of any size. The clearest one has {}, times {figures} for the number \
             of figures",
            probability(smallest_p(runs, alpha))
        ),
    };
    format!(
        "{} {} too few: {why}. It takes {needed} runs.",
        counted(runs as u64, "run"),
        one_or_many(runs as u64, "is", "are")
    )
}

#[cfg(test)]
mod tests;
