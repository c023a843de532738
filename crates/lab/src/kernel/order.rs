//! Which of two versions of a package is the newer one, as Debian's policy defines it.

use std::cmp::Ordering;

/// Compares two versions: `[epoch:]upstream[-revision]`.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    let epochs = a.0.trim_start_matches('0').cmp_number(b.0.trim_start_matches('0'));
    epochs.then_with(|| compare_part(a.1, b.1)).then_with(|| compare_part(a.2, b.2))
}

fn parts(version: &str) -> (&str, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch, upstream, revision)
}

/// Compares text without digits and numbers by turns.
fn compare_part(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (text_a, rest_a) = split(a, |c| !c.is_ascii_digit());
        let (text_b, rest_b) = split(b, |c| !c.is_ascii_digit());
        let (number_a, rest_a) = split(rest_a, |c| c.is_ascii_digit());
        let (number_b, rest_b) = split(rest_b, |c| c.is_ascii_digit());
        let zeros = |s: &'_ str| s.len() - s.trim_start_matches('0').len();
        let order = compare_text(text_a, text_b)
            .then_with(|| number_a[zeros(number_a)..].cmp_number(&number_b[zeros(number_b)..]));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    Ordering::Equal
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// A tilde comes before the end, the end before letters, letters before all else.
fn compare_text(a: &str, b: &str) -> Ordering {
    let rank = |c: char| match c {
        '~' => (0, c),
        c if c.is_ascii_alphabetic() => (2, c),
        c => (3, c),
    };
    let ranks = |s: &'_ str| s.chars().map(rank).chain([(1, ' ')]).collect::<Vec<_>>();
    ranks(a).cmp(&ranks(b))
}

trait Number {
    /// Compares digits without leading zeros as the numbers that they are, however long.
    fn cmp_number(&self, other: &str) -> Ordering;
}

impl Number for str {
    fn cmp_number(&self, other: &str) -> Ordering {
        self.len().cmp(&other.len()).then_with(|| self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_ordered_as_debian_orders_them() {
        let ascending = [
            "0:0~~",
            "0:0~",
            "0",
            "6.1.9-1",
            "6.1.10-1",
            "6.1.176-1",
            "6.1.192-2",
            "6.12.95-1~bpo12+1",
            "6.12.95-1",
            "6.12.117-1~bpo12+1",
            "6.12.117-1",
            "6.12.117-1+b1",
            "6.12.117-1.1",
            "7.2.12-1~bpo13+1",
            "7.2.13-1",
            "1:0",
            "10:0",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
            }
        }
        for (a, b) in [("1.0", "1.00"), ("0:1", "1"), ("1-", "1"), ("a0", "a"), ("1-0", "1")] {
            assert_eq!(compare(a, b), Ordering::Equal, "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn any_two_texts_have_one_order(a in "[0-9a:.~+-]{0,12}|.{0,8}", b in "[0-9a:.~+-]{0,12}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &a), Ordering::Equal);
        }
    }
}
