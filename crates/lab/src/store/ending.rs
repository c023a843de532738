//! How a guest's run ended.

use std::fmt;

use serde::{Deserialize, Serialize};
use wakescope_report::style::clean;

/// The most characters of a reason or of a line of evidence.
const LONGEST: usize = 400;
/// The most lines of evidence.
const MOST_LINES: usize = 60;

/// How a guest's run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "kebab-case")]
pub enum Ending {
    /// The guest did what was asked, and its results are in the folder.
    Measured,
    /// There is no result.
    Failed(Failed),
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// What happened.
    pub kind: FailureKind,
    /// The same in a sentence, with what is known of the cause.
    pub reason: String,
    /// The log's decisive lines.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// What kept a guest from giving a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The guest's kernel panicked.
    Panic,
    /// The guest's kernel reported a fault in itself.
    Oops,
    /// The guest started anew.
    Reboot,
    /// The guest had not ended after the virtual time that it was given.
    VirtualTimeLimit,
    /// The guest's program could not do what was asked.
    Refused,
    /// The guest ended without a result.
    NoResult,
    /// The guest had not ended after the host's time that it was given.
    HostTimeLimit,
    /// The emulator could not be started, or ended by itself or by a signal.
    Emulator,
    /// There was no room for what the guest wrote.
    DiskFull,
    /// The lab was asked to end.
    Cancelled,
    /// A fault in the lab itself.
    Lab,
}

impl FailureKind {
    /// Whether it follows from the recipe, and would be the same if it were run again. What comes
    /// from the host says nothing about the kernel, and is never kept.
    pub fn repeats(self) -> bool {
        match self {
            Self::Panic
            | Self::Oops
            | Self::Reboot
            | Self::VirtualTimeLimit
            | Self::Refused
            | Self::NoResult => true,
            Self::HostTimeLimit | Self::Emulator | Self::DiskFull | Self::Cancelled | Self::Lab => {
                false
            }
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Panic => "panic",
            Self::Oops => "oops",
            Self::Reboot => "reboot",
            Self::VirtualTimeLimit => "virtual time limit",
            Self::Refused => "refused",
            Self::NoResult => "no result",
            Self::HostTimeLimit => "host time limit",
            Self::Emulator => "emulator",
            Self::DiskFull => "disk full",
            Self::Cancelled => "cancelled",
            Self::Lab => "fault in the lab",
        })
    }
}

impl Failed {
    /// A failure without evidence.
    pub fn new(kind: FailureKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), evidence: Vec::new() }
    }

    /// The failure with the log's decisive lines.
    #[must_use]
    pub fn with_evidence(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines);
        self
    }

    /// The failure, short enough to be kept and safe to be shown: a guest can write anything.
    pub(crate) fn bounded(self) -> Self {
        let reason = clean(&self.reason, LONGEST);
        let lines = self.evidence.iter().take(MOST_LINES);
        Self { kind: self.kind, reason, evidence: lines.map(|l| clean(l, LONGEST)).collect() }
    }
}

impl From<Failed> for Ending {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

impl Ending {
    /// Whether it would be the same if it were run again.
    pub fn repeats(&self) -> bool {
        match self {
            Self::Measured => true,
            Self::Failed(failed) => failed.kind.repeats(),
        }
    }

    /// Why there is no result.
    pub fn failed(&self) -> Option<&Failed> {
        match self {
            Self::Measured => None,
            Self::Failed(failed) => Some(failed),
        }
    }

    pub(crate) fn bounded(self) -> Self {
        match self {
            Self::Measured => Self::Measured,
            Self::Failed(failed) => Self::Failed(failed.bounded()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_written_as_they_are_read() {
        let panic = Failed::new(FailureKind::VirtualTimeLimit, "it hangs")
            .with_evidence(["last line".to_string()]);
        for (ending, want) in [
            (Ending::Measured, r#"{"ending":"measured"}"#),
            (
                panic.into(),
                r#"{"ending":"failed","kind":"virtual-time-limit","reason":"it hangs","evidence":["last line"]}"#,
            ),
        ] {
            let text = serde_json::to_string(&ending).unwrap();
            assert_eq!(text, want);
            assert_eq!(serde_json::from_str::<Ending>(&text).unwrap(), ending);
        }
    }

    #[test]
    fn what_a_guest_wrote_is_cut_and_made_harmless() {
        let flood = (0..1_000).map(|_| "\x1b[2J".repeat(1_000));
        let failed = Failed::new(FailureKind::Oops, "\x07".repeat(1_000)).with_evidence(flood);
        let failed = failed.bounded();
        assert_eq!(failed.evidence.len(), MOST_LINES);
        assert!(failed.evidence.iter().all(|l| l.chars().count() <= LONGEST + 1));
        assert!(!failed.reason.contains('\x07') && !failed.evidence[0].contains('\x1b'));
    }
}
