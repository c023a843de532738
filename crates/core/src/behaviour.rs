//! Tells the preemption model from how a kernel behaves (`check --probe`).
//!
//! A *victim* makes one long system call after the other; a *prober* of higher rank on the same
//! CPU sleeps until expiries that fall anywhere. For an expiry inside a call, the question is how
//! much of what was left of that call was done before the prober ran: next to nothing if the call
//! was preempted, all of it if the prober had to wait for the call's end. The answer is a share, so
//! it needs no threshold in time; and the median over many expiries is taken.
//!
//! On a busy CPU, others make the prober late, or the call long, and either looks like an answer of
//! the kernel. So a call is compared with what such a call needs, which the victim's CPU time tells,
//! and a wakeup in a call that others drew out is no evidence (`is_disturbed`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::KernelVersion;
use crate::preemption::Model;
use crate::run::TimeDomain;

/// A long system call. What it does in the kernel was checked in the sources of Linux 6.1 and 6.12,
/// and how it behaves on 6.1 (none, voluntary, full, RT) and 6.18 (none).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// `read` of a full pipe into memory that is there: no point where it would give up the CPU
    /// (`pipe_read`: a mutex is held, page after page is copied and freed).
    PipeRead,
    /// `write` into an empty pipe: a page is allocated for every page written, and every
    /// allocation might sleep (`might_alloc`), but nothing asks to be rescheduled.
    PipeWrite,
    /// `read` of /dev/zero: asks to be rescheduled after every page (`cond_resched` in
    /// `read_iter_zero`). The control: every kernel preempts it.
    ZeroRead,
    /// `fcntl(F_GETLK)` on a file with many record locks: one spinlock is held throughout
    /// (`posix_test_lock`), so only a kernel whose spinlocks sleep preempts it.
    LockScan,
}

/// Who wants the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prober {
    /// A `SCHED_FIFO` prober against a `SCHED_OTHER` victim.
    Realtime,
    /// A `SCHED_OTHER` prober against a `SCHED_IDLE` victim.
    Fair,
}

/// One system call of the victim. Points in time are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimes {
    /// Which.
    pub call: Call,
    /// When it began.
    pub begin_ns: u64,
    /// When it had ended.
    pub end_ns: u64,
    /// CPU time that the kernel charged the victim with meanwhile, nanoseconds.
    pub cpu_ns: u64,
}

/// One wakeup of the prober, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// When it was due.
    pub expiry_ns: u64,
    /// When the prober ran.
    pub woken_ns: u64,
    /// When it went to sleep again.
    pub asleep_ns: u64,
}

/// Wakeups that fell into one kind of call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The call.
    pub call: Call,
    /// Who wanted the CPU.
    pub prober: Prober,
    /// For each undisturbed wakeup the share of the rest of its call that was done first, 0 to 1.
    pub shares: Vec<f64>,
    /// How many more wakeups there were, in calls that others drew out.
    pub disturbed: usize,
}

/// Everything that was observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observations {
    /// The CPU.
    pub cpu: u32,
    /// The series.
    pub series: Vec<Series>,
    /// What could not be observed and why, a sentence each.
    pub obstacles: Vec<String>,
}

/// Sorts `wakeups` into the `calls` that their expiries fell into. Both are in order of time.
///
/// Only expiries in the first 80 % of a call count: later ones leave too little of it to be compared.
pub fn series(call: Call, prober: Prober, calls: &[CallTimes], wakeups: &[Wakeup]) -> Series {
    let own_ns = own_length(call, calls, wakeups);
    let mut series = Series { call, prober, shares: Vec::new(), disturbed: 0 };
    for wakeup in wakeups {
        let next = calls.partition_point(|c| c.begin_ns <= wakeup.expiry_ns);
        let around = calls[..next].last().filter(|c| c.call == call);
        match around.and_then(|around| Rest::of(around, wakeup, own_ns)) {
            Some(rest) if rest.is_disturbed() => series.disturbed += 1,
            Some(rest) => series.shares.push(rest.share()),
            None => {}
        }
    }
    series
}

