//! JSON of other programs, within bounds.

use std::fmt;
use std::io::{BufRead, Read};
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};

use super::ImportError;
use super::lines::Lines;

/// The largest JSON or XML that is read. Of 8,192 threads with 1,000 buckets JSON takes half of that, and of
/// 1,024 cores with 3,500 buckets rteval's XML takes all.
pub(super) const LARGEST: u64 = 256 << 20;

/// All JSON of a file. Where something else stands before it, as when it was copied from a terminal,
/// its lines are taken without their frames, and those before and behind it are left out.
pub(super) fn bytes(mut from: &mut dyn BufRead) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    Read::take(&mut from, LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(too_large());
    }
    let start = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes).trim_ascii_start();
    match start.starts_with(b"{") {
        true => Ok(bytes),
        false => within(&bytes),
    }
}

/// That a file exceeds [`LARGEST`].
pub(super) fn too_large() -> ImportError {
    ImportError::new("it is larger than 256 MiB, the limit")
}

/// From the first line that begins with `{` to the last that is `}` alone. What was left out leaves
/// empty lines, so that places stay those of the file.
fn within(mut bytes: &[u8]) -> Result<Vec<u8>, ImportError> {
    let mut lines = Lines::new(&mut bytes);
    let (mut out, mut end, mut number) = (Vec::new(), 0, 0);
    let mut begun = false;
    while let Some(line) = lines.next()? {
        out.resize(out.len() + usize::try_from(line.number - number - 1).unwrap_or(0), b'\n');
        number = line.number;
        begun |= line.text.starts_with('{');
        if begun {
            out.extend_from_slice(line.text.as_bytes());
        }
        if begun && line.text.trim_end() == "}" {
            end = out.len();
        }
        out.push(b'\n');
    }
    out.truncate(if end > 0 { end } else { out.len() });
    Ok(out)
}

/// What a file holds, if it has that shape.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ImportError> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let before = &bytes[..e.valid_up_to()];
        let line = before.iter().filter(|&&b| b == b'\n').count();
        let column = before.iter().rev().take_while(|&&b| b != b'\n').count();
        ImportError::at(line as u64 + 1, column, "this is neither ASCII nor UTF-8")
    })?;
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|e| {
        let (line, column) = (e.line() as u64, e.column().saturating_sub(1));
        if e.is_eof() {
            return ImportError::at(line, column, "its JSON breaks off: the file is truncated")
                .try_this("copy it again, once the program that writes it has ended");
        }
        // The message ends with the place.
        let why = e.to_string();
        let why = why.rsplit_once(" at line ").map_or(why.as_str(), |(why, _)| why);
        ImportError::at(line, column, why)
    })
}

/// A map in its own order, in which no key comes twice.
#[derive(Debug, Default)]
pub(super) struct Entries<T>(pub(super) Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Each<T> {
            type Value = Entries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                let mut keys = std::collections::HashSet::new();
                while let Some((key, value)) = map.next_entry::<String, T>()? {
                    if !keys.insert(key.clone()) {
                        return Err(serde::de::Error::custom("a duplicate key"));
                    }
                    entries.push((key, value));
                }
                Ok(Entries(entries))
            }
        }
        from.deserialize_map(Each(PhantomData))
    }
}

impl Entries<u64> {
    /// The entries as ascending numbers; keys of digits only.
    pub(super) fn rows(&self) -> Result<Vec<(u64, u64)>, ImportError> {
        let number = |(key, count): &(String, u64)| {
            let row = super::lines::number(key);
            row.map(|row| (row, *count)).ok_or_else(|| {
                ImportError::new(format!(
                    "a histogram has the key `{}`, which is not a whole number",
                    wakescope_core::harmless::clean(key, 40)
                ))
            })
        };
        let mut rows = self.0.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        rows.sort_unstable();
        Ok(rows)
    }
}
