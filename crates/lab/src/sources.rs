//! Sources that are part of the program, and are built on this machine.

use std::path::Path;

use wakescope_store::write_new;

use crate::cache::CacheError;
use crate::sum;

/// How many lines of a failed build are shown.
const LINES: usize = 12;

/// Files, by their names.
pub(crate) struct Sources<'a>(pub(crate) &'a [(&'a str, &'a str)]);

impl Sources<'_> {
    /// A line for each file, with its SHA-256: what is built of other sources has another place.
    pub(crate) fn sums(&self) -> String {
        let line =
            |(name, text): &(&str, &str)| format!("{name} {}\n", sum::of_bytes(text.as_bytes()));
        self.0.iter().map(line).collect()
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// Writes them into `folder`, where there are no such files yet.
    pub(crate) fn write_into(&self, folder: &Path) -> Result<(), CacheError> {
        self.0.iter().try_for_each(|(name, text)| {
            let file = folder.join(name);
            write_new(&file, text.as_bytes()).map_err(CacheError::io("write", &file))
        })
    }
}

/// The end of what a build that failed complained about.
pub(crate) fn last_lines(complaints: &str) -> Vec<String> {
    let lines: Vec<&str> = complaints.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].iter().map(ToString::to_string).collect()
}
