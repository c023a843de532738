//! Waits of all tasks: a table that is redrawn, a line for logs, the table at the end.

mod boots;
mod episodes;
mod explained;
pub mod live;
mod rows;

use std::cmp::Reverse;

use wakescope_core::units::{SpanNs, counted, grouped, one_or_many};
use wakescope_core::watch::episode::MOST_EPISODES;
use wakescope_core::watch::extent::Extent;
use wakescope_core::watch::{Audit, CostSource, Known, LeftOut, OwnCost, Waits, Window};

pub use rows::{By, History, Past, Sort};

use crate::progress::{clock, span_or_dash, sparkline};
use crate::style::{Style, clean};
use crate::table::columns;
use episodes::Times;
use rows::{CGROUP, Row, rows};

/// The widest line that no terminal of 80 columns wraps.
const WIDTH: usize = 79;
/// The longest text of a date.
const MOST_DATE: usize = 30;
/// Lines around the rows of a table that is redrawn: title, head, sum, and the notes.
const AROUND: usize = 6;

/// What a table shows.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// What each row is.
    pub by: By,
    /// What comes first.
    pub sort: Sort,
    /// The most rows.
    pub rows: usize,
}

/// The table that is redrawn while waits are counted, of the last window, in no more than `height` lines.
/// `history` has earlier windows.
pub fn block(window: &Window, view: View, history: &History, height: usize) -> String {
    let shown = View { rows: view.rows.min(height.saturating_sub(AROUND)).max(1), ..view };
    let mut lines = vec![format!(
        "waits of all tasks, runnable to running: the last {} of {}",
        SpanNs(window.window_ns),
        clock(end_of(window))
    )];
    let percentile = if view.sort == Sort::Percentile { "p99.9" } else { "p99" };
    let (listed, more) = sorted(rows(window, view.by), shown);
    let mut cells = vec![view.by.head(CGROUP, &["waits", percentile, "max", "waited"])];
    cells.extend(listed.iter().map(|row| {
        row.cells(
            CGROUP,
            &[
                grouped(row.waits.count),
                percentile_of(&row.waits, percentile),
                max(&row.waits),
                SpanNs(row.waits.sum_ns).to_string(),
            ],
        )
    }));
    let tails = listed.iter().map(|row| sparkline(&history.of(&row.key, row.waits.max_ns)));
    let tails = std::iter::once(String::new()).chain(tails);
    lines.extend(columns(&cells, true).lines().zip(tails).map(|(line, tail)| {
        if tail.is_empty() { line.to_string() } else { format!("{line}  {tail}") }
    }));
    lines.push(format!(" {}{}", hidden(more), sum_line(window, view.by)));
    lines.extend(notes(window, WIDTH));
    let lines = lines.iter().map(|line| clean(line, WIDTH));
    lines.take(height.max(AROUND)).collect::<Vec<_>>().join("\n")
}

/// The line of a window where nothing is redrawn.
pub fn line(window: &Window) -> String {
    let all = all_waits(window);
    let whose = rows::longest(window).map(|row| row.name());
    format!(
        "{}: {}, p99.9 {}, max {}{}; {}; left out {}, uncovered {}",
        clock(end_of(window)),
        counted(all.count, "wait"),
        percentile_of(&all, "p99.9"),
        max(&all),
        whose.map(|whose| format!(" ({whose})")).unwrap_or_default(),
        own_cost(&window.own_cost, window.window_ns),
        left_out(&window.left_out),
        SpanNs(window.left_out.uncovered_ns)
    )
}

/// The heading of a stored window that is shown among others.
pub fn stored_heading(window: &Window) -> String {
    let started = clean(&window.started, MOST_DATE);
    let kernel =
        boots::kernel_of(&window.boots).map(|name| format!(", {name}")).unwrap_or_default();
    format!("{started} UTC, {}{kernel}", SpanNs(window.window_ns))
}

