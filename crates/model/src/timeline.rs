//! What the CPUs were at around one wakeup.

use crate::image::{CpuId, Image, TaskId};
use crate::kernel::Running;
use crate::simulation::{Broken, Sample, Simulation, Until, Watch};
use crate::trace::Transition;

/// No more stretches and events than this are kept: of what is longer, the rest is left out, and counted.
const MOST: usize = 100_000;

/// All that happened between two points of time. Times are nanoseconds from the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Where it begins.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// When the wakeup was due.
    pub expiry_ns: u64,
    /// When the probe responded.
    pub response_ns: u64,
    /// What the CPUs were at, in the order in which it ended.
    pub stretches: Vec<Stretch>,
    /// What happened, in the order of time.
    pub events: Vec<(CpuId, u64, Transition)>,
    /// What there was no room for.
    pub left_out: u64,
}

/// A CPU was at this all the time between two points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Which CPU.
    pub cpu: CpuId,
    /// From when.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// What it was at.
    pub at: Running,
}

impl Timeline {
    /// Simulates once more what a seed gives, up to a wakeup that was due at `expiry_ns` and is `late_ns`
    /// late, and writes down what happens from a tenth of that before it to a tenth after.
    ///
    /// # Errors
    /// If the kernel broke a rule before.
    pub fn of(image: &Image, seed: u64, expiry_ns: u64, late_ns: u64) -> Result<Self, Broken> {
        let response_ns = expiry_ns.saturating_add(late_ns);
        let margin = late_ns / 10 + 100;
        let timeline = Self {
            from_ns: expiry_ns.saturating_sub(margin),
            to_ns: response_ns.saturating_add(margin),
            expiry_ns,
            response_ns,
            ..Self::default()
        };
        let to_ns = timeline.to_ns;
        let mut simulation = Simulation::new(image, seed, timeline);
        // A CPU tells what it did only when it begins something else, which each does within a tick or a
        // sleep.
        let mut end = to_ns;
        for _ in 0..8 {
            simulation.run_until(Until { samples: u64::MAX, ns: end })?;
            end = end.saturating_add(late_ns.max(1_000_000));
        }
        Ok(simulation.into_watch())
    }

    fn has_room(&mut self) -> bool {
        let has_room = self.stretches.len() + self.events.len() < MOST;
        self.left_out += u64::from(!has_room);
        has_room
    }

    /// What a CPU was at for the longest part of a span; an interrupt or the scheduler before a task, for
    /// they are short.
    pub fn at(&self, cpu: CpuId, from_ns: u64, to_ns: u64) -> Option<&Stretch> {
        let within = |stretch: &&Stretch| {
            stretch.cpu == cpu && stretch.from_ns < to_ns && stretch.to_ns > from_ns
        };
        self.stretches.iter().filter(within).max_by_key(|stretch| {
            let length = stretch.to_ns.min(to_ns) - stretch.from_ns.max(from_ns);
            (stretch.at.kind != crate::kernel::FrameKind::Task, length)
        })
    }

    /// Tasks that had a CPU, in the order in which they first had one.
    pub fn tasks(&self) -> Vec<TaskId> {
        let mut tasks = Vec::new();
        for task in self.stretches.iter().filter_map(|stretch| stretch.at.task) {
            if !tasks.contains(&task) {
                tasks.push(task);
            }
        }
        tasks
    }
}

impl Watch for Timeline {
    const FOLLOWS: bool = true;

    fn sample(&mut self, _: Sample) {}

    fn ran(&mut self, cpu: CpuId, from_ns: u64, to_ns: u64, at: Running) {
        if to_ns > self.from_ns && from_ns < self.to_ns && self.has_room() {
            self.stretches.push(Stretch { cpu, from_ns, to_ns, at });
        }
    }

    fn happened(&mut self, cpu: CpuId, at_ns: u64, what: Transition) {
        if (self.from_ns..=self.to_ns).contains(&at_ns) && self.has_room() {
            self.events.push((cpu, at_ns, what));
        }
    }
}
