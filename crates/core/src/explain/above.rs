//! From when on a wakeup is late.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::distribution::Distribution;
use crate::percentile::Percentile;
use crate::units::SpanNs;

/// What records say in place of a percentile where all wakeups are late.
const ALL: &str = "all";

/// Which wakeups are late.
///
/// ```
/// use wakescope_core::explain::Above;
/// let above: Above = "p99.9".parse().unwrap();
/// assert_eq!(above.tail(), 0.001);
/// assert_eq!("50us".parse::<Above>().unwrap().to_string(), "50.0 µs");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// Those at least so late.
    Time(SpanNs),
    /// Those from this percentile on.
    Percentile(Percentile),
    /// All of them, since they are too few for any percentile. Nobody asks for that.
    All,
}

impl Above {
    /// The share of wakeups that is late; of a time that is not known.
    pub fn tail(self) -> f64 {
        match self {
            Self::Time(_) => 0.0,
            Self::Percentile(percentile) => percentile.tail(),
            Self::All => 1.0,
        }
    }

    /// The time, if it is one.
    pub fn time_ns(self) -> Option<u64> {
        match self {
            Self::Time(span) => Some(span.0),
            Self::Percentile(_) | Self::All => None,
        }
    }

    /// As the command line takes it, to the nanosecond.
    pub fn as_argument(self) -> String {
        match self {
            Self::Time(span) => span.as_argument(),
            Self::Percentile(percentile) => percentile.to_string(),
            Self::All => ALL.into(),
        }
    }

    /// The least lateness of a late wakeup among `all`, and how that was found. If they are too few for the
    /// percentile, the largest that they carry takes its place, or [`Self::All`] if they carry none. A
    /// percentile's lateness is an edge of their histogram.
    pub fn least_of(self, all: &Distribution) -> (u64, Self) {
        let asked = match self {
            Self::Time(span) => return (span.0, self),
            Self::Percentile(percentile) => percentile,
            Self::All => return (0, self),
        };
        let carried = |p: &Percentile| p.is_carried_by(all.count);
        let less = Percentile::SHOWN.into_iter().filter(|p| carried(p) && *p < asked).max();
        let used = if carried(&asked) { Some(asked) } else { less };
        let edge = used.and_then(|p| all.histogram.bucket_of_percentile(p)).map(|b| b.lower);
        (edge.unwrap_or(0), used.map_or(Self::All, Self::Percentile))
    }
}

impl Default for Above {
    /// The latest of each thousand: `p99.9`.
    fn default() -> Self {
        Self::Percentile(Percentile::SHOWN[2])
    }
}

/// As [`Above::as_argument`] writes it: `p99.9`, `50us`.
impl Serialize for Above {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.as_argument())
    }
}

impl<'de> Deserialize<'de> for Above {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Above {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(span) => span.fmt(f),
            Self::Percentile(percentile) => percentile.fmt(f),
            Self::All => f.write_str(ALL),
        }
    }
}

impl FromStr for Above {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('p') {
            return text.trim().parse().map(Self::Percentile);
        }
        let span: SpanNs = text
            .parse()
            .map_err(|e: crate::units::SpanError| format!("{e}; or a percentile, as in p99.9"))?;
        match span {
            SpanNs(0) => Err("every latency is at or above 0; write a time, as in 50us".into()),
            span => Ok(Self::Time(span)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    #[test]
    fn late_is_what_the_samples_carry() {
        let samples = || (1..=1_000_u64).map(|n| n * 10);
        let histogram = Histogram::of(samples());
        let all = Distribution { count: 1_000, histogram, ..Default::default() };
        let least = |text: &str| {
            let (ns, used) = text.parse::<Above>().unwrap().least_of(&all);
            (ns, used.to_string())
        };
        assert_eq!(least("2us"), (2_000, "2.00 µs".into()));
        assert_eq!(least("p99"), (9_888, "p99".into()));
        // Two of a thousand are needed beyond it.
        assert_eq!(least("p99.9"), (9_888, "p99".into()));
        for few in 0..=3 {
            let histogram = Histogram::of(samples().take(few));
            let all = Distribution { count: few as u64, histogram, ..Default::default() };
            assert_eq!("p99".parse::<Above>().unwrap().least_of(&all), (0, Above::All), "{few}");
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in ["50001ns", "1.5ms", "p99.9", "p50", "p99.99999"] {
            let above: Above = text.parse().unwrap();
            assert_eq!(above.as_argument().parse::<Above>(), Ok(above), "{text}");
        }
    }

    #[test]
    fn what_is_neither_a_time_nor_a_percentile_is_refused() {
        for bad in ["0us", "50", "p100", "late", ALL, ""] {
            assert!(bad.parse::<Above>().is_err(), "{bad}");
        }
    }
}
