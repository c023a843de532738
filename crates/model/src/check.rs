//! The model checker: all schedules of a small scenario, and random ones beyond.
//!
//! Time decides nothing here. At each point any CPU may make the next step, any interrupt that has a
//! reason may come, and any sleep may be over. An interrupt that repeats may come any number of times.
//! That needs no counter, so there are fewer states than with a bound, and a proof covers more. Only
//! loops are cut short: a longer one runs [`Limits::iterations`] times.
//!
//! Three things keep the states few. None of them hides a broken rule:
//!
//! - An operation that takes time is a single step. An interrupt in the middle of it finds the same
//!   kernel as one just before it. Without a clock, the rest of the operation is the same as all of it.
//! - An interrupt arrives only where the CPU takes it. Until then nobody can read that it waits, so its
//!   earlier arrival would change nothing. Interrupts that arrive while another one's handler runs come
//!   one after another; which timers one handler finds expired is a choice of its own.
//! - Operations that nobody else can see are not scheduled (`check/local.rs` says which, and why).
//!
//! States are told apart by 128 bits of hash. Two that share them would be taken for one, and what
//! follows from the second would be missed. If the hash is as good as chance, that happens among N
//! states with a probability below N² / 2^129: 10^-24 for ten million.
//!
//! Why no crate. `stateright` (MIT) is the known one for Rust. It checks distributed systems whose nodes
//! send messages: its reductions are symmetries, it has no partial orders; it tells states apart by 64
//! bits, which among ten million collide with a probability of 3 in a million; it does not find cycles,
//! which a livelock is; and it comes with a web server, a thread pool and concurrent maps, where this
//! is to run on small machines with the rest. What it would save is the breadth-first search: the 130
//! lines of `check/search.rs`.

mod choice;
mod graph;
mod invariant;
mod local;
mod machine;
mod progress;
mod random;
mod replay;
mod script;
mod search;
mod state;

use crate::image::{CpuId, Image, Op};
use crate::kernel::Violation;
use crate::scenario::Count;

pub use choice::{Choice, Step};
pub use replay::{Line, replay};

/// Checks all schedules of `image` up to these limits, then random ones.
///
/// ```
/// use wakescope_model::check::{Coverage, Limits, check, prepare};
/// use wakescope_model::{Image, Rules, Scenario};
///
/// let image = Image::new(&Scenario::default(), Rules::ALL[0]).unwrap();
/// let image = prepare(&image, &Limits::default());
/// let report = check(&image, &Limits::default());
/// assert_eq!((report.coverage, report.failure), (Coverage::All, None));
/// ```
pub fn check(image: &Image, limits: &Limits) -> Report {
    let search::Found { graph, limit, depth, mut failure } = search::search(image, limits);
    let mut schedules = 0;
    let coverage = match limit {
        _ if failure.is_some() => Coverage::UntilFailure,
        Some(limit) => {
            (schedules, failure) = random::schedules(image, limits);
            Coverage::Part(limit)
        }
        None => {
            failure = progress::stuck(image, &graph);
            Coverage::All
        }
    };
    let (states, steps) = (graph.states() as u64, graph.steps() as u64);
    Report { coverage, states, steps, depth, schedules, failure }
}

/// The image to check and to replay: with loops cut as `limits` say.
pub fn prepare(image: &Image, limits: &Limits) -> Image {
    let most = limits.iterations.max(1);
    let mut image = image.clone();
    for count in &mut image.counts {
        *count = match *count {
            Count::Fixed(times) => Count::Fixed(times.min(most)),
            Count::Uniform(least, top) if least.min(most) == top.min(most) => {
                Count::Fixed(least.min(most))
            }
            Count::Uniform(least, top) => Count::Uniform(least.min(most), top.min(most)),
        };
    }
    // A loop that looks each hundredth time looks at least once in a loop that was cut.
    for op in image.codes.iter_mut().flat_map(|code| &mut code.ops) {
        if let Op::BreakPoint { every, .. } = op {
            *every = (*every).min(most.saturating_sub(1).max(1));
        }
    }
    image
}

/// How much is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// No more states than this.
    pub states: usize,
    /// Schedules of no more choices than this, while all are tried.
    pub depth: u32,
    /// About so much memory, bytes.
    pub bytes: usize,
    /// Loops run no more often than this.
    pub iterations: u32,
    /// So many random schedules, where not all could be tried.
    pub schedules: u64,
    /// So many choices in each of them.
    pub choices: u32,
    /// What decides these.
    pub seed: u64,
}

impl Default for Limits {
    /// A few seconds, and no more memory than a small machine has.
    fn default() -> Self {
        Self {
            states: 2_000_000,
            depth: 10_000,
            bytes: 256 << 20,
            iterations: 3,
            schedules: 1_000,
            choices: 2_000,
            seed: 1,
        }
    }
}

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether that was everything.
    pub coverage: Coverage,
    /// How many states were found.
    pub states: u64,
    /// How many steps between them were made.
    pub steps: u64,
    /// Choices in the longest of the shortest schedules to these states.
    pub depth: u32,
    /// How many random schedules were tried.
    pub schedules: u64,
    /// A rule that was broken.
    pub failure: Option<Failure>,
}

/// How much of what can happen was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All states, and what has to happen some time: no failure is a proof, for loops as they were cut.
    /// (What has to happen some time is followed for the first 64 tasks.)
    All,
    /// All states until the first that broke a rule.
    UntilFailure,
    /// Not all: this limit was reached, and random schedules followed. No failure is not a proof, and
    /// rules about what has to happen some time were not checked.
    Part(Limit),
}

/// What ended the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::states`]
    States,
    /// [`Limits::depth`]
    Depth,
    /// [`Limits::bytes`]
    Memory,
}

/// A broken rule, and how it came to that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The rule.
    pub violation: Violation,
    /// On which CPU.
    pub cpu: CpuId,
    /// From the start to there. No schedule is shorter where all were tried.
    pub schedule: Vec<Choice>,
    /// What then repeats for ever: a livelock's cycle; else empty.
    pub cycle: Vec<Choice>,
}

#[cfg(test)]
mod tests;
