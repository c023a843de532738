//! How large a scenario may be: what a file has more of is refused, so that no file takes much memory.

/// The largest file, in bytes.
pub const FILE: usize = 1 << 20;

/// The name of a path, lock, interrupt, event, variable, function, idle state or scenario, in characters.
pub const NAME: usize = 64;

/// A task's name: the kernel's `comm`.
pub const TASK_NAME: usize = 15;

/// The sentence of what a scenario shows, in characters.
pub const ABOUT: usize = 1_000;

/// Lines of published figures.
pub const PUBLISHED: usize = 100;

/// The characters of such a line, as in plans of the lab.
pub const PUBLISHED_LINE: usize = 500;

/// Kernels of which figures were published, and thresholds of each.
pub const MEASURED: usize = 16;

/// CPUs: the first and the last number of them.
pub const CPUS: (u64, u64) = (1, 64);

/// The most ticks a second.
pub const TICK_HZ: u64 = 10_000;

/// Idle states.
pub const IDLE_STATES: usize = 16;

/// Groups of tasks.
pub const GROUPS: usize = 16;

/// The shortest quota and period of a group, nanoseconds: the kernel's.
pub const QUOTA_NS: u64 = 1_000_000;

/// The longest period of a group, nanoseconds: the kernel's.
pub const QUOTA_PERIOD_NS: u64 = 1_000_000_000;

/// Tasks.
pub const TASKS: usize = 256;

/// Interrupts: those that wait for a CPU are bits of a word, with two of the kernel's own.
pub const INTERRUPTS: usize = 62;

/// Paths.
pub const PATHS: usize = 256;

/// Steps of all paths. A path that is called counts wherever it is called.
pub const STEPS: usize = 10_000;

/// Steps within steps: calls, loops and others together.
pub const NESTED: usize = 32;

/// Loops within loops.
pub const NESTED_LOOPS: usize = 4;

/// How often steps are repeated.
pub const ROUNDS: u64 = 1_000_000_000;

/// How often steps are repeated in which no time can pass; within each other, the product.
pub const TIMELESS_ROUNDS: u64 = 10_000;

/// The longest length, mean, period and point in time, nanoseconds: an hour.
pub const LENGTH_NS: u64 = 3_600_000_000_000;

/// The shortest period of a probe, picoseconds: a microsecond.
pub const PERIOD_PS: u64 = 1_000_000;

/// Parts of a mixture.
pub const PARTS: usize = 1_000;

/// Buckets of a histogram.
pub const BUCKETS: usize = 100_000;

/// Mixtures within mixtures.
pub const NESTED_MIXTURES: usize = 3;

/// Interrupts whose times are written one by one, and those of a burst.
pub const ARRIVALS: usize = 10_000;
