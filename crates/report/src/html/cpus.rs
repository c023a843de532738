//! Each CPU by itself.

use wakescope_core::percentile::Percentile;

use super::element::{Column, folded, name, table};
use super::{element, figure, values};
use crate::picture::Picture;
use crate::quantity;
use crate::run_set::{RunSet, thread_name};

/// The most rows of the table.
const MOST: usize = 256;

pub(super) fn section(run_set: &RunSet) -> String {
    let figure = figure(Picture::Cpus, run_set, false);
    let is_single = run_set.entries.iter().all(|e| e.run.threads.len() < 2);
    if is_single && figure.is_empty() {
        return String::new();
    }
    element::section("cpus", "Each CPU", &(figure + &cpus(run_set)))
}

fn cpus(run_set: &RunSet) -> String {
    let names: Vec<String> = Percentile::SHOWN.iter().map(ToString::to_string).collect();
    let is_several = run_set.entries.len() > 1;
    let mut head = if is_several { vec![("run", Column::Words)] } else { vec![] };
    let numbers = ["count", "missed", "min"].map(|n| (n, Column::Number));
    head.push(("CPU", Column::Words));
    head.extend(numbers);
    head.extend(names.iter().map(|n| (n.as_str(), Column::Number)));
    head.push(("max", Column::Number));
    let mut rows = Vec::new();
    for entry in &run_set.entries {
        for (number, thread) in entry.run.threads.iter().enumerate() {
            let d = &thread.expiries;
            let mut row = if is_several { vec![name(&entry.name(), 80)] } else { vec![] };
            row.extend([
                thread_name(&entry.run, number),
                values::count(d.count),
                quantity::count(quantity::missed(&entry.run, thread)),
            ]);
            row.push(values::time(quantity::min_ns(&entry.run, thread)));
            row.extend(Percentile::SHOWN.iter().map(|&p| values::quantile(d, p)));
            row.push(values::maximum(d));
            rows.push(row);
        }
    }
    let left_out = rows.len().saturating_sub(MOST);
    rows.truncate(MOST);
    let mut shown = table(&values::caption("Each CPU", run_set.domain()), &head, &rows);
    if left_out > 0 {
        shown.push_str(&format!("<p>{left_out} more are in the records.</p>\n"));
    }
    if is_several || rows.len() > 16 { folded("The CPUs as a table", &shown) } else { shown }
}
