//! Arguments of which a shell's completions offer names, though more than these can be written.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use wakescope_probe::load::Spec;

/// Reads an argument by `read`, which alone decides what may be written. Completions offer `names`.
pub(crate) fn offering<P: TypedValueParser>(
    names: impl IntoIterator<Item = &'static str>,
    read: P,
) -> impl TypedValueParser<Value = P::Value> {
    Offering { names: names.into_iter().collect(), read }
}

/// The loads whose names are complete: not `exec:COMMAND` or `disturb-KIND-TIME`.
pub(crate) fn load_names() -> impl Iterator<Item = &'static str> {
    let is_complete = |name: &&str| !name.contains(|c: char| c == ':' || c.is_ascii_uppercase());
    Spec::list().map(|(name, _)| name).filter(is_complete)
}

#[derive(Clone)]
struct Offering<P> {
    names: Vec<&'static str>,
    read: P,
}

impl<P: TypedValueParser> TypedValueParser for Offering<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, Error> {
        self.read.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use wakescope_probe::load::parse_list;

    use super::*;

    #[test]
    fn each_load_that_is_offered_can_be_written_so() {
        let names: Vec<_> = load_names().collect();
        assert!(names.contains(&"find") && names.contains(&"stress-kernel"), "{names:?}");
        for name in names {
            assert!(parse_list(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_is_offered_is_not_all_that_can_be_written() {
        let read = offering(["one", "two"], |text: &str| text.parse::<u8>());
        let names: Vec<_> = read.possible_values().into_iter().flatten().collect();
        assert_eq!(names, ["one", "two"].map(PossibleValue::new));
        let command =
            Command::new("test").arg(Arg::new("n").value_parser(read).hide_possible_values(true));
        let written = |word: &str| command.clone().try_get_matches_from(["test", word]);
        assert_eq!(written("7").unwrap().get_one::<u8>("n"), Some(&7));
        assert!(written("one").unwrap_err().to_string().contains("invalid digit"));
    }
}
