//! The run record: `run.json`, documented by docs/reference/run.schema.json.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::audio::Audio;
use crate::distribution::Distribution;
use crate::explain::{
    CauseRow, ComponentTable, Components, Explanation, NetOfSteal, Ranking, Share, Step, TrueShare,
};
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
use crate::stated::Quantile;
use crate::tail::bound::Bound;
pub use crate::time_domain::TimeDomain;
use crate::unknown::{Unknown, keep_unknown};

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

/// The result of one probe thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// The CPU it measured; `null` if it was not bound to one.
    pub cpu: Option<u32>,
    /// Expiries that had no wakeup of their own.
    pub missed: u64,
    /// Samples that were taken but could not be written to the sample file.
    pub lost: u64,
    /// Wakeups on another CPU.
    #[serde(default)]
    pub migrated: u64,
    /// Stimuli that came before the thread slept: they are no wakeups.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_asleep: u64,
    /// Stimuli that were left out, since the waker was late itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// How much later than stated the expiries may have been: the latencies are overstated by that at
    /// most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub due_uncertainty_ns: u64,
    /// Page faults while measuring, minor and major.
    #[serde(default)]
    pub page_faults: u64,
    /// What a loop that never sleeps did; `None` if the probe slept, or the loop has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin: Option<Spin>,
    /// How the kernel's own time stamps divide the wakeup latencies; `None` where it gives none, or the
    /// run has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_stamps: Option<KernelStamps>,
    /// One value per wakeup.
    pub woken: Distribution,
    /// One value per expiry, also of those that a late wakeup swallowed.
    pub expiries: Distribution,
    /// How the times between wakeups deviate from the interval; `None` where there is no interval, or
    /// it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_deviation: Option<IntervalDeviation>,
    /// The largest lateness over the course of the run, per expiry; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maxima: Option<Maxima>,
    /// What came of a virtual sound card; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<Audio>,
    /// Where another program's histogram ended; `None` where it did not or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Overflow>,
}

impl Thread {
    /// Its histograms, in the order in which they are written.
    fn histograms_mut(&mut self) -> impl Iterator<Item = &mut Histogram> {
        let of_intervals = self.interval_deviation.iter_mut();
        let of_intervals = of_intervals.flat_map(|i| [&mut i.longer, &mut i.shorter]);
        let of_audio = self.audio.iter_mut().flat_map(Audio::distributions_mut);
        let own = [&mut self.woken, &mut self.expiries];
        let all = own.into_iter().chain(of_intervals).chain(of_audio);
        all.map(|distribution| &mut distribution.histogram)
    }

    /// All that it has over time, in the order in which a record holds them.
    pub(crate) fn maxima_mut(&mut self) -> impl Iterator<Item = &mut Maxima> {
        let of_audio = self.audio.iter_mut().flat_map(Audio::maxima_mut);
        self.maxima.iter_mut().chain(of_audio)
    }
}

/// What a loop that never sleeps did beside its gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spin {
    /// How often it read the clock.
    pub loops: u64,
    /// From the start of the run to its last reading: gaps within that time are known.
    pub observed_ns: u64,
}

/// The end of another program's histogram, and the samples beyond it, of which only the bounds are
/// known: they are in the last bucket of `woken`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overflow {
    /// Where it ended: it had rows for what is less than that.
    pub from_ns: u64,
    /// How many samples have no row.
    pub count: u64,
}

/// What a load did while wakeups were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Its name, as asked for.
    pub name: String,
    /// Units of work done during the measurement.
    pub work: u64,
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
    /// How long its work was counted, for the verdict on the run.
    #[serde(skip)]
    pub window_ns: u64,
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

