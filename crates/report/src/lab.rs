//! The table of a lab: kernels × models × loads, and what follows from it.
//!
//! Everything is made from the record, so that what is printed today can be printed again
//! tomorrow. What differs between repetitions is in [`footer`] only.

use wakescope_core::lab::{Asked, Lab, Settings};
use wakescope_core::plan::{Between, Stimulus};
use wakescope_core::preemption::Model;
use wakescope_core::run::TimeDomain;
use wakescope_core::units::{SpanNs, counted, grouped};

use self::matrix::{Figure, Matrix};
use crate::domain;
use crate::style::{Style, clean};

mod bounds;
mod culprits;
pub(crate) mod figures;
mod headline;
pub(crate) mod html;
mod limits;
mod markdown;
mod matrix;
mod names;
mod notes;
mod sections;
mod text;
mod verdicts;

pub use names::model;

/// The widest line, in characters.
const WIDTH: usize = 100;

/// What has to be said besides where the guest has more than one CPU.
const SEVERAL_CPUS: &str = "The emulator runs the guest's CPUs in turns of about one virtual ms: \
    with more than one CPU, these turns dominate latencies.";

/// How much of the table is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// The largest latencies; p99.9 and p50 as well where all of that fits on a screen.
    #[default]
    Screen,
    /// Every figure.
    All,
}

/// The answer, the table, verdicts, limits and what was published, for a terminal of 100 columns.
pub fn text(lab: &Lab, extent: Extent, style: Style) -> String {
    text::render(lab, extent, style)
}

/// The same as Markdown.
pub fn markdown(lab: &Lab) -> String {
    markdown::render(lab)
}

/// What guests explained, where that was asked for: a name, a title and its lines. Lists without a
/// line are left out.
fn explained(lab: &Lab, matrix: &Matrix) -> Vec<(&'static str, &'static str, Vec<String>)> {
    let mut lists = vec![
        ("culprits", "Causes of the worst wakeups", culprits::lines(matrix)),
        ("bounds", "Bounds from the longest observed parts", bounds::lines(lab, matrix)),
        ("sections", "Longest sections with interrupts or preemption off", sections::lines(lab)),
    ];
    lists.retain(|(_, _, lines)| !lines.is_empty());
    lists
}

/// A title inside of a text: not the first word of a page.
fn uncapitalized(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// What it took this time, on one line: `90 cells, 31 cached, 6 min 12 s`.
pub fn footer(lab: &Lab, spent: Option<SpanNs>) -> String {
    let mut parts = vec![counted(lab.cells.len() as u64, "cell")];
    match lab.cells.iter().filter(|cell| cell.cached).count() {
        0 => {}
        count => parts.push(format!("{} cached", grouped(count as u64))),
    }
    parts.extend(spent.map(in_words));
    format!(" {} · verify: wakescope lab verify", parts.join(", "))
}

/// `45 s`, `6 min 12 s`, `2 h 5 min`.
fn in_words(span: SpanNs) -> String {
    let s = span.0 / 1_000_000_000;
    match (s / 3_600, s / 60 % 60, s % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, min, s) => format!("{min} min {s} s"),
        (h, min, _) => format!("{h} h {min} min"),
    }
}

/// The figures that have a block each: its title, and whether the work stands beside it.
fn matrix_figures(settings: &Settings) -> [(String, Figure, bool); 3] {
    let what = settings.stimulus.quantity();
    [
        (format!("largest {what}, virtual µs"), |cell| cell.max_ns, true),
        (format!("p99.9 of {what}, virtual µs"), |cell| cell.p999_ns, false),
        (format!("p50 of {what}, virtual µs"), |cell| cell.p50_ns, false),
    ]
}

/// A block's title, with what its numbers are.
fn title(matrix: &Matrix, figure: &str, with_work: bool) -> String {
    let seeds = match matrix.seeds {
        1 => " · one seed".into(),
        seeds => format!(" · median of {seeds} seeds (range)"),
    };
    let work = if with_work { " · work per virtual second" } else { "" };
    format!("{figure}{seeds}{work}")
}

