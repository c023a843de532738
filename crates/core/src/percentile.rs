//! Percentiles as exact ratios, and how many samples each of them needs.

use std::fmt;

/// Parts in which a percentile is counted: p100 is this many.
const WHOLE: u64 = 1_000_000_000;

/// Samples that must lie beyond a percentile for it to be shown.
///
/// With one sample beyond, the "percentile" is the second largest value: an anecdote. Two is the
/// least that makes it an order statistic with neighbours on both sides.
const BEYOND: u64 = 2;

/// A percentile above 0 and below 100, exact to seven decimals.
///
/// ```
/// use wakescope_core::percentile::Percentile;
/// let nines: Percentile = "p99.9".parse().unwrap();
/// assert_eq!(nines.to_string(), "p99.9");
/// assert!(nines.is_carried_by(2_000));
/// assert!(!nines.is_carried_by(1_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentile(u64);

impl Percentile {
    /// The percentiles that every table shows.
    pub const SHOWN: [Self; 5] = [
        Self(500_000_000),
        Self(990_000_000),
        Self(999_000_000),
        Self(999_900_000),
        Self(999_990_000),
    ];

    /// The percentile of a whole number from 1 to 99.
    pub const fn whole(percent: u8) -> Self {
        assert!(percent > 0 && percent < 100, "a percentile is above 0 and below 100");
        Self(percent as u64 * (WHOLE / 100))
    }

    /// The 1-based rank, among `count` ordered samples, of the sample that is this percentile.
    pub fn rank(self, count: u64) -> u64 {
        let rank = (u128::from(count) * u128::from(self.0)).div_ceil(u128::from(WHOLE));
        u64::try_from(rank).unwrap_or(count).max(1)
    }

    /// The share of samples beyond it: 0.001 for p99.9.
    pub fn tail(self) -> f64 {
        // At most 10^9, which a double holds exactly.
        #[allow(clippy::cast_precision_loss)]
        let (beyond, whole) = ((WHOLE - self.0) as f64, WHOLE as f64);
        beyond / whole
    }

    /// Whether `count` samples say something about this percentile: at least two lie beyond it.
    pub fn is_carried_by(self, count: u64) -> bool {
        u128::from(count) * u128::from(WHOLE - self.0) >= u128::from(BEYOND * WHOLE)
    }

    /// The fewest samples that carry this percentile.
    pub fn samples_needed(self) -> u64 {
        (BEYOND * WHOLE).div_ceil(WHOLE - self.0)
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / (WHOLE / 100), self.0 % (WHOLE / 100));
        let text = format!("p{whole}.{fraction:07}");
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl serde::Serialize for Percentile {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Percentile {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl std::str::FromStr for Percentile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a percentile; write p50, p99.9 or p99.999");
        let number = text.strip_prefix('p').ok_or_else(bad)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || whole.len() > 2 || fraction.len() > 7 {
            return Err(bad());
        }
        if !all_digits(whole) || !all_digits(fraction) {
            return Err(bad());
        }
        let parts: u64 = format!("{whole}{fraction:0<7}").parse().map_err(|_| bad())?;
        if parts == 0 { Err(bad()) } else { Ok(Self(parts)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in ["p50", "p99", "p99.9", "p99.999", "p0.1", "p99.9999999", "p5"] {
            assert_eq!(text.parse::<Percentile>().unwrap().to_string(), text);
        }
        for bad in ["", "p", "99", "p100", "p0", "p-1", "p99.99999999", "p99,9", "max", "p9x", "p٣"]
        {
            assert!(bad.parse::<Percentile>().is_err(), "{bad:?}");
        }
    }

    #[track_caller]
    fn check(text: &str, count: u64, rank: u64, carried: bool) {
        let p: Percentile = text.parse().unwrap();
        assert_eq!((p.rank(count), p.is_carried_by(count)), (rank, carried), "{text} of {count}");
    }

    #[test]
    fn ranks_and_support() {
        check("p50", 1, 1, false);
        check("p50", 4, 2, true);
        check("p50", 5, 3, true);
        check("p99", 100, 99, false);
        check("p99", 200, 198, true);
        check("p99.9", 10_000, 9_990, true);
        check("p99.99", 10_000, 9_999, false);
        check("p99.99", 20_000, 19_998, true);
        check("p99.999", u64::MAX, 18446559606268814520, true);
    }

    #[test]
    fn samples_needed_is_the_boundary() {
        for p in Percentile::SHOWN {
            let need = p.samples_needed();
            assert!(p.is_carried_by(need) && !p.is_carried_by(need - 1), "{p}");
        }
    }
}