/// The table of stored windows, which are `total` together: how many, from when to when, for how long nobody
/// watched, and whether the clock was set.
pub fn stored_table(extent: &Extent, total: &Window, view: View, style: Style) -> String {
    let boots = boots::line(&total.boots).map(|line| format!("{line}\n")).unwrap_or_default();
    let extent = stored_extent(extent);
    format!("{extent}\n{boots}{}", table_at(total, view, style, Times::Dates))
}

fn stored_extent(extent: &Extent) -> String {
    let Extent { windows, first, end, overlap_ns, .. } = *extent;
    let windows = counted(windows, "stored window");
    let mut parts = vec![format!("{windows} from {first} to {end}.")];
    let mut add = |ns, text: &dyn Fn(SpanNs) -> String| {
        parts.extend((ns > 0).then(|| text(SpanNs(ns))));
    };
    add(extent.not_watched_ns, &|ns| format!("In between, {ns} were not watched."));
    add(extent.suspended_ns, &|ns| format!("Meanwhile the machine was suspended for {ns}."));
    add(extent.forward_ns, &|ns| format!("Meanwhile the clock was set forward by {ns}."));
    add(extent.forward_or_suspended_ns, &|ns| {
        format!("Meanwhile the clock was set forward by {ns}, or the machine was suspended.")
    });
    add(extent.back_ns, &|ns| format!("Meanwhile the clock was set back by {ns}."));
    add(overlap_ns, &|ns| format!("Dates overlap by {ns}: the clock was set back in between."));
    parts.join(" ")
}

/// The table of all that was counted, with what the numbers rest on.
pub fn table(total: &Window, view: View, style: Style) -> String {
    table_at(total, view, style, Times::Elapsed)
}

fn table_at(total: &Window, view: View, style: Style, times: Times) -> String {
    let (listed, more) = sorted(rows(total, view.by), view);
    let mut out = style.strong(&headline(total));
    out.push_str("\n\n");
    let mut cells = vec![view.by.head(CGROUP, &["waits", "p99", "p99.9", "max", "waited"])];
    cells.extend(listed.iter().map(|row| {
        row.cells(
            CGROUP,
            &[
                grouped(row.waits.count),
                percentile_of(&row.waits, "p99"),
                percentile_of(&row.waits, "p99.9"),
                max(&row.waits),
                SpanNs(row.waits.sum_ns).to_string(),
            ],
        )
    }));
    out.push_str(&columns(&cells, true));
    out.push_str(&format!(" {}{}\n\n", hidden(more), sum_line(total, view.by)));
    let mut worst = episodes::list(total, MOST_EPISODES, times);
    worst.extend(explained::list(total, times));
    if !worst.is_empty() {
        out.push_str(&worst.join("\n"));
        out.push_str("\n\n");
    }
    for note in notes(total, usize::MAX).into_iter().chain(losses(total)) {
        out.push_str(&note);
        out.push('\n');
    }
    out
}

fn end_of(window: &Window) -> SpanNs {
    SpanNs(window.begin_ns.saturating_add(window.window_ns))
}

/// The answer: the longest wait, and whose it was.
fn headline(total: &Window) -> String {
    match rows::longest(total) {
        Some(row) => format!(
            "Longest wait {}: {}. {} in {}.",
            max(&row.waits),
            row.name(),
            counted(all_waits(total).count, "wait"),
            SpanNs(total.window_ns)
        ),
        None => format!("No task waited in {}.", SpanNs(total.window_ns)),
    }
}

/// The rows to show, the first in order first, and how many are not shown.
fn sorted(all: Vec<Row>, view: View) -> (Vec<Row>, usize) {
    let mut listed = in_order(all, view.sort);
    let more = listed.len().saturating_sub(view.rows);
    listed.truncate(view.rows);
    (listed, more)
}

fn in_order(mut rows: Vec<Row>, sort: Sort) -> Vec<Row> {
    rows.sort_by_cached_key(|row| (Reverse(sort.key(&row.waits)), row.key.clone()));
    rows
}

