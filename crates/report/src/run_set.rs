//! Runs that are shown together, each with a name of its own.

use std::borrow::Cow;

use wakescope_core::limit::Limit;
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::units::SpanNs;

use crate::style::clean;

mod merge;

pub use merge::merged;

/// The most curves that are shown together: nobody tells more of them apart.
pub const MOST_CURVES: usize = 64;

/// A run, or several of the same kind as one.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Its name in legends. From a path or a record, so anything.
    pub label: String,
    /// The run; of several, what they have together.
    pub run: Cow<'a, Run>,
    /// How many runs that is.
    pub runs: usize,
}

impl<'a> Entry<'a> {
    /// One run.
    pub fn of(label: &str, run: &'a Run) -> Self {
        Self { label: label.into(), run: Cow::Borrowed(run), runs: 1 }
    }

    /// Its name, safe to show, and of how many runs it is: `6.1-cloud none, 10 runs`.
    pub(crate) fn name(&self) -> String {
        let label = clean(&self.label, 80);
        let label = if label.trim().is_empty() { "run".into() } else { label };
        match self.runs {
            0 | 1 => label,
            runs => format!("{label}, {runs} runs"),
        }
    }
}

/// A line at a time that wakeups should not be later than.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is: `p99.9 ≤ 100 µs`.
    pub label: String,
    /// The time.
    pub at_ns: u64,
    /// The share that may be later; `None` if nothing may.
    pub share: Option<f64>,
}

impl Line {
    /// Nothing may be later than `at`.
    pub fn at(at: SpanNs) -> Self {
        Self { label: at.to_string(), at_ns: at.0, share: None }
    }

    /// That of a limit.
    pub fn of(limit: &Limit) -> Self {
        Self {
            label: limit.to_string(),
            at_ns: limit.above.0,
            share: limit.percentile.map(|p| p.tail()),
        }
    }
}

/// Runs to be shown together.
#[derive(Clone, Debug, Default)]
pub struct RunSet<'a> {
    /// What it is about, in the user's words; empty for none.
    pub title: String,
    /// The runs; all in the same time domain.
    pub entries: Vec<Entry<'a>>,
    /// Limits, each once.
    pub lines: Vec<Line>,
}

impl<'a> RunSet<'a> {
    /// These, with the limits that they were held to.
    pub fn of(entries: Vec<Entry<'a>>) -> Self {
        let mut run_set = Self { title: String::new(), entries, lines: Vec::new() };
        let limits: Vec<Line> = run_set
            .entries
            .iter()
            .flat_map(|e| &e.run.plan.fail_above)
            .filter_map(|asked| Some(Line::of(&asked.parse().ok()?)))
            .collect();
        limits.into_iter().for_each(|line| run_set.add(line));
        run_set
    }

    /// Adds a line, unless it is there, or there are as many as a picture bears.
    pub fn add(&mut self, line: Line) {
        const MOST: usize = 12;
        if self.lines.len() < MOST && !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    /// The time domain of all.
    pub fn domain(&self) -> TimeDomain {
        self.entries.first().map_or(TimeDomain::Real, |e| e.run.time_domain)
    }

    /// Whether a tracer followed the wakeups of any of them.
    pub(crate) fn is_explained(&self) -> bool {
        self.entries.iter().any(|entry| entry.run.explanation.is_some())
    }

    /// The first two that must not be in one picture, and why.
    pub fn fault(&self) -> Option<String> {
        let first = self.entries.first()?;
        let other = self.entries.iter().find(|e| e.run.time_domain != first.run.time_domain)?;
        Some(format!(
            "{} is in {} time and {} in {} time",
            first.name(),
            domain_name(first.run.time_domain),
            other.name(),
            domain_name(other.run.time_domain),
        ))
    }
}

pub(crate) fn domain_name(domain: TimeDomain) -> &'static str {
    match domain {
        TimeDomain::Real => "real",
        TimeDomain::Virtual => "virtual",
        TimeDomain::Simulated => "simulated",
    }
}

/// A thread's name in tables: its CPU; of another program's, where that is not known, its number.
pub(crate) fn thread_name(run: &Run, number: usize) -> String {
    match (run.threads.get(number).and_then(|t| t.cpu), &run.source) {
        (Some(cpu), _) => format!("CPU {cpu}"),
        (None, Some(_)) => format!("#{number}"),
        (None, None) => "any CPU".into(),
    }
}
