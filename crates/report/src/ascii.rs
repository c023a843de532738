//! Text for terminals that show ASCII only.

/// `text` with a character of ASCII for each of its own, so that columns stay where they are.
pub fn ascii(text: &str) -> String {
    text.chars().map(ascii_of).collect()
}

fn ascii_of(c: char) -> char {
    match c {
        '\u{1b}' | ' '..='~' | '\n' => c,
        'µ' => 'u',
        '–' | '—' | '─' => '-',
        '…' => '~',
        '≤' => '<',
        '≥' => '>',
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
        assert_eq!(ascii("≤11.0 µs – … ▁▂▃▄▅▆▇█ é\u{fffd}"), "<11.0 us - ~ .:-=+*%# ??");
        assert_eq!(ascii("\u{1b}[1mx\u{1b}[0m\n"), "\u{1b}[1mx\u{1b}[0m\n");
    }
}
