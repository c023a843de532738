//! An audio program and its sound card: what was asked of it, and what came of it.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::maxima::Maxima;
use crate::recorder::Recorder;
use crate::sound_card::PcmName;

use Ordering::Relaxed;

/// How the card and the program were set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AudioPlan {
    /// How long the card plays a fragment.
    pub fragment_ns: u64,
    /// How many fragments its buffer holds.
    pub fragments: u64,
    /// The share of a fragment that the program computes for it, in parts per million.
    pub share_ppm: u64,
    /// The card of the machine; `None` for a virtual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcm: Option<PcmName>,
}

impl AudioPlan {
    /// Two fragments play while one is written.
    pub const FRAGMENTS: u64 = 3;
    /// A program that needs most of a CPU.
    pub const SHARE_PPM: u64 = 800_000;

    /// The usual card, a virtual one, and program with fragments of that length.
    pub fn usual(fragment_ns: u64) -> Self {
        Self { fragment_ns, fragments: Self::FRAGMENTS, share_ppm: Self::SHARE_PPM, pcm: None }
    }

    /// So many fragments of a buffer, if there can be as many.
    ///
    /// # Errors
    /// What to write instead.
    pub fn fragments_of(count: u64) -> Result<u64, String> {
        match count {
            2..=1_000 => Ok(count),
            0 | 1 => Err("at least 2 are needed: one plays while the other is written".into()),
            _ => Err("write a whole number from 2 to 1000".into()),
        }
    }

    /// A share of a fragment's time as text (`80%`), in parts per million.
    ///
    /// # Errors
    /// What to write instead.
    pub fn share_of(text: &str) -> Result<u64, String> {
        let number = text.strip_suffix('%').and_then(|number| number.parse::<u64>().ok());
        match number {
            Some(percent @ 1..=95) => Ok(percent * 10_000),
            Some(_) => {
                Err("a share from 1% to 95% is possible: waking and writing take time, too".into())
            }
            None => Err("write a share of a fragment's time, as in 80%".into()),
        }
    }

    /// How long the card can play from a full buffer: a cycle that is longer is heard.
    pub fn buffer_ns(&self) -> u64 {
        self.fragment_ns.saturating_mul(self.fragments)
    }

    /// How long computing a fragment is to take.
    pub fn compute_ns(&self) -> u64 {
        let ns = u128::from(self.fragment_ns) * u128::from(self.share_ppm) / 1_000_000;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// What one thread made of its card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Audio {
    /// How often the buffer ran empty.
    pub overruns: u64,
    /// Fragments of silence that the card played meanwhile.
    pub silent: u64,
    /// From one write to the next; one less than there are fragments.
    pub cycles: Distribution,
    /// Cycles within 1 ms of the fragment's time.
    pub cycles_within_1ms: u64,
    /// Cycles within 2 ms of it.
    pub cycles_within_2ms: u64,
    /// What computing took, per fragment.
    pub compute: Distribution,
    /// Fragments that took within 0.1 ms of the share.
    pub compute_within_100us: u64,
    /// Fragments that took within 0.2 ms of it.
    pub compute_within_200us: u64,
    /// The longest cycles over the course of the run.
    pub cycle_maxima: Maxima,
    /// The longest computing over the course of the run.
    pub compute_maxima: Maxima,
}

impl Audio {
    /// Both together.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let sum = |of: fn(&Self) -> u64| of(self).saturating_add(of(other));
        Self {
            overruns: sum(|it| it.overruns),
            silent: sum(|it| it.silent),
            cycles: self.cycles.merged(&other.cycles),
            cycles_within_1ms: sum(|it| it.cycles_within_1ms),
            cycles_within_2ms: sum(|it| it.cycles_within_2ms),
            compute: self.compute.merged(&other.compute),
            compute_within_100us: sum(|it| it.compute_within_100us),
            compute_within_200us: sum(|it| it.compute_within_200us),
            cycle_maxima: self.cycle_maxima.merged(&other.cycle_maxima),
            compute_maxima: self.compute_maxima.merged(&other.compute_maxima),
        }
    }

    /// Its histograms.
    pub(crate) fn distributions_mut(&mut self) -> [&mut Distribution; 2] {
        [&mut self.cycles, &mut self.compute]
    }

    /// Its maxima over time.
    pub(crate) fn maxima_mut(&mut self) -> [&mut Maxima; 2] {
        [&mut self.cycle_maxima, &mut self.compute_maxima]
    }

    /// What is wrong with it, if anything.
    pub fn fault(&self) -> Option<String> {
        let of = |what: &str, fault: Option<String>| Some(format!("{what}: {}", fault?));
        let more = |what: &str, some: u64, all: u64| {
            (some > all).then(|| format!("{what}: {some} of {all}"))
        };
        of("cycles", self.cycles.fault())
            .or_else(|| of("compute", self.compute.fault()))
            .or_else(|| of("cycle_maxima", self.cycle_maxima.fault()))
            .or_else(|| of("compute_maxima", self.compute_maxima.fault()))
            .or_else(|| more("cycles_within_1ms", self.cycles_within_1ms, self.cycles_within_2ms))
            .or_else(|| more("cycles_within_2ms", self.cycles_within_2ms, self.cycles.count))
            .or_else(|| {
                let (near, far) = (self.compute_within_100us, self.compute_within_200us);
                more("compute_within_100us", near, far)
            })
            .or_else(|| more("compute_within_200us", self.compute_within_200us, self.compute.count))
    }
}

/// Counts what the program does while it runs. One thread writes, any may look.
pub struct AudioRecorder {
    plan: AudioPlan,
    cycles: Recorder,
    compute: Recorder,
    overruns: AtomicU64,
    silent: AtomicU64,
    /// As in [`Audio`]: cycles within 1 ms, within 2 ms, computing within 0.1 ms, within 0.2 ms.
    within: [AtomicU64; 4],
}

