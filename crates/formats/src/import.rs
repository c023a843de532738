//! Results of other programs, read into runs.
//!
//! What a file states is kept to the last sample; what it cannot tell is listed as unknown in the
//! run's [`Source`](wakescope_core::source::Source), and what would have to be guessed is refused.
//! Counts that a file states twice must agree. Memory is bounded whatever the size of the file.

use std::fmt;
use std::io::BufRead;

use wakescope_core::budget::{Budget, Exceeded};
use wakescope_core::run::Run;

mod blocks;
mod command;
mod counts;
mod cyclictest;
mod detect;
mod draft;
mod frame;
mod hdr;
mod jitterdebugger;
mod json;
mod lines;
mod metered;
mod oslat;
mod own;
mod perf_sched;
mod realfeel;
mod rt_tests;
mod rteval;
mod rtla;
mod schbench;
mod statement;
mod stress_ng;
mod tally;
#[cfg(test)]
mod tests;
mod unit;

pub use detect::{HEAD_BYTES, Head, detect};
pub use jitterdebugger::unit_of_results;

/// The most CPUs, or threads that are on one each, of a file: the most that Linux can be built for.
const MOST_CPUS: u64 = 8_192;

/// The most rows of a histogram of cyclictest's: its own limit.
const MOST_ROWS: u64 = 1_000_000;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// cyclictest's text: a histogram (`-h`, `-H`), or the lines of its threads (`-q`).
    CyclictestText,
    /// cyclictest's samples as text (`-v`).
    CyclictestVerbose,
    /// cyclictest's `--json`.
    CyclictestJson,
    /// jitterdebugger's `results.json`.
    JitterdebuggerJson,
    /// jitterdebugger's `samples.raw`.
    JitterdebuggerRaw,
    /// The text of `rtla timerlat hist`.
    Timerlat,
    /// The text of `rtla osnoise hist`.
    Osnoise,
    /// oslat's text.
    OslatText,
    /// oslat's `--json`.
    OslatJson,
    /// rteval's `summary.xml`.
    Rteval,
    /// schbench's text.
    SchbenchText,
    /// schbench's JSON.
    SchbenchJson,
    /// What `stress-ng --cyclic` prints.
    StressNg,
    /// realfeel's histogram.
    Realfeel,
    /// An interval log of HdrHistogram (`.hlog`).
    HdrLog,
    /// A percentile distribution of HdrHistogram (`.hgrm`).
    HdrPercentiles,
    /// The table of `perf sched latency`.
    PerfSched,
}

impl Format {
    /// All of them, each with the word that names it, as in `--from`.
    pub const ALL: [(&'static str, Self); 17] = [
        ("cyclictest", Self::CyclictestText),
        ("cyclictest-verbose", Self::CyclictestVerbose),
        ("cyclictest-json", Self::CyclictestJson),
        ("jitterdebugger", Self::JitterdebuggerJson),
        ("jitterdebugger-raw", Self::JitterdebuggerRaw),
        ("rtla-timerlat", Self::Timerlat),
        ("rtla-osnoise", Self::Osnoise),
        ("oslat", Self::OslatText),
        ("oslat-json", Self::OslatJson),
        ("rteval", Self::Rteval),
        ("schbench", Self::SchbenchText),
        ("schbench-json", Self::SchbenchJson),
        ("stress-ng", Self::StressNg),
        ("realfeel", Self::Realfeel),
        ("hlog", Self::HdrLog),
        ("hgrm", Self::HdrPercentiles),
        ("perf-sched", Self::PerfSched),
    ];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::ALL.iter().find(|(_, format)| format == self).map_or("", |(word, _)| word))
    }
}

/// What the numbers of a file that does not say so are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
}

impl Unit {
    fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ns => "ns",
            Self::Us => "µs",
            Self::Ms => "ms",
        })
    }
}

/// What is known of a file beside what is in it, and what it may cost.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Its name.
    pub file: String,
    /// The unit of its numbers, where somebody knows.
    pub unit: Option<Unit>,
    /// What may be kept of it and done with it. It grows while the file is read.
    pub budget: Budget,
}

/// A run that was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// What sets it apart from the others in the same file: `irq`, `thread`. Empty if there is only
    /// one.
    pub name: String,
    /// The run.
    pub run: Run,
}

/// Why a file cannot be read, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportError {
    /// The line, counted from 1; `None` if it is not about a line. Of binary files, nothing.
    pub line: Option<u64>,
    /// The column in bytes, counted from 1.
    pub column: Option<u64>,
    /// Why. It may quote the file.
    pub why: String,
    /// What can be done; empty if nothing can.
    pub remedy: String,
}

impl ImportError {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), ..Self::default() }
    }

    fn at(line: u64, column: usize, why: impl Into<String>) -> Self {
        Self { line: Some(line), column: Some(column as u64 + 1), ..Self::new(why) }
    }

    fn try_this(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, "line {line}, column {column}: ")?,
            (Some(line), None) => write!(f, "line {line}: ")?,
            _ => {}
        }
        f.write_str(&self.why)
    }
}

impl std::error::Error for ImportError {}

impl From<String> for ImportError {
    fn from(why: String) -> Self {
        Self::new(why)
    }
}

impl From<&str> for ImportError {
    fn from(why: &str) -> Self {
        Self::new(why)
    }
}

impl From<std::io::Error> for ImportError {
    fn from(e: std::io::Error) -> Self {
        Self::new(format!("it cannot be read: {e}"))
    }
}

impl From<Exceeded> for ImportError {
    fn from(exceeded: Exceeded) -> Self {
        Self::new(exceeded.to_string()).try_this(Exceeded::REMEDY)
    }
}

/// Reads all runs of a file of a known format, in the file's own order. There is at least one. A file
/// that exceeds its budget is refused whole.
pub fn read(
    format: Format,
    from: &mut dyn BufRead,
    about: &About,
) -> Result<Vec<Imported>, ImportError> {
    let from: &mut dyn BufRead = &mut metered::Metered::new(from, &about.budget);
    if from.fill_buf()?.is_empty() {
        return Err(ImportError::new("it is empty (0 bytes)"));
    }
    match format {
        Format::CyclictestText => cyclictest::text::read(from, about).map(only),
        Format::CyclictestVerbose => cyclictest::verbose::read(from, about).map(only),
        Format::CyclictestJson => cyclictest::json::read(from, about).map(only),
        Format::JitterdebuggerJson => jitterdebugger::read_json(from, about).map(only),
        Format::JitterdebuggerRaw => jitterdebugger::read_raw(from, about).map(only),
        Format::Timerlat => rtla::read(from, about, rtla::Tracer::Timerlat),
        Format::Osnoise => rtla::read(from, about, rtla::Tracer::Osnoise),
        Format::OslatText => oslat::read_text(from, about).map(only),
        Format::OslatJson => oslat::read_json(from, about).map(only),
        Format::Rteval => rteval::read(from, about).map(only),
        Format::SchbenchText => schbench::read(from, about),
        Format::SchbenchJson => Err(schbench::refuse_json()),
        Format::StressNg => stress_ng::read(from, about).map(only),
        Format::Realfeel => realfeel::read(from, about).map(only),
        Format::HdrLog => hdr::log::read(from, about),
        Format::HdrPercentiles => hdr::percentiles::read(from, about).map(only),
        Format::PerfSched => perf_sched::read(from, about).map(only),
    }
}

fn only(run: Run) -> Vec<Imported> {
    vec![Imported { name: String::new(), run }]
}