/// How long such a call takes if nobody else has the CPU, nanoseconds; `None` if others always had it.
///
/// The CPU time of a call shows what other tasks and the hypervisor took from it. Calls with a wakeup in them are left
/// out: a kernel that does not preempt them charges the time from the wakeup on to the task that runs next. Some
/// kernels charge stolen time and interrupts to whoever runs. So the length is that of the shortest tenth.
fn own_length(call: Call, calls: &[CallTimes], wakeups: &[Wakeup]) -> Option<u64> {
    let length = |c: &CallTimes| c.end_ns.saturating_sub(c.begin_ns);
    let has_no_wakeup = |c: &CallTimes| {
        let next = wakeups.partition_point(|w| w.asleep_ns < c.begin_ns);
        wakeups.get(next).is_none_or(|w| w.expiry_ns >= c.end_ns)
    };
    let is_whole = |c: &CallTimes| c.cpu_ns >= length(c) - length(c) / 10;
    let alone = calls.iter().filter(|c| c.call == call && has_no_wakeup(c) && is_whole(c));
    let mut lengths: Vec<u64> = alone.map(length).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 10).copied()
}

/// What was left of a call when the prober's timer expired, without the time in which the prober ran.
struct Rest {
    /// What passed of it before the prober ran, nanoseconds.
    late_ns: u64,
    /// All of it, nanoseconds.
    all_ns: u64,
    /// By how much the call took longer than such a call needs, nanoseconds; all of it if that is not known.
    excess_ns: u64,
}

impl Rest {
    /// `None` if the timer did not expire in the first 80 % of the call, which needs `own_ns`.
    fn of(call: &CallTimes, wakeup: &Wakeup, own_ns: Option<u64>) -> Option<Self> {
        let late_ns = wakeup.woken_ns.checked_sub(wakeup.expiry_ns)?;
        let awake_ns = wakeup.asleep_ns.checked_sub(wakeup.woken_ns)?;
        let before_ns = wakeup.expiry_ns.checked_sub(call.begin_ns)?;
        let after_ns = call.end_ns.checked_sub(wakeup.asleep_ns)?;
        let length_ns = call.end_ns.checked_sub(call.begin_ns)?.checked_sub(awake_ns)?;
        let is_early = |own_ns| u128::from(before_ns) * 5 <= u128::from(own_ns) * 4;
        let rest = Self {
            late_ns,
            all_ns: late_ns.checked_add(after_ns)?,
            excess_ns: length_ns.saturating_sub(own_ns.unwrap_or(0)),
        };
        (own_ns.is_none_or(is_early) && wakeup.expiry_ns < call.end_ns).then_some(rest)
    }

    /// Whether others may have decided when the prober ran. As much as half of the rest cannot turn one answer into
    /// the other. Before the prober ran, it makes the share of a preempted call a half at most. After that, it leaves
    /// a half at least to a call whose end the prober waited for.
    fn is_disturbed(&self) -> bool {
        self.excess_ns > self.all_ns / 2
    }

    /// The share that passed before the prober ran, 0 to 1.
    fn share(&self) -> f64 {
        // Exact below 2^53 ns, which is 104 days.
        #[allow(clippy::cast_precision_loss)]
        let share = self.late_ns as f64 / self.all_ns.max(1) as f64;
        share
    }
}

/// What a series says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The call was preempted.
    Preempted,
    /// The prober waited for the call's end.
    Waited,
    /// Too few wakeups, or neither.
    Undecided,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Preempted => "preempted",
            Self::Waited => "waited for its end",
            Self::Undecided => "undecided",
        })
    }
}

/// Fewer wakeups in a call decide nothing: some of them are disturbed by others.
pub const WAKEUPS_NEEDED: usize = 30;

/// As many are needed in virtual time, where nothing disturbs, and a call is preempted always or
/// never.
pub const WAKEUPS_NEEDED_VIRTUALLY: usize = 6;

