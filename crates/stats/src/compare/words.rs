//! Ratios, shares and chances in words.

use super::Verdict;
use wakescope_core::units::{counted, grouped};

/// `1.31 ×`
pub fn times(ratio: f64) -> String {
    format!("{} ×", factor(ratio))
}

/// A ratio between these: `at least 1.04 ×`, `at most 0.85 ×`, or where it can be either,
/// `0.89 to 3.90 ×`.
pub fn ratio_within([least, most]: [f64; 2]) -> String {
    match () {
        () if least > 1.0 => format!("at least {}", times(least)),
        () if most < 1.0 => format!("at most {}", times(most)),
        () => format!("{} to {}", factor(least), times(most)),
    }
}

/// A ratio in three digits: two places, but more below 0.1, where they would leave one digit or none.
pub fn factor(ratio: f64) -> String {
    match ratio {
        // A figure of 1 ns against one of years.
        r if r > 0.0 && r < 1e-6 => format!("{r:.2e}"),
        r if r > 0.0 && r < 0.099_95 => {
            // The exponent tells how many zeros follow the point, also of what is rounded up.
            let digits = format!("{r:.2e}");
            let zeros = digits.split_once("e-").and_then(|(_, zeros)| zeros.parse().ok());
            format!("{r:.*}", 2 + zeros.unwrap_or(0_usize))
        }
        r if r < 9.995 => format!("{r:.2}"),
        r if r < 99.95 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    }
}

/// A p-value: `p = 0.004`, `p < 0.001`. It is never rounded to less than it is: 0.0504 would read as one
/// that is not above 0.05.
pub fn probability(p: f64) -> String {
    let up_to = |parts: f64| (p * parts - 1e-9).ceil() / parts;
    match p {
        p if p < 0.001 => "p < 0.001".into(),
        p if p < 0.1 => format!("p = {:.3}", up_to(1e3)),
        p if p <= 0.99 => format!("p = {:.2}", up_to(1e2)),
        _ => "p = 1".into(),
    }
}

/// A share in percent, without zeros that say nothing: `10 %`, `2.5 %`.
pub fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A verdict, as it stands in a table: `worse`, `no difference`.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// `1 run`, `5 runs`
pub(super) fn count_of(count: usize, what: &str) -> String {
    counted(count as u64, what)
}

/// Some of the labels, and how many more: `a, b, c and 4 more`.
pub(crate) fn listed(labels: &[String]) -> String {
    const NAMED: usize = 3;
    let named = labels.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match labels.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {} more", grouped(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words() {
        assert_eq!([0.5, 1.0, 9.999, 99.96].map(times), ["0.50 ×", "1.00 ×", "10.0 ×", "100 ×"]);
        assert_eq!(
            [0.0, 2.5e-9, 0.000_999_9, 0.004, 0.009_97, 0.0123, 0.0999, 0.099_97, 0.1].map(factor),
            [
                "0.00", "2.50e-9", "0.00100", "0.00400", "0.00997", "0.0123", "0.0999", "0.10",
                "0.10"
            ]
        );
        for (p, want) in [
            (1.0, "p = 1"),
            (0.343, "p = 0.35"),
            (0.1, "p = 0.10"),
            (0.0504, "p = 0.051"),
            (0.05, "p = 0.050"),
            (0.011_72, "p = 0.012"),
            (2.0 / 1024.0, "p = 0.002"),
            (0.000_9, "p < 0.001"),
        ] {
            assert_eq!(probability(p), want, "{p}");
        }
        assert_eq!([0.1, 0.025, 0.0, 1.0].map(percent), ["10 %", "2.5 %", "0 %", "100 %"]);
    }

    #[test]
    fn labels_are_named_or_counted() {
        let labels = |n: u32| -> Vec<String> { (1..=n).map(|i| i.to_string()).collect() };
        assert_eq!(listed(&labels(3)), "1, 2, 3");
        assert_eq!(listed(&labels(1_234)), "1, 2, 3 and 1,231 more");
        assert_eq!((count_of(1, "run"), count_of(5, "run")), ("1 run".into(), "5 runs".into()));
    }
}
