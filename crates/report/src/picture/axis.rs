//! Axes: from values to places, and where they are marked.

use wakescope_core::units::grouped;

use super::width::text_width;

/// Whether equal distances are equal differences or equal ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

/// From values to places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    /// The least value, and the largest, which is larger; both above 0 on a logarithmic one.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Where these lie.
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// A value that is marked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    /// Empty if only a fine line marks it.
    pub(crate) label: String,
}

impl Axis {
    /// Equal ratios over all of `low` to `high`, a little more than both.
    pub(crate) fn logarithmic(low: f64, high: f64, places: (f64, f64)) -> Self {
        let low = if low.is_finite() { low.max(1e-12) } else { 1.0 };
        let high = if high.is_finite() { high.max(low * 1.5) } else { low * 10.0 };
        Self { scale: Scale::Logarithmic, low, high, from: places.0, to: places.1 }
    }

    /// Equal differences from 0 to `high`.
    pub(crate) fn linear(high: f64, places: (f64, f64)) -> Self {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        Self { scale: Scale::Linear, low: 0.0, high, from: places.0, to: places.1 }
    }

    /// Where `value` lies; at an end if it lies beyond it.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value.max(self.low) / self.low).ln() / self.ratio().ln(),
        };
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.from + share * (self.to - self.from)
    }

    fn ratio(&self) -> f64 {
        self.high / self.low
    }

    /// The decades of a logarithmic axis, with what divides them where there is room.
    fn decades(&self, label: impl Fn(f64) -> String, divided: bool) -> Vec<Tick> {
        let decades = self.ratio().log10();
        let room = (self.to - self.from).abs() / decades;
        let mut ticks = Vec::new();
        let (first, last) = (exponent(self.low), exponent(self.high));
        for exponent in first..=last {
            for digit in [1.0, 2.0, 5.0] {
                let value = digit * 10_f64.powi(exponent);
                let is_inside = value >= self.low * 0.9999 && value <= self.high * 1.0001;
                if !is_inside || (digit > 1.0 && (!divided || room < 30.0)) {
                    continue;
                }
                let is_told = digit == 1.0 || (room > 150.0 || decades < 1.2);
                let label = if is_told { label(value) } else { String::new() };
                ticks.push(Tick { at: self.at(value), label });
            }
        }
        ticks
    }

    /// Lengths of time.
    pub(crate) fn times(&self) -> Vec<Tick> {
        match self.scale {
            Scale::Logarithmic => self.decades(time, true),
            Scale::Linear => self.spans(),
        }
    }

    /// Shares: 1, 10 %, 1 %.
    pub(crate) fn shares(&self) -> Vec<Tick> {
        self.decades(share, false)
    }

    /// The percentiles beyond which such shares lie: p90, p99, p99.9.
    pub(crate) fn nines(&self) -> Vec<Tick> {
        self.decades(nines, false)
    }

    /// Counts.
    pub(crate) fn counts(&self) -> Vec<Tick> {
        let mut ticks = self.decades(count, false);
        ticks.retain(|tick| !tick.label.is_empty());
        ticks
    }

    /// Times on a linear axis, in steps that people count in.
    fn spans(&self) -> Vec<Tick> {
        let most = ((self.to - self.from).abs() / 90.0).max(2.0);
        let step = STEPS_NS.into_iter().find(|step| self.high / step <= most);
        let step = step.unwrap_or(self.high / most);
        let mut ticks = Vec::new();
        let mut value = 0.0;
        // At most a few hundred, whatever the numbers.
        while value <= self.high * 1.0001 && ticks.len() < 200 {
            ticks.push(Tick { at: self.at(value), label: span(value, self.high) });
            value += step;
        }
        ticks
    }
}

/// Steps of 1, 2 and 5, and of clocks.
const STEPS_NS: [f64; 59] = [
    1e0, 2e0, 5e0, 1e1, 2e1, 5e1, 1e2, 2e2, 5e2, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6,
    2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 2e9, 5e9, 1e10, 2e10, 3e10, 6e10, 12e10, 3e11,
    6e11, 9e11, 18e11, 36e11, 72e11, 108e11, 216e11, 432e11, 864e11, 1_728e11, 4_320e11, 8_640e11,
    1_728e12, 4_320e12, 8_640e12, 1_728e13, 4_320e13, 8_640e13, 1_728e14, 4_320e14, 8_640e14,
    1_728e15, 4_320e15,
];

/// Units with their lengths in nanoseconds.
const UNITS: [(&str, f64); 7] = [
    ("ns", 1.0),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3_600e9),
    ("d", 86_400e9),
];

#[allow(clippy::cast_possible_truncation)] // A logarithm of a double is below 1,100.
fn exponent(value: f64) -> i32 {
    // What is a power of ten but for its last bit is one.
    (value.log10() + 1e-9).floor() as i32
}

/// `200 µs`: of a logarithmic axis, so 1, 2 or 5 times a power of ten.
fn time(ns: f64) -> String {
    if ns >= 0.9e13 {
        return format!("{:.0e} s", ns / 1e9);
    }
    let (unit, length) = if ns >= 1e9 * 0.9999 {
        UNITS[3]
    } else {
        UNITS[..3].iter().rev().find(|u| ns >= u.1 * 0.9999).copied().unwrap_or(UNITS[0])
    };
    format!("{} {unit}", number(ns / length))
}