/// A series summed up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The call.
    pub call: Call,
    /// Who wanted the CPU.
    pub prober: Prober,
    /// How many undisturbed wakeups fell into such calls.
    pub wakeups: usize,
    /// How many more fell into calls that others drew out. They are no evidence.
    pub disturbed: usize,
    /// The median share of the rest of the call that was done first.
    pub median_share: Option<f64>,
    /// What follows.
    pub answer: Answer,
}

impl Summary {
    fn of(series: &Series, needed: usize) -> Self {
        let mut shares = series.shares.clone();
        shares.sort_by(f64::total_cmp);
        let median_share = shares.get(shares.len() / 2).copied();
        let answer = match median_share {
            Some(share) if shares.len() >= needed && share < 0.25 => Answer::Preempted,
            Some(share) if shares.len() >= needed && share > 0.75 => Answer::Waited,
            _ => Answer::Undecided,
        };
        let Series { call, prober, disturbed, .. } = *series;
        Self { call, prober, wakeups: shares.len(), disturbed, median_share, answer }
    }

    /// Whether it would have wakeups enough to decide if nobody had disturbed them.
    fn is_disturbed(&self, needed: usize) -> bool {
        self.wakeups < needed && self.wakeups + self.disturbed >= needed
    }
}

/// What the behaviour allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The models that behave like this; all of them if nothing can be told.
    pub models: Vec<Model>,
    /// Why nothing, or not more, can be told; empty if there is nothing to add.
    pub reason: String,
    /// The series summed up.
    pub series: Vec<Summary>,
}

const ALL: [Model; 5] = [Model::None, Model::Voluntary, Model::Full, Model::Lazy, Model::Rt];

/// Judges what was observed in a time: in virtual time, less is enough.
pub fn judge(observations: &Observations, time: TimeDomain) -> Judgement {
    let needed = match time {
        TimeDomain::Real => WAKEUPS_NEEDED,
        TimeDomain::Virtual | TimeDomain::Simulated => WAKEUPS_NEEDED_VIRTUALLY,
    };
    let series: Vec<_> = observations.series.iter().map(|s| Summary::of(s, needed)).collect();
    let answer = |call, prober| {
        let of = |s: &&Summary| s.call == call && s.prober == prober;
        series.iter().find(of).map_or(Answer::Undecided, |s| s.answer)
    };
    let realtime = observations.series.iter().any(|s| s.prober == Prober::Realtime);
    let (models, reason) = match realtime {
        true => {
            let answer_to = |call| answer(call, Prober::Realtime);
            of_realtime(answer_to, answer(Call::PipeRead, Prober::Fair))
        }
        false => of_fair(|call| answer(call, Prober::Fair)),
    };
    let mut reason = reason.to_string();
    if !reason.is_empty() && series.iter().any(|s| s.is_disturbed(needed)) {
        reason.push_str(BUSY);
    }
    Judgement { models, reason, series }
}

const BUSY: &str = ". The CPU was busy: other tasks, interrupts or the hypervisor had it during too \
                    many of the wakeups";

