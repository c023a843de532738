//! The run record: `run.json`, documented by docs/reference/run.schema.json.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::explain::{CauseRow, ComponentTable, Explanation, NetOfSteal, Ranking, rows};
use crate::finding::Validity;
use crate::histogram::Histogram;
use crate::host::Host;
use crate::interval_deviation::{DeviationFigures, IntervalDeviation};
pub use crate::kernel_stamps::{KernelStamps, StampedPart};
use crate::limit::Judgement;
use crate::line::Line;
use crate::maxima::Maxima;
use crate::percentile::Percentile;
use crate::plan::Plan;
use crate::record_reader;
use crate::sound_card::SoundCard;
use crate::source::{Quantity, Source};
use crate::starvation::Stall;
use crate::stated::Quantile;
use crate::tail::bound::Bound;
pub use crate::time_domain::TimeDomain;
use crate::unknown::{Unknown, keep_unknown};

mod episode;
mod extent;
mod reading;
mod thread;
mod verdict;

pub use episode::Episode;
pub(crate) use extent::LATE_SENDER_NS;
use reading::Head;
pub use reading::{MadeBy, RunError};
pub use thread::{Overflow, Spin, Thread};

/// The schema that this version writes.
pub const SCHEMA: &str = "wakescope.run/2";

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Still measuring, or killed while it did.
    Running,
    /// Ended early, by a signal or because nothing was left to measure.
    Interrupted,
    /// Did what was asked.
    #[default]
    Complete,
}

/// A run: what was asked, where, what came out, and whether it can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: String,
    /// A name that no other run has.
    pub id: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// How long was measured, from the first expiry to the end of the last.
    pub duration_ns: u64,
    /// `CLOCK_MONOTONIC` at the start of the run, from which all `…_at_ns` and `expiry_ns` count.
    #[serde(default)]
    pub origin_ns: u64,
    /// Which time the figures are in.
    pub time_domain: TimeDomain,
    /// Of everything left to chance: phases of the grid, contents of files.
    pub seed: u64,
    /// How far it has come.
    #[serde(default)]
    pub state: State,
    /// The other program that measured it; `None` if wakescope did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Where.
    pub host: Host,
    /// What was asked.
    pub plan: Plan,
    /// Whether it can be trusted.
    pub validity: Validity,
    /// How it stands to its limits.
    #[serde(default)]
    pub limits: Vec<Judgement>,
    /// Results, one entry per probe thread.
    pub threads: Vec<Thread>,
    /// What the loads did.
    #[serde(default)]
    pub load: Vec<LoadResult>,
    /// The line of round trips; `None` where nothing went over one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Line>,
    /// The sound card of the machine that woke the probe; `None` where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<SoundCard>,
    /// The latest wakeups, worst first.
    #[serde(default)]
    pub worst: Vec<Episode>,
    /// How the run was explained; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// The components of all wakeups that were followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<ComponentTable>,
    /// What made wakeups late, the largest share first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CauseRow>,
    /// The same without the time that the hypervisor stole; `None` if it stole nothing of the late
    /// wakeups, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_of_steal: Option<NetOfSteal>,
    /// The same time by tasks or code, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// Figures that follow from `threads`, for programs that do not want to add up histograms.
    #[serde(default)]
    pub summary: Summary,
    /// Keys that this version does not know. They are kept.
    #[serde(skip)]
    pub other: Unknown,
}

keep_unknown!(Run);

/// What a load did while wakeups were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Its name, as asked for.
    pub name: String,
    /// Units of work done during the measurement.
    pub work: u64,
    /// Whether it may have done more: the load died, and `work` is what it had last reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// What a unit is: `files`, `programs`, `bytes`.
    pub unit: String,
    /// Work per second during the measurement.
    pub per_second: f64,
    /// Work per second before the probe began, for comparison; `null` if that was not seen.
    #[serde(default)]
    pub before_per_second: Option<f64>,
    /// Whether that speed was steady, so that the measurement can be compared with it; `None` if that is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_steady: Option<bool>,
    /// Whether it was alive to the end.
    pub alive: bool,
    /// Why it was not; empty otherwise.
    #[serde(default)]
    pub fault: String,
    /// The last line that a command said before it ended. It may be secret, and no record holds it.
    #[serde(skip)]
    pub last_words: String,
    /// Why a file that it was to write is missing or incomplete, for the verdict on the run.
    #[serde(skip)]
    pub not_saved: Option<String>,
    /// How long its work was counted, for the verdict on the run.
    #[serde(skip)]
    pub window_ns: u64,
    /// The longest time in which it did nothing, for the verdict on the run.
    #[serde(skip)]
    pub stall: Stall,
}

