//! The plans that come with wakescope.

use super::{Plan, PlanError, file};

/// Their names and text.
const PLANS: [(&str, &str); 3] = [
    ("linux-journal", include_str!("../../plans/linux-journal.toml")),
    ("williams", include_str!("../../plans/williams.toml")),
    ("debian-atlas", include_str!("../../plans/debian-atlas.toml")),
];

pub(super) fn parse(name: &str) -> Result<Plan, PlanError> {
    let found = PLANS.iter().find(|(known, _)| *known == name);
    found.map_or_else(
        || Err(PlanError::Unknown(name.into())),
        |(_, text)| file::parse(text.as_bytes()),
    )
}

/// Their lines of published figures.
pub(super) fn published() -> Vec<String> {
    let plans = PLANS.iter().filter_map(|(_, text)| file::parse(text.as_bytes()).ok());
    plans.flat_map(|plan| plan.published).collect()
}

pub(super) fn names() -> Vec<(String, String)> {
    let described = |(name, text): &(&str, &str)| {
        let plan = file::parse(text.as_bytes()).unwrap_or_default();
        ((*name).to_owned(), plan.description)
    };
    PLANS.iter().map(described).collect()
}