/// The models that fit, and why not fewer or why none can be told.
type Fit = (Vec<Model>, &'static str);

/// From a real-time prober; `fair` is the fair one's answer for [`Call::PipeRead`].
fn of_realtime(answer: impl Fn(Call) -> Answer, fair: Answer) -> Fit {
    use Answer::{Preempted, Undecided, Waited};
    match (answer(Call::ZeroRead), answer(Call::PipeWrite), answer(Call::PipeRead)) {
        (Waited, ..) => {
            (ALL.into(), "even the system call that every kernel preempts was not preempted")
        }
        (Undecided, ..) => (
            ALL.into(),
            "too few wakeups occurred during the system call that every kernel preempts",
        ),
        (Preempted, Waited, Waited) => (vec![Model::None], ""),
        (Preempted, Preempted, Waited) => (vec![Model::Voluntary], ""),
        (Preempted, Preempted | Undecided, Preempted) => {
            of_preemptible(answer(Call::LockScan), fair)
        }
        (Preempted, Waited, Preempted) => (ALL.into(), "no known kernel behaves like this"),
        (Preempted, Undecided, Waited) => (vec![Model::None, Model::Voluntary], UNDECIDED),
        (Preempted, Waited, Undecided) => {
            (vec![Model::None], "the test of reading a pipe is inconclusive")
        }
        (Preempted, Preempted, Undecided) => (ALL[1..].into(), UNDECIDED),
        (Preempted, Undecided, Undecided) => {
            (ALL.into(), "the tests of writing and reading a pipe are inconclusive")
        }
    }
}

const UNDECIDED: &str = "the test of one system call is inconclusive";

/// Which of the models that preempt everywhere.
fn of_preemptible(lock_scan: Answer, fair: Answer) -> Fit {
    use Answer::{Preempted, Undecided, Waited};
    match (lock_scan, fair) {
        (Preempted, _) => (vec![Model::Rt], ""),
        (Waited, Preempted) => (vec![Model::Full], ""),
        (Waited, Waited) => (vec![Model::Lazy], ""),
        (Waited, Undecided) => (
            vec![Model::Full, Model::Lazy],
            "the test with an ordinary task is inconclusive, so full and lazy cannot be \
             distinguished",
        ),
        (Undecided, Preempted) => (vec![Model::Full, Model::Rt], UNDECIDED),
        (Undecided, Waited) => (vec![Model::Lazy, Model::Rt], UNDECIDED),
        (Undecided, Undecided) => (vec![Model::Full, Model::Lazy, Model::Rt], UNDECIDED),
    }
}

/// From a fair prober only: a lazy kernel lets it wait in every call, so there is no control.
fn of_fair(answer: impl Fn(Call) -> Answer) -> Fit {
    use Answer::{Preempted, Waited};
    let coarse = "without real-time priority fewer models can be distinguished";
    match (answer(Call::ZeroRead), answer(Call::PipeWrite), answer(Call::PipeRead)) {
        (Preempted, Waited, Waited) => (vec![Model::None], coarse),
        (Preempted, Preempted, Waited) => (vec![Model::Voluntary], coarse),
        (Preempted, Preempted, Preempted) => (vec![Model::Full, Model::Rt], coarse),
        (Waited, Waited, Waited) => (
            vec![Model::Lazy, Model::Rt],
            "no system call was preempted: RT and lazy kernels let ordinary tasks wait, and so do \
             kernels with wakeup preemption disabled",
        ),
        _ => (
            ALL.into(),
            "too few wakeups occurred during the system calls, or the results match no kernel",
        ),
    }
}

/// How behaviour and evidence stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    /// The model that the evidence names behaves like this, and not every model does.
    Agree,
    /// The model that the evidence names does not behave like this.
    Contradict,
    /// Every model is possible, or the evidence names none.
    Undecided,
}

/// The first kernel whose voluntary model is known to leave a pipe's reader alone. In 5.10 every page
/// that it copies goes through `kmap`, which might sleep; in between nobody looked.
const PIPES_READ_THROUGHOUT: KernelVersion = KernelVersion(6, 1);

impl Judgement {
    /// The judgement of a kernel of this version: before 6.1, a call that tells full preemption from
    /// the voluntary model later on is preempted in both.
    #[must_use]
    pub fn of_version(mut self, version: Option<KernelVersion>) -> Self {
        let is_early = version.is_some_and(|version| version < PIPES_READ_THROUGHOUT);
        let full = self.models.iter().position(|&model| model == Model::Full);
        if let Some(full) = full.filter(|_| is_early && !self.models.contains(&Model::Voluntary)) {
            self.models.insert(full, Model::Voluntary);
            let why = "before 6.1, voluntary and full preemption cannot be distinguished";
            self.reason = match self.reason.as_str() {
                "" => why.into(),
                // Why further models fit.
                reason => format!("{reason}; {why}"),
            };
        }
        self
    }

    /// Compares the behaviour with the `model` that the evidence names.
    pub fn agreement(&self, model: Model) -> Agreement {
        if model == Model::Unknown || self.models.len() == ALL.len() {
            Agreement::Undecided
        } else if self.models.contains(&model) {
            Agreement::Agree
        } else {
            Agreement::Contradict
        }
    }
}

#[cfg(test)]
mod tests;
