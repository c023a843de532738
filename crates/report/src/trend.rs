//! A series of runs for people: what changed where, and a bar per run.

use std::fmt::Write;

use wakescope_core::source::Quantity;
use wakescope_core::units::{counted, grouped};
use wakescope_stats::compare::{RunFigures, percent, probability, times};
use wakescope_stats::trend::{Series, Step, Trend, Unclear, permutations};

use crate::compare::name_of_max;
use crate::domain;
use crate::findings::wrapped;
use crate::plot::blocks;
use crate::quantity;
use crate::style::{Style, clean};
use crate::table::columns;

/// The widest line, in characters.
const WIDTH: usize = 100;

/// The width of a bar, in characters.
const BAR: usize = 16;

/// Of a longer series only the runs next to a change are listed.
const MOST_LISTED: usize = 120;

/// The series as text, 100 columns wide.
pub fn text(trend: &Trend, style: Style) -> String {
    let mut out = String::new();
    for series in &trend.series {
        let title = match trend.series.len() {
            1 if series.quantity == Quantity::WakeupLatency => String::new(),
            _ => format!("{}: ", series.quantity),
        };
        for figure in figures(series) {
            let changed = figure.steps.is_some_and(|steps| !steps.is_empty());
            let sentence = wrapped(&format!("{title}{}", headline(&figure)), WIDTH, "  ");
            let _ = writeln!(out, "{}", if changed { style.strong(&sentence) } else { sentence });
        }
    }
    for series in &trend.series {
        let _ = write!(out, "\n{}{}", domain::caption(trend.time_domain), table(series));
    }
    let differences = trend.differences.iter().map(|d| &d.message);
    for (i, note) in differences.chain(&trend.notes).enumerate() {
        let mark = style.warn("!");
        let gap = if i == 0 { "\n" } else { "" };
        let _ = writeln!(out, "{gap} {mark} {}", wrapped(&clean(note, 600), WIDTH - 4, "   "));
    }
    let _ = write!(out, "\n{}", basis(trend, style));
    out
}

/// A figure of a series.
struct Figure<'a> {
    name: String,
    /// `None` where nothing can be said of its changes.
    steps: Option<&'a [Step]>,
    unclear: &'a [Unclear],
}

fn figures(series: &Series) -> [Figure<'_>; 2] {
    let max = name_of_max(series.count, &series.runs);
    [
        Figure {
            name: "p99.9".into(),
            steps: series.p999.as_deref(),
            unclear: &series.p999_unclear,
        },
        Figure { name: max, steps: series.max.as_deref(), unclear: &series.max_unclear },
    ]
}

/// `p99.9 changed once: 1.52 × from night-08 on (p = 0.001), and perhaps from night-14 on.`
fn headline(Figure { name, steps, unclear }: &Figure) -> String {
    let Some(steps) = steps else { return format!("{name}: whether it changed is not known.") };
    let text: Vec<String> = steps
        .iter()
        .map(|step| {
            let run = clean(&step.after, 80);
            format!("{} from {run} on ({})", step.ratio_in_words(), probability(step.p_value))
        })
        .collect();
    let text = text.join(", ") + &perhaps(unclear);
    match steps.len() {
        0 => format!("{name}: no change found."),
        1 => format!("{name} changed once: {text}."),
        2 => format!("{name} changed twice: {text}."),
        n => format!("{name} changed {} times: {text}.", grouped(n as u64)),
    }
}

/// `, and perhaps from night-14 on`: behind changes that are certain; empty if there are no others.
pub(crate) fn perhaps(unclear: &[Unclear]) -> String {
    let runs: Vec<String> =
        unclear.iter().map(|it| format!("from {} on", clean(&it.after, 80))).collect();
    if runs.is_empty() { String::new() } else { format!(", and perhaps {}", runs.join(", ")) }
}

