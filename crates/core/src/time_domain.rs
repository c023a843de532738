//! Which clock figures are of: virtual time is never called real.

use serde::{Deserialize, Serialize};

/// Which time the figures are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeDomain {
    /// A real machine's time.
    #[default]
    Real,
    /// Instruction-counted time of an emulated machine.
    Virtual,
    /// Time of a model.
    Simulated,
}
