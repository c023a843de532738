//! What a model gave: a row for each preemption model, in one table.

mod check;
mod doubts;
pub(crate) mod html;
pub(crate) mod locks;
mod measured;
mod timeline;

use std::fmt::Write;

use serde::Serialize;
use wakescope_core::explain::Share;
use wakescope_core::finding::{Finding, Severity, Verdict};
use wakescope_core::percentile::Percentile;
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::stated::Quantile;
use wakescope_core::units::{SpanNs, counted, grouped};
use wakescope_model::Scenario;
use wakescope_model::scenario::Measured;

use crate::domain;
use crate::explain::because_of;
use crate::findings::wrapped;
use crate::lab::figures::{amount, median};
use crate::progress::span_or_dash;
use crate::style::{Style, clean};
use crate::table::columns;

pub use check::check;
pub use measured::{Compared, Figure};
pub use timeline::{Drawn, timeline};

/// The schema of this as JSON.
const SCHEMA: &str = "wakescope.model/1";

/// So many tasks have a column for their work.
const TASKS: usize = 4;

/// What stands above published figures.
const PUBLISHED: &str =
    "published figures: measured elsewhere under other conditions, not simulated";

/// What stands above them where they are compared. The table above is of expiries, as all that
/// wakescope shows of a run; others published one sample for each wakeup.
const BASIS: &str =
    "of wakeups, one sample each; the first table is of expiries, with or without a wakeup";

/// As wide as all that wakescope prints.
const WIDTH: usize = 100;

/// All simulations of one command.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    schema: &'static str,
    /// The scenario's name.
    pub scenario: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// What was published about the same question, a line each.
    pub published: Vec<String>,
    /// See [`wakescope_core::plan::ScenarioPlan`].
    pub checksum: String,
    /// The command that repeats it.
    pub repeat: String,
    /// In the order of models, and of seeds within a model.
    pub runs: Vec<Simulation>,
}

/// One simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Simulation {
    /// The rules of its kernel.
    pub preempt: String,
    /// Of everything left to chance.
    pub seed: u64,
    /// What came of it.
    #[serde(flatten)]
    pub ending: Ending,
}

/// What came of a simulation.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Ending {
    /// There are figures.
    Ok(Box<Figures>),
    /// The simulated kernel broke a rule that all kernels have to keep.
    Broken {
        /// Which, where and when.
        reason: String,
    },
    /// The user ended the command before it began.
    NotRun,
}

/// Figures of a run, in simulated time.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Its folder; `None` if it was not written.
    pub run: Option<String>,
    /// Whether the figures can be trusted.
    pub verdict: Verdict,
    /// Why not, the gravest first: its findings. Of notes only that it was ended early.
    pub findings: Vec<Finding>,
    /// Expiries.
    pub count: u64,
    /// Expiries without a wakeup of their own.
    pub missed: u64,
    /// The least lateness of a wakeup.
    pub min_ns: Option<u64>,
    /// The median lateness of an expiry; `None` if there are too few for it.
    pub p50_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
    /// The 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// The largest.
    pub max_ns: Option<u64>,
    /// How long was simulated.
    pub simulated_ns: u64,
    /// Work of the tasks that count it.
    pub work: Vec<Work>,
    /// The largest share of the latest wakeup's time, if it was explained.
    pub culprit: Option<Share>,
    /// Beside what was published of this model, if anything was.
    pub published: Option<Compared>,
}

/// What a task did.
#[derive(Clone, Debug, Serialize)]
pub struct Work {
    /// Its name.
    pub task: String,
    /// Units of work.
    pub work: u64,
    /// Units in a simulated second.
    pub per_second: f64,
}

impl Figures {
    /// Those of `run`, all CPUs together. `folder` is where it lies.
    pub fn of(run: &Run, folder: Option<String>) -> Self {
        let all = run.expiries();
        let [p50, p99, p999, ..] = Percentile::SHOWN;
        let at = |percentile| match all.quantile(percentile)? {
            Quantile::Known(ns) => Some(ns),
            Quantile::AtMost(_) => None,
        };
        let is_told = |f: &&Finding| f.severity != Severity::Note || f.code == "interrupted";
        let told = run.validity.findings.iter().filter(is_told);
        let work = |load: &wakescope_core::run::LoadResult| Work {
            task: load.name.clone(),
            work: load.work,
            per_second: load.per_second,
        };
        Self {
            run: folder,
            verdict: run.validity.verdict,
            findings: told.cloned().collect(),
            count: all.count,
            missed: run.missed(),
            min_ns: run.summary.min_ns,
            p50_ns: at(p50),
            p99_ns: at(p99),
            p999_ns: at(p999),
            max_ns: all.max_ns,
            simulated_ns: run.duration_ns,
            work: run.load.iter().map(work).collect(),
            culprit: run.worst.first().and_then(|worst| worst.blame.first()).cloned(),
            published: None,
        }
    }

