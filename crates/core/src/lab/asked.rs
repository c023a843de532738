//! The words for a preemption model in a lab.

use std::fmt;
use std::str::FromStr;

/// A preemption model as one asks for it: the word of a cell's `asked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// `preempt=none`.
    None,
    /// `preempt=voluntary`.
    Voluntary,
    /// `preempt=full`.
    Full,
    /// `preempt=lazy`.
    Lazy,
    /// A kernel built with `PREEMPT_RT`.
    Rt,
    /// What the kernel does when not told.
    Default,
}

impl Asked {
    /// Every word, in the order in which tables have their columns.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Voluntary, Self::Full, Self::Lazy, Self::Rt, Self::Default];

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::Full => "full",
            Self::Lazy => "lazy",
            Self::Rt => "rt",
            Self::Default => "default",
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|asked| asked.word() == text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            format!(
                "`{shown}` is not a preemption model; write none, voluntary, full, lazy, rt or default"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for asked in Asked::ALL {
            assert_eq!(asked.to_string().parse(), Ok(asked));
        }
        for bad in ["", "RT", "ful", "none,full", "unknown"] {
            assert!(bad.parse::<Asked>().is_err(), "{bad:?}");
        }
    }
}
