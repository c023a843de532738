//! Reads `episodes.jsonl` line by line: what is damaged is named, and the other lines count.

use std::io::{self, BufRead, Read};

use super::{Attributed, Entry, Head, LONGEST_LINE, LineError};

/// Gives `each` every line's number, from 1, with its head and episode, or with what is wrong with it,
/// until the file ends or `each` has had enough.
///
/// # Errors
/// If the file cannot be read.
pub fn read<E>(
    mut input: impl BufRead,
    mut each: impl FnMut(u64, Result<(&Head, Attributed), LineError>) -> Result<(), E>,
) -> io::Result<Result<(), E>> {
    let mut head: Option<Box<Head>> = None;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let most = LONGEST_LINE as u64 + 1;
        if (&mut input).take(most).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let found = if line.len() > LONGEST_LINE && line.last() != Some(&b'\n') {
            skip_line(&mut input)?;
            Err(LineError::Long)
        } else {
            Entry::read(line.strip_suffix(b"\n").unwrap_or(&line))
        };
        let text = match (found, &head) {
            (Ok(Entry::Head(next)), _) => {
                head = Some(next);
                continue;
            }
            (Ok(Entry::Episode(_)), None) => each(number, Err(LineError::NoHead)),
            (Ok(Entry::Episode(line)), Some(head)) => {
                let episode = line.attributed(head.origin_ns);
                each(number, episode.map(|episode| (&**head, episode)))
            }
            (Err(e), _) => {
                // Nobody knows what held for the lines below.
                if matches!(e, LineError::Schema(_)) {
                    head = None;
                }
                each(number, Err(e))
            }
        };
        if let Err(enough) = text {
            return Ok(Err(enough));
        }
    }
    Ok(Ok(()))
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let length = buffer.len();
        input.consume(end.map_or(length, |end| end + 1));
        if end.is_some() || length == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Line, SCHEMA};
    use super::*;

    fn head(run: &str) -> String {
        let head = Head { schema: SCHEMA.into(), run: run.into(), ..Head::default() };
        Entry::Head(Box::new(head)).text()
    }

    fn episode() -> String {
        Entry::Episode(Box::new(Line::of(Attributed::default(), 0))).text()
    }

    /// Checks each line's number with the run of its head, or what is wrong with it.
    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        let mut got = Vec::new();
        let ended = read(text.as_bytes(), |number, line| {
            got.push(match line {
                Ok((head, _)) => format!("{number} {}", head.run),
                Err(e) => format!("{number} {e}"),
            });
            Ok::<(), ()>(())
        });
        assert_eq!(ended.unwrap(), Ok(()));
        let got: Vec<&str> =
            got.iter().zip(want).map(|(got, want)| &got[..want.len().min(got.len())]).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn each_episode_has_the_head_above_it() {
        let (a, b, episode) = (head("a"), head("b"), episode());
        check(&format!("{a}{episode}{episode}{b}{episode}"), &["2 a", "3 a", "5 b"]);
        check("", &[]);
        check(&a, &[]);
    }

    #[test]
    fn damaged_lines_are_named_and_the_others_count() {
        let (a, episode) = (head("a"), episode());
        let cut = &episode[..episode.len() / 2];
        check(&format!("{a}{cut}\n{episode}{cut}"), &["2 it is damaged", "3 a", "4 it is damaged"]);
        check(&format!("{episode}{a}{episode}"), &["1 no line with", "3 a"]);
        let later = a.replace("episode/1", "episode/2");
        check(&format!("{a}{later}{episode}"), &["2 its schema", "3 no line with"]);
        let long = "x".repeat(3 * LONGEST_LINE);
        check(&format!("{a}{long}\n{episode}{long}"), &["2 it is longer", "3 a", "4 it is longer"]);
    }

    #[test]
    fn who_has_had_enough_gets_no_more() {
        let text = head("a") + &episode() + &episode();
        let ended = read(text.as_bytes(), |number, _| Err::<(), u64>(number));
        assert_eq!(ended.unwrap(), Err(2));
    }
}
