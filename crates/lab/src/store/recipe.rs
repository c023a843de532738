//! What determines a cell's result, and the name that follows from it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wakescope_core::hex::to_hex;

/// Hashed first: a change of what the parts mean changes this, and with it every key.
pub(crate) const FORMAT: &str = "wakescope.cell/1";

/// Everything that determines a cell's result: texts with names, in an order that never changes.
///
/// Paths have no place in it. Where an argument names a file, it is replaced by what the file holds
/// is called, so that the same kernel in another folder is the same cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    schema: String,
    parts: Vec<(String, String)>,
}

/// The part that is the guest's order, where the command line does not contain it.
pub(crate) const ORDER: &str = "order";

/// The part that is the SHA-256 of the guest's root image, if it has one.
pub(crate) const ROOT: &str = "root";

/// The parts that every recipe has.
#[derive(Clone, Copy, Debug)]
pub struct Ingredients<'a> {
    /// SHA-256 of the kernel's image, in hexadecimal.
    pub kernel_sha256: &'a str,
    /// SHA-256 of the guest's image, in hexadecimal.
    pub guest_sha256: &'a str,
    /// Which emulator: its version, and what else tells two builds of it apart.
    pub emulator: &'a str,
    /// Its arguments, paths replaced by names of contents.
    pub arguments: &'a [String],
    /// The kernel's command line.
    pub command_line: &'a str,
}

impl Recipe {
    /// The recipe of these parts.
    pub fn new(ingredients: &Ingredients<'_>) -> Self {
        let Ingredients { kernel_sha256, guest_sha256, emulator, arguments, command_line } =
            *ingredients;
        let first = [("kernel", kernel_sha256), ("guest", guest_sha256), ("emulator", emulator)];
        let arguments = arguments.iter().map(|argument| ("argument", argument.as_str()));
        let parts = first.into_iter().chain(arguments).chain([("command_line", command_line)]);
        let parts = parts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { schema: FORMAT.into(), parts }
    }

    /// The recipe with one more part at its end.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.parts.push((name.into(), value.into()));
        self
    }

    /// Fails if another version of wakescope wrote it: its parts may mean something else.
    pub(super) fn expect_known(&self) -> Result<(), String> {
        match self.schema.as_str() {
            FORMAT => Ok(()),
            other => Err(format!("it is a {other}, and this version reads {FORMAT}")),
        }
    }

    /// The recipe of the same machine until its guest reads the order.
    #[must_use]
    pub fn boot(mut self) -> Self {
        self.parts.retain(|(name, _)| name != ORDER);
        self
    }

    /// The parts, in their order.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first part of this name.
    pub fn part(&self, name: &str) -> Option<&str> {
        self.parts().find(|(part, _)| *part == name).map(|(_, value)| value)
    }

    /// What follows this flag among the emulator's arguments.
    pub(crate) fn argument(&self, flag: &str) -> Option<&str> {
        let mut arguments = self.parts().filter(|(name, _)| *name == "argument");
        arguments.find(|(_, value)| *value == flag)?;
        arguments.next().map(|(_, value)| value)
    }

    /// How many CPUs its machine has, in words, unless it is one.
    pub(crate) fn several_cpus(&self) -> Option<&str> {
        match self.argument("-smp") {
            Some("1") => None,
            other => {
                Some(other.and_then(|all| all.split(',').next()).unwrap_or("an unknown number of"))
            }
        }
    }

    /// The name of the cell. Each text is preceded by its length, so that no two recipes are
    /// hashed as the same bytes.
    pub fn key(&self) -> Key {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(&self.schema);
        for (name, value) in &self.parts {
            add(name);
            add(value);
        }
        Key(to_hex(&hash.finalize()))
    }
}

/// The name of a cell: SHA-256 of its recipe, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// The 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_digit = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 64 && text.bytes().all(is_digit) {
            Ok(Self(text.into()))
        } else {
            Err("a cell's key has 64 lower-case hexadecimal digits".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn recipe(arguments: &[&str]) -> Recipe {
        Recipe::new(&Ingredients {
            kernel_sha256: "11",
            guest_sha256: "22",
            emulator: "QEMU 10.0.13",
            arguments: &arguments.iter().map(ToString::to_string).collect::<Vec<_>>(),
            command_line: "preempt=full",
        })
    }

    #[test]
    fn a_machine_of_one_cpu_is_told_from_others() {
        for (arguments, want) in [
            (&["-smp", "1"][..], None),
            (&["-icount", "1", "-smp", "2,sockets=2", "-m", "1"], Some("2")),
            (&["-smp", "12"], Some("12")),
            (&["-smp"], Some("an unknown number of")),
            (&["-m", "1"], Some("an unknown number of")),
        ] {
            assert_eq!(recipe(arguments).several_cpus(), want, "{arguments:?}");
        }
        // Of the arguments alone.
        assert_eq!(recipe(&["-smp"]).with("argumentative", "1").argument("-smp"), None);
    }

    #[test]
    fn the_key_is_stable_and_has_the_form_that_is_read_back() {
        // Another key here loses everybody's cache: change the format's version along with it.
        let key = recipe(&["-icount", "shift=0,sleep=off"]).key();
        assert_eq!(
            key.as_str(),
            "76c3ee5dadf57ab047bde63209b42a9a86e14735e6a75b82674024ee5ba5afeb"
        );
        assert_eq!(key.as_str().parse(), Ok(key));
        for text in ["", "12", "../../../etc/passwd", &"A".repeat(64), &"0".repeat(65)] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }

    #[test]
    fn where_one_text_ends_and_the_next_begins_makes_a_difference() {
        let recipes = [
            recipe(&[]),
            recipe(&[""]),
            recipe(&["ab"]),
            recipe(&["a", "b"]),
            recipe(&["b", "a"]),
            recipe(&["a"]).with("argument", "b"),
            recipe(&["a"]).with("argumentb", ""),
            recipe(&["a"]).with("", "argumentb"),
        ];
        let keys: BTreeSet<Key> = recipes.iter().map(Recipe::key).collect();
        assert_eq!(keys.len(), recipes.len());
    }

    #[test]
    fn parts_are_found_by_name() {
        let recipe = recipe(&["-smp"]).with("shift", "0");
        assert_eq!(recipe.part("kernel"), Some("11"));
        assert_eq!(recipe.part("argument"), Some("-smp"));
        assert_eq!(recipe.part("shift"), Some("0"));
        assert_eq!(recipe.part("no such"), None);
    }

    proptest! {
        #[test]
        fn one_changed_byte_is_another_key(
            parts in prop::collection::vec(("[a-z_]{1,8}", "[ -~]{1,20}"), 1..6),
            part in any::<prop::sample::Index>(),
            byte in any::<prop::sample::Index>(),
            in_name in any::<bool>(),
        ) {
            let build = |parts: &[(String, String)]| {
                parts.iter().fold(recipe(&[]), |r, (name, value)| r.with(name, value))
            };
            let before = build(&parts).key();
            let mut changed = parts.clone();
            let part = part.index(parts.len());
            let text = if in_name { &mut changed[part].0 } else { &mut changed[part].1 };
            let at = byte.index(text.len());
            let other = if &text[at..=at] == "x" { "y" } else { "x" };
            text.replace_range(at..=at, other);
            prop_assert_ne!(build(&changed).key(), before);
        }
    }
}
