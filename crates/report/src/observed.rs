//! A limit and what was observed.

use wakescope_core::limit::{Judgement, Outcome};
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::units::SpanNs;

use crate::style::clean;
use crate::{domain, list};

/// The limit in words, and the observed value or a dash: `max ≤ 100 µs`, `74.6 virtual µs`. With all digits
/// if both are alike without them, so that what is above a limit does not look equal to it.
pub(crate) fn limit_and_observed(
    limit: &str,
    limit_ns: u64,
    observed_ns: Option<u64>,
    domain: TimeDomain,
) -> (String, String) {
    let limit = clean(limit, 60);
    let Some(observed_ns) = observed_ns else { return (limit, "–".into()) };
    let [rounded, observed] = [limit_ns, observed_ns].map(|ns| SpanNs(ns).to_string());
    let (limit, observed) = match limit.strip_suffix(&rounded) {
        Some(what) if rounded == observed && limit_ns != observed_ns => {
            (format!("{what}{}", SpanNs(limit_ns).in_full()), SpanNs(observed_ns).in_full())
        }
        _ => (limit, observed),
    };
    (limit, domain::worded(&observed, domain))
}

/// The same of a judgement.
pub(crate) fn of(judgement: &Judgement, domain: TimeDomain) -> (String, String) {
    limit_and_observed(&judgement.limit, judgement.limit_ns, judgement.observed_ns, domain)
}

/// How a run stands to its limits, those that it fails first, and how many are not among them: as many as fit
/// into `most`, and all that it fails.
pub(crate) fn failed_first(run: &Run, most: usize) -> (Vec<&Judgement>, Option<String>) {
    let fails = |judgement: &Judgement| judgement.outcome == Outcome::Fail;
    let mut all: Vec<&Judgement> = run.limits.iter().collect();
    all.sort_by_key(|judgement| !fails(judgement));
    let failed = all.iter().filter(|judgement| fails(judgement)).count();
    let (shown, more) = list::first(&all, most.max(failed));
    (shown.to_vec(), more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_set::{Entry, RunSet};
    use crate::style::Style;
    use crate::text::tests::run_of;
    use wakescope_core::limit::{Limit, MeasuredBy};

    #[track_caller]
    fn check(limit: &str, observed_ns: u64, want: [&str; 2]) {
        check_in(TimeDomain::Real, limit, observed_ns, want);
    }

    #[track_caller]
    fn check_in(domain: TimeDomain, limit: &str, observed_ns: u64, want: [&str; 2]) {
        let mut run = run_of(&[&[observed_ns]]);
        run.time_domain = domain;
        let limit: Limit = limit.parse().unwrap();
        run.limits = vec![limit.judge(&run.expiries(), &run.validity, MeasuredBy::Probes, true)];
        let (limit, observed) = of(&run.limits[0], domain);
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
    fn a_long_list_lacks_no_limit_that_fails() {
        for (passing, failing, left_out) in
            [(3, 1, None), (100, 1, Some(1)), (0, 100, None), (5, 100, Some(5))]
        {
            let mut run = run_of(&[&[50_000]]);
            let limits = vec!["99us"; passing].into_iter().chain(vec!["9us"; failing]);
            let limits = limits.map(|limit| limit.parse::<Limit>().unwrap());
            let judged = limits
                .map(|limit| limit.judge(&run.expiries(), &run.validity, MeasuredBy::Probes, true));
            run.limits = judged.collect();
            let (shown, more) = failed_first(&run, 100);
            let failed = shown.iter().filter(|it| it.outcome == Outcome::Fail).count();
            assert_eq!((failed, shown[0].outcome), (failing, Outcome::Fail));
            assert_eq!(more, left_out.map(|count| format!("and {count} more")));
            let run_set = RunSet::of(vec![Entry::of("run", &run)]);
            for (text, most) in
                [(crate::markdown::report(&run_set), 40), (crate::html::page(&run_set), 60)]
            {
                let all = passing + failing;
                let left_out = all.saturating_sub(failing.max(most));
                assert_eq!(text.contains(&format!("and {left_out} more")), left_out > 0, "{text}");
                assert_eq!(text.matches(": 50.0 µs").count(), all - left_out, "{text}");
            }
        }
    }

    #[test]
    fn what_is_above_a_limit_does_not_look_equal_to_it() {
        check("74604ns", 74_634, ["max ≤ 74.604 µs", "74.634 µs"]);
        check("74634ns", 74_604, ["max ≤ 74.634 µs", "74.604 µs"]);
        check("74604ns", 74_604, ["max ≤ 74.6 µs", "74.6 µs"]);
        check("74604ns", 75_000, ["max ≤ 74.6 µs", "75.0 µs"]);
    }

    #[test]
    fn virtual_time_is_not_shown_as_real_beside_a_limit() {
        let want = ["max ≤ 74.604 µs", "74.634 virtual µs"];
        check_in(TimeDomain::Virtual, "74604ns", 74_634, want);
        check_in(TimeDomain::Simulated, "1s", 3_850, ["max ≤ 1.00 s", "3.85 simulated µs"]);
    }
}
