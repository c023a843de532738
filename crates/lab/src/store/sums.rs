//! The checksums of a cell's files, in the form that `sha256sum -c sums` reads.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::removal::MARKER;
use crate::sum;

/// The checksums' own file.
pub(crate) const SUMS: &str = "sums";
/// What came out of the guest's console. Its bits repeat if the guest has a result; how much a guest wrote
/// before it was taken away depends on the host.
pub const CONSOLE: &str = "console.log";
/// What differs between repetitions.
pub(crate) const META: &str = "meta.json";

/// Files that have no checksum.
const UNSUMMED: [&str; 4] = [SUMS, CONSOLE, META, MARKER];

/// The most files that a cell may have. A guest writes a handful.
const MOST_FILES: usize = 100;

/// Names of files with their SHA-256.
pub(crate) type Sums = BTreeMap<String, String>;

/// The checksums of all files in `folder` whose bits must repeat. What is not a plain file has no
/// place in a cell.
pub(crate) fn sums_of(folder: &Path) -> io::Result<Sums> {
    let mut sums = Sums::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().filter(|name| is_plain(name));
        let name = name.ok_or_else(|| refused(&entry.file_name().to_string_lossy()))?;
        if !entry.file_type()?.is_file() || sums.len() == MOST_FILES {
            return Err(refused(name));
        }
        if !UNSUMMED.contains(&name) {
            sums.insert(name.into(), sum::of_file(&entry.path())?);
        }
    }
    Ok(sums)
}

/// A name that needs no quoting anywhere.
fn is_plain(name: &str) -> bool {
    name.len() <= 100
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

fn refused(name: &str) -> io::Error {
    let why = format!("{name:?} is not a plain file that a cell contains");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// The text of the file `sums`.
pub(crate) fn to_text(sums: &Sums) -> String {
    sums.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect()
}

/// What the file `sums` says; `None` if it was not written by [`to_text`].
pub(crate) fn from_text(text: &str) -> Option<Sums> {
    let pair = |line: &str| line.split_once("  ").map(|(sum, name)| (name.into(), sum.into()));
    text.lines().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_written_as_sha256sum_does() {
        let sums = Sums::from([("run.json".into(), sum::of_bytes(b"abc"))]);
        let text = to_text(&sums);
        assert_eq!(
            text,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  run.json\n"
        );
        assert_eq!(from_text(&text), Some(sums));
        assert_eq!(from_text("nonsense\n"), None);
    }

    #[test]
    fn names_that_could_lead_elsewhere_are_not_plain() {
        for (name, plain) in [
            ("run.json", true),
            ("kernel-1_2.log", true),
            ("a b", false),
            ("a\nb", false),
            ("a/b", false),
            ("ä", false),
        ] {
            assert_eq!(is_plain(name), plain, "{name}");
        }
    }
}
