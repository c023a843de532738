//! Why a record cannot be read.

use serde::Deserialize;

use super::SCHEMA;

/// Why a run record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Not JSON, or not shaped as a run.
    #[error("this is not a complete run record: {0}")]
    Malformed(serde_json::Error),
    /// Another schema than this version reads.
    #[error(
        "the record has schema `{0}`, this wakescope reads `{SCHEMA}`; \
         use the version that wrote it, or a newer one"
    )]
    Schema(String),
    /// The schema of an earlier version.
    #[error(
        "the record has schema `{schema}`: it was measured with an earlier version of \
         wakescope, and this one reads `{SCHEMA}`"
    )]
    Earlier {
        /// Which.
        schema: String,
        /// What made the record.
        made_by: MadeBy,
    },
    /// JSON of the right shape that contradicts itself.
    #[error("the record contradicts itself: {0}")]
    Inconsistent(String),
}

/// The command that made a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeBy {
    /// `wakescope measure`
    Measure,
    /// `wakescope explain`
    Explain,
    /// `wakescope import`
    Import,
}

/// Schemas of earlier versions.
const EARLIER: [&str; 1] = ["wakescope.run/1"];

/// What is read first, on its own: the record of another version need not have the shape that we know.
#[derive(Deserialize)]
#[serde(expecting = "an object with a schema")]
pub(super) struct Head {
    schema: String,
    #[serde(default)]
    explanation: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    source: Option<serde::de::IgnoredAny>,
}

impl Head {
    /// Why a record that begins so cannot be read, if it cannot.
    pub(super) fn fault(&self) -> Option<RunError> {
        let made_by = match (&self.source, &self.explanation) {
            (Some(_), _) => MadeBy::Import,
            (None, Some(_)) => MadeBy::Explain,
            (None, None) => MadeBy::Measure,
        };
        let schema: String = self.schema.chars().take(80).collect();
        match self.schema.as_str() {
            SCHEMA => None,
            earlier if EARLIER.contains(&earlier) => Some(RunError::Earlier { schema, made_by }),
            _ => Some(RunError::Schema(schema)),
        }
    }
}

impl RunError {
    /// What to do about it, if anything but to use another record.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Earlier { made_by: MadeBy::Measure, .. } => {
                Some("measure again with `wakescope measure`")
            }
            Self::Earlier { made_by: MadeBy::Explain, .. } => {
                Some("measure again with `wakescope explain`")
            }
            Self::Earlier { made_by: MadeBy::Import, .. } => {
                Some("import the other program's file again with `wakescope import`")
            }
            Self::Malformed(_) | Self::Schema(_) | Self::Inconsistent(_) => None,
        }
    }
}