    fn is_invalid(&self) -> bool {
        self.verdict == Verdict::Invalid
    }

    /// The same beside what was published of the run's model.
    #[must_use]
    pub fn beside(mut self, measured: Option<&Measured>, run: &Run) -> Self {
        self.published = measured.and_then(|measured| Compared::of(run, measured));
        self
    }
}

impl Simulation {
    fn figures(&self) -> Option<&Figures> {
        match &self.ending {
            Ending::Ok(figures) => Some(figures),
            Ending::Broken { .. } | Ending::NotRun => None,
        }
    }
}

impl Simulated {
    /// Nothing simulated yet of this scenario, which `repeat` simulates again.
    pub fn new(scenario: &Scenario, repeat: String) -> Self {
        let Scenario { name, about, published, .. } = scenario;
        Self {
            schema: SCHEMA,
            scenario: name.clone(),
            about: about.clone(),
            published: published.clone(),
            checksum: scenario.checksum(),
            repeat,
            runs: Vec::new(),
        }
    }

    /// One object of the schema `wakescope.model/1`.
    ///
    /// # Errors
    /// None that are known: the object holds nothing that JSON cannot.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// A line for each model. Of several seeds, the sum of the samples, the median of each other figure,
    /// the range of the maximum, and how many seeds are invalid.
    pub fn table(&self, style: Style) -> String {
        let mut out = self.title(style);
        let tasks = self.tasks();
        let mut head: Vec<String> =
            ["rules", "samples", "p50", "p99.9", "max"].map(String::from).to_vec();
        let several = self.seeds() > 1;
        if several {
            head.push("(range)".into());
        }
        let mark = self.runs.iter().filter_map(Simulation::figures).any(Figures::is_invalid);
        let mark = several && mark;
        if mark {
            head.push("invalid".into());
        }
        head.extend(tasks.iter().take(TASKS).map(|task| format!("{}/s", clean(task, 15))));
        let mut rows = vec![head];
        rows.extend(self.models().map(|(rules, runs)| row(rules, &runs, &tasks, (several, mark))));
        if rows.len() > 1 {
            let _ =
                write!(out, "\n{}{}", domain::caption(TimeDomain::Simulated), columns(&rows, true));
        }
        if tasks.len() > TASKS {
            let more = counted((tasks.len() - TASKS) as u64, "more task");
            let _ = writeln!(out, " work of {more}: --json");
        }
        out + &self.culprits(style)
            + &self.published(style)
            + &self.measured(style)
            + &self.doubtful(style)
    }

    /// What the latest wakeup of each model waited for, a line each.
    fn culprits(&self, style: Style) -> String {
        let mut out = String::new();
        for (rules, runs) in self.models() {
            let Some(worst) = runs.iter().max_by_key(|run| run.max_ns) else { continue };
            let (Some(max_ns), Some(share)) = (worst.max_ns, &worst.culprit) else { continue };
            let whole = domain::span(max_ns, TimeDomain::Simulated);
            let line = format!(
                "{}: {whole} late: {}",
                clean(rules, 20),
                because_of(Some(share), TimeDomain::Simulated)
            );
            let _ = writeln!(out, "   {}", wrapped(&line, WIDTH - 5, "     "));
        }
        if out.is_empty() {
            return out;
        }
        format!(
            "\n {}\n{out}",
            style.strong("the latest wakeup of each, and the largest share of it")
        )
    }

    /// What was published, under words that set it apart from what was simulated.
    fn published(&self, style: Style) -> String {
        if self.published.is_empty() {
            return String::new();
        }
        let mut out = format!("\n {}\n", style.strong(PUBLISHED));
        for line in &self.published {
            let line = clean(line, 500);
            // Lines that fit keep their blanks: some are tables.
            match line.chars().count() + 2 <= WIDTH {
                true => out.push_str(&format!("  {line}\n")),
                false => out.push_str(&format!("  {}\n", wrapped(&line, WIDTH - 4, "    "))),
            }
        }
        out
    }

