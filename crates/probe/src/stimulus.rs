//! What wakes a probe: one file per stimulus, and the loop that all of them share.
//!
//! The loop and all that reads its figures know a stimulus only by its trait: it waits, and tells
//! when the wakeup was due and when the thread woke.

use std::{fmt, io};

use wakescope_core::recorder::Recorder;
use wakescope_core::ring::{Ring, Sample};
use wakescope_core::run;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::sched::ThreadId;

pub mod audio;
pub mod availability;
pub mod card;
pub(crate) mod channel;
pub mod device;
pub mod line;
pub mod place;
pub mod rtc;
pub mod sleep;
pub mod spin;
pub mod timer;
pub mod waker;
pub mod watch;

use crate::stop::Stop;
use place::Place;

/// Waits for one stimulus after the other, in the calling thread. Which it is, a plan names
/// ([`wakescope_core::plan::Stimulus`]).
pub trait WaitForStimulus {
    /// Whether the wakeups come at an interval from which the time between two of them can deviate.
    const HAS_INTERVAL: bool = false;
    /// Prepares the wakeups on `grid`, in place of those before.
    fn begin(&mut self, grid: Grid);
    /// Waits for the next wakeup. The clock is read first thing after it.
    fn wait(&mut self) -> Waited;
    /// How far apart the missed expiries of a wakeup are.
    fn period(&self) -> SpanNs;
    /// The thread or process that wakes this one, if one does.
    fn waker(&self) -> Option<ThreadId> {
        None
    }
    /// What it saw beside its wakeups since [`WaitForStimulus::begin`].
    fn beside(&self) -> Beside {
        Beside::default()
    }
}

/// What a stimulus saw beside its wakeups; nothing of what it does not have.
#[derive(Debug, Default)]
pub struct Beside {
    /// Points of the grid without a stimulus, because what was to cause it was late itself. Not those that
    /// the thread missed as well.
    pub skipped: u64,
    /// Points at which the thread was found awake before there was a stimulus, but for those that it missed.
    pub awake: u64,
    /// How often the waker was found on another CPU than its own.
    pub waker_moved: u64,
    /// How much later than stated the wakeups may have been due: so much less late they were, at most.
    pub due_uncertainty: SpanNs,
    /// What was seen on the line beside answers.
    pub line: Option<line::LineSeen>,
    /// What a loop that never sleeps did.
    pub spin: Option<run::Spin>,
    /// How the kernel's own time stamps divide the wakeup latencies.
    pub kernel_stamps: Option<run::KernelStamps>,
}

/// When stimuli come: at `start`, and from there every `interval`.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// The first point.
    pub start: MonoNs,
    /// From one to the next.
    pub interval: SpanNs,
    /// How many points there are.
    pub points: u64,
}

impl Grid {
    /// The last point.
    #[inline]
    fn last(&self) -> MonoNs {
        let intervals = self.points.saturating_sub(1);
        MonoNs(self.start.0.saturating_add(self.interval.0.saturating_mul(intervals)))
    }

    /// How many of its points whoever serves one at a time has left out at `now`, or will: a whole interval
    /// has passed since they came.
    fn passed(&self, now: MonoNs) -> u64 {
        self.points.min(now.since(self.start).0 / self.interval.0.max(1))
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The thread woke.
    Woken(Wakeup),
    /// The stimulus came before the thread slept. That is no wakeup.
    NotAsleep,
    /// There are no more stimuli.
    Done,
    /// The run is to end.
    Stopped,
    /// No further stimulus can come.
    Lost(Loss),
}

/// Why no further stimulus can come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The process that wakes the probe has ended.
    WakerEnded,
    /// The CPU that the waker is bound to is gone.
    WakerCpuLost(u32),
    /// The last stimulus never arrived.
    NeverArrived,
    /// The call that wakes failed, or the one that waits, with this number of an error.
    Failed(i32),
    /// The sound card failed, with this number of an error, which tells if it is gone.
    CardFailed(i32),
    /// The sound card plays nothing.
    CardStalled,
}

/// `ENODEV`: the device was unplugged, or its driver is gone.
const NO_DEVICE: i32 = 19;

