//! The table of `perf sched latency`: per task the number of delays, their mean and the largest.

use std::io::BufRead;

use wakescope_core::finding::Severity;
use wakescope_core::harmless::clean;
use wakescope_core::plan::Target;
use wakescope_core::run::Run;
use wakescope_core::source::{Omission, Quantity};

use super::counts::{sum_of_mean, wide};
use super::draft::Draft;
use super::lines::{Line, Lines, number, thousandths};
use super::statement::Figure;
use super::{About, ImportError, Unit, unit};
use crate::parts::Extremes;

/// The most tasks that are read.
const MOST_TASKS: usize = 1 << 16;

struct Task {
    name: String,
    count: u64,
    /// In µs.
    mean: u64,
    max: u64,
}

pub(super) fn read(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut total = None;
    let mut doubts: Vec<String> = Vec::new();
    let mut lines = Lines::new(from);
    while let Some(line) = lines.next()? {
        let text = line.text.trim();
        if let Some(rest) = text.strip_prefix("TOTAL:") {
            let count = rest.split('|').nth(2).and_then(|cell| number(cell.trim()));
            total = Some(count.ok_or_else(|| line.fault("a total without a count"))?);
        } else if text.starts_with("INFO: ") && text.contains("% ") {
            // What it lost, or could not put in order. There are a few kinds.
            if doubts.len() < 8 {
                doubts.push(clean(text, 200));
            }
        } else if text.contains("| avg:") {
            if total.is_some() || tasks.len() >= MOST_TASKS {
                return Err(line.fault("a task behind the total, or more than 65,536 tasks"));
            }
            tasks.push(task(line)?);
        }
    }
    let cut = || ImportError {
        line: Some(lines.count()),
        ..ImportError::new("the file ends before `TOTAL:`: it is truncated")
    };
    let total = total.ok_or_else(cut)?;
    let held = tasks.iter().try_fold(0_u64, |sum, t| sum.checked_add(t.count));
    if held != Some(total) {
        return Err(ImportError::new(format!(
            "its tasks have {} delays, but `TOTAL:` is {total}",
            held.unwrap_or(u64::MAX)
        )));
    }
    unit::stated(about, Unit::Ms, "perf sched latency writes `ms`")?;
    let mut draft =
        Draft::new("perf sched", "latency table", about, Quantity::RunqueueDelay, Omission::None);
    draft.summary_only("for single delays, use `perf sched timehist` or `wakescope explain`");
    draft.source.resolution_ns = Some(1_000);
    draft.extremes = Extremes::MaximumOnly;
    draft.approximate("max_ns, sum_ns: rounded to µs");
    draft.unknown.push("threads.woken.min_ns");
    for doubt in doubts {
        let message = format!("delays may be missing or wrong; perf says: {doubt}");
        let hint = "record with a larger buffer: perf sched record -m 16M";
        draft.find("lost-samples", Severity::Warning, message, hint);
    }
    let worst = tasks.iter().max_by_key(|t| t.max).map_or("", |t| t.name.as_str());
    let latest = clean(worst, 60);
    draft.target = Target::Tasks { count: tasks.len() as u64, latest };
    for task in tasks.iter().filter(|t| t.count > 0) {
        let (max_ns, sum_ns) =
            (task.max * 1_000, sum_of_mean(task.count, task.mean * 1_000, 1_000));
        // Rounded, the largest may be half a µs larger than it says; from 0 on, as the least is not told.
        draft.thread(None, wide(task.count, 0, max_ns, 1_000, sum_ns).map_err(ImportError::new)?);
        #[allow(clippy::cast_precision_loss)] // It is compared with room for that.
        let mean_ns = task.mean as f64 * 1_000.0;
        // So is the maximum, of which the mean has its share.
        #[allow(clippy::cast_precision_loss)]
        let rounding_ns = 500.0 / task.count as f64;
        draft.states(Figure::Mean, mean_ns - 500.0, mean_ns + 500.0 + rounding_ns);
    }
    draft.finish()
}

/// `  sleep:27484  |      2.142 ms |        1 | avg:   0.000 ms | max:   0.000 ms | …`
fn task(line: Line<'_>) -> Result<Task, ImportError> {
    let cells: Vec<&str> = line.text.split('|').map(str::trim).collect();
    let at = cells.iter().position(|cell| cell.starts_with("avg:")).unwrap_or(0);
    let fault = |what: &str| line.fault(&format!("a task without its {what}"));
    let of = |index: usize, head: &str| {
        let text = cells.get(index)?.strip_prefix(head)?.trim().strip_suffix("ms")?;
        // So that no product of it overflows.
        thousandths(text.trim()).filter(|&us| us < 1 << 40)
    };
    if at < 3 {
        return Err(fault("count"));
    }
    Ok(Task {
        name: cells[..at - 2].join("|").chars().take(60).collect(),
        count: number(cells[at - 1]).ok_or_else(|| fault("count"))?,
        mean: of(at, "avg:").ok_or_else(|| fault("mean"))?,
        max: of(at + 1, "max:").ok_or_else(|| fault("maximum"))?,
    })
}
