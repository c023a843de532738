//! Parts of a whole, in percent that add up.

/// Each part's percentage of all of them together, with one decimal. What is shown adds up to 100 %,
/// but for parts that are too small for that: they are `<0.1 %`, so that nothing that is there looks
/// like nothing. All are a dash if there is no whole.
pub(crate) fn of(parts: &[u64]) -> Vec<String> {
    let whole: u128 = parts.iter().copied().map(u128::from).sum();
    if whole == 0 {
        return vec!["–".into(); parts.len()];
    }
    let mut tenths: Vec<u128> = parts.iter().map(|&p| u128::from(p) * 1_000 / whole).collect();
    let missing = 1_000 - tenths.iter().sum::<u128>();
    // Who lost most by being rounded down gets back what is missing.
    let mut by_loss: Vec<usize> = (0..parts.len()).collect();
    by_loss.sort_by_key(|&i| std::cmp::Reverse(u128::from(parts[i]) * 1_000 % whole));
    for &i in by_loss.iter().take(usize::try_from(missing).unwrap_or(usize::MAX)) {
        tenths[i] += 1;
    }
    parts
        .iter()
        .zip(tenths)
        .map(|(&part, tenths)| match (tenths, part) {
            (0, 0) => "0 %".into(),
            (0, _) => "<0.1 %".into(),
            (1_000, _) if u128::from(part) < whole => ">99.9 %".into(),
            (1_000, _) => "100 %".into(),
            _ => format!("{}.{} %", tenths / 10, tenths % 10),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(parts: &[u64], want: &[&str]) {
        assert_eq!(of(parts), want, "{parts:?}");
    }

    #[test]
    fn parts_add_up() {
        check(&[1, 1, 1], &["33.4 %", "33.3 %", "33.3 %"]);
        check(&[881, 117, 2], &["88.1 %", "11.7 %", "0.2 %"]);
        check(&[5, 0], &["100 %", "0 %"]);
    }

    #[test]
    fn little_is_not_nothing() {
        check(&[1_000_000, 1, 0], &[">99.9 %", "<0.1 %", "0 %"]);
        check(&[0, 0], &["–", "–"]);
        check(&[], &[]);
        check(&[u64::MAX, u64::MAX], &["50.0 %", "50.0 %"]);
    }

    proptest! {
        #[test]
        fn what_is_shown_adds_up_to_a_hundred(parts in prop::collection::vec(any::<u64>(), 1..9)) {
            let shown = of(&parts);
            let tenths = |text: &String| match text.trim_end_matches(" %") {
                "–" | "<0.1" => 0,
                ">99.9" => 1_000,
                number => match number.split_once('.') {
                    Some((whole, tenth)) => format!("{whole}{tenth}").parse::<u32>().unwrap(),
                    None => number.parse::<u32>().unwrap() * 10,
                },
            };
            prop_assert_eq!(shown.iter().map(tenths).sum::<u32>(), 1_000);
        }
    }
}