fn hidden(rows: usize) -> String {
    match rows {
        0 => String::new(),
        rows => format!("… {}. ", counted(rows as u64, "more row")),
    }
}

fn sum_line(window: &Window, by: By) -> String {
    let all = all_waits(window);
    let others = match (by, window.others.count) {
        (By::Cpu, _) | (_, 0) => String::new(),
        (_, count) => {
            format!(
                ", {} of them beyond the {} series",
                grouped(count),
                grouped(window.series_limit)
            )
        }
    };
    format!(
        "All: {}{others}, p99.9 {}, max {}, waited {}",
        counted(all.count, "wait"),
        percentile_of(&all, "p99.9"),
        max(&all),
        SpanNs(all.sum_ns)
    )
}

/// What the figures rest on, always shown: in lines of which the first is no longer than `width`.
fn notes(window: &Window, width: usize) -> Vec<String> {
    let cost = own_cost_within(&window.own_cost, window.window_ns, width.saturating_sub(1));
    let mut notes = vec![
        format!(" {cost}"),
        format!(
            " series {} of {}; left out {}; uncovered {}; moved {}",
            grouped(window.series_used),
            grouped(window.series_limit),
            left_out(&window.left_out),
            SpanNs(window.left_out.uncovered_ns),
            grouped(window.moved.count),
        ),
    ];
    notes.extend(window.audit.as_ref().map(|found| format!(" {}", audit(found))));
    notes
}

/// `22`, `at most 22`
fn left_out(of: &LeftOut) -> String {
    format!("{}{}", if of.lost_is_bound() { "at most " } else { "" }, grouped(of.lost()))
}

/// What was lost, each with its number.
fn losses(window: &Window) -> Vec<String> {
    let LeftOut { unstamped, discarded, untracked, first, caught_up, missed, missed_ns, .. } =
        window.left_out;
    let LeftOut { contradicted, asleep, asleep_ns, .. } = window.left_out;
    let mut warnings = Vec::new();
    let mut tell = |count: u64, text: String| {
        if count > 0 {
            warnings.push(format!(" ! {text}"));
        }
    };
    let times = |count: u64| format!("{} {}", grouped(count), one_or_many(count, "time", "times"));
    tell(
        unstamped,
        format!(
            "{} a task began to run that the kernel did not count as waiting: it was preempted when \
             it was about to sleep",
            times(unstamped)
        ),
    );
    tell(
        first,
        format!(
            "{} of tasks that had run before: time in the queue of another CPU before is not in {}",
            counted(first, "first wait"),
            one_or_many(first, "it", "them")
        ),
    );
    tell(
        caught_up,
        format!(
            "the kernel did not report the switch that ended {}: counted from its own sums",
            counted(caught_up, "wait")
        ),
    );
    tell(
        missed,
        format!(
            "the program did not see {} of {} in all that the kernel counted",
            counted(missed, "wait"),
            SpanNs(missed_ns)
        ),
    );
    tell(
        untracked,
        format!(
            "{} of tasks beyond the limit of tasks: time in the queue of another CPU before is not in \
             them",
            counted(untracked, "wait")
        ),
    );
    tell(
        discarded,
        format!("{} ended before the begin by the kernel's clock", counted(discarded, "wait")),
    );
    tell(
        contradicted,
        format!("{} the kernel's own sum was less than what was counted here", times(contradicted)),
    );
    tell(
        asleep,
        format!(
            "{}, of up to {} in all, {} left out: the kernel counts the sleep of a task as waiting if the task \
             is moved to another CPU just after it fell asleep",
            counted(asleep, "wait"),
            SpanNs(asleep_ns),
            one_or_many(asleep, "is", "are")
        ),
    );
    let others = window.others.count;
    tell(
        others,
        format!(
            "{} of tasks without a series of their own are counted as one; --series raises the limit \
             of {} series",
            counted(others, "wait"),
            grouped(window.series_limit)
        ),
    );
    warnings
}

