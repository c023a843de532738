//! Shares in percent, rounded down: where something is missing, they must not become 100 %.

/// `99.95`: `part` of `whole`, with so many decimals.
pub(crate) fn percent(part: u64, whole: u64, decimals: u32) -> String {
    let unit = 10_u128.pow(decimals);
    let units = u128::from(part) * 100 * unit / u128::from(whole.max(1));
    format!("{}.{:0decimals$}", units / unit, units % unit, decimals = decimals as usize)
}

/// The same of a number that is in percent already. Its digits are cut off, as multiplying it could make it
/// less than it is.
pub(crate) fn cut(percent: f64, decimals: usize) -> String {
    let text = percent.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}.{fraction:0<decimals$.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_shares_stay_and_others_are_rounded_down() {
        for (part, whole, want) in [
            (41, 100, "41.00000"),
            (29, 100, "29.00000"),
            (0, 3, "0.00000"),
            (1, 3, "33.33333"),
            (2, 3, "66.66666"),
            (9_999_999, 10_000_000, "99.99999"),
            (u64::MAX - 1, u64::MAX, "99.99999"),
            (u64::MAX, u64::MAX, "100.00000"),
            (0, 0, "0.00000"),
        ] {
            assert_eq!(percent(part, whole, 5), want, "{part} of {whole}");
        }
        for part in 0..=10_000 {
            let want = format!("{}.{:02}", part / 100, part % 100);
            assert_eq!(percent(part, 10_000, 2), want);
            assert_eq!(cut(part as f64 * 100.0 / 10_000.0, 2), want);
            assert_eq!(cut(want.parse().unwrap(), 5), format!("{want}000"));
        }
        assert_eq!(cut(99.999_999_9, 5), "99.99999");
        assert_eq!(cut(100.0, 5), "100.00000");
    }
}