fn table(series: &Series) -> String {
    let of_p999: Vec<_> = series.runs.iter().map(RunFigures::p999_range_ns).collect();
    let of_max: Vec<_> = series.runs.iter().map(RunFigures::max_of_count_range_ns).collect();
    let p999 = Column::of(&of_p999, &series.p999, &series.p999_unclear);
    let max = Column::of(&of_max, &series.max, &series.max_unclear);
    let max_name = name_of_max(series.count, &series.runs);
    let head = ["run", "p99.9", "", "", &max_name, "", ""];
    let mut rows = vec![head.map(String::from).to_vec()];
    let all = series.runs.len() <= MOST_LISTED;
    for (at, run) in series.runs.iter().enumerate() {
        if all || p999.is_next_to_a_change(at) || max.is_next_to_a_change(at) {
            let label = clean(&run.label, 36);
            rows.push([&[label][..], &p999.cells(at), &max.cells(at)].concat());
        }
    }
    let others = (series.runs.len() + 1 - rows.len()) as u64;
    let more = counted(others, "more run");
    columns(&rows, true)
        + &if others == 0 { String::new() } else { format!(" {more} without a change\n") }
}

/// A figure over the runs.
struct Column<'a> {
    /// The least and the largest value in ns that each run can have.
    values: &'a [Option<[u64; 2]>],
    largest: u64,
    steps: &'a [Step],
    unclear: &'a [Unclear],
}

impl<'a> Column<'a> {
    fn of(
        values: &'a [Option<[u64; 2]>],
        steps: &'a Option<Vec<Step>>,
        unclear: &'a [Unclear],
    ) -> Self {
        let largest = values.iter().flatten().map(|[_, most]| *most).max().unwrap_or(0);
        Self { values, largest, steps: steps.as_deref().unwrap_or_default(), unclear }
    }

    fn is_next_to_a_change(&self, at: usize) -> bool {
        let unclear = self.unclear.iter().map(|unclear| unclear.at);
        let mut changes = self.steps.iter().map(|step| step.at).chain(unclear);
        changes.any(|change| change == at || change == at + 1)
    }

    /// The value, its bar, which is that of the largest possible value, and the change that begins here, `?` if it is
    /// unclear.
    fn cells(&self, at: usize) -> [String; 3] {
        let is_unclear = self.unclear.iter().any(|unclear| unclear.at == at);
        let change = match self.steps.iter().find(|step| step.at == at) {
            Some(step) => {
                let (arrow, bound) =
                    if step.ratio >= 1.0 { ('↑', "≥ ") } else { ('↓', "≤ ") };
                let bound = step.ratio_within.map_or("", |_| bound);
                format!("{arrow} {bound}{}", times(step.ratio))
            }
            None => if is_unclear { "?" } else { "" }.into(),
        };
        let value = self.values[at];
        let bar = value.map_or_else(|| " ".repeat(BAR), |[_, most]| bar(most, self.largest));
        [quantity::within(value), bar, change]
    }
}

/// A bar as long as a value's part of the largest, to an eighth of a character.
fn bar(value: u64, largest: u64) -> String {
    let eighths = u128::from(value) * (8 * BAR as u128) / u128::from(largest.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(0).min(8 * BAR);
    format!("{:<BAR$}", blocks(eighths))
}

/// How the changes were found.
fn basis(trend: &Trend, style: Style) -> String {
    let longest = trend.series.iter().map(|series| series.runs.len()).max().unwrap_or(0);
    let how = match permutations(longest, trend.alpha_per_figure()) {
        Some(drawn) => {
            format!("{} permutations each, --seed {}", grouped(drawn as u64), trend.seed)
        }
        None => "all orders of the runs".into(),
    };
    let mut lines = vec![format!(
        "Change points: E-divisive, {how}; false positive rate {} per series.",
        percent(trend.alpha)
    )];
    lines.extend(domain::caveats(trend.time_domain, trend.explained).map(Into::into));
    lines.iter().map(|line| format!(" {}\n", style.faint(&wrapped(line, WIDTH - 2, " ")))).collect()
}

#[cfg(test)]
mod tests;
