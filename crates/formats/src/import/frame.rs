//! What logs, terminals and documents put around the lines of a program.
//!
//! Time stamps, names in brackets, marks of quotes and indentation come off the front of a line;
//! prompts, traced commands and fences of code are no lines of a program at all. Nothing that begins
//! with a bare number comes off, so no figure can.

/// How many frames may lie around each other: a time stamp around a name around a quote, and more.
const DEEPEST: usize = 8;

/// A line without its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unframed<'a> {
    /// What the program wrote.
    pub(super) text: &'a str,
    /// The name in brackets before it: `VM 1`. Lines with different names are of different programs.
    pub(super) name: Option<&'a str>,
}

/// Takes the frames off a line; `None` if the line is no program's output but a prompt, a traced
/// command or a fence.
pub(super) fn unframed(line: &str) -> Option<Unframed<'_>> {
    let (mut text, mut name) = (line, None);
    for _ in 0..DEEPEST {
        text = text.trim_start();
        // A prompt may begin with brackets itself.
        if is_command(text) {
            return None;
        }
        if let Some(rest) = without_stamp(text).or_else(|| without_quote(text)) {
            text = rest;
        } else if let Some((found, rest)) = bracketed(text) {
            name = name.or(Some(found));
            text = rest;
        } else {
            break;
        }
    }
    Some(Unframed { text, name })
}

/// All lines of a text without their frames.
pub(super) fn unframed_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let plain = super::lines::without_escapes(line);
        if let Some(line) = unframed(&plain) {
            out.push_str(line.text);
            out.push('\n');
        }
    }
    out
}

/// A mark of a quote (`> `), or the echo of an interrupt (`^C`).
fn without_quote(text: &str) -> Option<&str> {
    text.strip_prefix("^C").or_else(|| text.strip_prefix('>'))
}

/// A name in brackets, and what follows.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.strip_prefix('[')?.split_once(']')?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic()) && name.len() <= 60;
    let ends = rest.is_empty() || rest.starts_with([' ', '\t', ':']);
    (is_name && !name.contains(['[', '"', ',']) && ends)
        .then(|| (name, rest.strip_prefix(':').unwrap_or(rest)))
}

/// What follows a time stamp: of CI systems, of `journalctl`, of the kernel, of `ts`.
fn without_stamp(text: &str) -> Option<&str> {
    if let Some((inside, rest)) = text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        let inside = inside.trim();
        let whole = |after: Option<&str>| after.is_some_and(str::is_empty);
        let stamp = whole(date_and_time(inside)) || whole(clock(inside)) || is_uptime(inside);
        return stamp.then_some(rest);
    }
    let ended = |rest: &&str| rest.is_empty() || rest.starts_with([' ', '\t']);
    if let Some(rest) = date_and_time(text).filter(ended) {
        return Some(without_stream(rest));
    }
    clock(text).filter(ended).or_else(|| syslog(text))
}

/// GitLab writes which stream a line came on: ` 00O `, ` 01E+`.
fn without_stream(rest: &str) -> &str {
    let Some(stream) = rest.get(1..4).map(str::as_bytes) else { return rest };
    let is_stream = stream[..2].iter().all(u8::is_ascii_digit) && b"OE".contains(&stream[2]);
    let after = &rest[4.min(rest.len())..];
    let after = after.strip_prefix('+').unwrap_or(after);
    match is_stream && (after.len() + 5 == rest.len() || after.is_empty() || after.starts_with(' '))
    {
        true => after,
        false => rest,
    }
}

/// `Nov 22 14:13:39`, and after it maybe `host program[123]:`.
fn syslog(text: &str) -> Option<&str> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let rest = MONTHS.iter().find_map(|month| text.strip_prefix(month))?.strip_prefix(' ')?;
    let rest = rest.trim_start();
    let days = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = (1..=2).contains(&days).then(|| rest[days..].strip_prefix(' ')).flatten()?;
    let rest = clock(rest)?;
    let mut words = rest.trim_start().splitn(3, ' ');
    match (words.next(), words.next()) {
        (Some(_host), Some(program)) if program.ends_with("]:") => Some(words.next().unwrap_or("")),
        _ => (rest.is_empty() || rest.starts_with(' ')).then_some(rest),
    }
}

/// What follows `2026-11-22T14:13:39.123Z` or `2026-11-22 14:13:39`.
fn date_and_time(text: &str) -> Option<&str> {
    let rest = pattern(text, "0000-00-00")?;
    let rest = clock(rest.strip_prefix(['T', ' '])?)?;
    Some(zone(rest).unwrap_or(rest))
}

/// What follows `Z`, `+01:00` or `+0100`.
fn zone(text: &str) -> Option<&str> {
    text.strip_prefix('Z').or_else(|| {
        let rest = text.strip_prefix(['+', '-'])?;
        pattern(rest, "00:00").or_else(|| pattern(rest, "0000"))
    })
}

/// What follows `14:13:39`, maybe with a fraction.
fn clock(text: &str) -> Option<&str> {
    let rest = pattern(text, "00:00:00")?;
    let Some(fraction) = rest.strip_prefix(['.', ',']) else { return Some(rest) };
    let after = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    (after.len() < fraction.len()).then_some(after)
}

