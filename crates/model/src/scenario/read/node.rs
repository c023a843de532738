//! The text of a file as a tree: every value with its place.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

use super::error::Problem;

/// A value and where it stands.
pub(super) type Node = Spanned<Value>;

/// A value of TOML. Dates are none of a scenario's.
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Number(f64),
    Truth(bool),
    List(Vec<Node>),
    /// In the order of the file.
    Table(Vec<(Spanned<String>, Node)>),
}

/// The tree of a text.
pub(super) fn parse(text: &str) -> Result<Value, Problem> {
    toml::from_str(text).map_err(|e| {
        // What the library says where a table has no place of its own, or a value is a date.
        let what = match e.message() {
            message if message.ends_with("expected a borrowed string") => {
                "found a name with dots, expected a key alone, or a table in square brackets".into()
            }
            message if message.contains("private_datetime") => {
                "found a date, which no key of a scenario holds".into()
            }
            message => message.replace('\n', ": "),
        };
        Problem { at: e.span().map_or(0, |span| span.start), key: String::new(), what }
    })
}

impl Value {
    /// What it is, for a message.
    pub(super) fn described(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Whole(number) => format!("the number {number}"),
            Self::Number(number) => format!("the number {number:?}"),
            Self::Truth(truth) => truth.to_string(),
            Self::List(_) => "a list".into(),
            Self::Table(_) => "a table".into(),
        }
    }
}

/// The beginning of a text of the file, for a message.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, true, false, a list or a table")
            }

            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.into()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
                Ok(Value::Whole(number))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
                Ok(Value::Number(number))
            }

            fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
                Ok(Value::Truth(truth))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(node) = seq.next_element()? {
                    list.push(node);
                }
                Ok(Value::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut table = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    table.push(entry);
                }
                Ok(Value::Table(table))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
