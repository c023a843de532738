//! The scenarios that come with wakescope.

use super::{Scenario, read::ReadError};

/// A scenario that comes with wakescope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name, which is that of the scenario.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../scenarios/", $name, ".toml")),
        }),+]
    };
}

/// All scenarios that come with wakescope, by name.
pub const SHIPPED: &[Shipped] = shipped!["catface",];

impl Shipped {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        SHIPPED.iter().find(|shipped| shipped.name == name).copied()
    }

    /// The scenario.
    ///
    /// # Errors
    /// None: a test reads all of them.
    pub fn read(&self) -> Result<Scenario, ReadError> {
        let no_runs = |_: &str, _: &str| Err("a scenario that is shipped names no runs".to_owned());
        Scenario::read(&format!("{}.toml", self.name), self.text, &no_runs)
    }
}
