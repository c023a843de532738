//! cyclictest of rt-tests: text, samples, JSON.
//!
//! Bucket k holds what is from k to below k + 1. After a late wakeup it skips all expiries that have
//! passed, without counting them.

use wakescope_core::plan::ProbePolicy;
use wakescope_core::source::{Omission, Quantity};

use super::command::Command;
use super::draft::Draft;
use super::{About, ImportError, Unit, unit};
use crate::parts::Extremes;

pub(super) mod json;
pub(super) mod text;
pub(super) mod verbose;

/// The minimum of a thread that has no sample, or none below it.
const NO_MINIMUM: u64 = 1_000_000;

/// Whether a line is of the list that `--spike` adds: `T: 0 Spike:      64: TS:  53612989842`, and how many
/// there are, as `spikes = 819`.
fn is_of_spikes(line: &str) -> bool {
    let of_thread = line.strip_prefix("T:").and_then(|rest| rest.split_once(" Spike:"));
    let number = |text: &str| super::lines::number(text.trim()).is_some();
    let times = of_thread.and_then(|(_, rest)| rest.split_once(": TS:"));
    match (of_thread, times) {
        (Some((thread, _)), Some((value, at))) => number(thread) && number(value) && number(at),
        _ => line.strip_prefix("spikes = ").is_some_and(number),
    }
}

/// How the extremes of a thread with this minimum take part in its mean.
fn extremes(min: u64) -> Extremes {
    if min == NO_MINIMUM { Extremes::MaximumOnly } else { Extremes::Samples }
}

fn draft(format: &str, about: &About) -> Draft {
    Draft::new("cyclictest", format, about, Quantity::WakeupLatency, Omission::Skipped)
}

/// The unit of a text, as far as anything in it tells.
#[derive(Default)]
struct UnitSeen {
    found: Option<(Unit, &'static str)>,
}

impl UnitSeen {
    /// Takes a line that may hold the command line: after a shell's prompt, or in a comment.
    fn take(&mut self, line: &str) {
        // Nearly all lines are rows, and say nothing.
        if line.contains("cyclictest") {
            let is_name = |word: &&str| *word == "cyclictest" || word.ends_with("/cyclictest");
            let mut words = line.split_ascii_whitespace();
            let has_options = words.by_ref().any(|w| is_name(&w))
                && words.next().is_some_and(|next| next.starts_with('-'));
            if let Some(at) = line.find("cyclictest").filter(|_| has_options) {
                let command = Command::new(&line[at..], VALUED);
                let ns = command.has('N', "nsecs");
                self.note(if ns { Unit::Ns } else { Unit::Us }, "its command line states it");
            }
        }
    }

    /// Takes a thread's line. With `-N`, its columns are wider: `Act:%8ld`, else `Act:%5ld`.
    fn take_columns(&mut self, line: &str) {
        let field = |from: &str, to: &str| {
            let (_, rest) = line.split_once(from)?;
            Some(rest.split_once(to)?.0)
        };
        let unit = |field: &str| match (field.len(), field.starts_with(' ')) {
            (8, true) => Some(Unit::Ns),
            (5, _) => Some(Unit::Us),
            _ => None,
        };
        let fields = [field("Act:", " Avg:"), field("Avg:", " Max:")].map(|f| unit(f?));
        if let [Some(a), Some(b)] = fields {
            if a == b {
                self.note(a, "the width of a thread's columns shows it");
            }
        }
    }

    /// A command line tells more than the width of columns.
    fn note(&mut self, unit: Unit, by: &'static str) {
        if self.found.is_none() || by.contains("command") {
            self.found = Some((unit, by));
        }
    }

    /// The unit in ns: as something in the file tells, as the user says, or as it is assumed.
    fn unit_ns(&self, draft: &mut Draft, about: &About) -> Result<u64, ImportError> {
        const WHY: &str = "cyclictest counts in µs unless it is given -N";
        match self.found {
            Some((unit, by)) => unit::stated(about, unit, by),
            None => Ok(draft.assumed_unit(about, Unit::Us, WHY)),
        }
    }
}

/// Short options of cyclictest that take a value.
pub(super) const VALUED: &str = "aAbcdDFhHilopty";

/// What a priority says of the policy: without one it is `SCHED_OTHER`.
fn policy_of(priority: u64) -> Option<ProbePolicy> {
    (priority == 0).then_some(ProbePolicy::Other)
}

/// A priority that is one.
fn priority(of: u64) -> Option<u8> {
    u8::try_from(of).ok().filter(|p| (1..=99).contains(p))
}

/// What is wrong with a thread, said of that thread.
fn of_thread(number: usize, why: impl std::fmt::Display) -> ImportError {
    ImportError::new(format!("thread {number}: {why}"))
}
