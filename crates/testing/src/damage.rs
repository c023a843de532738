//! What can become of a file: bits flip, lines go missing, numbers turn out to be absurd.

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One change to a file.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Flip(Index, u8),
    Cut(Index),
    DropLine(Index),
    RepeatLine(Index, u8),
    SwapLines(Index, Index),
    Number(Index, &'static str),
    Insert(Index, &'static str),
    /// A part of the file, put in another place of it: tables within tables, tags within tags.
    Copy {
        from: Index,
        length: Index,
        to: Index,
    },
}

/// Numbers at the edges of types, and beyond.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "nan",
    "1e999",
    "1e-999",
    "0.0000000000000001",
    "999999",
    "1000000",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "9999999999999999999999999999999999999999",
];

/// What formats give a meaning to.
const TOKENS: &[&str] = &[
    "null",
    "true",
    "{",
    "}",
    "[",
    "]",
    "[[[[[[[[[[[[[[[[",
    "\"",
    "\\u0000",
    "\\ud800",
    "\u{1b}[31m",
    "\u{202e}",
    "\u{9b}",
    "\0",
    ",",
    ":",
    "=",
    "#",
    "<!ENTITY a \"&b;\">",
    "&a;",
    "<![CDATA[",
    "]]>",
    "\r",
    "\n\n",
    "\t",
    "../",
    "%s",
    "-",
    ".",
];

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        1 => (at(), 1_u8..).prop_map(|(i, b)| Damage::Flip(i, b)),
        1 => at().prop_map(Damage::Cut),
        1 => at().prop_map(Damage::DropLine),
        1 => (at(), 1_u8..20).prop_map(|(i, n)| Damage::RepeatLine(i, n)),
        1 => (at(), at()).prop_map(|(i, j)| Damage::SwapLines(i, j)),
        6 => (at(), select(NUMBERS)).prop_map(|(i, n)| Damage::Number(i, n)),
        1 => (at(), select(TOKENS)).prop_map(|(i, t)| Damage::Insert(i, t)),
        1 => (at(), at(), at()).prop_map(|(from, length, to)| Damage::Copy { from, length, to }),
    ]
}

impl Damage {
    pub(crate) fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        match self {
            Self::Flip(at, bits) => {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
            }
            Self::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Self::DropLine(_) | Self::RepeatLine(..) | Self::SwapLines(..) => {
                let mut lines: Vec<_> = bytes.split_inclusive(|&b| b == b'\n').collect();
                self.apply_to_lines(&mut lines);
                *bytes = lines.concat();
            }
            Self::Number(at, number) => {
                let starts: Vec<_> =
                    (0..bytes.len()).filter(|&i| begins_number(bytes, i)).collect();
                if !starts.is_empty() {
                    let start = starts[at.index(starts.len())];
                    let digits = bytes[start..].iter().take_while(|b| b.is_ascii_digit()).count();
                    bytes.splice(start..start + digits, number.bytes());
                }
            }
            Self::Insert(at, token) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, token.bytes());
            }
            Self::Copy { from, length, to } => {
                let from = from.index(bytes.len());
                let part = bytes[from..from + length.index(bytes.len() - from)].to_vec();
                let to = to.index(bytes.len());
                bytes.splice(to..to, part);
            }
        }
    }

    fn apply_to_lines(&self, lines: &mut Vec<&[u8]>) {
        match self {
            Self::DropLine(at) => {
                lines.remove(at.index(lines.len()));
            }
            Self::RepeatLine(at, times) => {
                let at = at.index(lines.len());
                let line = lines[at];
                lines.splice(at..at, (0..*times).map(|_| line));
            }
            Self::SwapLines(a, b) => {
                let (a, b) = (a.index(lines.len()), b.index(lines.len()));
                lines.swap(a, b);
            }
            _ => {}
        }
    }
}

fn begins_number(bytes: &[u8], at: usize) -> bool {
    bytes[at].is_ascii_digit() && (at == 0 || !bytes[at - 1].is_ascii_digit())
}
