//! What a cgroup is known by.

use crate::watch::Series;

/// A cgroup by its path, where that is known: one that is made anew gets another number, and all get new
/// ones after a boot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cgroup {
    /// The machine has no unified hierarchy.
    None,
    /// Its path from the root of that hierarchy.
    Path(String),
    /// Its ID: it was gone when its name was looked up, or its name is redacted.
    Id(u64),
}

impl Cgroup {
    /// That of a series.
    pub fn of(series: &Series) -> Self {
        Self::named(series.cgroup_id, series.cgroup.as_ref())
    }

    /// The one with this ID, 0 for none, and this path.
    pub fn named(id: u64, path: Option<&String>) -> Self {
        match (id, path) {
            (0, _) => Self::None,
            (_, Some(path)) => Self::Path(path.clone()),
            (id, None) => Self::Id(id),
        }
    }

    /// Its path, where that is known.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Path(path) => Some(path),
            Self::None | Self::Id(_) => None,
        }
    }
}
