//! The answer of a lab, in a sentence or two.

use wakescope_core::lab::{Arm, Cell, Comparison, Lab, Status, Verdict};
use wakescope_core::run::TimeDomain;
use wakescope_core::units::{counted, grouped};

use super::names::{self, Sides};
use crate::domain;

/// Verdicts in the order in which they matter.
const ORDER: [Verdict; 4] =
    [Verdict::Worse, Verdict::Better, Verdict::NoDifference, Verdict::Inconclusive];

/// More loads than that are counted, not named.
const MOST_NAMED: usize = 4;

/// What was asked, answered, and which models have no result; empty where the table is the answer.
pub(super) fn headline(lab: &Lab) -> String {
    with_ignored(lab, answer(lab))
}

/// What was asked, answered; empty where the table is the answer.
pub(super) fn answer(lab: &Lab) -> String {
    let parts = [compared(&lab.comparisons), limited(lab), missing(lab)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// An answer, and which models have no result.
pub(super) fn with_ignored(lab: &Lab, answer: String) -> String {
    let parts = [Some(answer).filter(|answer| !answer.is_empty()), ignored(lab)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// From which place's worst wakeup to which one's, in a sentence, by the record alone.
pub(super) fn span_of_cells(lab: &Lab) -> String {
    let measured = lab.cells.iter().filter(|cell| cell.status == Status::Ok);
    let mut ranked: Vec<(&Cell, u64)> =
        measured.filter_map(|cell| Some((cell, cell.max_ns?))).collect();
    ranked.sort_by_key(|&(_, max_ns)| max_ns);
    let what = lab.settings.stimulus.quantity();
    let side = |(cell, ns): &(&Cell, u64)| {
        let arm = Arm { kernel: cell.kernel.clone(), asked: cell.asked.clone() };
        let place = format!("{}, {}", names::arm(&arm), names::load(&cell.load));
        format!("{} ({place})", domain::span(*ns, TimeDomain::Virtual))
    };
    match ranked.as_slice() {
        [] => "No cell has measured.".into(),
        [only] => format!("Largest {what} {}.", side(only)),
        [least, .., most] => {
            format!("Largest {what} of each cell: from {} to {}.", side(least), side(most))
        }
    }
}

fn compared(comparisons: &[Comparison]) -> Option<String> {
    let first = comparisons.first()?;
    if comparisons.iter().all(|c| c.a == first.a && c.b == first.b) {
        Some(one_pair(comparisons))
    } else {
        Some(counted_verdicts(comparisons))
    }
}

/// `full is better than none under find and launch, no different under file-move.`
fn one_pair(comparisons: &[Comparison]) -> String {
    let sides = Sides::of(comparisons);
    let (a, b) = (sides.name(&comparisons[0].a), sides.name(&comparisons[0].b));
    let mut parts: Vec<String> = Vec::new();
    for verdict in ORDER {
        let of_it = comparisons.iter().filter(|c| c.verdict == verdict);
        let loads: Vec<String> = of_it.map(|c| names::load(&c.load)).collect();
        if loads.is_empty() {
            continue;
        }
        let under = under(&loads, comparisons.len());
        parts.push(match (parts.is_empty(), verdict) {
            (true, Verdict::Worse) => format!("{b} is worse than {a} {under}"),
            (true, Verdict::Better) => format!("{b} is better than {a} {under}"),
            (true, Verdict::NoDifference) => format!("{b} is no different from {a} {under}"),
            (true, Verdict::Inconclusive) => {
                format!("{b} against {a} is inconclusive {under}")
            }
            (false, verdict) => format!("{} {under}", word(verdict)),
        });
    }
    format!("{}.", parts.join(", "))
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::NoDifference => "no different",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn under(loads: &[String], all: usize) -> String {
    match loads {
        [one] => format!("under {one}"),
        [_, _] if all == 2 => "under both loads".into(),
        many if many.len() == all => format!("under all {all} loads"),
        many if many.len() > MOST_NAMED => format!("under {} of {all} loads", many.len()),
        [first @ .., last] => format!("under {} and {last}", first.join(", ")),
        [] => String::new(),
    }
}

/// `Of 12 comparisons 1 is worse, 7 better, 4 inconclusive.`
fn counted_verdicts(comparisons: &[Comparison]) -> String {
    let count = |verdict| comparisons.iter().filter(|c| c.verdict == verdict).count();
    let counts = ORDER.map(|verdict| (count(verdict), word(verdict)));
    format!("Of {} {}.", counted(comparisons.len() as u64, "comparison"), outcomes(&counts))
}

/// `Of 6 limits 2 are broken, 1 undecided, 3 kept.`
fn limited(lab: &Lab) -> Option<String> {
    let count = |within| lab.limits.iter().filter(|limit| limit.within == within).count();
    let counts =
        [(count(Some(false)), "broken"), (count(None), "undecided"), (count(Some(true)), "kept")];
    match lab.limits.len() {
        0 => None,
        1 => Some(format!("The limit {}.", outcomes(&counts).replacen("1 ", "", 1))),
        all if counts[2].0 == all => Some(format!("All {} limits are kept.", grouped(all as u64))),
        all => Some(format!("Of {} limits {}.", grouped(all as u64), outcomes(&counts))),
    }
}

/// `2 are broken, 3 kept`: those of which there are any; there is one at least.
fn outcomes(counts: &[(usize, &str)]) -> String {
    let some: Vec<_> = counts.iter().filter(|(count, _)| *count > 0).collect();
    let counts = some.iter().enumerate().map(|(place, (count, what))| {
        let verb = match (place, count) {
            (0, 1) => " is",
            (0, _) => " are",
            _ => "",
        };
        format!("{}{verb} {what}", grouped(*count as u64))
    });
    counts.collect::<Vec<_>>().join(", ")
}

/// `3 of 120 cells failed, 18 were not run.`
fn missing(lab: &Lab) -> Option<String> {
    let count = |status| lab.cells.iter().filter(|cell| cell.status == status).count();
    let counts = [
        (count(Status::Failed), "failed", "failed"),
        (count(Status::NotRun), "was not run", "were not run"),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (count, one, many) in counts.into_iter().filter(|count| count.0 > 0) {
        let of = match parts.is_empty() {
            true => format!(" of {}", counted(lab.cells.len() as u64, "cell")),
            false => String::new(),
        };
        let what = if count == 1 { one } else { many };
        parts.push(format!("{}{of} {what}", grouped(count as u64)));
    }
    (!parts.is_empty()).then(|| format!("{}.", parts.join(", ")))
}

/// `4 of 12 cells have no result: 6.1-cloud was not seen to run RT.`
fn ignored(lab: &Lab) -> Option<String> {
    let ignored = || lab.cells.iter().filter(|cell| cell.status == Status::Ignored);
    // Of each kernel, the models.
    let mut kernels: Vec<(&str, Vec<String>)> = Vec::new();
    for cell in ignored() {
        let model = names::model(&cell.asked);
        match kernels.iter_mut().find(|(kernel, _)| *kernel == cell.kernel) {
            Some((_, models)) if models.contains(&model) => {}
            Some((_, models)) => models.push(model),
            None => kernels.push((&cell.kernel, vec![model])),
        }
    }
    let why = match kernels.len() {
        0 => return None,
        1..=MOST_NAMED => {
            let of = |(kernel, models): &(&str, Vec<String>)| {
                format!("{} was not seen to run {}", names::kernel(kernel, 60), models.join(" or "))
            };
            kernels.iter().map(of).collect::<Vec<_>>().join(", ")
        }
        many => format!("{many} kernels were not seen to run models that they were asked for"),
    };
    let (count, all) = (ignored().count(), lab.cells.len());
    let have = if count == 1 { "has" } else { "have" };
    let all = counted(all as u64, "cell");
    Some(format!("{} of {all} {have} no result: {why}.", grouped(count as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::lab::CellLimit;

    fn comparison(kernel: &str, asked: &str, load: &str, verdict: Verdict) -> Comparison {
        let arm = |asked: &str| Arm { kernel: kernel.into(), asked: asked.into() };
        let (a, b, load) = (arm("none"), arm(asked), load.into());
        Comparison { a, b, load, verdict, ..Comparison::default() }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Lab), want: &str) {
        let mut lab = Lab::default();
        change(&mut lab);
        assert_eq!(headline(&lab), want);
    }

    #[test]
    fn one_pair_is_answered_by_load() {
        use Verdict::{Better, Inconclusive, NoDifference, Worse};
        let pair = |verdicts: &[(&str, Verdict)]| {
            let comparisons =
                verdicts.iter().map(|(load, verdict)| comparison("k", "full", load, *verdict));
            let comparisons: Vec<_> = comparisons.collect();
            move |lab: &mut Lab| lab.comparisons = comparisons
        };
        check(|_| {}, "");
        check(pair(&[("find", Better)]), "full is better than none under find.");
        check(
            pair(&[("find", Better), ("launch", Better), ("file-move", NoDifference)]),
            "full is better than none under find and launch, no different under file-move.",
        );
        check(
            pair(&[
                ("idle", NoDifference),
                ("find", Inconclusive),
                ("cpu", Better),
                ("launch", Worse),
            ]),
            "full is worse than none under launch, better under cpu, no different under idle, \
             inconclusive under find.",
        );
        check(
            pair(&[("idle", Inconclusive), ("find", Inconclusive)]),
            "full against none is inconclusive under both loads.",
        );
        let many = ["a", "b", "c", "d", "e"].map(|load| (load, NoDifference));
        check(
            pair(&[&many[..], &[("find", Worse)]].concat()),
            "full is worse than none under find, no different under 5 of 6 loads.",
        );
    }

    #[test]
    fn several_pairs_are_counted() {
        check(
            |lab| {
                lab.comparisons = vec![
                    comparison("k", "full", "find", Verdict::Better),
                    comparison("k", "lazy", "find", Verdict::Better),
                    comparison("l", "full", "find", Verdict::Inconclusive),
                ];
            },
            "Of 3 comparisons 2 are better, 1 inconclusive.",
        );
    }

    #[test]
    fn limits_and_what_is_missing_are_counted() {
        let limits = |within: &[Option<bool>]| {
            let limits: Vec<_> =
                within.iter().map(|&within| CellLimit { within, ..CellLimit::default() }).collect();
            move |lab: &mut Lab| lab.limits = limits
        };
        check(limits(&[Some(true)]), "The limit is kept.");
        check(limits(&[Some(false)]), "The limit is broken.");
        check(limits(&[Some(true), Some(true)]), "All 2 limits are kept.");
        check(
            limits(&[Some(true), None, Some(false), Some(false)]),
            "Of 4 limits 2 are broken, 1 undecided, 1 kept.",
        );
        check(limits(&[None, None]), "Of 2 limits 2 are undecided.");
        check(
            |lab| {
                let status = [Status::Ok, Status::Failed, Status::NotRun, Status::NotRun];
                lab.cells = status.map(|status| Cell { status, ..Cell::default() }).into();
                lab.limits = vec![CellLimit { within: Some(false), ..CellLimit::default() }];
            },
            "The limit is broken. 1 of 4 cells failed, 2 were not run.",
        );
        check(
            |lab| lab.cells = vec![Cell { status: Status::NotRun, ..Cell::default() }],
            "1 of 1 cell was not run.",
        );
    }

    #[test]
    fn cells_of_models_that_a_kernel_does_not_run_are_counted_and_named() {
        let cells = |of: &[(&str, &str, Status)]| {
            let cell = |&(kernel, asked, status): &(&str, &str, Status)| Cell {
                kernel: kernel.into(),
                asked: asked.into(),
                status,
                ..Cell::default()
            };
            let cells: Vec<Cell> = of.iter().map(cell).collect();
            move |lab: &mut Lab| lab.cells = cells
        };
        let (ok, ignored) = (Status::Ok, Status::Ignored);
        check(cells(&[("k", "full", ok)]), "");
        check(
            cells(&[("k", "full", ok), ("k", "rt", ignored), ("k", "rt", ignored)]),
            "2 of 3 cells have no result: k was not seen to run RT.",
        );
        check(
            cells(&[("k", "lazy", ignored), ("k", "rt", ignored), ("l", "rt", ignored)]),
            "3 of 3 cells have no result: k was not seen to run lazy or RT, l was not seen to run RT.",
        );
        check(
            cells(&["a", "b", "c", "d", "e"].map(|kernel| (kernel, "rt", ignored))),
            "5 of 5 cells have no result: 5 kernels were not seen to run models that they were asked for.",
        );
        check(
            cells(&[("k", "rt", ignored), ("k", "full", Status::NotRun)]),
            "1 of 2 cells was not run. 1 of 2 cells has no result: k was not seen to run RT.",
        );
    }
}
