//! The names of stimuli as an argument, wherever one is asked for.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use wakescope_core::plan::Stimulus;

/// Reads the name of a stimulus that wakes probes; help, man pages and completions list them all.
pub(crate) fn stimuli() -> impl TypedValueParser<Value = Stimulus> {
    let listed = |&stimulus: &Stimulus| PossibleValue::new(stimulus.name()).help(stimulus.about());
    let names = PossibleValuesParser::new(Stimulus::OF_PROBES.iter().map(listed));
    names.try_map(|name| name.parse::<Stimulus>())
}
