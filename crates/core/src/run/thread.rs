//! What one probe thread measured.

use serde::{Deserialize, Serialize};

use crate::audio::Audio;
use crate::distribution::Distribution;
use crate::histogram::Histogram;
use crate::interval_deviation::IntervalDeviation;
use crate::kernel_stamps::KernelStamps;
use crate::maxima::Maxima;

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
    pub(super) fn histograms_mut(&mut self) -> impl Iterator<Item = &mut Histogram> {
        let of_intervals = self.interval_deviation.iter_mut();
        let of_intervals = of_intervals.flat_map(|i| [&mut i.longer, &mut i.shorter]);
        let of_audio = self.audio.iter_mut().flat_map(Audio::distributions_mut);
        let own = [&mut self.woken, &mut self.expiries];
        let all = own.into_iter().chain(of_intervals).chain(of_audio);
        all.map(|distribution| &mut distribution.histogram)
    }

    /// How the times between wakeups deviate from the interval, over all `threads`; `None` where that was not
    /// recorded of one of them. A thread that woke less than twice has no such time, so that nothing of it is
    /// lacking.
    pub fn interval_deviation_of<'a>(
        threads: impl IntoIterator<Item = &'a Self>,
    ) -> Option<IntervalDeviation> {
        threads.into_iter().try_fold(IntervalDeviation::default(), |sum, thread| {
            match &thread.interval_deviation {
                Some(one) => Some(sum.merged(one)),
                None => (thread.woken.count < 2).then_some(sum),
            }
        })
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

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
fn is_zero(count: &u64) -> bool {
    *count == 0
}
