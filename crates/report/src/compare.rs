//! A comparison of runs: as text, Markdown and JUnit XML.
//!
//! Everything is made from the record, [`Compare`].

use wakescope_core::limit::Outcome;
use wakescope_core::source::Quantity;
use wakescope_core::units::{SpanNs, counted, grouped};
use wakescope_stats::compare::{
    Bounded, Compare, Effect, Figure, IdleLoad, OfQuantity, OfWatches, RunFigures, Throughput,
    Verdict,
};
use wakescope_stats::compare::{Within, percent, probability, times, word};

use crate::domain;
use crate::observed::limit_and_observed;
use crate::quantity::{self, capital};
use crate::style::clean;

mod junit;
mod markdown;
mod plan;
mod text;
mod watches;

pub use junit::junit;
pub use markdown::markdown;
pub use plan::plan;
pub use text::text;

/// What figures of watches rest on.
const WATCHES: &str = "Figures are geometric means over watches: each is one run, however many windows it \
     has. Percentiles may be above their true values by the width of a bucket, 6.25 %; intervals and \
     verdicts allow for that.";

/// Runs are listed up to this many; more are only counted.
const MOST_LISTED: usize = 24;

/// Figures that are worse than allowed are named up to this many.
const NAMED: usize = 8;

/// `Worse: p99.9 1.31 × (1.18–1.52), max 1.64 × (1.22–2.40); 5 runs against 5, p = 0.004, margin 10 %.`
fn headline(of: &OfQuantity, compare: &Compare) -> String {
    let named: Vec<String> = of
        .deciding()
        .into_iter()
        .filter_map(|(name, figure)| {
            let name = full_name(name, of, compare);
            Some(format!("{name} {}", ratio(&figure?.effect, of.runs)))
        })
        .collect();
    let smallest = of.deciding().into_iter().filter_map(|(_, f)| Some(f?.effect.p_adjusted));
    let [new, old] = of.runs;
    let mut parts = vec![format!("{} against {}", counted(new as u64, "run"), grouped(old as u64))];
    // Of one run a side, the p-value is always 1.
    parts.extend(smallest.min_by(f64::total_cmp).filter(|_| new + old > 2).map(probability));
    parts.push(format!("margin {}", percent(compare.settings.margin)));
    let begin = match compare.quantities.len() {
        _ if compare.watches.is_some() => format!("All waits together: {}", word(of.verdict)),
        // Only of other values it must be said what they are.
        1 if of.quantity == Quantity::WakeupLatency => capital(word(of.verdict)),
        _ => format!("{}: {}", capital(&of.quantity.to_string()), word(of.verdict)),
    };
    format!("{begin}: {}; {}.", named.join(", "), parts.join(", "))
}

/// `1.31 × (1.18–1.52)`; of a figure that not all of the runs have, `1.31 × (1.18–1.52) of 5 runs against 4`
fn ratio(effect: &Effect, runs: [usize; 2]) -> String {
    let mut parts = vec![effect.ratio_in_words()];
    parts.extend(interval(effect));
    parts.extend(of_runs(effect, runs));
    parts.join(" ")
}

/// `of 5 runs against 4`, of a figure that not all of the runs have.
fn of_runs(effect: &Effect, runs: [usize; 2]) -> Option<String> {
    let [new, old] = effect.runs;
    let differs = effect.runs != runs;
    differs.then(|| format!("of {} against {}", counted(new as u64, "run"), grouped(old as u64)))
}

/// `(1.18–1.52)`
fn interval(effect: &Effect) -> Option<String> {
    let plain = |ratio: f64| times(ratio).replace(" ×", "");
    Some(format!("({}–{})", plain(effect.low?), plain(effect.high?)))
}

/// `Throughput of the load: no difference (0.99 ×).`, one sentence for each load.
fn throughput(of: &OfQuantity, compare: &Compare) -> Vec<String> {
    if compare.watches.is_some() {
        return of.throughput.iter().map(watches::load).collect();
    }
    let missing = || {
        let compared = |idle: &&IdleLoad| of.throughput.iter().any(|t| t.load == idle.load);
        of.idle_loads.iter().filter(move |idle| !compared(idle))
    };
    let alone = of.throughput.len() + missing().count() == 1;
    let name = |load: &str| if alone { "the load".into() } else { clean(load, 40) };
    let idle = |load: &str| {
        let idle = of.idle_loads.iter().find(|idle| idle.load == load);
        idle.map_or_else(String::new, |idle| format!(" {}", without_work(idle, of.runs)))
    };
    let sentence = |t: &Throughput| {
        let load = name(&t.load);
        let what = match t.effect.verdict {
            Verdict::Better => "more",
            Verdict::Worse => "less",
            Verdict::NoDifference => "no difference",
            Verdict::Inconclusive => "inconclusive",
        };
        let ratio = [Some(times(t.effect.ratio)), of_runs(&t.effect, of.runs)];
        let ratio = ratio.into_iter().flatten().collect::<Vec<_>>().join(" ");
        format!("Throughput of {load}: {what} ({ratio}).{}", idle(&t.load))
    };
    let unknown = |load: &IdleLoad| {
        format!("Throughput of {}: not known.{}", name(&load.load), idle(&load.load))
    };
    of.throughput.iter().map(sentence).chain(missing().map(unknown)).collect()
}

