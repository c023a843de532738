//! Which preemption model a kernel runs, and how that is known.

use serde::{Deserialize, Serialize};

/// A kernel's preemption model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// Kernel code gives up the CPU only where it asks to (`cond_resched`) or sleeps.
    None,
    /// As `none`, and wherever it might sleep (`might_sleep`).
    Voluntary,
    /// Anywhere but in sections that forbid it.
    Full,
    /// As `full` for real-time tasks; ordinary tasks wait for the tick.
    Lazy,
    /// As `full`, and most locks and interrupt handlers can be preempted too.
    Rt,
    /// There is no evidence.
    #[default]
    Unknown,
}

impl std::fmt::Display for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::Full => "full",
            Self::Lazy => "lazy",
            Self::Rt => "RT",
            Self::Unknown => "unknown",
        })
    }
}

/// What one source says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The file, or what else it comes from.
    pub source: String,
    /// What it says about the model, in a few words.
    pub says: String,
}

/// The model and how it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preemption {
    /// The model that the strongest evidence names.
    pub model: Model,
    /// All evidence, the strongest first.
    pub evidence: Vec<Evidence>,
    /// Where sources contradict each other, or a setting is ignored; a sentence each.
    pub conflicts: Vec<String>,
}
