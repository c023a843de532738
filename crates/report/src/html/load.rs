//! What loads did meanwhile: latency that is bought with throughput is no gain.

use wakescope_core::run::LoadResult;

use super::element::{self, Column, key_table, name, text};
use crate::load::{amount, at_least, rate};
use crate::run_set::RunSet;

pub(super) fn section(run_set: &RunSet) -> String {
    let is_several = run_set.entries.len() > 1;
    let mut rows = Vec::new();
    for entry in &run_set.entries {
        for load in entry.run.load.iter().take(32) {
            let mut row = if is_several { vec![name(&entry.name(), 80)] } else { vec![] };
            row.extend(cells(load));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut head = if is_several { vec![("run", Column::Words)] } else { vec![] };
    head.push(("load", Column::Words));
    head.extend(["work", "per second", "per second before", "kept"].map(|n| (n, Column::Number)));
    head.push(("", Column::Words));
    element::section("load", "Load and throughput", &key_table("Work of the loads", &head, &rows))
}

/// The most that a load may gain by being measured, by chance, in percent.
const MOST_KEPT: f64 = 110.0;

/// The share of its speed that a load kept, in percent, or why it is not known: a speed that was not
/// steady is no base, and no load becomes faster by what is measured beside it.
fn kept(load: &LoadResult, before: f64) -> Result<f64, &'static str> {
    if load.before_steady == Some(false) {
        return Err(
            "its rate before was not steady, so no share is given: warm up longer (--warmup)",
        );
    }
    let share = 100.0 * load.per_second / before;
    match share {
        share if (0.0..=MOST_KEPT).contains(&share) => Ok(share),
        _ => Err(
            "the load was still warming up before, so no share is given: warm up longer (--warmup)",
        ),
    }
}

fn cells(load: &LoadResult) -> Vec<String> {
    let unit = crate::style::clean(&load.unit, 16);
    // Of bytes, nobody wants to read all digits.
    let work = match unit.as_str() {
        "bytes" => rate(load.work as f64, "bytes"),
        unit => amount(load.work, unit),
    };
    let work = at_least(load, work);
    let before = load.before_per_second.filter(|b| b.is_finite() && *b > 0.0);
    let (kept, why) = match before.map(|before| kept(load, before)) {
        Some(Ok(share)) => (format!("{share:.0} %"), ""),
        Some(Err(why)) => ("–".into(), why),
        None => ("–".into(), ""),
    };
    let state = if load.alive {
        text(why)
    } else {
        format!("<span class=\"badge bad\">died</span> {}", name(&load.fault, 240))
    };
    vec![
        name(&load.name, 80),
        text(&work),
        text(&rate(load.per_second, &unit)),
        before.map_or_else(|| "–".into(), |b| text(&rate(b, &unit))),
        kept,
        state,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_may_be_more_is_marked() {
        for (incomplete, want) in [(false, "7 files"), (true, "≥ 7 files")] {
            let (work, unit) = (7, "files".into());
            assert_eq!(
                cells(&LoadResult { work, unit, incomplete, ..Default::default() })[1],
                want
            );
        }
    }

    #[test]
    fn no_load_gains_by_being_measured() {
        for (before, steady, want) in [
            (100.0, Some(true), "90 %"),
            (100.0, None, "90 %"),
            (85.0, Some(true), "106 %"),
            (100.0, Some(false), "–"),
            // 247 % of what it did while it was warming up.
            (36.4, Some(true), "–"),
            (36.4, None, "–"),
            (0.0, Some(true), "–"),
        ] {
            let load = LoadResult {
                per_second: 90.0,
                before_per_second: Some(before),
                before_steady: steady,
                alive: true,
                ..LoadResult::default()
            };
            let cells = cells(&load);
            assert_eq!(cells[4], want, "{load:?}");
            let is_told = cells[5].contains("no share is given");
            assert_eq!(is_told, want == "–" && before > 0.0, "{cells:?}");
        }
    }
}
