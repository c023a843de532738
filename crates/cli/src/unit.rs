//! `--unit`: what the values of a file are in that does not state it.

use clap::ValueEnum;
use wakescope_formats::import::Unit;

/// The unit of files that do not state it.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct UnitArgs {
    /// Unit of the values in other programs' files that do not state one
    #[arg(long, value_enum)]
    unit: Option<UnitName>,
}

impl UnitArgs {
    /// The option as one writes it.
    pub(crate) fn argument(&self) -> Option<String> {
        Some(format!("--unit={}", self.unit?.to_possible_value()?.get_name()))
    }

    /// The unit, if it was given.
    pub(crate) fn unit(&self) -> Option<Unit> {
        self.unit.map(Unit::from)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UnitName {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
}

impl From<UnitName> for Unit {
    fn from(name: UnitName) -> Self {
        match name {
            UnitName::Ns => Self::Ns,
            UnitName::Us => Self::Us,
            UnitName::Ms => Self::Ms,
        }
    }
}
