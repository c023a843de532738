//! Counters and histograms for programs that ask for them from time to time, or take them: the formats of
//! Prometheus and OpenTelemetry.

use std::io::{self, Write};

use wakescope_core::harmless::clean;
use wakescope_core::histogram::Bucket;
use wakescope_core::watch::Waits;

pub mod accepted;
pub mod otlp;
pub mod protobuf;
pub mod text;
pub mod watch;

pub use accepted::Form;

/// All values of one name, one for each set of labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name, without `_total`.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// What it means, how exact it is.
    pub help: &'static str,
    /// One for each set of labels.
    pub samples: Vec<Sample>,
}

/// What a family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Waits.
    Histogram,
}

/// A value, and what it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Names and values of its labels.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number of things.
    Number(u64),
    /// A time, ns. It is written in seconds.
    Time(u64),
    /// Waits. They are written in seconds.
    Waits(Waits),
}

impl Family {
    /// A family with one sample without labels.
    fn of(name: &'static str, kind: Kind, help: &'static str, value: Value) -> Self {
        Self { name, kind, help, samples: vec![Sample { labels: Vec::new(), value }] }
    }
}

/// Writes families in one of the forms.
///
/// # Errors
/// Of `out` alone.
pub fn write(families: &[Family], form: Form, out: &mut impl Write) -> io::Result<()> {
    match form {
        Form::Text(format) => text::write(families, format, out),
        Form::Protobuf => families.iter().try_for_each(|family| protobuf::write(family, out)),
    }
}

/// Upper edges of the buckets of classic histograms, ns: powers of two from 1 µs to 17 s. Each is an edge of
/// the scale that waits are counted on.
fn octaves() -> impl Iterator<Item = u64> {
    (10..=34).map(|octave| 1 << octave)
}

/// The largest whole number of nanoseconds below an edge: buckets of Prometheus include their upper edge,
/// ours do not.
fn inclusive(edge: u64) -> u64 {
    edge - 1
}

/// How many waits are shorter than each of these edges, which are edges of the scale.
fn cumulative(
    buckets: &[Bucket],
    edges: impl Iterator<Item = u64>,
) -> impl Iterator<Item = (u64, u64)> {
    let mut buckets = buckets.iter().peekable();
    let mut count = 0_u64;
    edges.map(move |edge| {
        while let Some(bucket) = buckets.next_if(|bucket| bucket.upper <= edge) {
            count = count.saturating_add(bucket.count);
        }
        (edge, count)
    })
}

/// Nanoseconds in seconds, where a form has numbers in place of text.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A label's value that holds nothing that could be something else in a line.
fn label(text: &str) -> String {
    clean(text, usize::MAX)
}

#[cfg(test)]
mod tests;
