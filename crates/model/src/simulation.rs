//! A kernel in time: what takes how long, and what comes when.

mod bandwidth;
mod clock;
mod fair;
mod slots;
mod watch;

use thiserror::Error;
use wakescope_core::units::SpanNs;

use crate::image::{CpuId, Image, LOCAL_TIMER, LengthId, RESCHEDULE, SourceId, TaskId};
use crate::kernel::{Kernel, Progress, Violation};

use clock::{Activity, Clock, Due};
pub use watch::{Sample, Unwatched, Watch};

/// Steps that may follow each other without time: more than any path has.
const MOST_INSTANT_STEPS: u32 = 1_000_000;

/// A simulation that goes on until it has seen enough.
#[derive(Clone, Debug)]
pub struct Simulation<'i, W> {
    image: &'i Image,
    kernel: Kernel,
    clock: Clock<'i, W>,
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// After so many samples of all probes.
    pub samples: u64,
    /// After so long, nanoseconds.
    pub ns: u64,
}

impl Until {
    /// At once.
    const NOW: Self = Self { samples: 0, ns: 0 };
}

/// A kernel that broke a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{violation}, on CPU {} after {} simulated time, in {stack}", .cpu.0, SpanNs(*.at_ns).in_full())]
pub struct Broken {
    /// The rule.
    pub violation: Violation,
    /// Where.
    pub cpu: CpuId,
    /// When, nanoseconds from the start.
    pub at_ns: u64,
    /// The functions that ran, the outermost first: `find: prune_dcache`.
    pub stack: String,
}

impl<'i, W: Watch> Simulation<'i, W> {
    /// A machine that has just booted. `seed` decides all that is random.
    pub fn new(image: &'i Image, seed: u64, watch: W) -> Self {
        let mut simulation =
            Self { image, kernel: Kernel::new(image), clock: Clock::new(image, seed, watch) };
        for cpu in 0..usize::from(image.cpus) {
            simulation.run(CpuId::at(cpu), Until::NOW);
        }
        simulation
    }

    /// Goes on until one of the conditions holds.
    ///
    /// # Errors
    ///
    /// If the kernel broke a rule, which means that the scenario does.
    pub fn run_until(&mut self, until: Until) -> Result<(), Broken> {
        while self.clock.is_before(until) {
            if let Some((violation, cpu)) = self.clock.violation {
                return Err(self.broken(violation, cpu));
            }
            let Some(due) = self.clock.next() else {
                let violation = Violation::Deadlock;
                return Err(self.broken(violation, CpuId(0)));
            };
            match due {
                Due::Busy(cpu) => {
                    self.clock.elapsed(cpu, &self.kernel, self.image);
                    self.kernel.finish(self.image, cpu, &mut self.clock);
                    self.run(cpu, until);
                }
                Due::Arrival(source) => {
                    let cpu = self.clock.arrive(source);
                    self.raise(cpu, source, until);
                }
                Due::Timer(task) => {
                    let (cpu, source) = self.clock.expire(task);
                    self.raise(cpu, source, until);
                }
                Due::Period(budget) => {
                    let cpu = self.clock.end_period(budget);
                    self.raise(cpu, LOCAL_TIMER, until);
                }
                Due::Tick(cpu) => {
                    self.clock.tick(cpu);
                    self.raise(cpu, LOCAL_TIMER, until);
                }
                Due::Reschedule(cpu) => self.raise(cpu, RESCHEDULE, until),
            }
        }
        Ok(())
    }

    /// How long has passed since the start, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.clock.now
    }

    /// How many operations were executed, and how many arrivals there were.
    pub fn events(&self) -> u64 {
        self.clock.events
    }

    /// Samples of all probes.
    pub fn samples(&self) -> u64 {
        self.clock.samples
    }

    /// Expiries that had no wakeup of their own.
    pub fn missed(&self, task: TaskId) -> u64 {
        self.clock.missed(task)
    }

    /// The first expiry that a probe has not responded to, nanoseconds from the start; `None` before it
    /// first slept. One that is over is a wakeup that is late already, and of which there is no sample.
    pub(crate) fn unanswered_ns(&self, task: TaskId) -> Option<u64> {
        self.clock.unanswered(task)
    }

    /// Units of work that a task has done.
    pub fn work(&self, task: TaskId) -> u64 {
        self.clock.work(task)
    }

    /// Who has watched.
    pub fn watch(&self) -> &W {
        &self.clock.watch
    }

    /// The same, at the end.
    pub fn into_watch(self) -> W {
        self.clock.watch
    }

    fn raise(&mut self, cpu: CpuId, source: SourceId, until: Until) {
        if !self.kernel.raise(self.image, cpu, source, &mut self.clock) {
            return;
        }
        self.clock.elapsed(cpu, &self.kernel, self.image);
        if let Some(left) = self.clock.stop(cpu) {
            self.kernel.pause(cpu, left);
        }
        self.run(cpu, until);
    }

    /// Executes what takes no time, until something does that has to wait for its turn.
    fn run(&mut self, cpu: CpuId, until: Until) {
        self.run_one(cpu, until);
        while let Some(granted) = self.clock.granted.pop() {
            if self.clock.activity(granted) == Activity::Spins {
                self.clock.elapsed(granted, &self.kernel, self.image);
                self.run_one(granted, until);
            }
        }
    }

    fn run_one(&mut self, cpu: CpuId, until: Until) {
        let mut instant_steps = 0;
        while instant_steps < MOST_INSTANT_STEPS {
            instant_steps += 1;
            self.clock.events += 1;
            let length = match self.kernel.step(self.image, cpu, &mut self.clock) {
                Progress::Instant => {
                    if self.clock.violation.is_some() {
                        return;
                    }
                    continue;
                }
                Progress::Takes(length) => self.clock.draw(length),
                Progress::Resumes(left) => left,
                Progress::LeavesIdle => self.clock.take_idle_exit_ns(cpu),
                Progress::Idle => return self.clock.rest(cpu, Activity::Idle),
                Progress::Spins => return self.clock.rest(cpu, Activity::Spins),
            };
            if length > 0 {
                if !self.clock.passes(cpu, length, until) {
                    return self.clock.work_for(cpu, length);
                }
                self.clock.elapsed(cpu, &self.kernel, self.image);
                instant_steps = 0;
            }
            self.kernel.finish(self.image, cpu, &mut self.clock);
        }
        self.clock.violation.get_or_insert((Violation::EndlessLoop, cpu));
    }

    fn broken(&self, violation: Violation, cpu: CpuId) -> Broken {
        let running = self.kernel.running(self.image, cpu);
        let functions = &self.image.stacks[running.stack.index()];
        let names = functions.iter().map(|f| self.image.functions[f.index()].as_str());
        let stack: Vec<&str> =
            std::iter::once(self.image.task_name(running.task)).chain(names).collect();
        Broken { violation, cpu, at_ns: self.clock.now, stack: stack.join(": ") }
    }
}

impl<W> Clock<'_, W> {
    fn draw(&mut self, length: LengthId) -> u64 {
        self.image.lengths[length.index()].draw(&mut self.random)
    }
}

#[cfg(test)]
mod tests;
