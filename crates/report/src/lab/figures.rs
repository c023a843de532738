//! Numbers of a table, short enough to stand side by side.

use wakescope_stats::compare::factor;

/// A time in µs, without its unit: two digits at least, and no more than help.
pub(super) fn micros(ns: f64) -> String {
    short(ns / 1e3)
}

/// How much work: `512`, `8.1k`, `1.9G`; a dash for what is no amount.
pub(crate) fn amount(per_second: f64) -> String {
    if !(per_second > 0.0 && per_second < 1e18) {
        return "–".into();
    }
    let mut value = per_second;
    for prefix in ["", "k", "M", "G", "T"] {
        // What rounds to 1,000 is written with the next prefix.
        if value < 999.5 {
            return format!("{}{prefix}", short(value));
        }
        value /= 1e3;
    }
    format!("{}P", short(value))
}

/// A number with one decimal below 10, and two below 1.
fn short(value: f64) -> String {
    match value {
        v if v >= 9.95 => format!("{v:.0}"),
        v if v >= 0.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// How many times as much: `0.10`, `1.31`, `24`.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 9.95 => format!("{r:.0}"),
        r => factor(r),
    }
}

/// A number of a note, raised: `¹²`.
pub(super) fn raised(number: usize) -> String {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let place = |c: char| c.to_digit(10).and_then(|d| digits.get(d as usize));
    number.to_string().chars().filter_map(place).collect()
}

/// The median: of an even number, the mean of the two in the middle. `None` if there are none.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[half]),
        _ => Some(f64::midpoint(values[half - 1], values[half])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (ns, want) in [
            (0.0, "0.00"),
            (412.0, "0.41"),
            (996.0, "1.0"),
            (6_040.0, "6.0"),
            (9_960.0, "10"),
            (111_500.0, "112"),
            (1_867_400.0, "1867"),
        ] {
            assert_eq!(micros(ns), want, "{ns} ns");
        }
        for (per_second, want) in [
            (0.0, "–"),
            (0.25, "0.25"),
            (3.46, "3.5"),
            (512.3, "512"),
            (999.6, "1.0k"),
            (8_123.4, "8.1k"),
            (263_000.0, "263k"),
            (1.94e9, "1.9G"),
            (3.2e15, "3.2P"),
            (f64::NAN, "–"),
            (-1.0, "–"),
            (1e300, "–"),
        ] {
            assert_eq!(amount(per_second), want, "{per_second}");
        }
        for (ratio, want) in [(0.0238, "0.0238"), (0.0999, "0.0999"), (1.0, "1.00"), (24.2, "24")] {
            assert_eq!(times(ratio), want, "{ratio}");
        }
        assert_eq!((raised(1), raised(203)), ("¹".into(), "²⁰³".into()));
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 3.0, 9.0]), Some(3.5));
    }
}
