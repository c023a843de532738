//! Why a file is no scenario, and where.

use super::limits;

/// Why a file is no scenario. Texts of the file stand in it as they were written: they are to be made
/// safe before they are printed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {}{what}", prefix(.key))]
pub struct ReadError {
    /// The file, as the caller named it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The key with all above it, entries of lists from 0: `task[1].policy`. Empty for the whole file.
    pub key: String,
    /// What was found, and what was expected.
    pub what: String,
}

impl ReadError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        "docs/model/scenarios.md lists every key with its unit and limits"
    }

    /// That a file of so many bytes is too large to be looked at.
    pub(super) fn too_large(file: &str, bytes: usize) -> Self {
        let what = format!("found {bytes} bytes, expected at most {}", limits::FILE);
        Self { file: file.into(), line: 1, column: 1, key: String::new(), what }
    }
}

fn prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

/// The same before the file's name is known.
#[derive(Debug)]
pub(super) struct Problem {
    /// In bytes from the start of the text.
    pub(super) at: usize,
    pub(super) key: String,
    pub(super) what: String,
}

impl Problem {
    pub(super) fn in_file(self, file: &str, text: &str) -> ReadError {
        let before = text.get(..self.at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ReadError {
            file: file.into(),
            line: 1 + before.matches('\n').count(),
            column: 1 + before[start..].chars().count(),
            key: self.key,
            what: self.what,
        }
    }
}
