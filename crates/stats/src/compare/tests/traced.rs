//! Runs that were explained, beside runs that were not.

use wakescope_core::explain::{Bound, Explanation, Sections};
use wakescope_core::run::TimeDomain::{Real, Simulated, Virtual};

use super::*;

#[test]
fn explained_runs_are_compared_with_explained_ones_only_unless_time_is_real() {
    let explained = |sections: bool, bound: bool| {
        let sections = sections.then(|| Sections { exact: true, ..Sections::default() });
        let bound = bound.then(Bound::default);
        Some(Explanation { sections, bound, ..Explanation::default() })
    };
    let compared = |time_domain, new: Option<Explanation>, old: Option<Explanation>| {
        let side = |us: &[u64], explanation: Option<Explanation>| -> Vec<Run> {
            let change = |run| Run { time_domain, explanation: explanation.clone(), ..run };
            runs(us).into_iter().map(change).collect()
        };
        let got = held(&side(&LOW, new), &side(&HIGH, old), &Options::default());
        let found = match got {
            Ok(comparison) => comparison.differences,
            Err(refusal) => match *refusal {
                Refusal::Differences(found) => found,
                other => panic!("{other:?}"),
            },
        };
        let found = found.iter().filter(|d| d.what == "tracer");
        let told = |d: &Difference| (d.values.iter().map(|v| v.value.clone()).collect(), d.matters);
        found.map(told).collect::<Vec<(Vec<String>, bool)>>()
    };
    let differ = |values: [&str; 2], matters| vec![(values.map(String::from).to_vec(), matters)];
    for (domain, new, old, want) in [
        (Virtual, explained(false, false), explained(false, false), vec![]),
        (Virtual, explained(false, false), None, differ(["explain", "none"], true)),
        (Real, explained(false, false), None, differ(["explain", "none"], false)),
        (Simulated, explained(false, false), None, vec![]),
        (
            Virtual,
            explained(true, true),
            explained(false, false),
            differ(["explain, sections, bound", "explain"], true),
        ),
    ] {
        assert_eq!(compared(domain, new, old), want, "{domain:?}");
    }
}