/// What one must know to read the table, in a few words each.
fn legend(lab: &Lab, matrix: &Matrix) -> Vec<String> {
    let mut parts = Vec::new();
    let is_ranked = |figure| matrix.view(figure, false).is_ranked();
    if matrix_figures(&lab.settings).into_iter().any(|(_, figure, _)| is_ranked(figure)) {
        parts.push("↓ best, ↑ worst of a load".into());
    }
    parts.extend(units_of_work(lab));
    // A comparison says so itself.
    if lab.comparisons.is_empty() && matrix.lacks(|cell| cell.p999_ns) {
        parts.push("p99.9 takes 2,000 wakeups per cell".into());
    }
    parts.extend(defaults(lab));
    parts
}

/// What the work of each load is counted in.
fn units_of_work(lab: &Lab) -> Option<String> {
    let mut units: Vec<String> = Vec::new();
    for cell in lab.cells.iter().filter(|c| c.throughput.is_some() && !c.unit.is_empty()) {
        let unit = format!("{} in {}", names::load(&cell.load), clean(&cell.unit, 16));
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    (!units.is_empty()).then(|| format!("work: {}", units.join(", ")))
}

/// Which model a kernel runs when it is not told.
fn defaults(lab: &Lab) -> Option<String> {
    let mut kernels_of: Vec<(Model, Vec<String>)> = Vec::new();
    for cell in lab.cells.iter().filter(|cell| cell.asked == Asked::Default.word()) {
        // An RT kernel's default stands in the column RT.
        let Some(model) = cell.model.filter(|&model| model != Model::Rt) else { continue };
        let at = kernels_of.iter().position(|(m, _)| *m == model).unwrap_or(kernels_of.len());
        if at == kernels_of.len() {
            kernels_of.push((model, Vec::new()));
        }
        let kernel = names::kernel(&cell.kernel, 60);
        if !kernels_of[at].1.contains(&kernel) {
            kernels_of[at].1.push(kernel);
        }
    }
    let models = kernels_of.iter().map(|(model, on)| format!("{model} on {}", on.join(", ")));
    let models: Vec<String> = models.collect();
    (!models.is_empty()).then(|| format!("default is {}", models.join("; ")))
}

/// How the cells were run, in a line.
fn settings(lab: &Lab) -> String {
    let settings = &lab.settings;
    let priority = settings.priority.map(|p| format!(" {p}")).unwrap_or_default();
    // The timer is the usual one, and threads are the usual wakers.
    let stimulus = match (settings.stimulus, settings.between) {
        (Stimulus::Timer, _) => String::new(),
        (other, Between::Threads) => format!(" by {other}"),
        (other, Between::Processes) => format!(" by {other} between processes"),
    };
    let what = match settings.stimulus.is_busy() {
        true => format!(
            "{} for {}",
            settings.stimulus,
            SpanNs(settings.samples.saturating_mul(settings.interval_ns))
        ),
        false => format!(
            "{}{stimulus} every {}",
            counted(settings.samples, "wakeup"),
            SpanNs(settings.interval_ns)
        ),
    };
    format!(
        "{what} of virtual time, {}{priority} · {}, {} MIPS · {}",
        settings.policy,
        counted(settings.cpus.into(), "CPU"),
        settings.cpu_mips,
        emulator(&settings.emulator),
    )
}

/// An emulator without its packager's version, which the record has.
fn emulator(banner: &str) -> String {
    let short = banner.split_once(" (").map_or(banner, |(short, _)| short);
    clean(short, 60)
}

/// What virtual time leaves out, and what it has besides the kernel.
fn caveats(lab: &Lab) -> Vec<&'static str> {
    let several = (lab.settings.cpus > 1).then_some(SEVERAL_CPUS);
    domain::caveats(TimeDomain::Virtual, lab.settings.explained).chain(several).collect()
}

/// What was published, safe to print.
fn published(lab: &Lab) -> Vec<String> {
    lab.published.iter().map(|line| clean(line, 500)).collect()
}

/// A blank at which no line is broken, until [`unglued`] makes it an ordinary one.
const GLUE: char = '\u{a0}';

/// `text` without blanks that end no line.
fn glued(text: &str) -> String {
    text.replace(' ', &GLUE.to_string())
}

/// `text` with ordinary blanks only.
fn unglued(text: &str) -> String {
    text.replace(GLUE, " ")
}

/// The longest command that is shown.
const LONGEST_COMMAND: usize = 2_000;

fn repeat(lab: &Lab) -> String {
    clean(&lab.repeat, LONGEST_COMMAND)
}

#[cfg(test)]
mod tests;
