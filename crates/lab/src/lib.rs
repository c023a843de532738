//! Boots kernels under an emulator whose time is counted in instructions, so that a measurement in
//! the guest gives the same figures, to the bit, whenever and wherever it is repeated.
//!
//! This crate does not measure: the guest runs `wakescope` itself.

pub mod bisect;
pub mod farm;
pub mod kernel;
pub mod store;