/// `1.5 h`: in the unit of the whole axis.
fn span(ns: f64, high: f64) -> String {
    let unit = UNITS.iter().rev().find(|u| high >= 2.0 * u.1).copied().unwrap_or(UNITS[0]);
    if ns == 0.0 { "0".into() } else { format!("{} {}", number(ns / unit.1), unit.0) }
}

/// Without decimals that say nothing.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (whole, rest) = text.split_once('.').map_or((text, ""), |(whole, rest)| (whole, rest));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    if rest.is_empty() { whole } else { format!("{whole}.{rest}") }
}

fn share(share: f64) -> String {
    let text = |value: f64, unit: &str| {
        let text = format!("{value:.5}");
        format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match share {
        s if s >= 0.9e-5 => text(s * 100.0, "%"),
        s if s >= 0.9e-8 => text(s * 1e6, "ppm"),
        s => text(s * 1e9, "ppb"),
    }
}

fn nines(share: f64) -> String {
    match usize::try_from(-exponent(share)) {
        Ok(0) | Err(_) => String::new(),
        Ok(1) => "p90".into(),
        Ok(2) => "p99".into(),
        Ok(nines) => format!("p99.{}", "9".repeat(nines - 2)),
    }
}

fn count(count: f64) -> String {
    match count {
        c if c < 0.9 => String::new(),
        c if c < 0.9e6 => number(c),
        c if c < 0.9e9 => format!("{} M", number(c / 1e6)),
        c if c < 0.9e12 => format!("{} G", number(c / 1e9)),
        c => format!("{} T", number(c / 1e12)),
    }
}

/// Ticks beside each other whose labels do not touch: of two that do, the first keeps its own.
pub(crate) fn beside_each_other(mut ticks: Vec<Tick>, size: f64) -> Vec<Tick> {
    let mut free_from = f64::NEG_INFINITY;
    for tick in &mut ticks {
        let half = text_width(&tick.label, size) / 2.0;
        if tick.label.is_empty() || tick.at - half < free_from {
            tick.label.clear();
        } else {
            free_from = tick.at + half + 8.0;
        }
    }
    ticks
}

/// Ticks above each other whose labels do not touch.
pub(crate) fn above_each_other(mut ticks: Vec<Tick>, size: f64) -> Vec<Tick> {
    let mut taken: Option<f64> = None;
    for tick in &mut ticks {
        if tick.label.is_empty() || taken.is_some_and(|at| (at - tick.at).abs() < size * 1.25) {
            tick.label.clear();
        } else {
            taken = Some(tick.at);
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().map(|t| t.label).filter(|l| !l.is_empty()).collect()
    }

    #[test]
    fn decades_have_their_units() {
        let axis = Axis::logarithmic(800.0, 2.5e9, (0.0, 700.0));
        let want = ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"];
        assert_eq!(labels(axis.times()), want);
        let axis = Axis::logarithmic(900.0, 12_000.0, (0.0, 700.0));
        assert_eq!(labels(axis.times()), ["1 µs", "2 µs", "5 µs", "10 µs"]);
        let axis = Axis::logarithmic(1e-7, 1.0, (0.0, 700.0));
        let want = ["0.1 ppm", "1 ppm", "0.001 %", "0.01 %", "0.1 %", "1 %", "10 %", "100 %"];
        assert_eq!(labels(axis.shares()), want);
        let want = ["p99.99999", "p99.9999", "p99.999", "p99.99", "p99.9", "p99", "p90"];
        assert_eq!(labels(axis.nines()), want);
        let axis = Axis::logarithmic(0.5, 2.5e6, (0.0, 700.0));
        assert_eq!(labels(axis.counts()), ["1", "10", "100", "1,000", "10,000", "100,000", "1 M"]);
    }

    #[test]
    fn steps_are_those_people_count_in() {
        for (high, want) in [
            (10e9, "0 2 s 4 s 6 s 8 s 10 s"),
            (1.3e9, "0 500 ms 1,000 ms"),
            (14.0 * 3_600e9, "0 3 h 6 h 9 h 12 h"),
            (238_000.0, "0 50 µs 100 µs 150 µs 200 µs"),
            (90e9, "0 20 s 40 s 60 s 80 s"),
            (40.0, "0 10 ns 20 ns 30 ns 40 ns"),
        ] {
            let axis = Axis::linear(high, (0.0, 500.0));
            assert_eq!(labels(axis.times()).join(" "), want, "{high}");
        }
    }

    #[test]
    fn no_value_lies_outside() {
        for (low, high) in [(0.0, 0.0), (f64::NAN, f64::INFINITY), (5.0, 1.0), (-1.0, 1e300)] {
            for axis in
                [Axis::logarithmic(low, high, (10.0, 90.0)), Axis::linear(high, (10.0, 90.0))]
            {
                for value in [f64::NAN, -1.0, 0.0, 1e-300, 1.0, 1e300, f64::INFINITY] {
                    let at = axis.at(value);
                    assert!((10.0..=90.0).contains(&at), "{axis:?} {value} {at}");
                }
                assert!(axis.times().len() <= 2_000);
            }
        }
    }
}
