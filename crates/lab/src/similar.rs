//! Names that somebody may have meant who wrote another one.

use strsim::levenshtein;

/// Most names to show.
const MOST: usize = 6;

/// Of `names` some that may be meant by `text`: those that have it in them, then those that differ from it in a third of
/// its characters at most, the nearest first.
pub fn similar<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let length = text.chars().count();
    let farthest = length / 3;
    let rank = |name: &str| {
        let has_it = name.contains(text);
        // To compare all names of a kernel would take long.
        if !has_it && name.len().abs_diff(length) > farthest {
            return None;
        }
        let changes = levenshtein(text, name);
        (has_it || changes <= farthest).then(|| (!has_it, changes, name.to_owned()))
    };
    let mut all: Vec<_> = names.filter_map(rank).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().take(MOST).map(|(_, _, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_the_text_in_them_come_first_and_then_the_nearest() {
        let names = ["free_pcppages_bulk.cold", "free_one_page", "free_pcppages_bulk", "do_idle"];
        let of = |text| similar(text, names.into_iter().chain(names));
        assert_eq!(of("pcppages"), ["free_pcppages_bulk", "free_pcppages_bulk.cold"]);
        assert_eq!(of("free_pcpages_bulk"), ["free_pcppages_bulk"]);
        assert_eq!(of("free_pcppages_bulk()"), ["free_pcppages_bulk", "free_pcppages_bulk.cold"]);
        assert_eq!(of("do_idel"), ["do_idle"]);
        assert_eq!(of("zap_pte_range"), [""; 0]);
    }
}
