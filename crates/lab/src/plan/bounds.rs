//! What a plan may hold.

use wakescope_core::plan::{Between, Family, ProbePolicy, Rate};
use wakescope_core::units::{SpanNs, grouped};

use super::words::{is_margin, shortened};
use super::{Kernels, Plan, PlanError};

/// The most cells of a lab: weeks of computing.
const MOST_CELLS: usize = 100_000;
/// The most entries of a list, where nobody has a use for more.
const LONGEST_LIST: usize = 200;
/// The longest name of a kernel, which may be a path.
const LONGEST_KERNEL: usize = 4_096;
/// The longest line of text, in characters.
const LONGEST_LINE: usize = 500;
const SAMPLES: std::ops::RangeInclusive<u64> = 100..=10_000_000;
const SHORTEST_INTERVAL: SpanNs = SpanNs(10_000);
const LONGEST_INTERVAL: SpanNs = SpanNs(1_000_000_000);
const LONGEST_WARMUP: SpanNs = SpanNs(60_000_000_000);
/// The longest measurement of a cell, in virtual time: a virtual second takes several of the host's.
const LONGEST_CELL: SpanNs = SpanNs(24 * 3_600_000_000_000);

impl Plan {
    /// This plan, if all of it can be.
    pub(super) fn checked(self) -> Result<Self, PlanError> {
        // First, for the search for duplicates takes time with the square of a list's length.
        self.check_sizes()?;
        self.check_texts()?;
        self.check_kernels()?;
        self.check_models()?;
        self.check_loads()?;
        self.check_probe()?;
        if !is_margin(self.margin) {
            return Err(PlanError::value(
                "margin",
                format!("{} is not from 0 to 10", self.margin),
                "write the smallest relative difference that counts: 0.1 is 10 %",
            ));
        }
        if self.kernel_names().is_empty() {
            // They are still to come, and with them what can be compared.
            return Ok(self);
        }
        self.pairs().map(|_| self)
    }

    fn check_texts(&self) -> Result<(), PlanError> {
        let line = |key, text: &str| match text.chars().count() {
            n if n > LONGEST_LINE => Err(PlanError::value(
                key,
                format!("{n} characters in one line"),
                format!("write at most {LONGEST_LINE}"),
            )),
            _ => Ok(()),
        };
        line("name", &self.name)?;
        line("description", &self.description)?;
        for (at, text) in self.published.iter().enumerate() {
            line("published", text).map_err(|e| e.entry(at))?;
        }
        Ok(())
    }

    fn check_kernels(&self) -> Result<(), PlanError> {
        let Kernels::Named(names) = &self.kernels else { return Ok(()) };
        for (at, name) in names.iter().enumerate() {
            let shown = shortened(name);
            let wrong = |what: String, remedy: &str| {
                Err(PlanError::value("kernels", what, remedy).entry(at))
            };
            if name.is_empty() || name.len() > LONGEST_KERNEL {
                return wrong(
                    format!("`{shown}` is not the name of a kernel"),
                    "write a name or a path",
                );
            }
            if name == "*" {
                return wrong(
                    "`*` means every kernel, but other kernels are listed beside it".into(),
                    "write [\"*\"], or names",
                );
            }
            if name.chars().any(|c| c.is_control() || c == ',') {
                return wrong(
                    format!("`{shown}` holds a comma or a control character"),
                    "give the file another name",
                );
            }
            if names[..at].contains(name) {
                return wrong(format!("`{shown}` is listed twice"), "list each kernel once");
            }
        }
        Ok(())
    }

    fn check_models(&self) -> Result<(), PlanError> {
        let lists = self.preempt_of.values().map(|list| ("preempt_of", list));
        for (key, list) in std::iter::once(("preempt", &self.preempt)).chain(lists) {
            if list.is_empty() {
                let remedy = "write [\"default\"] for the kernel's own default";
                return Err(PlanError::value(key, "no model is listed", remedy));
            }
            if let Some(at) = (1..list.len()).find(|&at| list[..at].contains(&list[at])) {
                let what = format!("`{}` is listed twice", list[at]);
                return Err(PlanError::value(key, what, "list each model once").entry(at));
            }
        }
        match &self.kernels {
            Kernels::Named(names) => match self.preempt_of.keys().find(|k| !names.contains(k)) {
                Some(stray) => Err(PlanError::value(
                    "preempt_of",
                    format!("`{}` is not among the kernels", shortened(stray)),
                    "list it in `kernels`, written the same way, or omit it here",
                )),
                None => Ok(()),
            },
            Kernels::Every if self.preempt_of.is_empty() => Ok(()),
            Kernels::Every => Err(PlanError::value(
                "preempt_of",
                "with kernels = [\"*\"], each kernel runs every model that it has",
                "omit it",
            )),
        }
    }

    fn check_loads(&self) -> Result<(), PlanError> {
        if self.loads.is_empty() {
            let remedy = "write [\"idle\"] to measure without a load";
            return Err(PlanError::value("loads", "no load is listed", remedy));
        }
        match (1..self.loads.len()).find(|&at| self.loads[..at].contains(&self.loads[at])) {
            Some(at) => {
                let what = format!("`{}` is listed twice", self.loads[at]);
                Err(PlanError::value("loads", what, "list each load once").entry(at))
            }
            None => Ok(()),
        }
    }

