//! The interface of everything that disturbs a CPU.

use wakescope_core::units::MonoNs;

use super::super::desk::Desk;

/// One disturbance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    pub(super) begin: MonoNs,
    pub(super) end: MonoNs,
    /// The turns of a section of kernel code. Other disturbances count none.
    pub(super) turns: Option<Turns>,
}

/// How many turns a loop made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    /// All of them.
    pub(super) all: u64,
    /// Those that repeated no earlier turn.
    pub(super) work: u64,
}

/// Disturbs the CPU that it was created on.
pub(super) trait Disturber {
    /// Disturbs the CPU once, now or in a moment. `None` if there was no disturbance of the wanted length.
    fn disturb(&mut self, desk: &Desk) -> Result<Option<Burst>, String>;

    /// The second of the two sections that the last disturbance was made of.
    fn second(&self) -> Option<Burst> {
        None
    }
}