/// `It did no work, or none is recorded, in 3 of 6 new runs.`
fn without_work(idle: &IdleLoad, runs: [usize; 2]) -> String {
    let sides = ["new", "old"].into_iter().zip(idle.runs.into_iter().zip(runs));
    let sides = sides.filter(|(_, (without, _))| *without > 0).map(|(side, (without, all))| {
        format!("{} of {} {side} runs", grouped(without as u64), grouped(all as u64))
    });
    let sides: Vec<String> = sides.collect();
    format!("It did no work, or none is recorded, in {}.", sides.join(" and "))
}

/// A figure's name with what it is over: `max`, or where that is not the maximum of each run, `max of 4,000`.
fn full_name(name: &str, of: &OfQuantity, compare: &Compare) -> String {
    let runs = compare.new.iter().chain(&compare.old).filter(|run| run.quantity == of.quantity);
    match name {
        "max" => name_of_max(of.count, runs),
        other => other.into(),
    }
}

/// `max`, or where `count` samples have another maximum than some run, to 0.4 %, or it has fewer,
/// `max of 4,000`.
pub(crate) fn name_of_max<'a>(
    count: u64,
    runs: impl IntoIterator<Item = &'a RunFigures>,
) -> String {
    let differs = |run: &RunFigures| match (run.max_of_count_ns, run.max_ns) {
        // No more than two buckets of a histogram.
        (Some(of_count), Some(max)) => of_count.abs_diff(max) > max / 256,
        (of_count, max) => run.count < count || of_count != max,
    };
    match runs.into_iter().any(differs) {
        true => format!("max of {}", grouped(count)),
        false => "max".into(),
    }
}

/// What was allowed, and whether the runs show that it is kept, with the figures that do not; `None` if
/// nothing was said.
fn regression(compare: &Compare) -> Option<(Outcome, String)> {
    let allowed = percent(compare.settings.max_regression?);
    let several = compare.quantities.len() > 1;
    let figures = compare.quantities.iter().flat_map(|of| {
        let named = move |(name, figure): (&str, Option<&Figure>)| {
            let whose = if several { format!(" of {}", of.quantity) } else { String::new() };
            (
                format!("{}{whose}", full_name(name, of, compare)),
                figure.and_then(|figure| figure.effect.regression),
            )
        };
        of.deciding().map(named)
    });
    let groups = watches::tested(compare).into_iter();
    let groups = groups.map(|(name, effect, _)| (format!("p99.9 of {name}"), effect.regression));
    let all: Vec<(String, Outcome)> = figures
        .chain(groups)
        .map(|(name, regression)| (name, regression.unwrap_or_default()))
        .collect();
    let outcome = all.iter().map(|(_, outcome)| *outcome).max().unwrap_or_default();
    let sentence = match outcome {
        Outcome::Pass => format!("No figure is worse by more than {allowed}."),
        Outcome::Fail => {
            let failed = all.iter().filter(|(_, outcome)| *outcome == Outcome::Fail);
            let failed: Vec<&str> = failed.map(|(name, _)| &**name).collect();
            let more = match failed.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {} more", grouped(more as u64)),
            };
            let named = failed.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
            format!("Worse by more than {allowed}: {named}{more}.")
        }
        Outcome::Inconclusive => {
            format!("Worse by more than {allowed}: neither shown nor excluded.")
        }
    };
    Some((outcome, sentence))
}

/// All figures of a quantity, by name, with whether they decide.
fn figures<'a>(of: &'a OfQuantity, compare: &Compare) -> Vec<(String, &'a Figure, bool)> {
    let all = [
        ("p50", &of.p50, false),
        ("p99", &of.p99, false),
        ("p99.9", &of.p999, true),
        ("max", &of.max, true),
    ];
    all.into_iter()
        .filter_map(|(name, figure, decides)| {
            Some((full_name(name, of, compare), figure.as_ref()?, decides))
        })
        .collect()
}

/// A figure's means over the new runs and over the old ones; where some of these have only bounds, from
/// the least to the largest that they allow.
fn means(figure: &Figure) -> [String; 2] {
    match &figure.effect.only_bounded {
        Some(bounded) => bounds(bounded),
        None => [figure.new_ns, figure.old_ns].map(span),
    }
}

