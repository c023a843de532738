//! Simulations, one after the other on each of several threads.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, scope};
use std::time::Duration;

use wakescope_core::finding::{Finding, Severity};
use wakescope_core::run::Run;
use wakescope_core::units::{SpanNs, grouped};
use wakescope_model::record::{Ending, Experiment, MOST_STEPS, Recording};
use wakescope_model::simulation::{Broken, Until};
use wakescope_model::{Image, Simulation};

use crate::Failure;
use crate::screen::ProgressLine;
use crate::signals::block_end_signals;

/// How often signals are looked for.
const PATIENCE: Duration = Duration::from_millis(20);

/// A simulation looks whether it is to end once in so much simulated time, which takes well below a second.
const STRIDE_NS: u64 = 10_000_000;

/// A simulation that has ended.
pub(super) struct Ended {
    /// Its record.
    pub(super) run: Run,
    /// Whether it is all that was asked for: it has all samples, and its latest wakeups are explained.
    pub(super) is_complete: bool,
}

/// Runs all experiments on `threads` threads, and explains their latest wakeups if `explains`. Calls `done`
/// with the place and the record of each, in the order in which they end; not with those that a signal
/// kept from beginning. The records do not depend on the number of threads.
///
/// # Errors
/// The first error of `done`: it ends the simulations.
pub(super) fn each(
    experiments: &[Experiment<'_>],
    explains: bool,
    threads: usize,
    mut done: impl FnMut(usize, Result<Ended, Broken>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let signals = block_end_signals()?;
    let team = Team { experiments, explains, ..Team::default() };
    let (sender, results) = channel();
    let mut progress = ProgressLine::of_work();
    scope(|scope| {
        let mut first = Ok(());
        let started = (0..threads.clamp(1, experiments.len().max(1))).map_while(|_| {
            let (team, sender) = (&team, sender.clone());
            Builder::new().spawn_scoped(scope, move || team.work(&sender)).ok()
        });
        if started.count() == 0 {
            // No thread can be had: this one does the work, and a signal waits for its end.
            team.work(&sender);
        }
        drop(sender);
        loop {
            match results.recv_timeout(PATIENCE) {
                Ok((place, result)) => {
                    let kept = done(place, result);
                    if kept.is_err() {
                        team.ends.store(true, Ordering::Relaxed);
                        first = first.and(kept);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if signals.wait(SpanNs(0)).is_some() {
                team.ends.store(true, Ordering::Relaxed);
            }
            progress.show(|| team.progress());
        }
        progress.clear();
        first
    })
}

/// What the threads share.
#[derive(Default)]
struct Team<'a> {
    experiments: &'a [Experiment<'a>],
    /// Whether the latest wakeups are explained.
    explains: bool,
    /// The next experiment.
    next: AtomicUsize,
    /// Samples of all of them so far.
    samples: AtomicU64,
    /// Those of them that were simulated once more, so that the latest can be explained.
    followed: AtomicU64,
    /// Whether they are to end.
    ends: AtomicBool,
}

impl Team<'_> {
    /// A line for whoever waits.
    fn progress(&self) -> String {
        let count = |count: &AtomicU64| grouped(count.load(Ordering::Relaxed));
        let wanted = self.experiments.iter().map(|experiment| experiment.samples).sum();
        let wanted = grouped(wanted);
        let mut line = format!("simulating: {} of {wanted} wakeups", count(&self.samples));
        if self.followed.load(Ordering::Relaxed) > 0 {
            let _ = write!(line, "; explaining: {} of {wanted}", count(&self.followed));
        }
        line
    }

    fn work(&self, results: &Sender<(usize, Result<Ended, Broken>)>) {
        while !self.ends.load(Ordering::Relaxed) {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(experiment) = self.experiments.get(place) else { return };
            if results.send((place, self.simulate(experiment))).is_err() {
                return;
            }
        }
    }

    fn simulate(&self, experiment: &Experiment<'_>) -> Result<Ended, Broken> {
        let image = experiment.image;
        let mut simulation = Simulation::new(image, experiment.seed, Recording::new(image));
        let ending = self.run(experiment, &mut simulation)?;
        let mut run = experiment.record(&simulation, ending);
        let explains = self.explains && run.woken().count > 0;
        let is_explained = !explains || self.explain(image, &mut run)?;
        Ok(Ended { run, is_complete: ending == Ending::Complete && is_explained })
    }

    /// Explains its latest wakeups. Whether that was done: a signal ends it.
    fn explain(&self, image: &Image, run: &mut Run) -> Result<bool, Broken> {
        let before = Cell::new(0);
        let goes_on = |followed: u64| {
            self.followed.fetch_add(followed - before.replace(followed), Ordering::Relaxed);
            !self.ends.load(Ordering::Relaxed)
        };
        let is_done = wakescope_oracle::explain(image, run, &goes_on)?;
        if !is_done {
            let message = "ended early: its latest wakeups are not explained".into();
            let note = Finding::new("interrupted", Severity::Note, message, "");
            run.validity.findings.push(note);
        }
        Ok(is_done)
    }

    /// Simulates until all samples are there, and the probes have run that are late when the last one comes: a
    /// run that left them out would look better than it is.
    fn run<'i>(
        &self,
        experiment: &Experiment<'i>,
        simulation: &mut Simulation<'i, Recording>,
    ) -> Result<Ending, Broken> {
        let mut since_sample = simulation.events();
        let mut all_came_ns = None;
        loop {
            let samples = simulation.samples();
            let has_all = samples >= experiment.samples;
            if has_all {
                let end = *all_came_ns.get_or_insert(simulation.now_ns());
                if experiment.unanswered(simulation, end).is_none() {
                    return Ok(Ending::Complete);
                }
            }
            if simulation.now_ns() >= experiment.longest_ns() {
                return Ok(Ending::TooLong);
            }
            if simulation.events() - since_sample >= MOST_STEPS {
                return Ok(Ending::TooManySteps);
            }
            if self.ends.load(Ordering::Relaxed) {
                return Ok(Ending::Interrupted);
            }
            let wanted = if has_all { samples + 1 } else { experiment.samples };
            self.stride(experiment, simulation, wanted)?;
            if simulation.samples() > samples {
                since_sample = simulation.events();
            }
        }
    }

    fn stride<'i>(
        &self,
        experiment: &Experiment<'i>,
        simulation: &mut Simulation<'i, Recording>,
        samples: u64,
    ) -> Result<(), Broken> {
        let before = simulation.samples();
        let ns = simulation.now_ns().saturating_add(STRIDE_NS).min(experiment.longest_ns());
        simulation.record_until(Until { samples, ns })?;
        self.samples.fetch_add(simulation.samples() - before, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wakescope_model::scenario::Shipped;
    use wakescope_model::{Rules, Scenario};

    use super::*;

    #[test]
    fn a_run_whose_explanation_is_ended_says_so() {
        let shipped = Shipped::named("prune-dcache").unwrap();
        let no_runs = |_: &str, _: &str| Err("no runs".into());
        let scenario = Scenario::read(shipped.name, shipped.text, &no_runs).unwrap();
        let image = Image::new(&scenario, Rules::ALL[2]).unwrap();
        let experiment = Experiment { scenario: &scenario, image: &image, seed: 1, samples: 100 };
        let mut simulation = Simulation::new(&image, 1, Recording::new(&image));
        let team = Team::default();
        let ending = team.run(&experiment, &mut simulation).unwrap();
        let run = experiment.record(&simulation, ending);
        for (ends, notes) in [(false, 0), (true, 1)] {
            team.ends.store(ends, Ordering::Relaxed);
            let mut run = run.clone();
            assert_eq!(team.explain(&image, &mut run).unwrap(), !ends);
            let told = run.validity.findings.iter().filter(|finding| finding.code == "interrupted");
            assert_eq!((told.count(), run.explanation.is_none()), (notes, ends), "{run:?}");
        }
    }
}
