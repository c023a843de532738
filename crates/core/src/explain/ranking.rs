//! Late time by something else than causes: whose code or which tasks took it, whatever the cause.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::frame::Function;
use super::task::NamedTask;

/// What late time is ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Each thread that ran.
    Pid,
    /// Tasks that ran, those of one name, policy and priority together.
    Task,
    /// Functions of the kernel.
    Function,
    /// Modules of the kernel, its own code as one.
    Module,
}

impl By {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pid, Self::Task, Self::Function, Self::Module];

    /// As in records and on the command line: `pid`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pid => "pid",
            Self::Task => "task",
            Self::Function => "function",
            Self::Module => "module",
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let by = Self::ALL.into_iter().find(|by| by.name() == text);
        by.ok_or_else(|| "write pid, task, function or module".into())
    }
}

/// What a row of a ranking is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// A function of the kernel.
    Function(Function),
    /// All code of a module.
    Module {
        /// Its name; `None` for the kernel itself.
        name: Option<String>,
    },
    /// A thread; without a pid all of its name, policy and priority.
    Task(NamedTask),
    /// Time that belongs to none of those that were asked for, by its cause.
    Cause {
        /// Which.
        cause: Cause,
    },
    /// All those that are too small for a row of their own, and what a later version knows.
    #[serde(other)]
    Others,
}

/// Late time by subjects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// What it is ranked by.
    pub by: By,
    /// How many late wakeups it is of.
    pub wakeups: u64,
    /// Whether these are all late wakeups of the run. Otherwise it is of the worst ones, which alone a
    /// record holds one by one.
    pub complete: bool,
    /// The largest share first, unexplained time last.
    pub rows: Vec<RankingRow>,
}

/// The time of one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankingRow {
    /// What the row is about.
    pub subject: Subject,
    /// In how many of the wakeups it has a share.
    pub episodes: u64,
    /// Its shares together, nanoseconds.
    pub total_ns: u64,
    /// Its largest share of one wakeup, nanoseconds.
    pub worst_ns: u64,
    /// Of the lateness of all these wakeups, 0 to 1. All rows together make 1.
    pub share: f64,
}
