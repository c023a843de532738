//! Boots kernels under an emulator whose time is counted in instructions, so that a measurement in
//! the guest gives the same figures, to the bit, whenever and wherever it is repeated.
//!
//! This crate does not measure: the guest runs `wakescope` itself.

pub mod archive;
pub mod bisect;
pub mod cache;
pub mod cell;
pub mod farm;
pub mod guest;
pub mod kernel;
pub mod leftovers;
pub mod machine;
pub mod matrix;
pub mod module;
pub mod parcel;
pub mod plan;
pub mod qemu;
pub mod scope;
pub mod similar;
mod sources;
pub mod states;
pub mod store;
pub mod sum;
pub mod watch;

#[cfg(test)]
mod testing;
