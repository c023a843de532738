//! Pairs of CPUs of waker and probe.

use wakescope_core::percentile::Percentile;
use wakescope_core::run::Run;

use super::element::{Column, paragraph, table, text};
use super::{element, figure, values};
use crate::matrix::{Matrix, Pair};
use crate::picture::Picture;
use crate::quantity;
use crate::run_set::RunSet;

/// The most CPUs for a table with a column each.
const MOST_COLUMNS: usize = 8;

/// The most pairs in a list of the latest.
const MOST_ROWS: usize = 32;

pub(super) fn section(run_set: &RunSet) -> String {
    let Some(matrix) = Matrix::of(run_set) else { return String::new() };
    let caveats: String =
        matrix.caveats().iter().map(|c| paragraph("lead", &text(&quantity::capital(c)))).collect();
    let table = match matrix.cpus.len() {
        ..=MOST_COLUMNS => pairs(&matrix, run_set),
        _ => latest(&matrix, run_set),
    };
    let title = format!("Pairs of CPUs: median {}", quantity::words_of(run_set).value);
    let figure = figure(Picture::Matrix, run_set, false);
    element::section("matrix", &title, &(figure + &caveats + &table))
}

/// A pair in lists and legends.
pub(super) fn name((waker, probe): Pair) -> String {
    format!("waker {waker}, probe {probe}")
}

/// The pairs with the latest wakeups.
fn latest(matrix: &Matrix, run_set: &RunSet) -> String {
    let head = [
        ("on CPUs", Column::Words),
        ("median", Column::Number),
        ("max", Column::Number),
        (quantity::words_of(run_set).many, Column::Number),
    ];
    let row = |(pair, run): (Pair, &Run)| {
        let all = run.expiries();
        let median = values::quantile(&all, Percentile::SHOWN[0]);
        let max = values::time(all.max_ns);
        vec![name(pair), median, max, values::count(all.count)]
    };
    let rows: Vec<_> = matrix.latest(MOST_ROWS).into_iter().map(row).collect();
    table(&values::caption("The pairs with the latest wakeups", run_set.domain()), &head, &rows)
}

/// A row per waker.
fn pairs(matrix: &Matrix, run_set: &RunSet) -> String {
    let probes: Vec<String> = matrix.cpus.iter().map(|cpu| format!("probe on CPU {cpu}")).collect();
    let mut head = vec![("waker", Column::Words)];
    head.extend(probes.iter().map(|probe| (probe.as_str(), Column::Number)));
    let cell = |pair| match matrix.run(pair).map(|run| run.expiries()) {
        Some(all) => {
            let median = values::quantile(&all, Percentile::SHOWN[0]);
            format!("{median}, max {}", values::time(all.max_ns))
        }
        None => "not measured".into(),
    };
    let rows = matrix.cpus.iter().map(|&waker| {
        let name = format!("on CPU {waker}");
        std::iter::once(name).chain(matrix.cpus.iter().map(|&probe| cell((waker, probe)))).collect()
    });
    let caption = values::caption("Median and maximum", run_set.domain());
    table(&caption, &head, &rows.collect::<Vec<_>>())
}
