//! All samples, one JSON object per line, from a run's `samples.csv`.

use std::fmt;
use std::io::{self, BufRead, Read, Write};

use wakescope_core::source::Quantity;

/// The first line of `samples.csv`, of wakeups and of gaps.
const HEADS: [&str; 2] = ["cpu,expiry_ns,wakeup_latency_ns", "cpu,begin_ns,gap_ns"];

/// The names of the columns of `samples.csv`: CPU, when, how much.
pub fn columns(of: Quantity) -> &'static str {
    HEADS[usize::from(of == Quantity::Gap)]
}

/// The longest line that there can be: three numbers of at most 20 digits.
const LONGEST: u64 = 64;

/// Why samples could not be written as JSON Lines.
#[derive(Debug)]
pub enum Error {
    /// They could not be read.
    Read(io::Error),
    /// They could not be written.
    Write(io::Error),
    /// A line is no sample.
    Line {
        /// Its number, from 1.
        number: u64,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(e) | Self::Write(e) => e.fmt(f),
            Self::Line { number, what } => write!(f, "line {number}: {what}"),
        }
    }
}

impl std::error::Error for Error {}

/// Writes each sample of `samples` as an object with the names of its columns, in the same order.
/// What stands before a line that is no sample is written.
pub fn write(samples: &mut impl BufRead, out: &mut impl Write) -> Result<(), Error> {
    let mut line = Vec::new();
    let mut names = ["cpu", "expiry_ns", "wakeup_latency_ns"];
    for number in 1_u64.. {
        line.clear();
        let length = samples.take(LONGEST).read_until(b'\n', &mut line).map_err(Error::Read)?;
        let wrong = |what| Err(Error::Line { number, what });
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if length == 0 && number > 1 {
            break;
        } else {
            return wrong(
                "it has no end record: the file is truncated or is not a file of samples",
            );
        }
        if number == 1 {
            let Some(head) = HEADS.iter().find(|head| head.as_bytes() == line) else {
                return wrong("it is not the header of a file of samples");
            };
            for (name, column) in names.iter_mut().zip(head.split(',')) {
                *name = column;
            }
            continue;
        }
        let Some([cpu, at, value]) = fields(&line) else {
            return wrong("it is not three whole numbers separated by commas");
        };
        let [of, when, what] = names;
        writeln!(out, "{{\"{of}\":{cpu},\"{when}\":{at},\"{what}\":{value}}}")
            .map_err(Error::Write)?;
    }
    Ok(())
}

fn fields(line: &[u8]) -> Option<[u64; 3]> {
    let text = std::str::from_utf8(line).ok()?;
    let mut fields = text.split(',');
    let mut next = || {
        let field = fields.next()?;
        // No sign and no zeros in front, which JSON does not know either.
        let plain = field == "0" || !field.starts_with(['0', '+']);
        plain.then(|| field.parse().ok()).flatten()
    };
    let all = [next()?, next()?, next()?];
    fields.next().is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(csv: &str) -> (String, Option<String>) {
        let mut out = Vec::new();
        let error = write(&mut csv.as_bytes(), &mut out).err();
        (String::from_utf8(out).unwrap(), error.map(|e| e.to_string()))
    }

    #[test]
    fn a_line_per_sample() {
        let (json, error) =
            lines("cpu,expiry_ns,wakeup_latency_ns\n0,0,8123\n13,18446744073709551615,1\n");
        assert_eq!(error, None);
        assert_eq!(
            json,
            "{\"cpu\":0,\"expiry_ns\":0,\"wakeup_latency_ns\":8123}\n\
             {\"cpu\":13,\"expiry_ns\":18446744073709551615,\"wakeup_latency_ns\":1}\n"
        );
    }

    #[test]
    fn what_is_no_sample_is_named_by_its_line() {
        assert_eq!(
            lines("cpu,begin_ns,gap_ns\n1,5,7\n").0,
            "{\"cpu\":1,\"begin_ns\":5,\"gap_ns\":7}\n"
        );
        const HEAD: &str = "cpu,expiry_ns,wakeup_latency_ns\n";
        for (csv, text) in [
            ("", "line 1: it has no end"),
            ("cpu,expiry_ns\n", "line 1: it is not the head"),
            ("\u{1f}\u{8b}\n", "line 1: it is not the head"),
            (&format!("{HEAD}0,1,2\n0,1"), "line 3: it has no end"),
            (&format!("{HEAD}0,1,2,3\n"), "line 2: it is not three"),
            (&format!("{HEAD}0,-1,2\n"), "line 2: it is not three"),
            (&format!("{HEAD}0,+1,2\n"), "line 2: it is not three"),
            (&format!("{HEAD}0,1,2\r\n"), "line 2: it is not three"),
            (&format!("{HEAD}0,1,99999999999999999999\n"), "line 2: it is not three"),
            (&format!("{HEAD}{}\n", "1".repeat(1 << 20)), "line 2: it has no end"),
        ] {
            let error = lines(csv).1.unwrap_or_default();
            assert!(error.starts_with(text), "{error}, not {text}");
        }
    }
}
