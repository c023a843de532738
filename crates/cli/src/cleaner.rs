//! The one place that makes whatever is printed or written to a report harmless to terminals.

use std::io::{self, Write};

use wakescope_report::style::is_hostile;

/// What stands for a character that is not shown.
const REPLACEMENT: &str = "\u{fffd}";

/// What begins a sequence of a terminal.
const ESCAPE: char = '\u{1b}';

/// The colours of [`Style`](wakescope_report::style::Style), without what begins each.
const COLOURS: [&str; 6] = ["[0m", "[1m", "[2m", "[31m", "[32m", "[33m"];

/// The format of the output, recognised by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nothing but spaces so far.
    Unknown,
    /// Hostile characters are replaced.
    Text,
    /// Hostile characters are written as `\u001b`: they can be inside strings only.
    Json,
    /// A picture, which no terminal is sent.
    Binary,
}

/// Passes bytes on to `to`, without what could move the cursor of a terminal, change its colours or
/// the direction of writing, or be seen by nobody. Names in records, paths and texts of other
/// programs may be anybody's; what escaped the cleaning of one of them is caught here.
pub(crate) struct Cleaner<W: Write> {
    to: W,
    kind: Kind,
    /// Whether this program's own colours pass.
    colours: bool,
    /// The begin of a character or a colour whose end is still to come.
    begun: Vec<u8>,
}

impl<W: Write> Cleaner<W> {
    pub(crate) fn new(to: W, colours: bool) -> Self {
        Self { to, kind: Kind::Unknown, colours, begun: Vec::new() }
    }

    /// Passes on all that has come so far but for what may go on. At the `end`, nothing does.
    fn pass(&mut self, end: bool) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.begun);
        let mut out = String::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        loop {
            let (valid, after) = match std::str::from_utf8(rest) {
                Ok(all) => (all, None),
                Err(e) => {
                    let (valid, after) = rest.split_at(e.valid_up_to());
                    // Just found to be valid.
                    (std::str::from_utf8(valid).unwrap_or_default(), Some((after, e.error_len())))
                }
            };
            let left = self.clean(valid, end || after.is_some(), &mut out);
            match after {
                None => {
                    self.begun = left.as_bytes().to_vec();
                    break;
                }
                Some((after, None)) if !end => {
                    self.begun = after.to_vec();
                    break;
                }
                Some((after, length)) => {
                    out.push_str(REPLACEMENT);
                    rest = &after[length.unwrap_or(after.len())..];
                }
            }
        }
        self.to.write_all(out.as_bytes())
    }

    /// Adds `text` to `out`, and returns its end where that may be the begin of a colour.
    fn clean<'t>(&self, text: &'t str, end: bool, out: &mut String) -> &'t str {
        let mut rest = text;
        while let Some(at) = rest.find(|c| is_hostile(c) && c != '\n' && c != '\t') {
            out.push_str(&rest[..at]);
            let found = &rest[at..];
            let c = found.chars().next().unwrap_or(ESCAPE);
            let after = &found[c.len_utf8()..];
            rest = after;
            if c == ESCAPE && self.colours && self.kind == Kind::Text {
                if let Some(colour) = COLOURS.iter().find(|colour| after.starts_with(**colour)) {
                    out.push(c);
                    out.push_str(colour);
                    rest = &after[colour.len()..];
                    continue;
                }
                if !end && COLOURS.iter().any(|colour| colour.starts_with(after)) {
                    return found;
                }
            }
            match self.kind {
                Kind::Json => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                _ => out.push_str(REPLACEMENT),
            }
        }
        out.push_str(rest);
        ""
    }
}

/// What begins so; `None` if that is not seen yet.
fn kind_of(bytes: &[u8]) -> Option<Kind> {
    match bytes.trim_ascii_start().first()? {
        0x89 => Some(Kind::Binary),
        b'{' | b'[' => Some(Kind::Json),
        _ => Some(Kind::Text),
    }
}

impl<W: Write> Write for Cleaner<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.kind == Kind::Unknown {
            self.kind = kind_of(bytes).unwrap_or(Kind::Unknown);
        }
        if self.kind == Kind::Binary {
            return self.to.write(bytes);
        }
        self.begun.extend_from_slice(bytes);
        self.pass(false)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass(true)?;
        self.to.flush()
    }
}

/// `text` as it is shown on a terminal.
pub(crate) fn cleaned(text: &str, colours: bool) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut cleaner = Cleaner::new(&mut out, colours);
    cleaner.kind = Kind::Text;
    // Writing to memory cannot fail.
    let _ = cleaner.write_all(text.as_bytes()).and_then(|()| cleaner.flush());
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written, whole and byte by byte.
    #[track_caller]
    fn check(text: &[u8], colours: bool, want: &str) {
        for step in [1, 2, 3, 5, text.len().max(1)] {
            let mut out = Vec::new();
            let mut cleaner = Cleaner::new(&mut out, colours);
            for part in text.chunks(step) {
                cleaner.write_all(part).unwrap();
            }
            cleaner.flush().unwrap();
            drop(cleaner);
            let got = String::from_utf8_lossy(&out);
            assert_eq!(got, want, "{:?} by {step}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn text_cannot_command_a_terminal() {
        check("10 µs → 5\n\tend".as_bytes(), false, "10 µs → 5\n\tend");
        check(b"a\x1b]0;x\x07b\r\x7f", false, "a\u{fffd}]0;x\u{fffd}b\u{fffd}\u{fffd}");
        check("a\u{9b}31m\u{61c}\u{202e}".as_bytes(), true, "a\u{fffd}31m\u{fffd}\u{fffd}");
        check(b"\x9b31m\xff\xc3", true, "\u{fffd}31m\u{fffd}\u{fffd}");
        check("ab\u{e0041}c".as_bytes(), false, "ab\u{fffd}c");
    }

    #[test]
    fn only_own_colours_pass_and_only_where_there_are_some() {
        check(b"\x1b[31mred\x1b[0m", true, "\x1b[31mred\x1b[0m");
        check(b"\x1b[31mred\x1b[0m", false, "\u{fffd}[31mred\u{fffd}[0m");
        check(
            b"\x1b[2J\x1b[1A\x1b[1;31m\x1b",
            true,
            "\u{fffd}[2J\u{fffd}[1A\u{fffd}[1;31m\u{fffd}",
        );
        check(b"\x1b[3", true, "\u{fffd}[3");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let hostile = "a\u{9b}\u{7f}\u{202e}\u{61c}\u{e0041}é";
        for json in [format!("{{\"a\": \"{hostile}\"}}\n"), format!("\n [\"{hostile}\"]")] {
            let want: serde_json::Value = serde_json::from_str(&json).unwrap();
            let mut out = Vec::new();
            let mut cleaner = Cleaner::new(&mut out, true);
            cleaner.write_all(json.as_bytes()).and_then(|()| cleaner.flush()).unwrap();
            drop(cleaner);
            let out = String::from_utf8(out).unwrap();
            assert!(out.chars().all(|c| c == '\n' || !is_hostile(c)), "{out:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap(), want);
        }
    }

    #[test]
    fn pictures_pass_as_they_are() {
        let png = b"\x89PNG\r\n\x1a\n\x00\xff\x1b[2J";
        let mut out = Vec::new();
        Cleaner::new(&mut out, false).write_all(png).unwrap();
        assert_eq!(out, png);
    }
}
