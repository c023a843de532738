//! What samples are called: wakeups that are late, gaps that are long. Values that are no wakeup
//! latencies never go by that name.

use wakescope_core::distribution::Distribution;
use wakescope_core::percentile::Percentile;
use wakescope_core::plan::Plan;
use wakescope_core::run::{Run, Thread};
use wakescope_core::source::Quantity;
use wakescope_core::stated::Quantile;
use wakescope_core::units::{SpanNs, grouped};

use crate::run_set::RunSet;

/// The words for samples of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// `wakeup`
    pub(crate) one: &'static str,
    /// `wakeups`
    pub(crate) many: &'static str,
    /// What is measured of it: `lateness`
    pub(crate) value: &'static str,
    /// What it is that has much of it: `late`
    pub(crate) much: &'static str,
    /// `later`
    pub(crate) more: &'static str,
    /// `latest`
    pub(crate) most: &'static str,
}

const WAKEUPS: Words = Words {
    one: "wakeup",
    many: "wakeups",
    value: "lateness",
    much: "late",
    more: "later",
    most: "latest",
};

/// Of a grid: those that a late wakeup swallowed count, too.
const EXPIRIES: Words = Words { one: "expiry", many: "expiries", ..WAKEUPS };

/// Of several kinds together.
const SAMPLES: Words = Words {
    one: "sample",
    many: "samples",
    value: "value",
    much: "large",
    more: "larger",
    most: "largest",
};

/// What a run's values are.
pub(crate) fn of(run: &Run) -> Quantity {
    run.quantity()
}

/// Whether a run's values are wakeup latencies.
pub(crate) fn is_wakeup(run: &Run) -> bool {
    of(run) == Quantity::WakeupLatency
}

/// The shortest wakeup of a thread. Not that of its expiries: one that a stall swallowed just before
/// its end is hardly late, and says nothing about how fast a wakeup can be. `None` also if the file of
/// another program does not state it.
pub(crate) fn min_ns(run: &Run, thread: &Thread) -> Option<u64> {
    thread.woken.min_ns.filter(|_| run.knows("threads.woken.min_ns"))
}

/// The shortest wakeup of all threads.
pub(crate) fn min_of_all_ns(run: &Run) -> Option<u64> {
    run.threads.iter().filter_map(|thread| min_ns(run, thread)).min()
}

/// A thread's expiries without a wakeup of their own; `None` if the file of another program does not
/// state them.
pub(crate) fn missed(run: &Run, thread: &Thread) -> Option<u64> {
    run.knows("threads.missed").then_some(thread.missed)
}

/// The same of all threads.
pub(crate) fn missed_of_all(run: &Run) -> Option<u64> {
    run.knows("threads.missed").then(|| run.missed())
}

/// A count in a cell, or a dash.
pub(crate) fn count(count: Option<u64>) -> String {
    count.map_or_else(|| "–".into(), grouped)
}

/// The words for a run's samples. Whether the file of another program has a sample for each wakeup or for each
/// expiry differs from program to program.
pub(crate) fn words(run: &Run) -> Words {
    match &run.source {
        None => words_of_plan(&run.plan),
        Some(source) => match words_of_quantity(source.quantity) {
            WAKEUPS => as_samples(WAKEUPS),
            other => other,
        },
    }
}

/// The words for the samples of a run that is made as `plan` is.
pub(crate) fn words_of_plan(plan: &Plan) -> Words {
    match plan.counts_expiries() {
        true => EXPIRIES,
        false => words_of_quantity(plan.quantity(None)),
    }
}

fn as_samples(words: Words) -> Words {
    Words { one: SAMPLES.one, many: SAMPLES.many, ..words }
}

/// The words for a quantity.
pub(crate) fn words_of_quantity(quantity: Quantity) -> Words {
    let long = |one, many, value| Words {
        one,
        many,
        value,
        much: "long",
        more: "longer",
        most: "longest",
    };
    match quantity {
        Quantity::WakeupLatency | Quantity::ThreadLatency | Quantity::UserLatency => WAKEUPS,
        Quantity::IrqLatency => Words { one: "interrupt", many: "interrupts", ..WAKEUPS },
        Quantity::IntervalDeviation => {
            Words { one: "interval", many: "intervals", value: "deviation", ..SAMPLES }
        }
        Quantity::Gap => long("gap", "gaps", "length"),
        Quantity::RunqueueDelay => long("delay", "delays", "length"),
        Quantity::RequestLatency => long("request", "requests", "latency"),
        Quantity::RoundTrip => long("round trip", "round trips", "time"),
        Quantity::Unknown => Words { one: "value", many: "values", ..SAMPLES },
    }
}

/// The words for all runs of a set together.
pub(crate) fn words_of(run_set: &RunSet) -> Words {
    let mut kinds = run_set.entries.iter().map(|entry| words(&entry.run));
    let first = kinds.next().unwrap_or(WAKEUPS);
    kinds.fold(first, |together, kind| match kind {
        _ if kind == together => together,
        // Both are wakeup latencies, of wakeups or of expiries.
        _ if as_samples(kind) == as_samples(together) => as_samples(together),
        _ => SAMPLES,
    })
}

