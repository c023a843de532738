//! Why a plan cannot be followed.

use std::fmt;

/// Why a plan cannot be followed. Text of the plan in it is as it was written: it is to be made
/// safe before it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The file is larger than any plan.
    TooLarge,
    /// The file is no UTF-8 text.
    NotText,
    /// No plan of this name comes with wakescope.
    Unknown(String),
    /// It is no TOML, or a key is unknown or holds something else than it should.
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// A value that cannot be.
    Value {
        /// The line, from 1; `None` if it does not come from a file.
        line: Option<usize>,
        /// The key of the plan, or of the option of that name.
        key: &'static str,
        /// What is wrong with it.
        what: String,
        /// What to write instead.
        remedy: String,
        /// Which of a list it is, from 0.
        index: Option<usize>,
    },
}

impl PlanError {
    /// A value that cannot be.
    pub(super) fn value(
        key: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (what, remedy) = (what.into(), remedy.into());
        Self::Value { line: None, key, what, remedy, index: None }
    }

    /// The same, of a list: its entry `at`, from 0.
    pub(super) fn entry(mut self, at: usize) -> Self {
        if let Self::Value { index, .. } = &mut self {
            *index = Some(at);
        }
        self
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::TooLarge => "check that it is a plan, a few lines of TOML".into(),
            Self::NotText => "write the plan as UTF-8 text".into(),
            Self::Unknown(_) => {
                let names: Vec<String> = super::Plan::names().into_iter().map(|n| n.0).collect();
                format!("name one of {}, or the path of a file, as in ./my.toml", names.join(", "))
            }
            Self::Syntax { .. } => "docs/reference/plan.md lists the keys of a plan".into(),
            Self::Value { remedy, .. } => remedy.clone(),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "a plan has at most {} bytes", super::LARGEST_FILE),
            Self::NotText => f.write_str("it is not UTF-8"),
            Self::Unknown(name) => {
                let name: String = name.chars().take(80).collect();
                write!(f, "there is no built-in plan `{name}`")
            }
            Self::Syntax { line, what } => write!(f, "line {line}: {what}"),
            Self::Value { line: Some(line), key, what, .. } => {
                write!(f, "line {line}: {key}: {what}")
            }
            Self::Value { line: None, key, what, .. } => write!(f, "{key}: {what}"),
        }
    }
}

impl std::error::Error for PlanError {}
