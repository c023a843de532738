//! Stimulus → response loops, loads, and what must be known about the machine that they run on.
//!
//! Nothing here prints.

pub mod admission;
pub mod behaviour;
pub mod card;
pub mod driver;
pub mod edges;
pub mod host;
pub mod line;
pub mod load;
mod loopback;
mod mark;
pub mod measured_cpus;
pub mod measurement;
pub mod observer;
pub mod prober;
pub mod respond;
pub mod schedule;
pub mod session;
pub mod stimulus;
pub mod stop;
mod surroundings;
mod trial;
