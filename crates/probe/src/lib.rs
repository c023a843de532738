//! Stimulus → response loops, loads, and what must be known about the machine that they run on.
//!
//! Nothing here prints.

pub mod behaviour;
pub mod host;