/// `Expiries by lateness`
pub(crate) fn by_value(words: Words) -> String {
    capital(&format!("{} by {}", words.many, words.value))
}

pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A percentile in a cell: its value, `≤` and its bound where no more is known, or a dash where the
/// samples do not carry it.
pub(crate) fn quantile(d: &Distribution, percentile: Percentile) -> String {
    cell(d.quantile(percentile))
}

/// The maximum in a cell, in the same way.
pub(crate) fn maximum(d: &Distribution) -> String {
    cell(d.maximum())
}

fn cell(quantile: Option<Quantile>) -> String {
    match quantile {
        Some(Quantile::Known(ns)) => SpanNs(ns).to_string(),
        Some(Quantile::AtMost(ns)) => within(Some([0, ns])),
        None => within(None),
    }
}

/// A figure in a cell, from the least and the largest value in ns that it can have: `3.00 µs`,
/// `2.00 µs to 3.00 µs`, `≤ 3.00 µs` if it can be 0, or a dash if it is `None`.
pub(crate) fn within(range_ns: Option<[u64; 2]>) -> String {
    let Some(range) = range_ns else { return "–".into() };
    let [least, most] = range.map(|ns| SpanNs(ns).to_string());
    match range[0] {
        // Both may be the same in three digits.
        _ if least == most => most,
        0 => format!("≤ {most}"),
        _ => format!("{least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Picture, Room, scene};
    use crate::run_set::Entry;
    use crate::style::Style;
    use crate::text::tests::run_of;
    use wakescope_core::plan::Stimulus;
    use wakescope_core::source::Source;

    fn run(stimulus: Stimulus, source: Option<Source>) -> Run {
        let samples: Vec<u64> = (1..3_000).map(|i| 1_000 + i).collect();
        let mut run = run_of(&[&samples, &samples]);
        (run.plan.stimulus, run.source) = (stimulus, source);
        run
    }

    /// `value`: what is measured of each sample.
    #[track_caller]
    fn check(runs: &[&Run], want: &str, value: &str) {
        let run_set = RunSet::of(runs.iter().map(|run| Entry::of("run", run)).collect());
        let page = crate::html::page(&run_set);
        let by = format!("{} by {value}", capital(want));
        for text in [format!("all {want} at the upper left"), by, format!("\"many\":\"{want}\"")] {
            assert!(page.contains(&text), "{text}: {page}");
        }
        let description = |picture| scene(picture, &run_set, Room::ALONE).unwrap().description;
        assert!(description(Picture::Exceedance).contains(&format!("all {want} at")));
        assert!(description(Picture::Cpus).contains(&format!("the share of {want} ")));
        for run in runs {
            let of_run = words(run).many;
            assert!(runs.len() > 1 || of_run == want, "{of_run}");
            check_texts(run, of_run);
        }
    }

    #[track_caller]
    fn check_texts(run: &Run, many: &str) {
        let text = crate::text::report(run, Style::default());
        let (_, proven) = text.split_once("fewer than 1 in ").unwrap();
        assert_eq!(proven.split_whitespace().nth(1), Some(many), "{text}");
        assert!(text.contains(&format!("\n {many} by ")), "{text}");
        let markdown = crate::markdown::report(&RunSet::of(vec![Entry::of("run", run)]));
        let (_, proven) = markdown.split_once("Not excluded at 95 %: 1 in ").unwrap();
        assert_eq!(proven.split_whitespace().nth(1), Some(many), "{markdown}");
        let block = crate::realfeel::block(run, &[]);
        let head = block.lines().next().unwrap();
        let others = ["expir", "wakeup", "sample", "gap"];
        let others = others.into_iter().filter(|other| !many.starts_with(other));
        for other in others {
            assert!(!head.contains(other), "{head}");
        }
    }

    /// A page called expiries wakeups, also those that a late wakeup swallowed, and a text called the samples of
    /// cyclictest expiries, which it omits then.
    #[test]
    fn all_outputs_call_samples_the_same() {
        let (timer, pipe) = (run(Stimulus::Timer, None), run(Stimulus::Pipe, None));
        let imported = run(Stimulus::Timer, Some(Source::default()));
        let mut spin = run(Stimulus::Spin, None);
        spin.plan.gap_from_ns = Some(1_000);
        check(&[&timer], "expiries", "lateness");
        check(&[&pipe], "wakeups", "lateness");
        check(&[&spin], "gaps", "length");
        check(&[&imported], "samples", "lateness");
        check(&[&timer, &pipe, &imported], "samples", "lateness");
        check(&[&timer, &spin], "samples", "value");
        check(&[&timer, &timer], "expiries", "lateness");
    }
}
