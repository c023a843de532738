//! Text, line by line, within bounds.

use std::io::{BufRead, Read};

use super::ImportError;
use super::frame::unframed;
use wakescope_core::harmless::clean;

/// The longest line that is read. The longest that any of the programs writes are cyclictest's
/// lists of cycles, up to a million of them.
const LONGEST: u64 = 16 << 20;

/// What some editors put at the begin of a text.
const BOM: char = '\u{feff}';

/// The lines of a file, without what logs, terminals and documents put around them.
pub(super) struct Lines<'a> {
    from: &'a mut dyn BufRead,
    bytes: Vec<u8>,
    /// The line without what moves a cursor, where it has that.
    plain: Option<String>,
    /// The name in brackets that lines begin with, as in `[VM 1]`.
    name: Option<String>,
    number: u64,
}

/// One line, without its end.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub(super) number: u64,
    pub(super) text: &'a str,
    /// How many bytes of the line in the file come before `text`.
    pub(super) offset: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(from: &'a mut dyn BufRead) -> Self {
        Self { from, bytes: Vec::new(), plain: None, name: None, number: 0 }
    }

    /// How many lines have been read.
    pub(super) fn count(&self) -> u64 {
        self.number
    }

    /// The next line that a program wrote, without its frames; `None` at the end. Its end may be
    /// that of Unix or of DOS, but there must be one: half a number looks like a number.
    ///
    /// Lines with different names before them are refused: two programs' lines are mixed there.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, ImportError> {
        let (offset, length) = loop {
            let Some(text) = self.read()? else { return Ok(None) };
            let Some(line) = unframed(text) else { continue };
            let (offset, length) = (text.len() - line.text.len(), line.text.len());
            if let Some(name) = line.name.map(str::to_owned) {
                self.check_name(name)?;
            }
            break (offset, length);
        };
        let whole = self.text();
        let text = &whole[offset..offset + length];
        // Without escapes, places in the line are others.
        let offset = if self.plain.is_none() { offset } else { 0 };
        Ok(Some(Line { number: self.number, text, offset }))
    }

    fn check_name(&mut self, name: String) -> Result<(), ImportError> {
        let known = self.name.get_or_insert_with(|| name.clone());
        if *known == name {
            return Ok(());
        }
        Err(mixed(self.number, known, &name))
    }

    /// The line that was read last.
    fn text(&self) -> &str {
        match &self.plain {
            Some(plain) => plain,
            // It was found to be UTF-8 when it was read.
            None => std::str::from_utf8(&self.bytes).unwrap_or_default().trim_start_matches(BOM),
        }
    }

    /// Reads a line as it is in the file, but without escapes.
    fn read(&mut self) -> Result<Option<&str>, ImportError> {
        self.bytes.clear();
        self.plain = None;
        let read = Read::take(&mut self.from, LONGEST).read_until(b'\n', &mut self.bytes)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let number = self.number;
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
        } else if !is_prompt(&self.bytes) && !moves_down(&self.bytes) {
            return Err(match read as u64 {
                LONGEST => ImportError::at(number, 0, "the line is longer than 16 MiB"),
                _ => ImportError::at(number, read, "the file ends in the middle of a line")
                    .try_this("take the whole file; if this is all, add a newline at its end"),
            });
        }
        if self.bytes.last() == Some(&b'\r') {
            self.bytes.pop();
        }
        if let Some(at) = self.bytes.iter().position(|&b| b == 0) {
            return Err(ImportError::at(number, at, "there is a zero byte: this is not text"));
        }
        let text = std::str::from_utf8(&self.bytes).map_err(|e| {
            ImportError::at(number, e.valid_up_to(), "this is neither ASCII nor UTF-8")
        })?;
        if text.contains('\x1b') {
            self.plain = Some(without_escapes(text));
        }
        Ok(Some(self.text()))
    }
}

/// That lines have different names in brackets before them.
pub(super) fn mixed(line: u64, known: &str, name: &str) -> ImportError {
    let (known, name) = (clean(known, 40), clean(name, 40));
    let why = format!("lines of `[{known}]` and of `[{name}]` are mixed");
    ImportError::at(line, 0, why)
        .try_this(format!("keep those of one: grep -F '[{known}]' FILE > one.txt"))
}

/// Whether these bytes are no figures: what is copied from a terminal ends with its prompt.
pub(super) fn is_prompt(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| unframed(text).is_none())
}

impl<'a> Line<'a> {
    /// What is between blanks, each with its place.
    pub(super) fn words(self) -> impl Iterator<Item = Word<'a>> {
        let start = self.text.as_ptr() as usize;
        let word = move |text: &'a str| Word {
            line: self.number,
            column: text.as_ptr() as usize - start,
            offset: self.offset,
            text,
        };
        self.text.split_ascii_whitespace().map(word)
    }

    /// The rest of it, from a byte of its text on.
    pub(super) fn from(self, at: usize) -> Self {
        Self { text: &self.text[at..], offset: self.offset + at, ..self }
    }

    /// The words after `head`, if the line begins so.
    pub(super) fn after(self, head: &str) -> Option<Vec<Word<'a>>> {
        self.text
            .starts_with(head)
            .then(|| self.words().filter(|word| word.column >= head.trim_end().len()).collect())
    }

    /// An error about the whole line, which is quoted.
    pub(super) fn fault(self, why: &str) -> ImportError {
        ImportError::at(self.number, self.offset, format!("{why}: `{}`", clean(self.text, 60)))
    }
}

