//! The file that a result goes to, and what the ending of its name says of its format.

use std::path::Path;

use crate::output::is_compressed;
use crate::{Failure, output};

/// Endings, each with the formats that such a file may hold: the first is meant where none is asked
/// for.
pub(crate) type Endings<'a, F> = &'a [(&'a str, &'a [F])];

/// Endings that say a format which nothing here writes.
const OTHERS: [&str; 29] = [
    "pdf", "ps", "eps", "jpg", "jpeg", "gif", "webp", "avif", "bmp", "tif", "tiff", "xml", "yaml",
    "yml", "toml", "doc", "docx", "odt", "rtf", "tex", "xls", "xlsx", "ods", "parquet", "zip",
    "gz", "xz", "zst", "bz2",
];

/// The format to write to `file`: what was asked for, else what the name's ending says, else
/// `default`.
///
/// Fails where the ending says another format than was asked for, or one that is not known; and where the file
/// cannot be written, since commands ask this before they do anything that takes long.
pub(crate) fn format_for<F: Copy + PartialEq>(
    file: Option<&Path>,
    asked: Option<F>,
    default: F,
    endings: Endings<'_, F>,
) -> Result<F, Failure> {
    let format = format_by_ending(file, asked, default, endings)?;
    file.map_or(Ok(()), output::check_file)?;
    Ok(format)
}

fn format_by_ending<F: Copy + PartialEq>(
    file: Option<&Path>,
    asked: Option<F>,
    default: F,
    endings: Endings<'_, F>,
) -> Result<F, Failure> {
    let Some((path, ending)) = file.and_then(|path| Some((path, ending_of(path)?))) else {
        return Ok(asked.unwrap_or(default));
    };
    let known = endings.iter().find(|(known, _)| *known == ending).map(|(_, formats)| *formats);
    match (asked, known) {
        (None, Some([first, ..])) => Ok(*first),
        (Some(asked), Some(formats)) if formats.contains(&asked) => Ok(asked),
        (Some(asked), None) if !OTHERS.contains(&ending.as_str()) => Ok(asked),
        _ => Err(refused(path, &ending, asked.is_some(), endings)),
    }
}

fn refused<F>(path: &Path, ending: &str, asked: bool, endings: Endings<'_, F>) -> Failure {
    let path = path.display();
    let what = match asked {
        true => {
            format!("{path}: the requested format does not match a name that ends in .{ending}")
        }
        false => format!("{path}: wakescope cannot write files that end in .{ending}"),
    };
    let known: Vec<String> = endings.iter().map(|(known, _)| format!(".{known}")).collect();
    Failure::new(what)
        .try_this(format!("use a file name with the ending of its format: {}", known.join(" ")))
}

/// The ending in small letters, if it is one: a version or a date in a name is none. Of what is compressed, the one
/// before that.
fn ending_of(path: &Path) -> Option<String> {
    let named = if is_compressed(path) { Path::new(path.file_stem()?) } else { path };
    let ending = named.extension()?.to_str()?.to_ascii_lowercase();
    let letters = ending.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_version = ending.starts_with('v') && ending[1..].bytes().all(|b| b.is_ascii_digit());
    (letters && !is_version).then_some(ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_say_the_format_or_agree_with_it() {
        let endings: Endings<'_, u8> = &[("txt", &[0, 1]), ("svg", &[2])];
        for (file, asked, want) in [
            (None, None, Some(0)),
            (None, Some(2), Some(2)),
            (Some("a"), None, Some(0)),
            (Some("a"), Some(2), Some(2)),
            (Some("a.txt"), Some(1), Some(1)),
            (Some("a.SVG"), None, Some(2)),
            (Some("a.svg"), Some(2), Some(2)),
            (Some("a.svg"), Some(0), None),
            (Some("a.txt"), Some(2), None),
            (Some("a.pdf"), None, None),
            (Some("a.pdf"), Some(2), None),
            (Some("a.txt.gz"), None, Some(0)),
            (Some("a.svg.GZ"), None, Some(2)),
            (Some("a.svg.gz"), Some(0), None),
            (Some("a.pdf.gz"), Some(2), None),
            (Some("a.prn.gz"), None, None),
            (Some("a.gz.gz"), None, None),
            (Some("a.gz"), None, Some(0)),
            (Some("a.gz"), Some(2), Some(2)),
            (Some("6.12.gz"), None, Some(0)),
            (Some("a.prn"), None, None),
            (Some("a.prn"), Some(2), Some(2)),
            (Some("/dev/stdout"), None, Some(0)),
            (Some("6.12"), None, Some(0)),
            (Some("run.v2"), None, Some(0)),
            (Some(".txt"), None, Some(0)),
        ] {
            let got = format_by_ending(file.map(Path::new), asked, 0, endings);
            assert_eq!(got.ok(), want, "{file:?} {asked:?}");
        }
    }
}
