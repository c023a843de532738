//! Runs in the formats of other programs.
//!
//! Other formats have other buckets than ours. Where one of ours lies across an edge of theirs, all
//! of its samples go to the side of the later wakeup: an exported run never looks better than it
//! was. How many samples there are is the same in all of them.

use std::collections::BTreeMap;
use std::fmt;

use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::Bucket;
use wakescope_core::run::{Run, Thread};
use wakescope_core::source::Quantity;

pub mod csv;
pub mod cyclictest;
pub mod cyclictest_json;
pub mod hdr;
pub mod jsonl;
pub mod prometheus;

/// Which of a run's two distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// One value per wakeup: what programs mean that leave missed periods out.
    Woken,
    /// One value per expiry of the grid, missed ones too.
    Expiries,
}

impl Values {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Woken, Self::Expiries];

    fn of(self, thread: &Thread) -> &Distribution {
        match self {
            Self::Woken => &thread.woken,
            Self::Expiries => &thread.expiries,
        }
    }

    /// Those of all threads.
    fn of_all(self, run: &Run) -> Distribution {
        Distribution::of_all(&run.threads, |thread| self.of(thread))
    }

    /// Those of each thread.
    pub fn of_threads(self, run: &Run) -> impl Iterator<Item = &Distribution> {
        run.threads.iter().map(move |thread| self.of(thread))
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Woken => "woken",
            Self::Expiries => "expiries",
        })
    }
}

/// The latest that a sample of `bucket` can have been.
fn latest(bucket: &Bucket, d: &Distribution) -> u64 {
    (bucket.upper - 1).min(latest_of_all(d))
}

/// The latest that any sample can have been, which a file may state a step too low; 0 without samples.
fn latest_of_all(d: &Distribution) -> u64 {
    d.max_range().map_or(0, |(_, high)| high)
}

/// The latest that the least late of all samples can have been, where that is known: some programs do not
/// state it.
fn least(run: &Run, d: &Distribution) -> Option<u64> {
    let (_, high) = d.min_range().filter(|_| run.knows("threads.woken.min_ns"))?;
    Some(high)
}

/// Values and counts that make the same histogram: each bucket's samples as late as they can have
/// been, but for the least late of all where that is known.
fn values_of(d: &Distribution, least: Option<u64>) -> impl Iterator<Item = (u64, u64)> {
    let apart = u64::from(least.is_some());
    let rest =
        d.histogram.buckets().iter().enumerate().map(move |(i, bucket)| {
            (latest(bucket, d), bucket.count - if i == 0 { apart } else { 0 })
        });
    least.map(|min| (min, 1)).into_iter().chain(rest).filter(|&(_, count)| count > 0)
}

/// Of each thread its CPU, or `any`, and how many threads before it have the same: names of two must
/// differ.
fn numbered(run: &Run) -> impl Iterator<Item = (String, u32)> {
    let mut taken = BTreeMap::<Option<u32>, u32>::new();
    run.threads.iter().map(move |thread| {
        let next = taken.entry(thread.cpu).or_default();
        *next += 1;
        (thread.cpu.map_or_else(|| "any".into(), |cpu| cpu.to_string()), *next - 1)
    })
}

/// Nanoseconds in a larger unit, to the nanosecond.
fn exact(ns: u64, unit_ns: u64) -> String {
    let digits = unit_ns.ilog10() as usize;
    format!("{}.{:0digits$}", ns / unit_ns, ns % unit_ns)
}

/// Nanoseconds in µs, to the nanosecond.
fn us(ns: u64) -> String {
    exact(ns, 1_000)
}

/// Nanoseconds in seconds, to the nanosecond.
pub(crate) fn seconds(ns: u64) -> String {
    exact(ns, 1_000_000_000)
}

/// What a file says of itself at its head, which `import` reads again: who wrote it, which values
/// they are, in which time and unit, and what they are where that is no wakeup latency.
fn head(run: &Run, values: Values, unit: &str) -> String {
    let quantity = match run.quantity() {
        Quantity::WakeupLatency => String::new(),
        other => {
            let name = serde_json::to_value(other).unwrap_or_default();
            format!(", quantity {}", name.as_str().unwrap_or("unknown"))
        }
    };
    format!("{}: {values}, {}{unit}{quantity}", writer(), run.time_domain.before_unit())
}

/// Who wrote a file.
fn writer() -> String {
    format!("wakescope {}", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
pub(crate) mod tests;
