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

impl TimeDomain {
    /// What stands before a unit, with a blank: empty for real time.
    pub fn before_unit(self) -> &'static str {
        match self {
            Self::Real => "",
            Self::Virtual => "virtual ",
            Self::Simulated => "simulated ",
        }
    }
}
