//! Cells held against limits.

use wakescope_core::histogram::{bucket_of, edges_of};
use wakescope_core::lab::{Arm, Cell, CellLimit, Status};
use wakescope_core::limit::Limit;
use wakescope_core::percentile::Percentile;
use wakescope_core::units::{counted, grouped, one_or_many};

/// Reads a limit on what cells carry: `100us`, `max=1ms`, `p99.9=100us`, and as well p50 and p99.
///
/// # Errors
/// What is wrong with the text, and what to write.
pub fn parse_limit(text: &str) -> Result<Limit, String> {
    let limit: Limit = text.parse()?;
    match limit.percentile {
        Some(p) if figure_of(p).is_none() => {
            Err(format!("a lab's cells have no {p}; write max, p99.9, p99 or p50"))
        }
        _ => Ok(limit),
    }
}

type Figure = fn(&Cell) -> Option<u64>;

fn figure_of(percentile: Percentile) -> Option<Figure> {
    let carried: [(&str, Figure); 3] =
        [("p50", |c| c.p50_ns), ("p99", |c| c.p99_ns), ("p99.9", |c| c.p999_ns)];
    let name = percentile.to_string();
    carried.into_iter().find(|(known, _)| *known == name).map(|(_, figure)| figure)
}

/// Holds the worst seed of each kernel, model and load against each of `limits`, in the order of
/// the cells. One seed above a limit breaks it; within it is only what all seeds are.
pub fn limits(cells: &[Cell], limits: &[Limit]) -> Vec<CellLimit> {
    let groups = groups(cells);
    limits.iter().flat_map(|limit| groups.iter().map(move |cells| judge(limit, cells))).collect()
}

