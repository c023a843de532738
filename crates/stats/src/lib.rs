//! Statistics over several runs: whether one group is worse than another, where in a series it
//! changed, and which cells of a lab differ.
//!
//! Nothing here does I/O or reads a clock. A run is one observation: samples of different runs are
//! never pooled for a test.

pub mod binomial;
pub mod cells;
pub mod compare;
pub mod equal_count;
mod equal_share;
pub mod paired;
pub mod permutation;
mod student;
pub mod trend;
pub mod unpaired;
