//! Why a command could not do what was asked: the thing, the cause, the next step.

use std::fmt;
use std::io;

use wakescope_probe::host::{Files, has_seccomp_filter};
use wakescope_report::style::clean;
use wakescope_sys::process::open_files_limit;
use wakescope_sys::sched::{Schedule, schedule_of, this_thread};

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

/// Whether the kernel refused to start a thread or a process, if `error` is what starting one met: EAGAIN.
pub(crate) fn lacks_threads(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Why the kernel starts none, under this schedule, and what to do.
fn no_threads(schedule: Option<Schedule>) -> (&'static str, &'static str) {
    match schedule {
        // sched_fork() of the kernel.
        Some(Schedule::Deadline { .. }) => (
            "the kernel lets no task of SCHED_DEADLINE start threads or processes, and wakescope runs as one",
            "start it without chrt -d; its probes can have that policy: wakescope measure --policy deadline",
        ),
        _ => (
            "this user (ulimit -u), this cgroup (pids.max) or this machine (kernel.threads-max) has reached \
             its limit of threads and processes",
            "raise that limit",
        ),
    }
}

impl Failure {
    /// Adds why no thread or process can be started here (see [`lacks_threads`]), and what to do; `fewer` is
    /// what takes fewer of them, if anything does.
    #[must_use]
    pub(crate) fn lacking_threads(self, fewer: Option<&str>) -> Self {
        let schedule = schedule_of(this_thread()).ok();
        let is_deadline = matches!(schedule, Some(Schedule::Deadline { .. }));
        let (cause, remedy) = no_threads(schedule);
        self.because(cause).try_this(match fewer {
            Some(fewer) if !is_deadline => format!("{remedy}, or {fewer}"),
            _ => remedy.into(),
        })
    }

    /// Adds that a filter of system calls may have refused it, if this process has one. Then no privilege helps.
    #[must_use]
    pub(crate) fn mentioning_filter(self) -> Self {
        self.mentioning_filter_if(has_seccomp_filter(&Files::of_this_machine()))
    }

    fn mentioning_filter_if(self, has_filter: bool) -> Self {
        match has_filter {
            true => self
                .because(
                    "a seccomp filter is in force, which can refuse system calls to root as well: \
                     containers and units of systemd (SystemCallFilter=) have one",
                )
                .try_this("or run it outside of that container or unit"),
            false => self,
        }
    }

    /// What could not be done, with the direct cause: "cannot write x: no space left on device".
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), causes: Vec::new(), remedies: Vec::new() }
    }

    /// What could not be done, with neither causes nor remedies.
    pub(crate) fn summary(&self) -> &str {
        &self.what
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
    use wakescope_core::units::SpanNs;

    #[test]
    fn who_starts_no_threads_is_told_by_its_policy() {
        let period = SpanNs(50_000_000);
        let deadline = Schedule::Deadline { runtime: SpanNs(5_000_000), period };
        for (schedule, cause, remedy) in [
            (Some(deadline), "no task of SCHED_DEADLINE", "start it without chrt -d"),
            (Some(Schedule::Fifo { priority: 1 }), "pids.max", "raise that limit"),
            (None, "ulimit -u", "raise that limit"),
        ] {
            let told = no_threads(schedule);
            assert!(told.0.contains(cause) && told.1.starts_with(remedy), "{told:?}");
        }
        let told =
            Failure::new("x").lacking_threads(Some("measure fewer CPUs: --cpus")).to_string();
        assert!(told.ends_with("\n  → raise that limit, or measure fewer CPUs: --cpus"), "{told}");
        assert!(lacks_threads(&io::Error::from_raw_os_error(11)));
        assert!(!lacks_threads(&io::Error::from_raw_os_error(12)));
    }

    #[test]
    fn a_filter_of_system_calls_is_named_where_there_is_one() {
        let refused = || Failure::new("cannot x").try_this("run as root");
        let told = refused().mentioning_filter_if(true).to_string();
        assert!(told.contains("\n  a seccomp filter is in force"), "{told}");
        assert!(told.ends_with("\n  → or run it outside of that container or unit"), "{told}");
        assert_eq!(refused().mentioning_filter_if(false).to_string(), refused().to_string());
    }

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