/// Seconds since boot, as the kernel writes them: `12.345678`.
fn is_uptime(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.split_once('.').is_some_and(|(s, us)| digits(s) && digits(us) && us.len() == 6)
}

/// What follows a text of this shape, in which `0` is any digit.
fn pattern<'a>(text: &'a str, shape: &str) -> Option<&'a str> {
    let head = text.as_bytes().get(..shape.len())?;
    let fits = |(&byte, is): (&u8, u8)| if is == b'0' { byte.is_ascii_digit() } else { byte == is };
    head.iter().zip(shape.bytes()).all(fits).then(|| &text[shape.len()..])
}

/// Whether somebody typed this, or a shell traced it, or it is a fence of code.
fn is_command(text: &str) -> bool {
    if text.starts_with("```") || text.starts_with("~~~") {
        return true;
    }
    // `set -x` writes a plus for each level.
    let traced = text.trim_start_matches('+');
    let is_word =
        |t: &str| t.trim_start().starts_with(|c: char| c.is_alphabetic() || "./_".contains(c));
    if traced.len() < text.len() && traced.starts_with(' ') {
        return is_word(traced);
    }
    if let Some(rest) = text.strip_prefix(['$', '%']) {
        return rest.is_empty() || (rest.starts_with(' ') && is_word(rest));
    }
    is_prompt(text)
}

/// Whether a line begins with the prompt of a shell that names a user, a place, or itself.
fn is_prompt(text: &str) -> bool {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let Some(at) = text.find(['#', '$', '%']).filter(|&at| at > 0 && ends(&text[at + 1..])) else {
        return false;
    };
    let head = text[..at].trim_end();
    let head = head.strip_suffix(']').map_or(head, |h| h.strip_prefix('[').unwrap_or(h));
    let first = head.split(' ').next().unwrap_or_default();
    let shell = ["sh-", "bash-"].iter().any(|shell| {
        let version = first.strip_prefix(shell);
        version.is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))
    });
    let user =
        first.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
    let place = head == "~" || (head.starts_with('/') && !head.contains(' '));
    let user_in_place = first.split_once(":~").is_some_and(|(host, _)| !host.is_empty());
    user || shell || place || user_in_place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, text: &str, name: Option<&str>) {
        assert_eq!(unframed(line), Some(Unframed { text, name }), "{line:?}");
    }

    #[test]
    fn frames_come_off() {
        for frame in [
            "",
            "    ",
            "\t",
            "> ",
            "> > ",
            "2026-11-22T14:13:39.1234567Z ",
            "2026-11-22T14:13:39.123456Z 00O ",
            "2026-11-22T14:13:39.123456Z 01E+",
            "2026-11-22 14:13:39,123 ",
            "2026-11-22T14:13:39+01:00   ",
            "[2026-11-22T14:13:39.123Z] ",
            "[2026-11-22 14:13:39] ",
            "[14:13:39] ",
            "14:13:39 ",
            "14:13:39.250  ",
            "[   12.345678] ",
            "Nov 22 14:13:39 ",
            "Nov  2 14:13:39 vm cyclictest[123]: ",
            "^C",
        ] {
            for line in ["000001 000003\t000000", "# Histogram", "T: 0 ( 12) P:80", "12.5 3", ""] {
                check(&format!("{frame}{line}"), line, None);
            }
        }
        check("[VM 1] 000001 000003", "000001 000003", Some("VM 1"));
        check("[12:00:01] [node-2]   5", "5", Some("node-2"));
        check("2026-11-22T14:13:39Z [test]: # Total: 1", "# Total: 1", Some("test"));
    }

    #[test]
    fn what_begins_with_a_figure_stays() {
        for line in [
            "000001 000003",
            "1 2",
            "12:34:567",
            "12:34:56:1",
            "0:       0:      74",
            "2026 11 22",
            "0.000,1.000,0.5,HISTFAAA",
            "12.5 100",
            "#[Max     =        5.000, Total count    =            3]",
            "# Total: 000000009",
            "[1] 5",
            "[0.5] 5",
            "+5 3",
            "$5",
            "001 (us):\t5",
            "1e3 5 # x",
            "{\"a\": 1}",
            "\"0\": 5,",
        ] {
            check(line, line, None);
        }
    }

    #[test]
    fn what_was_typed_is_no_output() {
        for line in [
            "$ cyclictest -q",
            "  $ cyclictest -q",
            "+ cyclictest -q",
            "++ nproc",
            "2026-11-22T14:13:39.1234567Z + ./run.sh",
            "root@vm:~# cyclictest -q",
            "[root@vm ~]# cyclictest -q",
            "user@host:/tmp/x$ ",
            "/ # cyclictest",
            "~ # cyclictest",
            "bash-5.2$ cyclictest",
            "```text",
            "~~~",
        ] {
            assert_eq!(unframed(line), None, "{line:?}");
        }
    }

    #[test]
    fn no_line_of_numbers_is_changed() {
        use proptest::prelude::*;
        proptest!(|(line in "[0-9]{1,9}([ \t:.,;]{1,3}[0-9]{1,9}){0,6}")| {
            // A clock time alone is one, before a blank.
            let stamp = clock(&line).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
            prop_assume!(!stamp);
            let got = unframed(&line);
            prop_assert_eq!(got, Some(Unframed { text: &line, name: None }), "{:?}", line);
        });
    }
}
