//! What a keeper tells its parent: one line of words per report.

use std::fmt;
use std::str::FromStr;

use wakescope_core::units::{MonoNs, SpanNs};

/// The longest line, which is far below what a pipe takes at once (4,096 bytes): a report is
/// written whole or not at all.
pub(super) const LONGEST: usize = 1024;

/// The longest fault, in characters of at most four bytes.
const LONGEST_FAULT: usize = 240;

/// How reports begin that hold text.
const FAULT: &str = "fault";
const LAST_WORDS: &str = "words";
const REMEDY: &str = "remedy";
const OMISSION: &str = "omits";
const NOT_SAVED: &str = "unsaved";

/// How far the work was at a point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) at: MonoNs,
    pub(super) work: u64,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// Set up, and at work from now on.
    Ready(Reading),
    /// Still there.
    Beat(Reading),
    /// The keeper was stopped for at least so long, and the load with it.
    HeldUp(SpanNs),
    /// The answer to the n-th request, counted from 1.
    Mark(u32, Reading),
    /// The last line that a command said. It may say anything, and is not kept.
    LastWords(String),
    /// What the user can do about the fault that follows.
    Remedy(String),
    /// A part of its work, in one word, that it leaves out, and why.
    Omission(String, String),
    /// Why there will be no more work.
    Fault(String),
    /// Why a file that the user asked for is missing or incomplete. It comes after the end of the work.
    NotSaved(String),
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(r) => write!(f, "ready {} {}", r.at.0, r.work),
            Self::Beat(r) => write!(f, "beat {} {}", r.at.0, r.work),
            Self::HeldUp(span) => write!(f, "held {}", span.0),
            Self::Mark(n, r) => write!(f, "mark {n} {} {}", r.at.0, r.work),
            Self::Fault(text) => write!(f, "{FAULT} {}", one_line(text)),
            Self::LastWords(text) => write!(f, "{LAST_WORDS} {}", one_line(text)),
            Self::Remedy(text) => write!(f, "{REMEDY} {}", one_line(text)),
            Self::NotSaved(text) => write!(f, "{NOT_SAVED} {}", one_line(text)),
            Self::Omission(part, reason) => write!(f, "{OMISSION} {part} {}", one_line(reason)),
        }
    }
}

/// A text may come from a program that the user named: it stays on its line.
fn one_line(text: &str) -> String {
    text.chars().take(LONGEST_FAULT).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A line that is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoReport;

impl FromStr for Report {
    type Err = NoReport;

    fn from_str(line: &str) -> Result<Self, NoReport> {
        let (kind, rest) = line.split_once(' ').ok_or(NoReport)?;
        let shortened = |text: &str| text.chars().take(LONGEST_FAULT).collect();
        let text = || shortened(rest);
        match kind {
            FAULT => return Ok(Self::Fault(text())),
            LAST_WORDS => return Ok(Self::LastWords(text())),
            REMEDY => return Ok(Self::Remedy(text())),
            NOT_SAVED => return Ok(Self::NotSaved(text())),
            OMISSION => {
                let (part, reason) = rest.split_once(' ').ok_or(NoReport)?;
                return Ok(Self::Omission(shortened(part), shortened(reason)));
            }
            _ => {}
        }
        let numbers: Vec<u64> =
            rest.splitn(4, ' ').map(str::parse).collect::<Result<_, _>>().map_err(|_| NoReport)?;
        let reading = |at, work| Reading { at: MonoNs(at), work };
        Ok(match (kind, numbers[..].as_ref()) {
            ("ready", &[at, work]) => Self::Ready(reading(at, work)),
            ("beat", &[at, work]) => Self::Beat(reading(at, work)),
            ("held", &[ns]) => Self::HeldUp(SpanNs(ns)),
            ("mark", &[n, at, work]) => {
                Self::Mark(u32::try_from(n).map_err(|_| NoReport)?, reading(at, work))
            }
            _ => return Err(NoReport),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_survive_the_pipe() {
        let reading = Reading { at: MonoNs(u64::MAX), work: u64::MAX };
        for report in [
            Report::Ready(Reading::default()),
            Report::Beat(reading),
            Report::HeldUp(SpanNs(u64::MAX)),
            Report::Mark(u32::MAX, reading),
            Report::Fault("disk full: /tmp/x".into()),
            Report::Fault(String::new()),
            Report::NotSaved("cannot write /tmp/x: disk full".into()),
            Report::Omission("reclaim".into(), "no cgroup".into()),
            Report::LastWords("make: *** [all] Error 2".into()),
            Report::Remedy("apt-get install make".into()),
        ] {
            let line = report.to_string();
            assert_eq!(line.parse(), Ok(report), "{line}");
        }
    }

    #[test]
    fn hostile_faults_stay_on_a_short_line() {
        let line = Report::Fault(format!("a\nready 1 1\r{}", "😀".repeat(1000))).to_string();
        assert!(line.len() < LONGEST && !line.contains(['\n', '\r']), "{line}");
        assert!(matches!(line.parse(), Ok(Report::Fault(text)) if text.starts_with("a ready")));
    }

    #[test]
    fn garbage_is_no_report() {
        for line in [
            "",
            " ",
            "ready",
            "ready 1",
            "ready 1 2 3",
            "ready -1 2",
            "beat 1 x",
            "held",
            "held x",
            "held 1 2",
            "mark 1 2",
            "mark 99999999999 1 2",
            "mark 1 2 3 4",
            "beat 1 99999999999999999999",
            "what 1 2",
            "omits reclaim",
        ] {
            assert_eq!(line.parse::<Report>(), Err(NoReport), "{line:?}");
        }
    }
}