impl AudioRecorder {
    /// An empty one for a card that is set up so.
    pub fn new(plan: AudioPlan) -> Self {
        Self {
            plan,
            cycles: Recorder::new(0),
            compute: Recorder::new(0),
            overruns: AtomicU64::new(0),
            silent: AtomicU64::new(0),
            within: Default::default(),
        }
    }

    /// How the card is set up.
    pub fn plan(&self) -> AudioPlan {
        self.plan
    }

    /// Forgets everything. Only the thread that records may.
    pub fn reset(&self) {
        self.cycles.reset();
        self.compute.reset();
        for cell in [&self.overruns, &self.silent].into_iter().chain(&self.within) {
            cell.store(0, Relaxed);
        }
    }

    /// Records a fragment that was computed in `compute_ns` and written `at_ns` after the start, and
    /// `cycle_ns` after the one before, if there was one.
    #[inline]
    pub fn record(&self, at_ns: u64, cycle_ns: Option<u64>, compute_ns: u64) {
        let [within_1ms, within_2ms, within_100us, within_200us] = &self.within;
        self.compute.record(at_ns, compute_ns, 0, 0);
        let off_ns = compute_ns.abs_diff(self.plan.compute_ns());
        count_if(within_100us, off_ns <= 100_000);
        count_if(within_200us, off_ns <= 200_000);
        if let Some(cycle_ns) = cycle_ns {
            self.cycles.record(at_ns, cycle_ns, 0, 0);
            let off_ns = cycle_ns.abs_diff(self.plan.fragment_ns);
            count_if(within_1ms, off_ns <= 1_000_000);
            count_if(within_2ms, off_ns <= 2_000_000);
        }
    }

    /// Counts that the buffer ran empty, and for how many fragments.
    #[cold]
    pub fn count_overrun(&self, silent: u64) {
        self.overruns.store(self.overruns.load(Relaxed) + 1, Relaxed);
        self.silent.store(self.silent.load(Relaxed).saturating_add(silent), Relaxed);
    }

    /// A copy of everything. While the thread records, counts beside the histograms may be of a
    /// moment before them.
    pub fn snapshot(&self) -> Audio {
        let [within_1ms, within_2ms, within_100us, within_200us] =
            [0, 1, 2, 3].map(|i: usize| self.within[i].load(Relaxed));
        let (overruns, silent) = (self.overruns.load(Relaxed), self.silent.load(Relaxed));
        // After the counts, so that these are never more than all.
        let (cycles, compute) = (self.cycles.snapshot(), self.compute.snapshot());
        Audio {
            overruns,
            silent,
            cycles_within_1ms: within_1ms.min(within_2ms),
            cycles_within_2ms: within_2ms,
            compute_within_100us: within_100us.min(within_200us),
            compute_within_200us: within_200us,
            cycles: cycles.woken,
            compute: compute.woken,
            cycle_maxima: cycles.maxima,
            compute_maxima: compute.maxima,
        }
    }
}

#[inline]
fn count_if(cell: &AtomicU64, counts: bool) {
    cell.store(cell.load(Relaxed) + u64::from(counts), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: AudioPlan =
        AudioPlan { fragment_ns: 2_900_000, fragments: 3, share_ppm: 800_000, pcm: None };

    #[test]
    fn fragments_are_counted_by_how_far_they_are_off() {
        let recorder = AudioRecorder::new(PLAN);
        assert_eq!((PLAN.buffer_ns(), PLAN.compute_ns()), (8_700_000, 2_320_000));
        // The first has none before it.
        recorder.record(0, None, 2_320_000);
        recorder.record(3_000_000, Some(3_000_000), 2_420_000);
        recorder.record(6_900_000, Some(3_900_000), 2_420_001);
        recorder.record(7_900_000, Some(1_000_000), 2_100_000);
        recorder.record(20_000_000, Some(12_100_000), 9_000_000);
        recorder.count_overrun(2);
        let seen = recorder.snapshot();
        assert_eq!((seen.cycles.count, seen.compute.count), (4, 5));
        assert_eq!((seen.cycles_within_1ms, seen.cycles_within_2ms), (2, 3));
        assert_eq!((seen.compute_within_100us, seen.compute_within_200us), (2, 3));
        assert_eq!((seen.overruns, seen.silent), (1, 2));
        assert_eq!(seen.cycle_maxima.largest(), Some(12_100_000));
        assert_eq!(seen.fault(), None);
        recorder.reset();
        assert_eq!(recorder.snapshot(), AudioRecorder::new(PLAN).snapshot());
    }

    #[test]
    fn counts_that_contradict_each_other_are_found() {
        let fault = |change: fn(&mut Audio)| {
            let recorder = AudioRecorder::new(PLAN);
            recorder.record(0, Some(2_900_000), 2_320_000);
            let mut audio = recorder.snapshot();
            change(&mut audio);
            audio.fault().unwrap_or_default()
        };
        assert_eq!(fault(|_| ()), "");
        assert!(fault(|a| a.cycles_within_2ms = 2).starts_with("cycles_within_2ms: 2 of 1"));
        assert!(fault(|a| a.cycles_within_1ms = 3).starts_with("cycles_within_1ms"));
        assert!(fault(|a| a.compute_within_200us = 2).starts_with("compute_within_200us"));
        assert!(fault(|a| a.compute_within_100us = 2).starts_with("compute_within_100us"));
        assert!(fault(|a| a.compute.count = 9).starts_with("compute: "));
        assert!(fault(|a| a.cycle_maxima.slot_ns = 0).starts_with("cycle_maxima: "));
    }
}