impl LoadResult {
    /// Why it was not alive to the end, with what its command said last.
    pub fn fault_with_last_words(&self) -> String {
        if self.last_words.is_empty() {
            self.fault.clone()
        } else {
            format!("{}: {}", self.fault, self.last_words)
        }
    }
}

/// Figures over all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Expiries.
    pub count: u64,
    /// Expiries without a wakeup of their own.
    pub missed: u64,
    /// Least lateness of a wakeup. (That of an expiry can be anything above 0 where a stall ended
    /// by chance just after one.)
    pub min_ns: Option<u64>,
    /// Largest lateness of an expiry.
    pub max_ns: Option<u64>,
    /// Lateness per expiry at `p50`, `p99`, …; `null` where the samples do not carry it, or where
    /// only an upper bound is known.
    pub percentiles: BTreeMap<String, Option<u64>>,
    /// Upper bounds of the percentiles of which another program's file tells no more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub percentiles_at_most: BTreeMap<String, u64>,
    /// How the times between wakeups deviate from the interval; `None` where that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_deviation: Option<DeviationFigures>,
    /// At 95 %, one expiry later than `max_ns` in each such span is not excluded. Where it is known how
    /// late ones come in bursts, that is counted (see docs/tail.md).
    pub not_excluded_every_ns: Option<u64>,
}

impl Thread {
    /// What stands beside its histograms and does not fit them, once nothing is written any more.
    fn fault_of_ended(&self) -> Option<String> {
        let deviations = self.interval_deviation.iter().flat_map(|d| {
            [("interval_deviation.longer", &d.longer), ("interval_deviation.shorter", &d.shorter)]
        });
        let mut all =
            [("woken", &self.woken), ("expiries", &self.expiries)].into_iter().chain(deviations);
        let of_maxima = || {
            let largest = self.maxima.as_ref()?.largest()?;
            let max = self.expiries.max_ns.unwrap_or(0);
            (largest != max).then(|| {
                format!("maxima: the largest is {largest} ns, but the maximum is {max} ns")
            })
        };
        all.find_map(|(key, d)| Some(format!("{key}: {}", d.fault_of_sum()?))).or_else(of_maxima)
    }
}

impl Run {
    /// What the values are: what the stimulus gives, unless another program measured something.
    pub fn quantity(&self) -> Quantity {
        self.plan.quantity(self.source.as_ref())
    }

    /// Whether the value of this key of the record is one. What the file of another program does not tell
    /// has a value only because each record must have one.
    pub fn knows(&self, key: &str) -> bool {
        !self.source.as_ref().is_some_and(|source| source.lacks(key))
    }

    /// When it began. Empty where nobody knows. The file of another program may not tell; its record then
    /// has a start because each must have one. Virtual and simulated clocks do not tell the date.
    pub fn known_start(&self) -> &str {
        match self.time_domain == TimeDomain::Real && self.knows("started") {
            true => &self.started,
            false => "",
        }
    }

    /// Reads a record and checks that it is consistent. One without a summary gets that of its threads.
    pub fn from_json(text: &[u8]) -> Result<Self, RunError> {
        let mut run = match record_reader::read(text).filter(|run| run.schema == SCHEMA) {
            Some(run) => run,
            None => Self::from_any_json(text)?,
        };
        if let Some(what) = run.fault() {
            return Err(RunError::Inconsistent(what));
        }
        if run.summary == Summary::default() {
            run.summarize();
        }
        Ok(run)
    }

    /// Reads a record as far as its shape goes, or says what is wrong with it.
    fn from_any_json(text: &[u8]) -> Result<Self, RunError> {
        let head: Head = serde_json::from_slice(text).map_err(RunError::Malformed)?;
        match head.fault() {
            Some(error) => Err(error),
            None => serde_json::from_slice(text).map_err(RunError::Malformed),
        }
    }

    /// Lateness per expiry, over all threads.
    pub fn expiries(&self) -> Distribution {
        Distribution::of_all(&self.threads, |thread| &thread.expiries)
    }

    /// The histograms of its threads, in the order in which they are written.
    pub(crate) fn histograms_of_threads_mut(&mut self) -> impl Iterator<Item = &mut Histogram> {
        self.threads.iter_mut().flat_map(Thread::histograms_mut)
    }

    /// All its histograms.
    pub(crate) fn histograms_mut(&mut self) -> impl Iterator<Item = &mut Histogram> {
        let of_threads = self.threads.iter_mut().flat_map(Thread::histograms_mut);
        let of_components = self.components.iter_mut().flat_map(ComponentTable::parts_mut);
        of_threads.chain(of_components.map(|part| &mut part.histogram))
    }

    /// Lateness per wakeup, over all threads.
    pub fn woken(&self) -> Distribution {
        Distribution::of_all(&self.threads, |thread| &thread.woken)
    }

