//! "How long is long enough?": what a run proves about wakeups later than its latest, in sentences.

use std::fmt::Write;

use wakescope_core::explain::Cause;
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::tail::{Bound, Bursts, CauseRate, Extrapolation, TIMES_AS_LONG, Tail};
use wakescope_core::units::{SpanNs, counted, grouped, one_or_many};

use crate::domain;
use crate::explain::{cause as cause_words, named};
use crate::findings::wrapped;
use crate::quantity;
use crate::style::Style;

/// Rates that people ask for, as the time between two: a minute, an hour, a day, 30 days, a year.
const ASKED_NS: [(u64, &str); 5] = [
    (60_000_000_000, "a minute"),
    (3_600_000_000_000, "an hour"),
    (86_400_000_000_000, "a day"),
    (2_592_000_000_000_000, "30 days"),
    (31_557_600_000_000_000, "a year"),
];

/// An index from here on means that late wakeups come alone: it says 1 to a tenth or so. Each index below counts as
/// bursts in the figures, also one that may be 1 by its interval.
const ALONE: f64 = 0.9;

/// The blank between a number and its unit: no line ends there.
const TIED: char = '\u{a0}';

/// What `run` says about wakeups later than its latest, a sentence or two in each entry: what is
/// not excluded, how long it takes to exclude more, how often each known cause strikes, and either
/// an extrapolation or why there is none. Numbers are tied to their units by U+00A0. Empty if the run has too few samples to say anything.
pub fn sentences(run: &Run) -> Vec<String> {
    let Some(tail) = Tail::of(run) else { return Vec::new() };
    let mut said = vec![bound(run, &tail), time_needed(run, &tail)];
    said.extend(causes(run, &tail));
    said.push(extrapolation(run, &tail));
    said
}

/// The same as a block of text, 100 columns wide; empty if there is nothing to say.
pub fn block(run: &Run, style: Style) -> String {
    let sentences = sentences(run);
    if sentences.is_empty() {
        return String::new();
    }
    let mut out = format!(" {}\n", style.strong("How long is long enough?"));
    for sentence in sentences {
        let _ = writeln!(out, " · {}", wrapped(&sentence, 96, "   ").replace(TIED, " "));
    }
    out
}

/// What a run does not exclude, in half a sentence for its headline: `1 in 6,670 expiries above 4.31 ms,
/// one every 3.33 s`. `None` where that is not known.
pub(crate) fn not_excluded(run: &Run) -> Option<String> {
    let all = run.expiries();
    let bound = Bound::of(&all, run.course().as_ref(), run.duration_ns)?;
    let max = domain::span(threshold_ns(all.max_range()?.1), run.time_domain);
    let every = domain::span(SpanNs(bound.every_ns?).rounded_down().0, run.time_domain);
    let bursts = if counted_bursts(&bound).is_some() { " (bursts counted)" } else { "" };
    let (one_in, what) = (one_in(bound.share), quantity::words(run).many);
    Some(format!("1 in {one_in} {what} above {max}, one every {every}{bursts}"))
}

/// What no sample is above, as it is printed: the maximum, rounded up.
fn threshold_ns(max_ns: u64) -> u64 {
    SpanNs(max_ns).rounded_up().0
}

/// The bursts that make samples count for less.
fn counted_bursts(bound: &Bound) -> Option<&Bursts> {
    bound.bursts.as_ref().ok().filter(|bursts| bursts.index < ALONE)
}

/// What the samples do not exclude, and what they are worth.
fn bound(run: &Run, tail: &Tail) -> String {
    let max = span(threshold_ns(tail.max_ns), run.time_domain);
    let quantity::Words { many, much, more, .. } = quantity::words(run);
    let large = quantity::capital(much);
    let every = tail.bound.every_ns.map_or_else(String::new, |ns| {
        format!(" (one every {})", span(SpanNs(ns).rounded_down().0, run.time_domain))
    });
    let one_in = one_in(tail.bound.share);
    let proves = format!(
        "With 95\u{a0}% confidence, fewer than 1 in {one_in} {many}{every} is {more} than {max}"
    );
    if let Some(bursts) = counted_bursts(&tail.bound) {
        let come = if bursts.interval.1 < ALONE { "come" } else { "may come" };
        let together = 1.0 / bursts.index;
        let together =
            if together < 10.0 { format!("{together:.1}") } else { format!("{together:.0}") };
        let worth = grouped(whole(tail.bound.effective));
        return format!(
            "{large} {many} {come} in bursts of about {together}: {} count as {worth} independent ones. \
             {proves}.",
            grouped(tail.count)
        );
    }
    match &tail.bound.bursts {
        Ok(_) => {
            format!("{proves}, if conditions stay the same. {large} ones do not come in bursts.")
        }
        Err(why) => format!(
            "{proves}, if {much} ones do not come in bursts. Whether they do is unknown: {why}."
        ),
    }
}