/// Cells that differ in their seeds only, in the order in which they come first.
fn groups(cells: &[Cell]) -> Vec<Vec<&Cell>> {
    let key = |cell: &Cell| (cell.kernel.clone(), cell.asked.clone(), cell.load.clone());
    let mut place_of = std::collections::BTreeMap::new();
    let mut groups: Vec<Vec<&Cell>> = Vec::new();
    for cell in cells {
        let place = *place_of.entry(key(cell)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(cell);
    }
    groups
}

/// `cells` differ in their seeds only, and there is one.
fn judge(limit: &Limit, cells: &[&Cell]) -> CellLimit {
    let figure = match limit.percentile {
        Some(p) => figure_of(p).unwrap_or(|_| None),
        None => |cell: &Cell| cell.max_ns,
    };
    let value = |cell: &Cell| figure(cell).filter(|_| cell.status == Status::Ok);
    // Of equal values the first seed, so that nothing depends on the order of seeds that tie.
    let worst = cells
        .iter()
        .filter_map(|cell| value(cell).map(|ns| (ns, cell.seed)))
        .reduce(|worst, next| if next.0 > worst.0 { next } else { worst });
    let reason = cells.iter().find(|cell| value(cell).is_none()).map(|cell| why_none(limit, cell));
    // A maximum is exact; a percentile is shown as the upper end of its bucket.
    let least = |ns| limit.percentile.map_or(ns, |_| edges_of(bucket_of(ns)).0);
    let reason = reason.or_else(|| {
        let (observed, seed) = worst.filter(|&(ns, _)| ns > limit.above.0)?;
        Some(format!(
            "the figure of seed {seed} is from {} ns to {} ns, and the limit lies between: the histogram is \
             no finer",
            grouped(least(observed)),
            grouped(observed)
        ))
    });
    let within = match worst {
        Some((observed, _)) if least(observed) > limit.above.0 => Some(false),
        Some((observed, _)) if observed <= limit.above.0 && reason.is_none() => Some(true),
        _ => None,
    };
    CellLimit {
        limit: limit.to_string(),
        limit_ns: limit.above.0,
        arm: Arm { kernel: cells[0].kernel.clone(), asked: cells[0].asked.clone() },
        load: cells[0].load.clone(),
        seed: worst.map(|(_, seed)| seed),
        observed_ns: worst.map(|(ns, _)| ns),
        within,
        reason: reason.filter(|_| within.is_none()).unwrap_or_default(),
    }
}

/// Why a cell has nothing to hold against a limit.
fn why_none(limit: &Limit, cell: &Cell) -> String {
    let seed = cell.seed;
    match (cell.status, limit.percentile) {
        (Status::Ok, Some(p)) => format!(
            "the {} of seed {seed} {} too few for {p}, which needs {}",
            counted(cell.count, "sample"),
            one_or_many(cell.count, "is", "are"),
            grouped(p.samples_needed())
        ),
        (Status::Ok, None) => format!("seed {seed} has no samples"),
        (Status::Ignored, _) => match cell.model {
            Some(model) => format!("the kernel runs {model} instead"),
            None => "the kernel does not run this model".into(),
        },
        (Status::Failed, _) => format!("seed {seed} failed"),
        (Status::NotRun, _) => format!("seed {seed} was not run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::testing::{cell, cells};
    use wakescope_core::preemption::Model;

    #[test]
    fn limits_on_what_cells_carry() {
        for (text, want) in [
            ("100us", Ok("max ≤ 100 µs")),
            ("max=1ms", Ok("max ≤ 1.00 ms")),
            ("p50=10us", Ok("p50 ≤ 10.0 µs")),
            ("p99=10us", Ok("p99 ≤ 10.0 µs")),
            ("p99.9=10us", Ok("p99.9 ≤ 10.0 µs")),
            ("p99.90=10us", Ok("p99.9 ≤ 10.0 µs")),
            ("p99.99=10us", Err("have no p99.99; write max")),
            ("p90=10us", Err("have no p90")),
            ("100", Err("no unit")),
        ] {
            match (parse_limit(text), want) {
                (Ok(limit), Ok(want)) => assert_eq!(limit.to_string(), want),
                (Err(e), Err(want)) => assert!(e.contains(want), "{text}: {e}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }

    #[track_caller]
    fn check(limit: &str, cells: &[Cell], want: &str) {
        let text: Vec<String> = limits(cells, &[parse_limit(limit).unwrap()])
            .into_iter()
            .map(|l| {
                let value = l.observed_ns.map_or("–".into(), |ns| ns.to_string());
                let seed = l.seed.map_or("–".into(), |seed| seed.to_string());
                let within =
                    l.within.map_or("?", |within| if within { "within" } else { "broken" });
                format!(
                    "{}/{} {} {value}@{seed} {within} {}",
                    l.arm.kernel, l.arm.asked, l.load, l.reason
                )
                .trim_end()
                .to_owned()
            })
            .collect();
        assert_eq!(text.join("; "), want);
    }

    #[test]
    fn the_worst_seed_is_held_against_the_limit() {
        let mut both = cells("k/full", "find", &[11_000, 12_000, 12_000]);
        both.extend(cells("k/none", "find", &[100_000, 120_000, 90_000]));
        check("20us", &both, "k/full find 12000@2 within; k/none find 120000@2 broken");
        check("120us", &both, "k/full find 12000@2 within; k/none find 120000@2 within");
        check("p99.9=20us", &both[..3], "k/full find 6000@2 within");
        check("20us", &[], "");
    }

    #[test]
    fn a_percentile_is_held_as_far_as_its_bucket_tells() {
        // p99.9 is half of the maximum: 100,095 ns is the end of a bucket from 99,968 ns on.
        let cells = cells("k/full", "find", &[190_000, 200_190]);
        check("p99.9=99967ns", &cells, "k/full find 100095@2 broken");
        check(
            "p99.9=100us",
            &cells,
            "k/full find 100095@2 ? the figure of seed 2 is from 99,968 ns to 100,095 ns, and the limit lies \
             between: the histogram is no finer",
        );
        check("p99.9=100095ns", &cells, "k/full find 100095@2 within");
        check("200189ns", &cells, "k/full find 200190@2 broken");
    }

    #[test]
    fn what_did_not_measure_is_not_within_a_limit() {
        let with = |status, max_ns| {
            let mut other = cell("k/full", "find", 2, max_ns);
            other.status = status;
            other.model = Some(Model::Voluntary);
            vec![cell("k/full", "find", 1, 10_000), other]
        };
        check("20us", &with(Status::Failed, 1), "k/full find 10000@1 ? seed 2 failed");
        check("20us", &with(Status::NotRun, 1), "k/full find 10000@1 ? seed 2 was not run");
        check("5us", &with(Status::Failed, 1), "k/full find 10000@1 broken");
        check(
            "20us",
            &with(Status::Ignored, 99_000)[1..],
            "k/full find –@– ? the kernel runs voluntary instead",
        );
        let mut few = cells("k/full", "find", &[10_000]);
        (few[0].p999_ns, few[0].count) = (None, 400);
        check(
            "p99.9=20us",
            &few,
            "k/full find –@– ? the 400 samples of seed 1 are too few for p99.9, which needs 2,000",
        );
    }
}