    /// How the times between wakeups deviate from the interval, over all threads; `None` where that was
    /// not recorded of all of them.
    pub fn interval_deviation(&self) -> Option<IntervalDeviation> {
        Thread::interval_deviation_of(&self.threads)
    }

    /// Expiries without a wakeup of their own, over all threads.
    pub fn missed(&self) -> u64 {
        self.threads.iter().fold(0, |sum, t| sum.saturating_add(t.missed))
    }

    /// The largest lateness over time, of all threads together; `None` if it is not known of one of
    /// them.
    pub fn course(&self) -> Option<Maxima> {
        let mut threads = self.threads.iter().filter(|t| t.expiries.count > 0);
        let first = threads.next()?.maxima.clone()?;
        threads.try_fold(first, |sum, thread| Some(sum.merged(thread.maxima.as_ref()?)))
    }

    /// The least lateness of a wakeup, over all threads.
    fn least_woken_ns(&self) -> Option<u64> {
        self.threads.iter().filter_map(|t| t.woken.min_ns).min()
    }

    /// Computes [`Self::summary`] from the threads.
    pub fn summarize(&mut self) {
        let all = self.expiries();
        self.summary = Summary {
            count: all.count,
            missed: self.missed(),
            min_ns: self.least_woken_ns(),
            max_ns: all.max_ns,
            percentiles: Percentile::SHOWN.map(|p| (p.to_string(), all.percentile(p))).into(),
            percentiles_at_most: Percentile::SHOWN
                .into_iter()
                .filter_map(|p| match all.quantile(p)? {
                    Quantile::AtMost(ns) => Some((p.to_string(), ns)),
                    Quantile::Known(_) => None,
                })
                .collect(),
            interval_deviation: self.interval_deviation().and_then(|all| all.figures()),
            not_excluded_every_ns: Bound::of(&all, self.course().as_ref(), self.duration_ns)
                .and_then(|bound| bound.every_ns),
        };
    }

    /// What is wrong with it, if anything: [`Self::from_json`] refuses a record for the same.
    pub fn fault(&self) -> Option<String> {
        let of_sum = || {
            // Whoever adds them up may rely on it.
            let mut counts = self.threads.iter().map(|t| t.expiries.count);
            let sum = counts.try_fold(0_u64, u64::checked_add);
            sum.is_none().then(|| "the threads' counts add up to more than 2^64".into())
        };
        self.fault_of_threads()
            .or_else(of_sum)
            .or_else(|| self.fault_of_summary())
            .or_else(|| self.fault_of_extent())
            .or_else(|| self.fault_of_explanation())
            .or_else(|| Some(format!("validity.{}", self.validity.fault()?)))
            .or_else(|| self.fault_of_ended())
    }

    /// What only holds once nothing is written any more: what is kept beside the histograms fits them. (A
    /// record of a running measurement may have a sum or a late wakeup more.)
    fn fault_of_ended(&self) -> Option<String> {
        if self.state == State::Running {
            return None;
        }
        let of_threads = || {
            let mut all = self.threads.iter().enumerate();
            all.find_map(|(i, thread)| Some(format!("threads[{i}].{}", thread.fault_of_ended()?)))
        };
        let of_worst = || {
            let max = self.threads.iter().filter_map(|t| t.expiries.max_ns).max()?;
            let net = self.net_of_steal.iter().flat_map(|net| &net.worst);
            let all = || self.worst.iter().chain(net.clone());
            let late = all().map(|worst| worst.wakeup_latency_ns).max()?;
            let (swallowed, missed) = (all().map(|worst| worst.missed).max()?, self.missed());
            let is_later = (late > max).then(|| {
                format!("a wakeup of worst is {late} ns late, but the maximum is {max} ns")
            });
            is_later.or_else(|| {
                (swallowed > missed).then(|| {
                    format!("a wakeup of worst swallowed {swallowed} expiries, of {missed} missed")
                })
            })
        };
        let of_deviation = || {
            let said = self.summary.interval_deviation?;
            let has = self.interval_deviation()?.figures()?;
            let far = (said.mean_ns - has.mean_ns).abs() > 1.0;
            let exact = |d: DeviationFigures| (d.count, d.min_ns, d.max_ns);
            (far || exact(said) != exact(has)).then(|| {
                format!("summary.interval_deviation is {said:?}, but its threads have {has:?}")
            })
        };
        let of_causes = || {
            let max = self.threads.iter().filter_map(|t| t.expiries.max_ns).max()?;
            let net = self.net_of_steal.iter().map(|net| ("net_of_steal.", &net.causes));
            let mut all = [("", &self.causes)].into_iter().chain(net);
            let (key, (i, ns)) =
                all.find_map(|(key, causes)| Some((key, rows::later_than(causes, max)?)))?;
            Some(format!("{key}causes[{i}]: {ns} ns of a wakeup, but the maximum is {max} ns"))
        };
        let of_figures = || of_threads().or_else(of_worst).or_else(of_causes);
        of_figures().or_else(of_deviation).or_else(|| self.fault_of_limits())
    }