/// The means over the new runs and over the old ones, from the least to the largest.
fn bounds(bounded: &Bounded) -> [String; 2] {
    [bounded.new_ns, bounded.old_ns].map(|range| quantity::within(Some(range.map(rounded))))
}

/// A mean in ns, three digits and a unit.
fn span(ns: f64) -> String {
    SpanNs(rounded(ns)).to_string()
}

/// A mean, rounded to the ns.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
fn rounded(ns: f64) -> u64 {
    ns.max(0.0).round() as u64
}

/// What of one run a side its samples say, a sentence per figure; of which quantity, where there are several.
fn within(compare: &Compare) -> Vec<String> {
    let several = compare.quantities.len() > 1;
    let of = |of: &OfQuantity| if several { format!("{}: ", of.quantity) } else { String::new() };
    let sentence = |(of, within): (String, &Within)| {
        let figure = format!("{of}{}", within.figure);
        match (within.low, within.high) {
            (Some(low), Some(high)) => format!(
                "{figure} of these two runs: {} to {} (95 % interval for independent samples).",
                times(low),
                times(high)
            ),
            _ => format!(
                "{figure} of these two runs: their samples give no 95 % confidence interval."
            ),
        }
    };
    let all = compare.quantities.iter();
    all.flat_map(|q| q.within.iter().map(move |within| (of(q), within))).map(sentence).collect()
}

/// What must be known to trust the comparison: differences, then the rest.
fn notes(compare: &Compare) -> Vec<String> {
    let differences = compare.differences.iter().map(|d| d.message.clone());
    let mut notes: Vec<String> = differences.chain(compare.notes.iter().cloned()).collect();
    if compare.settings.forced {
        notes.insert(0, "Compared with --force: these runs are not comparable.".into());
    }
    notes.into_iter().map(|note| clean(&note, 600)).collect()
}

/// How the numbers came about, in a few sentences.
fn basis(compare: &Compare) -> Vec<String> {
    let figures = compare.quantities.iter().flat_map(OfQuantity::deciding);
    let figures = figures.filter_map(|(_, figure)| figure.map(|figure| &figure.effect));
    let deciding = || figures.clone().chain(compare.watches.iter().flat_map(OfWatches::deciding));
    let count = deciding().count();
    let mut basis = vec![match (&compare.watches, compare.quantities.as_slice()) {
        (Some(_), _) => WATCHES.to_owned(),
        (None, quantities) => format!(
            "Figures are geometric means over runs; the unit of analysis is the run, not the {}.",
            match quantities {
                [of] => quantity::words_of_quantity(of.quantity).one,
                _ => "sample",
            }
        ),
    }];
    if let Some(effect) = deciding().find(|effect| effect.runs.iter().sum::<usize>() > 2) {
        let confidence = percent(1.0 - compare.settings.alpha);
        let how = match effect.exact {
            true => format!("all {} of the runs", counted(effect.splits, "split")),
            false => format!(
                "{} of the runs drawn with --seed {}",
                counted(effect.splits, "split"),
                compare.settings.seed
            ),
        };
        let corrected = match count {
            1 => String::new(),
            n => format!(", corrected for {n} figures (Holm)"),
        };
        let is_uneven = deciding().any(|effect| effect.runs[0] != effect.runs[1]);
        let (welch, tests) = match is_uneven {
            true => (
                ", and Welch's t-test for figures of different numbers of runs on the sides",
                "the same tests",
            ),
            false => ("", "the same test"),
        };
        basis.push(format!(
            "p: permutation test, {how}{welch}{corrected}; intervals: {tests}, {confidence}."
        ));
        if compare.settings.max_regression.is_some() && count > 1 {
            basis.push(format!(
                "--max-regression fails by a one-sided test of this kind{corrected}."
            ));
        }
    }
    basis.extend(domain::caveats(compare.time_domain, compare.explained).map(Into::into));
    basis
}

/// How the new runs stand to a limit, in a sentence.
fn limits(compare: &Compare) -> Vec<(Outcome, String)> {
    let several = compare.quantities.len() > 1;
    let text = |l: &wakescope_stats::compare::RunLimit| {
        let domain = compare.time_domain;
        let (limit, observed) = limit_and_observed(&l.limit, l.limit_ns, l.observed_ns, domain);
        let run = clean(&l.run, 80);
        let of = if several { format!("{}: ", l.quantity) } else { String::new() };
        let sentence = match l.outcome {
            Outcome::Pass => format!("{of}within the limit {limit}: {observed} at most ({run})"),
            Outcome::Fail => format!("{of}above the limit {limit}: {observed} ({run})"),
            Outcome::Inconclusive => {
                format!("{of}inconclusive on the limit {limit}: {} ({run})", clean(&l.reason, 200))
            }
        };
        (l.outcome, sentence)
    };
    compare.limits.iter().map(text).collect()
}

#[cfg(test)]
mod tests;
