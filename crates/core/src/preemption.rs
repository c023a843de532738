//! Which preemption model a kernel runs, and how that is known.

use serde::{Deserialize, Serialize};

mod judge;

pub use judge::judge;

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

impl Model {
    /// Whether the kernel leaves its own code for a more urgent task wherever preemption is not off. `None` if that
    /// is not known.
    pub fn preempts_kernel_code(self) -> Option<bool> {
        match self {
            Self::None | Self::Voluntary => Some(false),
            Self::Full | Self::Lazy | Self::Rt => Some(true),
            Self::Unknown => None,
        }
    }
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
    /// How that is known, as the end of a sentence: `preempt=full is on its command line`. Empty if
    /// it is not known.
    pub because: String,
    /// All evidence, the strongest first.
    pub evidence: Vec<Evidence>,
    /// Where sources contradict each other, or a setting is ignored; a sentence each.
    pub conflicts: Vec<String>,
    /// Sources that could not be read.
    pub unread: Vec<Unread>,
}

/// A source that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The file.
    pub source: String,
    /// Why, in a few words: `absent`, `permission denied`, …
    pub why: String,
}

/// What a source of evidence holds, or why it could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The file.
    pub source: String,
    /// Its text, or the reason in a few words.
    pub text: Result<String, String>,
}

impl Default for Reading {
    fn default() -> Self {
        Self { source: String::new(), text: Err("not looked at".into()) }
    }
}

/// All that is known about a kernel before it is judged, the strongest source first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub arch: String,
    /// /sys/kernel/debug/sched/preempt: the words that the kernel knows, the one in force in
    /// parentheses.
    pub debugfs: Reading,
    /// Records of /dev/kmsg; those that say nothing about preemption may be left out.
    pub boot_log: Reading,
    /// /sys/kernel/realtime: 1 on RT kernels.
    pub realtime: Reading,
    /// The kernel's command line.
    pub cmdline: Reading,
    /// The build configuration.
    pub config: Reading,
    /// What the kernel's type information shows; `None` if nobody looked.
    pub btf: Option<(String, Result<Traits, String>)>,
}

/// What a kernel's functions tell about its preemption model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// It has `rt_spin_lock`, the sleeping spinlock of RT kernels.
    pub rt: bool,
    /// It has `sched_dynamic_update`, which switches models.
    pub dynamic: bool,
}
