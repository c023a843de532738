//! Runs of a machine that is made up, so that the truth about them is known.

use wakescope_core::distribution::Distribution;
use wakescope_core::observation::Observation;
use wakescope_core::random::Random;
use wakescope_core::run::{Run, Thread};

/// How runs of this machine differ though nothing about it changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// Wakeups per run.
    pub(crate) samples: usize,
    /// Standard deviation, between runs, of the logarithm of how late all is: what a boot decides.
    pub(crate) between_runs: f64,
    /// The same of how often something holds wakeups up.
    pub(crate) rates: f64,
}

/// Little differs between runs.
pub(crate) const CALM: Machine = Machine { samples: 10_000, between_runs: 0.03, rates: 0.1 };

/// Runs differ as on a machine that others use as well.
pub(crate) const NOISY: Machine = Machine { samples: 10_000, between_runs: 0.2, rates: 0.5 };

impl Machine {
    /// A run in which every wakeup is `factor` times as late as it would be.
    ///
    /// Latenesses follow each other: each is like the one before (autocorrelation 0.9), and what
    /// holds up one wakeup holds up about two more. Both make 10,000 samples worth far fewer.
    pub(crate) fn run(&self, factor: f64, random: &mut Random) -> Observation {
        let level = factor.ln() + 8_000_f64.ln() + self.between_runs * normal(random);
        let stalls_per_wakeup = (self.rates * normal(random)).exp() / 400.0;
        let (mut wander, mut stall) = (0.0, 0.0);
        let samples: Vec<u64> = (0..self.samples)
            .map(|_| {
                wander = 0.9 * wander + 0.19_f64.sqrt() * normal(random);
                if uniform(random) < stalls_per_wakeup {
                    stall = 2.5 + 0.5 * normal(random);
                } else if uniform(random) < 1.0 / 3.0 {
                    stall = 0.0;
                }
                whole((level + 0.2 * wander + stall).exp())
            })
            .collect();
        of(&samples)
    }

    /// So many runs.
    pub(crate) fn runs(&self, count: usize, factor: f64, random: &mut Random) -> Vec<Observation> {
        (0..count).map(|_| self.run(factor, random)).collect()
    }
}

fn of(samples: &[u64]) -> Observation {
    let d = Distribution { max_at_ns: Some(0), ..Distribution::of(samples.iter().copied()) };
    let run = Run {
        threads: vec![Thread { cpu: Some(0), woken: d.clone(), expiries: d, ..Thread::default() }],
        ..Run::default()
    };
    run.into()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
fn whole(x: f64) -> u64 {
    x as u64
}

fn uniform(random: &mut Random) -> f64 {
    (random.number() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Near enough to normal: the sum of three uniform numbers, with variance 1.
fn normal(random: &mut Random) -> f64 {
    let bits = random.number();
    let part = |shift: u32| (bits >> shift & 0x1f_ffff) as f64 / f64::from(0x1f_ffff);
    2.0 * (part(0) + part(21) + part(42) - 1.5)
}
