//! A module whose lines are wanted, and why no file has given them yet.

/// A module whose lines are looked for.
pub(super) struct Wanted {
    pub(super) name: String,
    /// Of the very build that was traced.
    pub(super) build_id: String,
    pub(super) why_not: Option<WhyNot>,
}

impl Wanted {
    pub(super) fn new(name: String, build_id: String) -> Self {
        Self { name, build_id, why_not: None }
    }
}

/// Why a file of a module's name is not used.
pub(super) enum WhyNot {
    /// It is of no use for lines, as those are that are loaded.
    Bare(String),
    /// It might have been.
    Other(String),
}
