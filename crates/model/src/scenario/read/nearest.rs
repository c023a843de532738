//! What somebody meant who wrote something else.

/// The word that `written` differs from in the fewest characters.
pub(super) fn nearest<'a>(
    written: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A longer name is none that is known, and would take long to compare.
    let written: Vec<char> = written.chars().take(100).collect();
    words.into_iter().min_by_key(|word| distance(&written, word))
}

/// How many characters must be added, removed or replaced to make the one of the other.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
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
        assert_eq!(distance(&['k', 'i', 't', 't', 'e', 'n'], "sitting"), 3);
    }
}