/// A word and where it is.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) line: u64,
    /// Its place in the text of its line.
    pub(super) column: usize,
    /// How many bytes of the line in the file come before that text.
    pub(super) offset: usize,
    pub(super) text: &'a str,
}

impl Word<'_> {
    /// The whole number that it is.
    pub(super) fn number(self) -> Result<u64, ImportError> {
        number(self.text).ok_or_else(|| self.fault("not a whole number below 2^64"))
    }

    /// The decimal number that it is, as one of a thousand parts of its unit, and whether it is
    /// exact so.
    pub(super) fn thousandths(self) -> Result<u64, ImportError> {
        thousandths(self.text).ok_or_else(|| self.fault("not a decimal number"))
    }

    pub(super) fn fault(self, why: &str) -> ImportError {
        let why = format!("`{}` is {why}", clean(self.text, 40));
        ImportError::at(self.line, self.offset + self.column, why)
    }
}

/// Whether a terminal's cursor is moved down and no more: so `cyclictest -M` leaves its figures at the end,
/// without an end of the line.
fn moves_down(bytes: &[u8]) -> bool {
    bytes.ends_with(b"B")
        && std::str::from_utf8(bytes).is_ok_and(|text| without_escapes(text).is_empty())
}

/// A line without what moves a terminal's cursor: `ESC [ … letter`.
pub(super) fn without_escapes(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        out.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |at| at + 1);
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

/// A whole number of nothing but digits.
pub(super) fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// `12.345` as 12345. Further digits are cut off.
pub(super) fn thousandths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    number(fraction)?;
    let fraction: String = format!("{fraction}000").chars().take(3).collect();
    number(whole)?.checked_mul(1_000)?.checked_add(number(&fraction)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<String>, ImportError> {
        let mut from = bytes;
        let mut lines = Lines::new(&mut from);
        let mut all = Vec::new();
        while let Some(line) = lines.next()? {
            all.push(line.text.to_owned());
        }
        Ok(all)
    }

    #[test]
    fn lines_of_unix_and_dos_are_read() {
        assert_eq!(all(b"\xef\xbb\xbfa b\r\n\nc\n").unwrap(), ["a b", "", "c"]);
        for (bytes, why) in [
            (&b"a\nb"[..], "line 2, column 2: the file ends in the middle of a line"),
            (b"[x] a\n[y] b\n", "line 2, column 1: lines of `[x]` and of `[y]` are mixed"),
            (b"a\xff\n", "line 1, column 2: this is neither ASCII nor UTF-8"),
            (b"a\n\0\0\n", "line 2, column 1: there is a zero byte: this is not text"),
        ] {
            assert_eq!(all(bytes).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn what_is_around_lines_comes_off_and_places_are_those_of_the_file() {
        let text = b"$ run\n[x] 12:00:01 a\n```\n\x1b[2A\x1b[4A  b \x1b[0m\n\x1b[K\nroot@vm:~# ";
        assert_eq!(all(text).unwrap(), ["a", "b ", ""]);
        assert_eq!(all(b"a\n\x1b[4A\x1b[4B").unwrap(), ["a", ""]);
        for cut in ["a\n\x1b[4A", "a\n\x1b[4A\x1b[4", "a\n\x1b[4BB", "a\n\x1b"] {
            assert!(all(cut.as_bytes()).is_err(), "{cut:?}");
        }
        let mut from = &b"[x]   5 6z\n"[..];
        let mut lines = Lines::new(&mut from);
        let line = lines.next().unwrap().unwrap();
        let words: Vec<Word<'_>> = line.words().collect();
        let error = words[1].number().unwrap_err();
        assert_eq!((error.line, error.column), (Some(1), Some(9)));
    }

    #[test]
    fn a_line_without_end_is_not_held_in_memory() {
        let mut from = std::io::BufReader::new(std::io::repeat(b'1').take(1 << 40));
        let error = Lines::new(&mut from).next().err().unwrap();
        assert_eq!(error.to_string(), "line 1, column 1: the line is longer than 16 MiB");
    }

    #[test]
    fn numbers_are_nothing_but_digits() {
        assert_eq!(number("007"), Some(7));
        for text in ["", "-1", "+1", "1.", "0x1", "99999999999999999999", "٣"] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(thousandths("1.02"), Some(1_020));
        assert_eq!(thousandths("12"), Some(12_000));
        assert_eq!(thousandths("0.9999"), Some(999));
        for text in ["", ".", "1.", ".5", "-1.0", "1.2.3", "nan", "99999999999999999999.0"] {
            assert_eq!(thousandths(text), None, "{text}");
        }
    }
}
