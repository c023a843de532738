//! What all that disturb have in common.

use wakescope_core::units::MonoNs;

use super::super::desk::Desk;

/// When the machine was disturbed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    pub(super) begin: MonoNs,
    pub(super) end: MonoNs,
    /// What a section of kernel code did in that time. Others do not tell.
    pub(super) turns: Option<Turns>,
}

/// Turns of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    pub(super) all: u64,
    /// Those that had not been made before.
    pub(super) work: u64,
}

/// What disturbs the CPU that it was made on.
pub(super) trait Disturber {
    /// Disturbs it, now or in a moment. `None` if it did not come to that.
    fn disturb(&mut self, desk: &Desk) -> Result<Option<Burst>, String>;
}
