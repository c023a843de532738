//! Text for terminals that show ASCII only.

/// `text` with a character of ASCII for each of its own, so that columns stay where they are. The two of
/// `<=` and `>=` take the place of a blank beside the sign, if that leaves another one between words.
pub fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if !matches!(c, '≤' | '≥') {
            out.push(ascii_of(c));
            continue;
        }
        if rest.next_if_eq(&' ').is_none() && out.ends_with("  ") {
            out.pop();
        }
        out.push_str(if c == '≤' { "<=" } else { ">=" });
    }
    out
}

fn ascii_of(c: char) -> char {
    match c {
        '\u{1b}' | ' '..='~' | '\n' => c,
        'µ' => 'u',
        '–' | '—' | '─' => '-',
        '…' => '~',
        '×' | '✗' => 'x',
        '²' => '2',
        '·' => '.',
        '←' => '<',
        '→' => '>',
        '↑' => '^',
        '↓' => 'v',
        '│' | '├' | '┤' | '▕' => '|',
        // Heights of a picture of one line, and the ends of bars.
        '▁' | '▏' => '.',
        '▂' | '▎' => ':',
        '▃' | '▍' | '░' => '-',
        '▄' | '▌' => '=',
        '▅' | '▋' | '▒' => '+',
        '▆' | '▊' => '*',
        '▇' | '▉' | '▓' => '%',
        '█' => '#',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_has_one_of_ascii() {
        assert_eq!(ascii("11.0 µs – … ▁▂▃▄▅▆▇█ é\u{fffd}"), "11.0 us - ~ .:-=+*%# ??");
        assert_eq!(ascii("\u{1b}[1mx\u{1b}[0m\n"), "\u{1b}[1mx\u{1b}[0m\n");
    }

    /// `≥12 ms` was written `>12 ms`, which is another statement.
    #[test]
    fn a_bound_stays_one_and_columns_stay_where_they_are() {
        for (text, want) in [
            ("  7  ≥17.2 s  x", "  7 >=17.2 s  x"),
            ("  7  ≤17.2 s  x", "  7 <=17.2 s  x"),
            ("≥ 12 files", ">=12 files"),
            ("↓ ≤ 0.85 ×", "v <=0.85 x"),
            // Words are pushed on rather than joined.
            ("longest: ≥17.2 s", "longest: >=17.2 s"),
            ("≥1", ">=1"),
            ("≥", ">="),
        ] {
            assert_eq!(ascii(text), want);
        }
    }
}