impl Loss {
    /// The finding that it is.
    pub fn code(self) -> &'static str {
        match self {
            Self::WakerEnded | Self::NeverArrived | Self::Failed(_) => "waker-lost",
            Self::WakerCpuLost(_) => "cpu-lost",
            Self::CardFailed(_) | Self::CardStalled => "card-lost",
        }
    }
}

/// Of the call that wakes, or the one that waits.
impl From<io::Error> for Loss {
    fn from(e: io::Error) -> Self {
        Self::Failed(e.raw_os_error().unwrap_or(0))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WakerEnded => f.write_str("the process that wakes the probe has ended"),
            Self::WakerCpuLost(cpu) => {
                write!(f, "CPU {cpu}, which its waker is bound to, is unavailable")
            }
            Self::NeverArrived => f.write_str("a wakeup never arrived"),
            Self::CardStalled => f.write_str("the sound card has stopped playing"),
            Self::CardFailed(NO_DEVICE) => f.write_str("the sound card is gone"),
            Self::CardFailed(errno) => {
                write!(f, "the sound card failed: {}", io::Error::from_raw_os_error(*errno))
            }
            Self::Failed(0) => f.write_str("the other side of the channel is gone"),
            Self::Failed(errno) => {
                write!(
                    f,
                    "a call to wake it or to wait failed: {}",
                    io::Error::from_raw_os_error(*errno)
                )
            }
        }
    }
}

/// A wakeup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// When it was due.
    pub due: MonoNs,
    /// When the thread ran.
    pub woken: MonoNs,
    /// Further stimuli that were due until then.
    pub missed: u64,
}

/// How the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All was measured.
    Done,
    /// It was told to stop.
    Stopped,
    /// The CPU went away before the wakeup due then, from the start of the run.
    CpuLost(SpanNs),
    /// No further stimulus could come after the one due then, from the start of the run.
    StimulusLost(SpanNs, Loss),
}

/// Waits for each wakeup, `most` at most, and records how late it came, times from `origin`. A wakeup that
/// was due before `stop` is recorded however late it comes.
///
/// Nothing here allocates, locks, prints or fails. The only system calls are the wait, before it that
/// which arms a watchdog, if somebody looks on, and after it that which tells whether a probe that
/// another thread wakes has slept.
#[inline]
pub fn sample<S: WaitForStimulus>(
    stimulus: &mut S,
    place: &mut impl Place,
    most: u64,
    origin: MonoNs,
    recorder: &Recorder,
    samples: Option<&Ring>,
    stop: &Stop,
) -> Ending {
    let period_ns = stimulus.period().0;
    let mut left = most;
    let mut last = None;
    let mut last_due_ns = 0;
    while left > 0 {
        let Wakeup { due, woken, missed } = match stimulus.wait() {
            Waited::Woken(wakeup) => wakeup,
            Waited::NotAsleep => {
                recorder.count_not_asleep();
                continue;
            }
            Waited::Done => return Ending::Done,
            Waited::Stopped => return Ending::Stopped,
            Waited::Lost(loss) => return Ending::StimulusLost(SpanNs(last_due_ns), loss),
        };
        if stop.is_before(due) {
            return Ending::Stopped;
        }
        let missed = stop.cut_missed(missed, due, SpanNs(period_ns));
        let due_ns = due.since(origin).0;
        last_due_ns = due_ns;
        if !place.is_home() {
            if !place.go_home() {
                return Ending::CpuLost(SpanNs(due_ns));
            }
            recorder.count_migration();
        }
        let late_ns = woken.0.checked_sub(due.0).unwrap_or_else(|| {
            recorder.count_early();
            0
        });
        recorder.record(due_ns, late_ns, missed, period_ns);
        if S::HAS_INTERVAL {
            if let Some(last) = last.replace(woken.0) {
                let deviation_ns = woken.0.wrapping_sub(last).wrapping_sub(period_ns);
                // Negative where the wakeup before was the later one.
                #[allow(clippy::cast_possible_wrap)]
                recorder.record_deviation(due_ns, deviation_ns as i64);
            }
        }
        if let Some(ring) = samples {
            ring.push(Sample { due_ns, late_ns });
        }
        left -= 1;
    }
    Ending::Done
}

#[cfg(test)]
mod stopped;
#[cfg(test)]
mod tests;