    /// The same as numbers, beside what was simulated.
    fn measured(&self, style: Style) -> String {
        let mut models: Vec<(&str, Vec<&Compared>)> = Vec::new();
        for (rules, runs) in self.models() {
            let all: Vec<_> = runs.iter().filter_map(|run| run.published.as_ref()).collect();
            if !all.is_empty() {
                models.push((rules, all));
            }
        }
        match models.is_empty() {
            true => String::new(),
            false => format!("\n {}\n{}", style.strong(BASIS), measured::table(&models)),
        }
    }

    fn title(&self, style: Style) -> String {
        let mut out = format!("{}\n", style.strong(&clean(&self.scenario, 64)));
        if !self.about.is_empty() {
            let _ = writeln!(out, " {}", wrapped(&clean(&self.about, 1_000), WIDTH - 1, " "));
        }
        let seeds = self.seeds();
        if seeds > 1 {
            let _ = writeln!(
                out,
                " medians of {seeds} seeds; the samples are those of all seeds together"
            );
        }
        out
    }

    /// Simulations that have figures or a reason, by model.
    fn models(&self) -> impl Iterator<Item = (&str, Vec<&Figures>)> {
        let mut models: Vec<(&str, Vec<&Figures>)> = Vec::new();
        for run in &self.runs {
            let Some(figures) = run.figures() else { continue };
            match models.last_mut() {
                Some((rules, all)) if *rules == run.preempt => all.push(figures),
                _ => models.push((&run.preempt, vec![figures])),
            }
        }
        models.into_iter()
    }

    fn seeds(&self) -> usize {
        let mut seeds: Vec<u64> = self.runs.iter().map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        seeds.len()
    }

    /// Tasks that count work, in the order of the first run.
    fn tasks(&self) -> Vec<&str> {
        let first = self.runs.iter().find_map(Simulation::figures);
        first.into_iter().flat_map(|f| &f.work).map(|work| work.task.as_str()).collect()
    }

    /// Why figures are missing or cannot be trusted, in a sentence for each kind: the gravest of a
    /// model first, with the number of its seeds and the seeds.
    pub fn doubts(&self) -> Vec<String> {
        doubts::sentences(self)
    }

    /// The same, a line each.
    fn doubtful(&self, style: Style) -> String {
        let line = |doubt: String| format!(" {}\n", style.warn(&wrapped(&doubt, WIDTH - 3, "   ")));
        let out: String = self.doubts().into_iter().map(line).collect();
        if out.is_empty() { out } else { format!("\n{out}") }
    }
}

fn row(
    rules: &str,
    runs: &[&Figures],
    tasks: &[&str],
    (several, mark): (bool, bool),
) -> Vec<String> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let of = |figure: fn(&Figures) -> Option<u64>| {
        middle(runs.iter().map(|f| figure(f).map(|ns| ns as f64))).map(|ns| ns.round() as u64)
    };
    let mut cells = vec![clean(rules, 20), grouped(runs.iter().map(|f| f.count).sum())];
    cells.extend([of(|f| f.p50_ns), of(|f| f.p999_ns), of(|f| f.max_ns)].map(span_or_dash));
    if several {
        let maxima = || runs.iter().filter_map(|f| f.max_ns);
        let range = |(least, most)| format!("({} to {})", SpanNs(least), SpanNs(most));
        cells.push(maxima().min().zip(maxima().max()).map(range).unwrap_or_default());
    }
    if mark {
        // Without them, the medians would be those of the seeds that went well.
        let invalid = runs.iter().filter(|f| f.is_invalid()).count();
        cells.push(format!("{invalid} of {}", runs.len()));
    }
    for task in tasks.iter().take(TASKS) {
        let rates = runs
            .iter()
            .filter_map(|f| Some(f.work.iter().find(|work| work.task == *task)?.per_second));
        cells.push(median(rates.collect()).map_or_else(|| "–".into(), amount));
    }
    cells
}

/// The median of a figure of all seeds; `None` where it is not known of one of them.
fn middle(all: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    median(all.collect::<Option<Vec<f64>>>()?)
}

#[cfg(test)]
mod tests;
