//! Why a command could not do what was asked: the thing, the cause, the next step.

use std::fmt;

use wakescope_report::style::clean;

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
        for remedy in &self.remedies {
            write!(f, "\n  → {}", line(remedy))?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