/// One late wakeup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Episode {
    /// Where.
    pub cpu: Option<u32>,
    /// When it was due, from the start of the run.
    pub expiry_ns: u64,
    /// How late it was.
    pub wakeup_latency_ns: u64,
    /// Expiries that it swallowed.
    #[serde(default)]
    pub missed: u64,
    /// What it was made of, if it was explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<Components>,
    /// What its time was blamed on, the largest share first, if it was explained. The shares add up to the
    /// wakeup latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blame: Vec<Share>,
    /// What its time truly went to, the largest share first, if a simulation knows that. The shares add up
    /// to the wakeup latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truth: Vec<TrueShare>,
    /// How much of its lateness was stolen by the clock of its CPU, if it was explained; `None` if it
    /// was nothing, or there is no such clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_ns: Option<u64>,
    /// What happened, in order of time, if it was explained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Step>,
    /// Keys that this version does not know. They are kept.
    #[serde(skip)]
    pub other: Unknown,
}

keep_unknown!(Episode);

impl Episode {
    /// What is wrong with its explanation, if anything.
    fn fault(&self) -> Option<String> {
        let latency_ns = self.wakeup_latency_ns;
        let parts = self.components.map(|c| c.checked_total_ns());
        if parts.is_some_and(|sum| sum != Some(latency_ns)) {
            return Some(format!("its components do not add up to {latency_ns} ns"));
        }
        let differs = |shares: Vec<u64>| {
            let sum = shares.iter().try_fold(0_u64, |sum, &ns| sum.checked_add(ns));
            !shares.is_empty() && sum != Some(latency_ns)
        };
        differs(self.blame.iter().map(|share| share.ns).collect())
            .then(|| format!("its shares of blame do not add up to {latency_ns} ns"))
            .or_else(|| {
                differs(self.truth.iter().map(|share| share.ns).collect())
                    .then(|| format!("the shares of its truth do not add up to {latency_ns} ns"))
            })
            .or_else(|| {
                let stolen_ns = self.stolen_ns.filter(|&stolen_ns| stolen_ns > latency_ns)?;
                Some(format!("{stolen_ns} ns of its {latency_ns} ns were stolen"))
            })
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
struct Head {
    schema: String,
    #[serde(default)]
    explanation: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    source: Option<serde::de::IgnoredAny>,
}

impl Head {
    /// Why a record that begins so cannot be read, if it cannot.
    fn fault(&self) -> Option<RunError> {
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

impl Run {
    /// What the values are: what the stimulus gives, unless another program measured something.
    pub fn quantity(&self) -> Quantity {
        self.plan.quantity(self.source.as_ref())
    }

    /// Reads a record and checks that it is consistent.
    pub fn from_json(text: &[u8]) -> Result<Self, RunError> {
        let run = match record_reader::read(text).filter(|run| run.schema == SCHEMA) {
            Some(run) => run,
            None => Self::from_any_json(text)?,
        };
        match run.fault() {
            Some(what) => Err(RunError::Inconsistent(what)),
            None => Ok(run),
        }
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
        let mut threads = self.threads.iter().filter(|t| t.woken.count > 0);
        let first = threads.next()?.interval_deviation.clone()?;
        threads.try_fold(first, |sum, thread| Some(sum.merged(thread.interval_deviation.as_ref()?)))
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

    /// Computes [`Self::summary`] from the threads.
    pub fn summarize(&mut self) {
        let all = self.expiries();
        self.summary = Summary {
            count: all.count,
            missed: self.missed(),
            min_ns: self.threads.iter().filter_map(|t| t.woken.min_ns).min(),
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
        self.fault_of_threads().or_else(of_sum).or_else(|| self.fault_of_explanation())
    }

    fn fault_of_explanation(&self) -> Option<String> {
        let of_table = || self.components.as_ref().and_then(ComponentTable::fault);
        let of_worst = |key: &str, worst: &[Episode]| {
            let mut worst = worst.iter().enumerate();
            worst.find_map(|(i, episode)| Some(format!("{key}worst[{i}]: {}", episode.fault()?)))
        };
        let of_causes = |key: &str, causes: &[CauseRow]| {
            let wrong = |row: &CauseRow| !(0.0..=1.0).contains(&row.share);
            let i = causes.iter().position(wrong)?;
            Some(format!("{key}causes[{i}]: a share of {} is not from 0 to 1", causes[i].share))
        };
        let of_ranking = || {
            let mut rows = self.ranking.iter().flat_map(|ranking| &ranking.rows);
            let wrong = rows.find(|row| !(0.0..=1.0).contains(&row.share))?;
            Some(format!("ranking.rows: a share of {} is not from 0 to 1", wrong.share))
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

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::explain::{Culprit, Frame, StepEvent};
    use crate::finding::Verdict;
    use proptest::prelude::*;

    fn distribution(samples: &[u64]) -> Distribution {
        Distribution {
            count: samples.len() as u64,
            min_ns: samples.iter().min().copied(),
            max_ns: samples.iter().max().copied(),
            max_at_ns: samples.first().copied(),
            sum_ns: samples.iter().fold(0, |sum, &s| sum.saturating_add(s)),
            histogram: Histogram::of(samples.iter().copied()),
            stated: None,
        }
    }

    fn softirq(name: &str) -> StepEvent {
        StepEvent::Softirq { name: name.into() }
    }

    /// A wakeup 40 ns late, and why.
    fn explained(text: &str) -> Episode {
        let share = |ns| Share {
            ns,
            culprit: Culprit::interrupt(text),
            frames: vec![Frame::in_function(text, ns)],
            ..Default::default()
        };
        Episode {
            wakeup_latency_ns: 40,
            components: Some(Components {
                irq_latency_ns: 9,
                sched_duration_ns: Some(31),
                ..Default::default()
            }),
            blame: vec![share(30), share(10)],
            timeline: vec![Step { event: softirq(text), ..Default::default() }],
            ..Default::default()
        }
    }

    /// A run of these samples, with `text` in places where text comes from elsewhere.
    pub(crate) fn run_with(cpus: &[Vec<u64>], text: &str) -> Run {
        let threads = cpus.iter().map(|samples| {
            let d = distribution(samples);
            Thread { cpu: Some(0), woken: d.clone(), expiries: d, ..Default::default() }
        });
        let later = serde_json::json!({"count": 0, "histogram": [], "text": text});
        let mut run = Run {
            schema: SCHEMA.into(),
            id: text.into(),
            started: String::new(),
            duration_ns: 1,
            origin_ns: 0,
            time_domain: TimeDomain::Real,
            seed: 1,
            state: State::Complete,
            host: Host { cmdline: text.into(), ..Default::default() },
            plan: Plan { interval_ns: 1_000_000, ..Default::default() },
            validity: Validity { verdict: Verdict::Valid, findings: Vec::new() },
            threads: threads.collect(),
            worst: vec![explained(text)],
            explanation: Some(Explanation { above: text.into(), ..Default::default() }),
            components: Some(ComponentTable {
                sched_duration: Some(distribution(&[31])),
                ..Default::default()
            }),
            causes: vec![CauseRow {
                culprit: Culprit::interrupt(text),
                share: 1.0,
                ..Default::default()
            }],
            other: serde_json::from_value(serde_json::json!({"later": later})).unwrap(),
            ..Default::default()
        };
        run.summarize();
        run
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(
            cpus in prop::collection::vec(prop::collection::vec(0_u64..1 << 40, 0..20), 0..4),
            text in "\\PC{0,16}",
        ) {
            let run = run_with(&cpus, &text);
            let json = run.to_json();
            prop_assert_eq!(Run::from_json(json.as_bytes()).unwrap(), run);
        }

        #[test]
        fn damaged_records_are_refused_or_consistent(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<bool>(),
        ) {
            let mut json = run_with(&[vec![5_000, 7_000, 7_000]], "x").to_json().into_bytes();
            let at = at.index(json.len());
            if cut { json.truncate(at) } else { json[at] = byte }
            if let Ok(run) = Run::from_json(&json) {
                prop_assert!(!cut && run.threads.iter().all(|t| t.woken.fault().is_none()));
            }
        }
    }

    #[test]
    fn records_of_an_earlier_version_are_refused_with_how_to_make_them_anew() {
        let measure = "measure again with `wakescope measure`";
        for (rest, want) in [
            ("", measure),
            (r#", "explanation": {"modules": 7}"#, "measure again with `wakescope explain`"),
            (r#", "explanation": null"#, measure),
            (r#", "source": {"tool": "x"}"#, "import the other program's file again with"),
        ] {
            let text =
                format!(r#"{{"schema": "wakescope.run/1", "threads": "as they were"{rest}}}"#);
            let e = Run::from_json(text.as_bytes()).unwrap_err();
            assert!(e.remedy().unwrap().starts_with(want), "{rest}: {e:?}");
            let said = e.to_string();
            assert!(said.starts_with("the record has schema `wakescope.run/1`: it was "), "{said}");
            assert!(
                said.ends_with(
                    "earlier version of wakescope, and this one reads `wakescope.run/2`"
                )
            );
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut serde_json::Value), want: &str) {
        let mut json = serde_json::to_value(run_with(&[vec![5_000, 7_000]], "x")).unwrap();
        change(&mut json);
        let e = Run::from_json(json.to_string().as_bytes()).unwrap_err().to_string();
        assert!(e.contains(want), "{e}");
    }

    #[test]
    fn what_cannot_be_trusted_is_refused_with_the_reason() {
        check(
            |j| j["schema"] = "wakescope.run/3".into(),
            "schema `wakescope.run/3`, this wakescope reads `wakescope.run/2`; use the version that",
        );
        check(|j| j["threads"][0]["woken"]["count"] = 3.into(), "threads[0].woken: count is 3");
        check(
            |j| j["threads"][0]["overflow"] = serde_json::json!({"from_ns": 5, "count": 3}),
            "3 samples beyond the histogram, of 2",
        );
        check(
            |j| j["threads"][0]["missed"] = 1.into(),
            "2 expiries are not 2 wakeups and 1 missed",
        );
        check(|j| j["threads"][0]["expiries"]["max_ns"] = 9_000.into(), "outside the last bucket");
        check(|j| j["threads"][0]["cpu"] = "zero".into(), "not a complete run record");
        let many = |j: &mut serde_json::Value| {
            for kind in ["woken", "expiries"] {
                let d = &mut j["threads"][0][kind];
                d["histogram"][0][2] = (u64::MAX - 1).into();
                d["count"] = u64::MAX.into();
            }
            let thread = j["threads"][0].clone();
            j["threads"].as_array_mut().unwrap().push(thread);
        };
        check(many, "add up to more than 2^64");
        check(
            |j| j["worst"][0]["components"]["irq_latency_ns"] = 31.into(),
            "worst[0]: its components",
        );
        check(|j| j["worst"][0]["stolen_ns"] = 1_000_000_000.into(), "1000000000 ns of its");
        check(
            |j| {
                let worst = j["worst"].clone();
                let causes = j["causes"].clone();
                j["net_of_steal"] = serde_json::json!({
                    "above_ns": 1, "above": "1ns", "late": 1, "explained": 1,
                    "late_not_followed": 0, "unexplained_ns": 0, "causes": causes, "worst": worst,
                });
                j["net_of_steal"]["worst"][0]["components"]["irq_latency_ns"] = 31.into();
            },
            "net_of_steal.worst[0]: its components",
        );
        check(
            |j| j["worst"][0]["blame"][1]["ns"] = u64::MAX.into(),
            "worst[0]: its shares of blame",
        );
        check(
            |j| j["components"]["sched_latency"]["count"] = 3.into(),
            "sched_latency: count is 3",
        );
        check(|j| j["components"]["sched_duration"]["count"] = 3.into(), "sched_duration: count");
        check(|j| j["causes"][0]["share"] = 1.5.into(), "causes[0]: a share of 1.5");
        assert!(matches!(Run::from_json(b"{}"), Err(RunError::Malformed(_))));
        assert!(
            Run::from_json("[".repeat(100_000).as_bytes()).is_err(),
            "deep nesting is no crash"
        );
    }
}
