//! What somebody meant who wrote something else.

use strsim::levenshtein;

/// The word that `written` differs from in the fewest characters.
pub(super) fn nearest<'a>(
    written: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A longer name is none that is known, and would take long to compare.
    let written: String = written.chars().take(100).collect();
    words.into_iter().min_by_key(|word| levenshtein(&written, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_changes_win() {
        let words = ["compute", "call", "cond_resched", "user"];
        for (written, want) in
            [("compte", "compute"), ("cal", "call"), ("condresched", "cond_resched"), ("", "call")]
        {
            assert_eq!(nearest(written, words), Some(want));
        }
        assert_eq!(nearest("x", []), None);
    }
}
