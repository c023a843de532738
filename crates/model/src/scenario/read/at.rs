//! A place in the tree of a file, and what is expected there.

use std::ops::RangeInclusive;

use super::error::Problem;
use super::nearest::nearest;
use super::node::{Node, Value, quoted};

/// A value, and how it is reached.
#[derive(Clone)]
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    start: usize,
    key: String,
}

impl<'a> At<'a> {
    /// The whole file.
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, start: 0, key: String::new() }
    }

    fn below(&self, node: &'a Node, key: String) -> Self {
        Self { value: node.get_ref(), start: node.span().start, key }
    }

    /// That something is wrong here.
    pub(super) fn problem(&self, what: impl Into<String>) -> Problem {
        Problem { at: self.start, key: self.key.clone(), what: what.into() }
    }

    /// That something else than `expected` was found.
    pub(super) fn found_instead_of(&self, expected: &str) -> Problem {
        self.problem(format!("found {}, expected {expected}", self.value.described()))
    }

    /// A text; `expected` says of which kind.
    pub(super) fn text(&self, expected: &str) -> Result<&'a str, Problem> {
        match self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.found_instead_of(expected)),
        }
    }

    /// A name of at most so many characters of printable ASCII.
    pub(super) fn name(&self, longest: usize) -> Result<String, Problem> {
        let expected = format!("a name of 1 to {longest} printable ASCII characters");
        let name = self.text(&expected)?;
        if is_name(name, longest) { Ok(name.into()) } else { Err(self.found_instead_of(&expected)) }
    }

    /// A whole number; `of` says of what.
    pub(super) fn whole(&self, range: RangeInclusive<u64>, of: &str) -> Result<u64, Problem> {
        let number = match self.value {
            Value::Whole(number) => u64::try_from(*number).ok().filter(|n| range.contains(n)),
            _ => None,
        };
        number.ok_or_else(|| {
            self.found_instead_of(&format!("{of}: {} to {}", range.start(), range.end()))
        })
    }

    /// The same, of those that fit.
    pub(super) fn small(&self, range: RangeInclusive<u64>, of: &str) -> Result<u32, Problem> {
        let number = self.whole(range, of)?;
        u32::try_from(number).map_err(|_| self.found_instead_of(of))
    }

    /// A number above 0; `of` says of what.
    pub(super) fn positive(&self, most: f64, of: &str) -> Result<f64, Problem> {
        let number = match *self.value {
            Value::Whole(number) => number as f64,
            Value::Number(number) => number,
            _ => f64::NAN,
        };
        if number > 0.0 && number <= most {
            return Ok(number);
        }
        Err(self.found_instead_of(&format!("{of}: above 0, at most {most}")))
    }

    pub(super) fn truth(&self) -> Result<bool, Problem> {
        match *self.value {
            Value::Truth(truth) => Ok(truth),
            _ => Err(self.found_instead_of("true or false")),
        }
    }

    /// The entries of a list; `expected` says of what.
    pub(super) fn list(&self, most: usize, expected: &str) -> Result<Vec<At<'a>>, Problem> {
        let Value::List(nodes) = self.value else {
            return Err(self.found_instead_of(&format!("a list of {expected}")));
        };
        if nodes.len() > most {
            let found = nodes.len();
            return Err(self.problem(format!("found {found} entries, expected at most {most}")));
        }
        let entry = |(i, node)| self.below(node, format!("{}[{i}]", self.key));
        Ok(nodes.iter().enumerate().map(entry).collect())
    }

    /// A list of so many entries; `expected` says of which.
    pub(super) fn array<const N: usize>(&self, expected: &str) -> Result<[At<'a>; N], Problem> {
        let entries = match self.value {
            Value::List(nodes) if nodes.len() == N => self.list(N, expected)?,
            _ => Vec::new(),
        };
        entries.try_into().map_err(|_| self.found_instead_of(expected))
    }

    /// The entries of a table whose keys are names.
    pub(super) fn named(
        &self,
        most: usize,
        expected: &str,
    ) -> Result<Vec<(&'a str, At<'a>)>, Problem> {
        let Value::Table(entries) = self.value else {
            return Err(self.found_instead_of(expected));
        };
        if entries.len() > most {
            let found = entries.len();
            return Err(self.problem(format!("found {found} entries, expected at most {most}")));
        }
        let entry = |(key, node): &'a (toml::Spanned<String>, Node)| {
            let name = key.get_ref().as_str();
            (name, self.below(node, self.key_below(name)))
        };
        Ok(entries.iter().map(entry).collect())
    }

    /// The entries of a table with these keys; `of` says whose keys they are.
    pub(super) fn fields(&self, of: &str, known: &[&'static str]) -> Result<Fields<'a>, Problem> {
        let Value::Table(entries) = self.value else {
            return Err(self.found_instead_of(of));
        };
        for (key, _) in entries {
            if !known.contains(&key.get_ref().as_str()) {
                return Err(self.unknown_key(key, of, known));
            }
        }
        Ok(Fields { at: self.clone(), of: of.into(), entries })
    }

    pub(super) fn unknown_key(
        &self,
        key: &toml::Spanned<String>,
        of: &str,
        known: &[&'static str],
    ) -> Problem {
        let all = known.join(", ");
        let near = nearest(key.get_ref(), known.iter().copied()).unwrap_or_default();
        let written = quoted(key.get_ref());
        let what = match known {
            [_] => format!("found the key {written}, expected only `{all}` in {of}"),
            _ => format!("found the key {written}, expected `{near}` or another of {of}: {all}"),
        };
        Problem { at: key.span().start, key: self.key.clone(), what }
    }

    fn key_below(&self, name: &str) -> String {
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        // A hostile key is as long as the file.
        let name: String = name.chars().take(80).collect();
        let name =
            if !name.is_empty() && name.chars().all(bare) { name } else { format!("{name:?}") };
        if self.key.is_empty() { name } else { format!("{}.{name}", self.key) }
    }
}

/// Whether `text` can be a name.
pub(super) fn is_name(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len()) && text.bytes().all(|b| (b' '..=b'~').contains(&b))
}

/// A table, all keys of which are known.
pub(super) struct Fields<'a> {
    /// Where it stands.
    pub(super) at: At<'a>,
    of: String,
    entries: &'a [(toml::Spanned<String>, Node)],
}

impl<'a> Fields<'a> {
    /// The value of a key, if the table has it.
    pub(super) fn get(&self, key: &str) -> Option<At<'a>> {
        let (_, node) = self.entries.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(self.at.below(node, self.at.key_below(key)))
    }

    /// The value of a key that the table must have.
    pub(super) fn need(&self, key: &str) -> Result<At<'a>, Problem> {
        self.get(key).ok_or_else(|| {
            self.at.problem(format!("found no `{key}`, expected one in {}", self.of))
        })
    }

    /// The one key of the table.
    pub(super) fn only(&self) -> Result<(&'a str, At<'a>), Problem> {
        match self.entries {
            [(key, node)] => {
                let name = key.get_ref().as_str();
                Ok((name, self.at.below(node, self.at.key_below(name))))
            }
            _ => {
                let found = self.entries.len();
                Err(self.at.problem(format!("found {found} keys, expected one in {}", self.of)))
            }
        }
    }
}