    fn check_stimulus(&self) -> Result<(), PlanError> {
        let stimulus = self.stimulus;
        let (key, what, remedy) = match stimulus.family() {
            Family::Others => {
                let what = "nothing wakes the probe by itself".to_owned();
                ("stimulus", what, "omit it, or use the stimulus timer")
            }
            Family::Line if self.explain => {
                let what = "a round trip is no wakeup to explain".to_owned();
                ("explain", what, "omit it, or use the stimulus timer")
            }
            Family::Grid if stimulus.policy().is_some_and(|own| own != self.policy) => {
                let what = format!("the stimulus {stimulus} is one of another policy");
                ("policy", what, "omit it, or use the stimulus timer")
            }
            Family::Waker if self.policy == ProbePolicy::Deadline => {
                let what = format!("the policy deadline does not apply to the stimulus {stimulus}");
                ("policy", what, "use fifo, rr or other")
            }
            Family::Waker if self.bound => {
                let what = "a bound is that of wakeups by a timer".to_owned();
                ("bound", what, "omit it, or use the stimulus timer")
            }
            Family::Grid if stimulus.keeps_rate() && Rate::of(self.interval).is_none() => {
                let what = format!(
                    "{} is not the interval of a real-time clock's rate",
                    self.interval.as_argument()
                );
                ("interval", what, "name the rate in its place: rtc_hz = 2048, or --rtc-hz 2048")
            }
            Family::Busy if self.policy != ProbePolicy::Other => {
                let what = format!(
                    "under the policy {}, a loop that never sleeps takes the guest's CPU from \
                     everything else",
                    self.policy
                );
                ("stimulus", what, "use the policy other")
            }
            Family::Card if self.policy == ProbePolicy::Deadline => {
                let what =
                    "the budget of the policy deadline would stop an audio program".to_owned();
                ("policy", what, "use fifo, rr or other")
            }
            Family::Busy if self.explain => {
                let what = "a probe that never sleeps has no wakeups to explain".to_owned();
                ("explain", what, "omit it, or use the stimulus timer")
            }
            Family::Grid | Family::Card | Family::Busy | Family::Line
                if self.between == Between::Processes =>
            {
                let what = format!("no other process wakes the probe by {stimulus}");
                ("between", what, "omit it, or use a stimulus with a waker, such as futex")
            }
            Family::Waker | Family::Grid | Family::Card | Family::Busy | Family::Line => {
                return Ok(());
            }
        };
        Err(PlanError::value(key, what, remedy))
    }

    fn check_probe(&self) -> Result<(), PlanError> {
        let Self { samples, interval, warmup, policy, priority, .. } = self;
        self.check_stimulus()?;
        self.own.check(self)?;
        if !SAMPLES.contains(samples) {
            return Err(PlanError::value(
                "samples",
                format!("{samples} wakeups per cell"),
                "write a number from 100 to 10000000; p99.9 takes 2000",
            ));
        }
        if !(SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(interval) {
            let what = format!("a wakeup every {interval}");
            let remedy = format!("write a time from {SHORTEST_INTERVAL} to {LONGEST_INTERVAL}");
            return Err(PlanError::value("interval", what, remedy));
        }
        if interval.0.saturating_mul(*samples) > LONGEST_CELL.0 {
            let what = format!("emulating {} at {interval} takes days", grouped(*samples));
            return Err(PlanError::value("samples", what, "ask for fewer, or use more seeds"));
        }
        if *warmup > LONGEST_WARMUP {
            let what = format!("{warmup} before each measurement");
            let remedy = format!("write at most {LONGEST_WARMUP}; a virtual second takes several");
            return Err(PlanError::value("warmup", what, remedy));
        }
        match priority {
            Some(_) if !policy.has_priority() => {
                let what = format!("the policy {policy} has no priority");
                Err(PlanError::value("priority", what, "omit it, or use fifo or rr"))
            }
            Some(1..=99) => Ok(()),
            Some(priority) => {
                let what = format!("{priority} is not a real-time priority");
                Err(PlanError::value("priority", what, "write a number from 1 to 99"))
            }
            None if policy.has_priority() => {
                let what = format!("the policy {policy} needs a priority");
                Err(PlanError::value("priority", what, "write a number from 1 to 99"))
            }
            None => Ok(()),
        }
    }

    fn check_sizes(&self) -> Result<(), PlanError> {
        let lists = [
            ("kernels", self.kernel_names().len()),
            ("loads", self.loads.len()),
            ("compare", self.compare.len()),
            ("published", self.published.len()),
            ("fail_above", self.fail_above.len()),
        ];
        if let Some((key, len)) = lists.into_iter().find(|&(_, len)| len > LONGEST_LIST) {
            let remedy = format!("list at most {LONGEST_LIST}");
            return Err(PlanError::value(key, format!("{len} entries"), remedy));
        }
        match self.cell_count() {
            count if count > MOST_CELLS => Err(PlanError::value(
                "seeds",
                format!("{} cells in all", grouped(count as u64)),
                format!(
                    "use fewer seeds, loads, models or kernels; the limit is {} cells",
                    grouped(MOST_CELLS as u64)
                ),
            )),
            _ => Ok(()),
        }
    }
}
