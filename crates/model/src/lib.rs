//! An executable model of how a kernel wakes tasks: its preemption rules, its locks, its interrupts.
//!
//! A [`Scenario`] describes a machine and the paths that its kernel runs, in the primitives of the
//! field: locks, preempt counts, sections with interrupts off, preemption points. [`Rules`] say when
//! the scheduler may run. Both together are compiled into an [`Image`]. The [`Kernel`] executes its
//! operations one by one and knows no time. Two drivers decide what comes next: the [`Simulation`] by
//! time, the checker by trying every order.
//!
//! Everything is deterministic: the scenario, the rules and a seed decide every bit of a result.
//! Nothing here does I/O or reads a clock.

pub mod check;
pub mod image;
pub mod kernel;
pub mod record;
pub mod replay;
pub mod rules;
pub mod scenario;
pub mod simulation;
pub mod timeline;
pub mod trace;

pub use image::Image;
pub use kernel::Kernel;
pub use rules::Rules;
pub use scenario::Scenario;
pub use simulation::Simulation;
