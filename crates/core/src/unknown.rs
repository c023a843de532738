//! Keys of a record that this version does not know, kept as the text that they are.
//!
//! Parsed values would take more than thirty times the memory of their text.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::StringDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Unknown keys and their values as JSON.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Unknown(BTreeMap<String, Box<RawValue>>);

impl Unknown {
    /// The JSON of a key's value, without blanks between its parts.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| value.get())
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    #[cfg(test)]
    pub(crate) fn of(key: &str, json: &str) -> Self {
        let value = RawValue::from_string(json.into()).unwrap();
        Self([(key.into(), value)].into())
    }

    fn insert(&mut self, key: String, value: &RawValue) -> serde_json::Result<()> {
        self.0.insert(key, RawValue::from_string(compact(value.get()))?);
        Ok(())
    }
}

impl PartialEq for Unknown {
    fn eq(&self, other: &Self) -> bool {
        let texts = |of: &Self| -> Vec<(String, String)> {
            of.0.iter().map(|(key, value)| (key.clone(), value.get().to_owned())).collect()
        };
        texts(self) == texts(other)
    }
}

/// JSON without the blanks between its parts: a record stays on one line.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for c in json.chars() {
        if in_string || !matches!(c, ' ' | '\t' | '\n' | '\r') {
            out.push(c);
        }
        match c {
            '"' if !is_escaped => in_string = !in_string,
            _ => {}
        }
        is_escaped = in_string && c == '\\' && !is_escaped;
    }
    out
}

/// Reads a type whose fields are known through `read`, and puts all other keys into the second value.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, T>(
    from: D,
    read: impl FnOnce(Splitting<'_, D>) -> Result<T, D::Error>,
) -> Result<(T, Unknown), D::Error> {
    let mut unknown = Unknown::default();
    let read = read(Splitting { inner: from, unknown: &mut unknown })?;
    Ok((read, unknown))
}

/// Implements `Serialize` and `Deserialize` for a struct that derives both with
/// `#[serde(remote = "Self")]` and has a field `other: Unknown` with `#[serde(skip)]`.
macro_rules! keep_unknown {
    ($type:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                struct Known<'a>(&'a $type);
                impl serde::Serialize for Known<'_> {
                    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                        $type::serialize(self.0, out)
                    }
                }
                #[derive(serde::Serialize)]
                struct Whole<'a> {
                    #[serde(flatten)]
                    known: Known<'a>,
                    #[serde(flatten)]
                    other: &'a $crate::unknown::Unknown,
                }
                serde::Serialize::serialize(&Whole { known: Known(self), other: &self.other }, out)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let (mut read, other) =
                    $crate::unknown::deserialize(from, |from| $type::deserialize(from))?;
                read.other = other;
                Ok(read)
            }
        }
    };
}

pub(crate) use keep_unknown;

/// A deserializer of a struct that takes out the keys that are no fields.
pub(crate) struct Splitting<'a, D> {
    inner: D,
    unknown: &'a mut Unknown,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Splitting<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Fields { visitor, fields, unknown: self.unknown, of: PhantomData::<&'de ()> };
        self.inner.deserialize_struct(name, fields, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Fields<'a, 'de, V> {
    visitor: V,
    fields: &'static [&'static str],
    unknown: &'a mut Unknown,
    of: PhantomData<&'de ()>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Fields<'_, 'de, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Known { map, fields: self.fields, unknown: self.unknown })
    }
}

struct Known<'a, A> {
    map: A,
    fields: &'static [&'static str],
    unknown: &'a mut Unknown,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Known<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if self.fields.contains(&key.as_str()) {
                let key: StringDeserializer<A::Error> = key.into_deserializer();
                return seed.deserialize(key).map(Some);
            }
            let value: Box<RawValue> = self.map.next_value()?;
            self.unknown.insert(key, &value).map_err(serde::de::Error::custom)?;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

impl<'de> Deserialize<'de> for Unknown {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read: BTreeMap<String, Box<RawValue>> = Deserialize::deserialize(from)?;
        let mut unknown = Self::default();
        for (key, value) in read {
            unknown.insert(key, &value).map_err(serde::de::Error::custom)?;
        }
        Ok(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(remote = "Self")]
    struct Record {
        first: u64,
        #[serde(default, rename = "second")]
        renamed: Vec<u64>,
        #[serde(skip)]
        other: Unknown,
    }

    keep_unknown!(Record);

    #[test]
    fn unknown_keys_are_kept_as_they_are() {
        let text = "{\"a\" : [ 1e400, \"x \\\" y\\\\\" ,\n null], \"first\": 1, \"b\": {} }";
        let read: Record = serde_json::from_str(text).unwrap();
        assert_eq!((read.first, read.other.get("b")), (1, Some("{}")));
        assert_eq!(read.other.get("a"), Some(r#"[1e400,"x \" y\\",null]"#));
        let written = serde_json::to_string(&read).unwrap();
        assert_eq!(written, r#"{"first":1,"second":[],"a":[1e400,"x \" y\\",null],"b":{}}"#);
        assert_eq!(serde_json::from_str::<Record>(&written).unwrap(), read);
        // Also where it was parsed before.
        let value: serde_json::Value = serde_json::from_str(r#"{"first":1,"a":[2]}"#).unwrap();
        let read: Record = serde_json::from_value(value).unwrap();
        assert_eq!(read.other.get("a"), Some("[2]"));
    }

    #[test]
    fn known_keys_are_checked_as_usual() {
        for (text, why) in [
            ("{\"a\":1}", "missing field `first`"),
            ("{\"first\":1,\"first\":2}", "duplicate field `first`"),
            ("{\"first\":-1}", "expected u64"),
            ("[1,[]]", "expected struct Record"),
            ("{\"first\":1,\"a\":[}", "expected value"),
        ] {
            let e = serde_json::from_str::<Record>(text).unwrap_err().to_string();
            assert!(e.contains(why), "{text}: {e}");
        }
    }
}