fn own_cost(cost: &OwnCost, window_ns: u64) -> String {
    let Some(share) = cost.share(window_ns) else { return "own cost not known".into() };
    format!("own cost {}{}", percent(share), estimated(cost))
}

/// With as many figures as there is room for.
fn own_cost_within(cost: &OwnCost, window_ns: u64, width: usize) -> String {
    let agent = SpanNs(cost.agent_ns);
    let Some((program_ns, share)) = cost.program_ns.zip(cost.share(window_ns)) else {
        return format!(
            "own cost: wakescope {agent}; that of its program in the kernel is not known"
        );
    };
    let short = format!("own cost {}", percent(share));
    let (of_cpus, estimated) = (counted(u64::from(cost.cpus), "CPU"), estimated(cost));
    let each = SpanNs(program_ns.checked_div(cost.program_runs).unwrap_or(0));
    let (runs, program) = (grouped(cost.program_runs), SpanNs(program_ns));
    let tracer = match cost.tracer_ns {
        0 => String::new(),
        ns => format!(", tracer {}", SpanNs(ns)),
    };
    let all = [
        format!(
            "{short} of {of_cpus}{estimated}: program {runs} × {each}, wakescope {agent}{tracer}"
        ),
        format!("{short}{estimated}: program {program}, wakescope {agent}{tracer}"),
    ];
    let fits = |text: &String| text.chars().count() <= width;
    all.into_iter().find(fits).unwrap_or_else(|| format!("{short}{estimated}"))
}

fn estimated(cost: &OwnCost) -> &'static str {
    match cost.source {
        CostSource::Estimated => " (estimated)",
        CostSource::Measured | CostSource::Unknown => "",
    }
}

fn percent(share: f64) -> String {
    match share {
        _ if share > 0.0 && share < 0.000_05 => "below 0.01 %".into(),
        _ => format!("{:.2} %", share * 100.0),
    }
}

/// What a comparison with the kernel's own counts found.
fn audit(audit: &Audit) -> String {
    let Audit { equal, behind, differing, largest_ns, busy, gone, not_reached, waits } = *audit;
    let verdict = match (equal, differing) {
        (0, 0) => "nothing could be compared".into(),
        (_, 0) => {
            format!("{} ({}) equal to the ns", counted(equal, "task"), counted(waits, "wait"))
        }
        _ => format!(
            "{} DIFFER by up to {}, {} equal",
            counted(differing, "task"),
            SpanNs(largest_ns),
            grouped(equal)
        ),
    };
    let behind = match behind {
        0 => String::new(),
        behind => format!("; {} behind by a switch", grouped(behind)),
    };
    let not_compared = busy.saturating_add(gone).saturating_add(not_reached);
    format!("audit: {verdict}{behind}; {} not compared", grouped(not_compared))
}

fn all_waits(window: &Window) -> Waits {
    let series = window.series.iter().map(|series| &series.waits);
    let mut all = window.others.clone();
    series.for_each(|waits| all.add(waits));
    all
}

/// The end of its bucket, where that has one: each percentile of a table is that, so it has no sign.
fn percentile_of(waits: &Waits, percentile: &str) -> String {
    match percentile.parse().ok().and_then(|p| waits.percentile(p)) {
        Some(Known::AtMost(ns)) => SpanNs(ns).to_string(),
        known => known.map_or_else(|| span_or_dash(None), known_in_words),
    }
}

fn max(waits: &Waits) -> String {
    waits.longest().map_or_else(|| span_or_dash(None), known_in_words)
}

/// A length, with a sign where only a bound is known.
fn known_in_words(known: Known) -> String {
    let sign = match known {
        Known::Exactly(_) => "",
        Known::AtMost(_) => "≤",
        Known::AtLeast(_) => "≥",
    };
    format!("{sign}{}", SpanNs(known.ns()))
}

#[cfg(test)]
mod tests;
