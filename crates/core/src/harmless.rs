//! Text from elsewhere, made safe to print.

/// Whether a character may do something to a terminal or a reader that is not seen: controls, all that
/// Unicode 16 calls format characters (Cf), line and paragraph separators, and what else is not to be shown
/// (`Default_Ignorable_Code_Point`). Among them are those that change the direction of writing, and tags,
/// variation selectors and fillers, by which text hides in text.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Text from a file, a kernel or a user, made safe for a terminal: what could move the cursor,
/// change colours or reverse the line is replaced, and more than `limit` characters are cut.
pub fn clean(text: &str, limit: usize) -> String {
    let mut out: String =
        text.chars().take(limit).map(|c| if is_hostile(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(limit).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_made_safe() {
        for (text, want) in [
            ("plain µs", "plain µs"),
            ("\x1b[31mred\x07", "\u{fffd}[31mred\u{fffd}"),
            ("a\nb", "a\u{fffd}b"),
            ("\u{202e}gnirts", "\u{fffd}gnirts"),
            ("\u{61c}\u{2066}\u{9b}\u{ad}\u{e0041}", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            // A filler, a variation selector, and two of those that spell text that nobody sees.
            ("\u{3164}\u{fe0f}\u{e0100}\u{e01ef}", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("0123456789abc", "0123456789…"),
        ] {
            assert_eq!(clean(text, 10), want);
        }
    }
}
