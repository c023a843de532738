//! The names of stimuli as an argument, wherever one is asked for.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use wakescope_core::plan::Stimulus;

/// One stimulus, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    One(Stimulus),
    All,
}

/// The word for all of them.
const ALL: &str = "all";

/// Reads the name of a stimulus that wakes probes, or the word for all of them.
pub(crate) fn stimuli_or_all() -> impl TypedValueParser<Value = Chosen> {
    let all = PossibleValue::new(ALL).help("All but line and spin, one after the other");
    let names = PossibleValuesParser::new(Stimulus::OF_PROBES.iter().map(listed).chain([all]));
    names.try_map(|name| match name.as_str() {
        ALL => Ok(Chosen::All),
        name => name.parse().map(Chosen::One),
    })
}

fn listed(stimulus: &Stimulus) -> PossibleValue {
    PossibleValue::new(stimulus.name()).help(stimulus.about())
}

/// Reads the name of a stimulus that wakes probes in guests.
pub(crate) fn stimuli_of_guests() -> impl TypedValueParser<Value = Stimulus> {
    let names = PossibleValuesParser::new(Stimulus::OF_PROBES.iter().map(listed));
    names.try_map(|name| name.parse::<Stimulus>())
}