    /// The figures over all CPUs that are there are those of its threads. (Those that depend on an estimate
    /// may have been computed by another version.)
    fn fault_of_summary(&self) -> Option<String> {
        let Summary { count, missed, min_ns, max_ns, .. } = self.summary;
        let Summary { percentiles, percentiles_at_most, .. } = &self.summary;
        // A record may be without.
        if self.summary == Summary::default() {
            return None;
        }
        let all = self.expiries();
        let of_all = [
            ("count", Some(count), Some(all.count)),
            ("missed", Some(missed), Some(self.missed())),
            ("min_ns", min_ns, self.least_woken_ns()),
            ("max_ns", max_ns, all.max_ns),
        ];
        let of_all = of_all.map(|(key, said, has)| (key.to_owned(), said, has));
        let of_percentiles = Percentile::SHOWN.into_iter().filter_map(|p| {
            let name = p.to_string();
            let known = percentiles.get(&name).copied().flatten();
            let said = known.or_else(|| percentiles_at_most.get(&name).copied())?;
            let (Quantile::Known(has) | Quantile::AtMost(has)) = all.quantile(p)?;
            Some((format!("percentiles.{p}"), Some(said), Some(has)))
        });
        let mut all = of_all.into_iter().chain(of_percentiles);
        let (key, said, has) = all.find(|(_, said, has)| said.is_some() && said != has)?;
        let shown = |figure: Option<u64>| figure.map_or("none".into(), |n| n.to_string());
        Some(format!("summary.{key} is {}, but its threads have {}", shown(said), shown(has)))
    }

    fn fault_of_explanation(&self) -> Option<String> {
        let of_table = || self.components.as_ref().and_then(ComponentTable::fault);
        let of_worst = |key: &str, worst: &[Episode]| {
            let mut worst = worst.iter().enumerate();
            worst.find_map(|(i, episode)| Some(format!("{key}worst[{i}]: {}", episode.fault()?)))
        };
        let of_causes = |key: &str, causes: &[CauseRow]| {
            rows::fault(causes).map(|(i, why)| format!("{key}causes[{i}]: {why}"))
        };
        let of_ranking = || {
            let (i, why) = rows::fault(&self.ranking.as_ref()?.rows)?;
            Some(format!("ranking.rows[{i}]: {why}"))
        };
        let of_net = || {
            let net = self.net_of_steal.as_ref()?;
            let key = "net_of_steal.";
            of_worst(key, &net.worst).or_else(|| of_causes(key, &net.causes))
        };
        let of_sections =
            || self.explanation.as_ref()?.sections.as_ref()?.measured.as_ref()?.fault();
        of_table()
            .or_else(|| of_worst("", &self.worst))
            .or_else(|| of_causes("", &self.causes))
            .or_else(of_net)
            .or_else(of_ranking)
            .or_else(of_sections)
    }

    fn fault_of_threads(&self) -> Option<String> {
        self.threads.iter().enumerate().find_map(|(i, t)| {
            let inside =
                |what, d: &Distribution| d.fault().map(|f| format!("threads[{i}].{what}: {f}"));
            let of_maxima = || {
                let fault = t.maxima.as_ref()?.fault()?;
                Some(format!("threads[{i}].maxima: {fault}"))
            };
            let of_intervals = || {
                let fault = t.interval_deviation.as_ref()?.fault()?;
                Some(format!("threads[{i}].interval_deviation.{fault}"))
            };
            let of_overflow = || {
                let over = t.overflow.filter(|over| over.count > t.woken.count)?;
                Some(format!(
                    "threads[{i}]: {} samples beyond the histogram, of {}",
                    over.count, t.woken.count
                ))
            };
            let of_both = || inside("woken", &t.woken).or_else(|| inside("expiries", &t.expiries));
            let of_audio = || t.audio.as_ref()?.fault().map(|f| format!("threads[{i}].audio.{f}"));
            let of_parts = || of_intervals().or_else(of_maxima).or_else(of_audio);
            of_both().or_else(of_parts).or_else(of_overflow).or_else(|| {
                let expected = t.woken.count.checked_add(t.missed);
                (expected != Some(t.expiries.count)).then(|| {
                    format!(
                        "threads[{i}]: {} expiries are not {} wakeups and {} missed",
                        t.expiries.count, t.woken.count, t.missed
                    )
                })
            })
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
