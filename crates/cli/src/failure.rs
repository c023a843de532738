//! Why a command could not do what was asked: the thing, the cause, the next step.

use std::fmt;

use wakescope_report::style::clean;
use wakescope_sys::process::open_files_limit;

/// Printed as
///
/// ```text
/// wakescope: cannot run the probe at FIFO 90: operation not permitted
///   this user may not use real-time priorities (RLIMIT_RTPRIO is 0)
///   → run as root, or measure without: --policy other
/// ```
#[derive(Debug)]
pub struct Failure {
    what: String,
    causes: Vec<String>,
    remedies: Vec<String>,
}

/// How the standard library ends the text of EMFILE, too many open files.
const TOO_MANY_FILES: &str = "(os error 24)";

/// What loads call it that need many.
const FILES_LIMIT: &str = "limit of open files";

/// What to do then.
const MORE_FILES: &str =
    "raise the limit of open files: ulimit -n NUMBER (at most ulimit -Hn, unless you are root)";

impl Failure {
    /// What could not be done, with the direct cause: "cannot write x: no space left on device".
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), causes: Vec::new(), remedies: Vec::new() }
    }

    /// What lies behind it.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Whether what happened has these words in it: a load's process tells what it met in words only.
    fn tells(&self, words: &str) -> bool {
        self.causes.iter().chain([&self.what]).any(|text| text.contains(words))
    }

    /// What the user can do.
    #[must_use]
    pub fn try_this(mut self, remedy: impl Into<String>) -> Self {
        self.remedies.push(remedy.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Each is one line, whatever paths and names are in it.
        let line = |text: &str| clean(text, usize::MAX);
        write!(f, "wakescope: {}", line(&self.what))?;
        for cause in &self.causes {
            write!(f, "\n  {}", line(cause))?;
        }
        if self.tells(TOO_MANY_FILES) {
            if let Ok(limit) = open_files_limit() {
                write!(f, "\n  wakescope runs with a limit of {limit} open files (ulimit -n)")?;
            }
        }
        if self.tells(TOO_MANY_FILES) || self.tells(FILES_LIMIT) {
            // Whatever else was to be tried would end the same way.
            return write!(f, "\n  → {MORE_FILES}");
        }
        for remedy in &self.remedies {
            write!(f, "\n  → {}", line(remedy))?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_open_files_have_one_remedy_wherever_they_are_told() {
        let error = std::io::Error::from_raw_os_error(24);
        let fault = "the load `x` died: the limit of open files, 16, is too low";
        for (failure, has_limit) in [
            (Failure::new(format!("cannot start x: {error}")), true),
            (Failure::new("cannot start x").because(error.to_string()), true),
            // Its process may have raised its own limit.
            (Failure::new(fault), false),
        ] {
            let text = failure.try_this("use another directory: --dir DIR").to_string();
            assert_eq!(text.contains("\n  wakescope runs with a limit of "), has_limit, "{text}");
            assert!(text.ends_with(&format!("\n  → {MORE_FILES}")), "{text}");
            assert!(!text.contains("--dir"), "{text}");
        }
        let other = Failure::new("cannot write x: disk full (os error 28)").try_this("make room");
        let want = "wakescope: cannot write x: disk full (os error 28)\n  → make room";
        assert_eq!(other.to_string(), want);
    }
}
