//! Parts of a whole, in percent that add up.

use std::fmt;

/// Each part's percentage of all of them together, with one decimal. What is shown adds up to 100 %,
/// but for parts that are too small for that: they are `<0.1 %`, so that nothing that is there looks
/// like nothing. All are a dash if there is no whole.
pub(crate) fn of(parts: &[u64]) -> Vec<String> {
    let groups: Vec<[u64; 1]> = parts.iter().map(|&part| [part]).collect();
    of_groups(&groups).into_iter().flatten().map(|share| share.to_string()).collect()
}

/// The same of parts in groups. The shares of a group's parts add up to that of the group, which is
/// the one that [`of`] gives for the groups' sums.
pub(super) fn of_groups(groups: &[impl AsRef<[u64]>]) -> Vec<Vec<Share>> {
    let wide = |parts: &[u64]| parts.iter().copied().map(u128::from).collect::<Vec<_>>();
    let groups: Vec<Vec<u128>> = groups.iter().map(|group| wide(group.as_ref())).collect();
    let sums: Vec<u128> = groups.iter().map(|group| group.iter().sum()).collect();
    let whole: u128 = sums.iter().sum();
    let shares = |(group, tenths): (&Vec<u128>, u128)| -> Vec<Share> {
        let of_parts = apportioned(group, tenths);
        group.iter().zip(of_parts).map(|(&part, tenths)| Share { part, tenths, whole }).collect()
    };
    groups.iter().zip(apportioned(&sums, 1_000)).map(shares).collect()
}

/// A part of a whole, as a percentage with one decimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    part: u128,
    /// Tenths of a percent.
    tenths: u128,
    whole: u128,
}

impl Share {
    /// Both together. They are of the same whole.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            part: self.part + other.part,
            tenths: self.tenths + other.tenths,
            whole: self.whole.max(other.whole),
        }
    }
}

/// Divides so many tenths of a percent by the sizes of the parts. Those that lose most by being rounded
/// down get back what is missing.
fn apportioned(parts: &[u128], all: u128) -> Vec<u128> {
    let whole = parts.iter().sum::<u128>().max(1);
    let mut tenths: Vec<u128> = parts.iter().map(|part| part * all / whole).collect();
    let missing = all - tenths.iter().sum::<u128>();
    let mut by_loss: Vec<usize> = (0..parts.len()).collect();
    by_loss.sort_by_key(|&i| std::cmp::Reverse(parts[i] * all % whole));
    for &i in by_loss.iter().take(usize::try_from(missing).unwrap_or(usize::MAX)) {
        tenths[i] += 1;
    }
    tenths
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, tenths, whole } = *self;
        match (tenths, part) {
            _ if whole == 0 => f.write_str("–"),
            (0, 0) => f.write_str("0 %"),
            (0, _) => f.write_str("<0.1 %"),
            (1_000, _) if part < whole => f.write_str(">99.9 %"),
            (1_000, _) => f.write_str("100 %"),
            _ => write!(f, "{}.{} %", tenths / 10, tenths % 10),
        }
    }
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

    #[test]
    fn parts_of_a_group_add_up_to_it() {
        let of_groups = |groups: &[Vec<u64>]| -> Vec<Vec<String>> {
            let shown = |shares: Vec<Share>| shares.iter().map(ToString::to_string).collect();
            super::of_groups(groups).into_iter().map(shown).collect()
        };
        let shown = of_groups(&[vec![500], vec![1, 1, 1], vec![], vec![0]]);
        assert_eq!(shown, [vec!["99.4 %"], vec!["0.2 %"; 3], vec![], vec!["0 %"]]);
        let shown = of_groups(&[vec![881], vec![60, 57, 1], vec![1]]);
        assert_eq!(shown, [vec!["88.1 %"], vec!["6.0 %", "5.7 %", "0.1 %"], vec!["0.1 %"]]);
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
