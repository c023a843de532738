//! Sizes as users write them.

/// Reads `500MB`; a number alone is bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "write a size, as in 500MB or 2GB".to_string();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let scale = match unit.trim() {
        "" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000_u64,
        _ => return Err(wrong()),
    };
    digits.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, want) in [
            ("0", Some(0)),
            ("500MB", Some(500_000_000)),
            ("2 GB", Some(2_000_000_000)),
            ("1kB", Some(1_000)),
            ("", None),
            ("MB", None),
            ("-1", None),
            ("1.5GB", None),
            ("99999999999GB", None),
        ] {
            assert_eq!(size(text).ok(), want, "{text:?}");
        }
    }
}
