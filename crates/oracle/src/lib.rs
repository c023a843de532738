//! Attribution tested against a simulated kernel, of which the truth is known to the nanosecond.
//!
//! A simulation of the crate `model` runs. [`Tracepoints`] emits the events that the tracer would have
//! seen on a kernel like this one, and no more; attribution explains the late wakeups from these. The
//! [`Witness`] writes down what the CPU really did meanwhile. [`score`](score::score) compares both.
//!
//! Everything follows from a seed. Nothing here does I/O or reads a clock.

mod addresses;
mod both;
mod explain;
pub mod random;
pub mod score;
mod shares;
mod tracepoints;
pub mod trial;
pub mod truth;

pub use explain::explain;
pub use score::Score;
pub use tracepoints::{Followed, Shown, Tracepoints};
pub use trial::{Trial, trial};
pub use truth::{Truth, Witness};
