//! What a command line says instead of a plan.

use std::str::FromStr;

use wakescope_core::explain::Above;
use wakescope_core::lab::Asked;
use wakescope_core::limit::Limit;
use wakescope_core::plan::{Between, ProbePolicy, Rate, Stimulus};
use wakescope_core::units::SpanNs;
use wakescope_stats::cells::parse_limit;

use super::{CpuSpeed, Kernels, LoadSet, Plan, PlanError, Seeds};

/// What is said instead of a plan, or without one. `None` leaves the plan's word, or the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Kernels by name or path; `*` alone for every one that can be had.
    pub kernels: Option<Vec<String>>,
    /// Models, of every kernel: the plan's [`Plan::preempt_of`] goes too.
    pub preempt: Option<Vec<Asked>>,
    /// Loads.
    pub loads: Option<Vec<LoadSet>>,
    /// Seeds.
    pub seeds: Option<Seeds>,
    /// Wakeups per cell.
    pub samples: Option<u64>,
    /// What wakes the probe.
    pub stimulus: Option<Stimulus>,
    /// Whether a thread that wakes the probe is one of its own process.
    pub between: Option<Between>,
    /// Period of the grid of wakeups, in virtual time.
    pub interval: Option<SpanNs>,
    /// The rate of a real-time clock, in place of an interval.
    pub rtc_hz: Option<Rate>,
    /// Time before the measurement, in virtual time.
    pub warmup: Option<SpanNs>,
    /// How fast the guest's CPU is.
    pub cpu: Option<CpuSpeed>,
    /// The probe's scheduling policy.
    pub policy: Option<ProbePolicy>,
    /// Its priority.
    pub priority: Option<u8>,
    /// Pairs to compare, as in `none:full`; an empty list compares nothing.
    pub compare: Option<Vec<String>>,
    /// By what share a figure must differ to count.
    pub margin: Option<f64>,
    /// Limits.
    pub fail_above: Option<Vec<Limit>>,
    /// Whether guests explain their late wakeups.
    pub explain: Option<bool>,
    /// Which wakeups are late.
    pub above: Option<Above>,
    /// Whether guests that explain measure sections, too.
    pub sections: Option<bool>,
    /// Whether guests that explain compose a bound.
    pub bound: Option<bool>,
    /// How many of the most delayed wakeups each record lists.
    pub worst: Option<u16>,
}

impl Plan {
    /// This plan, with what `overrides` say instead.
    ///
    /// # Errors
    /// If the two together are no plan: most often because a pair that the plan compares is no
    /// longer in it.
    pub fn with(mut self, overrides: &Overrides) -> Result<Self, PlanError> {
        /// Takes over what is said.
        fn take<T: Clone>(own: &mut T, said: &Option<T>) {
            if let Some(said) = said {
                own.clone_from(said);
            }
        }
        if let Some(kernels) = &overrides.kernels {
            self.kernels = Kernels::of(kernels.clone());
            let kept = self.kernel_names().to_vec();
            self.preempt_of.retain(|kernel, _| kept.contains(kernel));
        }
        if overrides.preempt.is_some() {
            self.preempt_of.clear();
        }
        take(&mut self.preempt, &overrides.preempt);
        take(&mut self.loads, &overrides.loads);
        take(&mut self.seeds, &overrides.seeds);
        take(&mut self.samples, &overrides.samples);
        take(&mut self.stimulus, &overrides.stimulus);
        take(&mut self.between, &overrides.between);
        self.take_interval(overrides.interval, overrides.rtc_hz)?;
        take(&mut self.warmup, &overrides.warmup);
        take(&mut self.cpu, &overrides.cpu);
        take(&mut self.compare, &overrides.compare);
        take(&mut self.margin, &overrides.margin);
        take(&mut self.fail_above, &overrides.fail_above);
        take(&mut self.explain, &overrides.explain);
        take(&mut self.sections, &overrides.sections);
        take(&mut self.bound, &overrides.bound);
        self.above = overrides.above.or(self.above);
        self.worst = overrides.worst.or(self.worst);
        let own = overrides.stimulus.and_then(Stimulus::policy);
        self.take_policy(overrides.policy.or(own), overrides.priority);
        self.checked()
    }

    /// An interval, or the rate that has one. A stimulus that keeps a rate takes the usual rate if
    /// neither is said and the interval has none.
    pub(super) fn take_interval(
        &mut self,
        interval: Option<SpanNs>,
        rate: Option<Rate>,
    ) -> Result<(), PlanError> {
        let no = |what: &str, remedy: &str| Err(PlanError::value("rtc_hz", what, remedy));
        let keeps_rate = self.stimulus.keeps_rate();
        match (interval, rate) {
            (Some(_), Some(_)) => return no("the interval is set, too", "omit one of them"),
            (_, Some(_)) if !keeps_rate => {
                let what = format!("it does not apply to the stimulus {}", self.stimulus);
                return no(&what, "omit it, or use the stimulus rtc or rtc-grid");
            }
            (Some(interval), None) => self.interval = interval,
            (None, Some(rate)) => self.interval = rate.interval(),
            (None, None) if keeps_rate && Rate::of(self.interval).is_none() => {
                self.interval = Rate::REALFEEL.interval();
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// A policy and a priority go together: a new policy without a priority takes the usual one.
    pub(super) fn take_policy(&mut self, policy: Option<ProbePolicy>, priority: Option<u8>) {
        if let Some(policy) = policy {
            self.policy = policy;
            let usual = self.priority.or(Self::default().priority);
            self.priority = usual.filter(|_| policy.has_priority());
        }
        self.priority = priority.or(self.priority);
    }
}

impl Kernels {
    /// The kernels of a list, in which `*` alone is every one.
    pub(super) fn of(names: Vec<String>) -> Self {
        if names == ["*"] { Self::Every } else { Self::Named(names) }
    }
}

/// Reads each word of a list.
pub(super) fn parse_each<'a, T: FromStr<Err = String>>(
    key: &'static str,
    words: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<T>, PlanError> {
    each(key, words, str::parse)
}

/// Reads each limit of a list.
pub(super) fn parse_limits<'a>(
    words: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Limit>, PlanError> {
    each("fail_above", words, parse_limit)
}

fn each<'a, T>(
    key: &'static str,
    words: impl IntoIterator<Item = &'a str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, PlanError> {
    let read = |(at, word)| parse(word).map_err(|why| from_word(key, &why).entry(at));
    words.into_iter().enumerate().map(read).collect()
}

/// What a word's own parser says: the fault, and after a semicolon the remedy.
pub(super) fn from_word(key: &'static str, why: &str) -> PlanError {
    let (what, remedy) = why.split_once("; ").unwrap_or((why, "see docs/reference/plan.md"));
    PlanError::value(key, what, remedy)
}
