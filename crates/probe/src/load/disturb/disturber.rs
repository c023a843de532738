//! What all that disturb have in common.

use wakescope_core::units::MonoNs;

use super::super::desk::Desk;

/// When the machine was disturbed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    pub(super) begin: MonoNs,
    pub(super) end: MonoNs,
}

/// What disturbs the CPU that it was made on.
pub(super) trait Disturber {
    /// Disturbs it, now or in a moment. `None` if it did not come to that.
    fn disturb(&mut self, desk: &Desk) -> Result<Option<Burst>, String>;
}