/// How long it takes to claim rates that are not yet proven.
fn time_needed(run: &Run, tail: &Tail) -> String {
    let max = span(threshold_ns(tail.max_ns), run.time_domain);
    let open: Vec<String> = ASKED_NS
        .iter()
        .map(|&(every_ns, name)| (tail.time_needed_ns(every_ns), name))
        .filter(|&(needed_ns, _)| needed_ns > tail.duration_ns)
        .take(2)
        .map(|(needed_ns, name)| {
            let needed = SpanNs(needed_ns).rounded_up();
            format!("{} for less than one in {name}", span(needed.0, run.time_domain))
        })
        .collect();
    match open.is_empty() {
        true => format!("Less than one above {max} in a year is proven at 95\u{a0}%."),
        false => format!(
            "Measuring time needed without a value above {max}, with 95\u{a0}% confidence: {}.",
            open.join(", ")
        ),
    }
}

/// How often the largest causes strike.
fn causes(run: &Run, tail: &Tail) -> Option<String> {
    let one = |rate: &CauseRate| {
        let what = match rate.cause {
            Cause::Steal => "the hypervisor took the CPU (steal)".into(),
            _ => named(rate.blamed()),
        };
        let (low, high) = rate.interval_ns;
        format!(
            "{what}, about every {} ({} to {}), worst {}",
            span(rate.every_ns, run.time_domain),
            span(low, run.time_domain),
            span(high, run.time_domain),
            span(rate.worst_ns, run.time_domain)
        )
    };
    let rates: Vec<String> = tail.causes.iter().map(one).collect();
    let partly =
        run.explanation.as_ref().filter(|e| e.explained < e.late).map_or_else(String::new, |e| {
            let (explained, late) = (grouped(e.explained), counted(e.late, "late wakeup"));
            format!(
                " Only {explained} of {late} {} explained.",
                one_or_many(e.explained, "is", "are")
            )
        });
    let unseen = tail.bound.every_ns.map_or_else(String::new, |ns| {
        let every = span(SpanNs(ns).rounded_down().0, run.time_domain);
        format!(" A cause not seen in this run may still occur as often as every {every}.")
    });
    (!rates.is_empty()).then(|| {
        format!("By cause (95\u{a0}% confidence intervals): {}.{unseen}{partly}", rates.join("; "))
    })
}

/// The extrapolations, or what stands against one.
fn extrapolation(run: &Run, tail: &Tail) -> String {
    let whole = match &tail.extrapolation {
        Ok(x) => format!("Extrapolation, not a measurement: {}.", level(run, x)),
        Err(obstacles) => {
            let why: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
            format!("No extrapolation: {}.", why.join("; "))
        }
    };
    let of_causes = tail.of_causes.iter().filter_map(|of| {
        let x = of.extrapolation.as_ref().ok()?;
        Some(format!(" By {} alone: {}.", cause_words(of.cause), level(run, x)))
    });
    whole + &of_causes.collect::<String>()
}

/// `once in 3.33 min, one expiry or more is later than 247 µs`: the level is that of bursts, which may have several.
fn level(run: &Run, x: &Extrapolation) -> String {
    let span = |ns| span(ns, run.time_domain);
    let shape = |x: f64| format!("{:.2}", (x * 100.0).round() / 100.0 + 0.0); // Never -0.00.
    let (low, high) = x.interval_ns;
    let words = quantity::words(run);
    format!(
        "once in {}, one {} or more is {} than {} (about 95\u{a0}%: {} to {}); generalized Pareto above {}, {}, \
         shape {} ({} to {})",
        span(run.duration_ns.saturating_mul(TIMES_AS_LONG)),
        words.one,
        words.more,
        span(x.level_ns),
        span(low),
        span(high),
        span(x.fit.threshold_ns),
        counted(x.fit.count, "sample"),
        shape(x.fit.pareto.shape),
        shape(x.shape.0),
        shape(x.shape.1)
    )
}

/// A time with its domain, on one line.
fn span(ns: u64, of: TimeDomain) -> String {
    domain::span(ns, of).replace(' ', &TIED.to_string())
}

/// The N of "1 in N".
fn one_in(share: f64) -> String {
    grouped(rounded_down(whole(1.0 / share)))
}

/// A number with three digits, rounded down: nothing is promised by rounding.
fn rounded_down(number: u64) -> u64 {
    let unit = 10_u64.pow(number.max(1).ilog10().saturating_sub(2));
    number / unit * unit
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates; never negative.
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests;
