//! A limit and what was observed.

use wakescope_core::limit::Judgement;
use wakescope_core::units::SpanNs;

use crate::style::clean;

/// The limit in words, and the observed value or a dash: `max ≤ 100 µs`, `74.6 µs`. With all digits if
/// both are alike without them, so that what is above a limit does not look equal to it.
pub(crate) fn limit_and_observed(
    limit: &str,
    limit_ns: u64,
    observed_ns: Option<u64>,
) -> (String, String) {
    let limit = clean(limit, 60);
    let Some(observed_ns) = observed_ns else { return (limit, "–".into()) };
    let [rounded, observed] = [limit_ns, observed_ns].map(|ns| SpanNs(ns).to_string());
    match limit.strip_suffix(&rounded) {
        Some(what) if rounded == observed && limit_ns != observed_ns => {
            (format!("{what}{}", SpanNs(limit_ns).in_full()), SpanNs(observed_ns).in_full())
        }
        _ => (limit, observed),
    }
}

/// The same of a judgement.
pub(crate) fn of(judgement: &Judgement) -> (String, String) {
    limit_and_observed(&judgement.limit, judgement.limit_ns, judgement.observed_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_set::{Entry, RunSet};
    use crate::style::Style;
    use crate::text::tests::run_of;
    use wakescope_core::limit::Limit;

    #[track_caller]
    fn check(limit: &str, observed_ns: u64, want: [&str; 2]) {
        let mut run = run_of(&[&[observed_ns]]);
        let limit: Limit = limit.parse().unwrap();
        run.limits = vec![limit.judge(&run.expiries(), &run.validity, true)];
        let (limit, observed) = of(&run.limits[0]);
        assert_eq!([limit.as_str(), &observed], want);
        let line = format!("{limit}: {observed}");
        let run_set = RunSet::of(vec![Entry::of("run", &run)]);
        for text in [
            crate::text::limits(&run, Style::default()),
            crate::markdown::report(&run_set),
            crate::html::page(&run_set).replace("<bdi>", "").replace("</bdi>", ""),
        ] {
            assert!(text.contains(&line), "{line}: {text}");
        }
    }

    #[test]
    fn what_is_above_a_limit_does_not_look_equal_to_it() {
        check("74604ns", 74_634, ["max ≤ 74.604 µs", "74.634 µs"]);
        check("74634ns", 74_604, ["max ≤ 74.634 µs", "74.604 µs"]);
        check("74604ns", 74_604, ["max ≤ 74.6 µs", "74.6 µs"]);
        check("74604ns", 75_000, ["max ≤ 74.6 µs", "75.0 µs"]);
    }
}
