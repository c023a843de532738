//! The comparison as JUnit XML, which CI systems show: a test case per figure and limit.

use std::fmt::Write;

use wakescope_core::limit::Outcome;
use wakescope_stats::compare::{Compare, Effect, OfQuantity, Verdict, probability};

use super::{full_name, limits, ratio, text, watches};
use crate::picture::escaped;
use crate::style::{Style, clean};

/// The comparison as JUnit XML. What the runs do not tell is `skipped`, for the format knows no
/// third way.
pub fn junit(compare: &Compare) -> String {
    let mut cases: Vec<Case> =
        compare.quantities.iter().flat_map(|of| figures(of, compare)).collect();
    cases.extend(watches::tested(compare).into_iter().map(|(name, effect, said)| Case {
        class: class("series"),
        name,
        outcome: outcome(effect, compare),
        message: format!("{said}, {}", probability(effect.p_adjusted)),
    }));
    cases.extend(compare.limits.iter().zip(limits(compare)).map(|(limit, (outcome, message))| {
        Case {
            class: class(&limit.quantity.to_string()),
            name: clean(&limit.limit, 60),
            outcome,
            message,
        }
    }));
    let count = |outcome| cases.iter().filter(|case| case.outcome == outcome).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        cases.len(),
        count(Outcome::Fail),
        count(Outcome::Inconclusive)
    );
    let _ = writeln!(out, "<testsuites {counts}>\n<testsuite name=\"wakescope compare\" {counts}>");
    for case in &cases {
        let Case { class, name, outcome, message } = case;
        let (class, name, message) = (escaped(class), escaped(name), escaped(message));
        let _ = write!(out, "<testcase classname=\"{class}\" name=\"{name}\"");
        let _ = match outcome {
            Outcome::Pass => writeln!(out, "/>"),
            Outcome::Fail => writeln!(out, "><failure message=\"{message}\"/></testcase>"),
            Outcome::Inconclusive => writeln!(out, "><skipped message=\"{message}\"/></testcase>"),
        };
    }
    let shown = text(compare, Style::default());
    let _ =
        writeln!(out, "<system-out>{}</system-out>\n</testsuite>\n</testsuites>", escaped(&shown));
    out
}

struct Case {
    class: String,
    name: String,
    outcome: Outcome,
    message: String,
}

fn class(quantity: &str) -> String {
    format!("wakescope.compare.{}", quantity.replace(' ', "-"))
}

fn figures(of: &OfQuantity, compare: &Compare) -> Vec<Case> {
    let case = |(name, figure): (&str, Option<&wakescope_stats::compare::Figure>)| {
        let (outcome, message) = match figure {
            None => (Outcome::Inconclusive, format!("{name} is not known")),
            Some(figure) => {
                let effect = &figure.effect;
                let p_value = probability(effect.p_adjusted);
                let full = full_name(name, of, compare);
                let said = format!("{full} {}, {p_value}", ratio(effect, of.runs));
                (outcome(effect, compare), said)
            }
        };
        Case { class: class(&of.quantity.to_string()), name: name.into(), outcome, message }
    };
    of.deciding().map(case).into()
}

/// Whether a figure passes: by what is allowed, or else by its verdict.
fn outcome(effect: &Effect, compare: &Compare) -> Outcome {
    match (compare.settings.max_regression, effect.verdict) {
        (Some(_), _) => effect.regression.unwrap_or_default(),
        (None, Verdict::Worse) => Outcome::Fail,
        (None, Verdict::Better | Verdict::NoDifference) => Outcome::Pass,
        (None, Verdict::Inconclusive) => Outcome::Inconclusive,
    }
}
