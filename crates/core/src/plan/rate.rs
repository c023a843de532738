//! Rates of a real-time clock's periodic interrupt.

use std::fmt;
use std::str::FromStr;

use crate::units::SpanNs;

const NS_PER_S: u64 = 1_000_000_000;

/// Interrupts per second: a power of two, as such clocks have it, from 2 to 8192.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(u32);

impl Rate {
    /// What realfeel used.
    pub const REALFEEL: Self = Self(2_048);

    /// In Hz.
    pub fn hz(self) -> u32 {
        self.0
    }

    /// All of them, the least first.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=13).map(|power| Self(1 << power))
    }

    /// Its period in whole nanoseconds, rounded down: that is how the kernel makes the interrupt.
    pub fn interval(self) -> SpanNs {
        SpanNs(NS_PER_S / u64::from(self.0))
    }

    /// How many points of its grid lie within so long a time, with the first at its beginning.
    pub fn points_in(self, span: SpanNs) -> u64 {
        let points = (u128::from(span.0) * u128::from(self.0)).div_ceil(u128::from(NS_PER_S));
        u64::try_from(points).unwrap_or(u64::MAX)
    }

    /// The rate of this interval; `None` if no rate has it.
    pub fn of(interval: SpanNs) -> Option<Self> {
        Self::all().find(|rate| rate.interval() == interval)
    }

    /// What the interval lacks to the period, in 2^-32 ns: that is exact.
    pub fn fraction(self) -> u32 {
        let rest = NS_PER_S % u64::from(self.0);
        // Less than one, times 2^32.
        u32::try_from((rest << 32) / u64::from(self.0)).unwrap_or(u32::MAX)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Hz", self.0)
    }
}

/// This is no rate of such a clock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a clock's rate is a power of two from 2 to 8192, as in 2048")]
pub struct NoRate;

impl FromStr for Rate {
    type Err = NoRate;

    fn from_str(text: &str) -> Result<Self, NoRate> {
        let hz: u32 = text.parse().map_err(|_| NoRate)?;
        Self::all().find(|rate| rate.0 == hz).ok_or(NoRate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_its_interval_name_each_other_and_the_rest_is_exact() {
        for rate in Rate::all() {
            assert_eq!(Rate::of(rate.interval()), Some(rate));
            assert_eq!(rate.hz().to_string().parse(), Ok(rate));
            let exact = (u128::from(rate.interval().0) << 32) + u128::from(rate.fraction());
            assert_eq!(exact * u128::from(rate.hz()), u128::from(NS_PER_S) << 32, "{rate}");
        }
        assert_eq!(Rate::REALFEEL.interval(), SpanNs(488_281));
        assert_eq!(Rate::REALFEEL.fraction(), 1 << 30, "a quarter");
        // Of points that are 488,281.25 ns apart, the one after 512 is beyond a quarter of a second.
        let points = [1, 488_281, 488_282, 250_000_000, 250_000_001, u64::MAX].map(SpanNs);
        let points = points.map(|span| Rate::REALFEEL.points_in(span));
        assert_eq!(points[..5], [1, 1, 2, 512, 513]);
        assert_eq!((Rate::all().count(), Rate::of(SpanNs(1_000_000))), (13, None));
        for bad in ["", "1", "3", "16384", "-2", "2048.0", "2048 Hz"] {
            assert_eq!(bad.parse::<Rate>(), Err(NoRate), "{bad}");
        }
    }
}
