//! Points and lengths of time in nanoseconds, and how people write and read them.

use std::fmt;

/// A point on `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonoNs(pub u64);

impl MonoNs {
    /// The time from `earlier` to this point; zero if this point comes first.
    pub fn since(self, earlier: Self) -> SpanNs {
        SpanNs(self.0.saturating_sub(earlier.0))
    }

    /// The point a `span` later.
    pub fn after(self, span: SpanNs) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// A length of time, in nanoseconds.
///
/// It prints with three significant digits and a unit:
///
/// ```
/// use wakescope_core::units::SpanNs;
/// assert_eq!(SpanNs(4_312_345).to_string(), "4.31 ms");
/// assert_eq!(SpanNs(999_700).to_string(), "1.00 ms");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanNs(pub u64);

impl SpanNs {
    /// As the command line takes it, without loss: in the largest unit up to the second that it is a
    /// whole number of.
    ///
    /// What prints rounds to three digits; an argument that is suggested must be the length itself.
    ///
    /// ```
    /// use wakescope_core::units::SpanNs;
    /// assert_eq!(SpanNs(1_000_000).as_argument(), "1ms");
    /// assert_eq!(SpanNs(1_050_000).as_argument(), "1050us");
    /// ```
    pub fn as_argument(self) -> String {
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        let (unit, ns) = units.into_iter().find(|(_, ns)| self.0 % ns == 0).unwrap_or(("ns", 1));
        format!("{}{unit}", self.0 / ns)
    }
}

impl SpanNs {
    /// With all of its digits, in the largest unit up to the second that it is no shorter than: to tell
    /// lengths apart that are alike in three digits.
    ///
    /// ```
    /// use wakescope_core::units::SpanNs;
    /// assert_eq!(SpanNs(74_604).in_full(), "74.604 µs");
    /// assert_eq!(SpanNs(90_000_000_000).in_full(), "90 s");
    /// ```
    pub fn in_full(self) -> String {
        let mut up_to_second = UNITS[..4].iter();
        let (unit, unit_ns) = up_to_second.rfind(|(_, ns)| self.0 >= *ns).unwrap_or(&UNITS[0]);
        let (whole, rest) = (self.0 / unit_ns, self.0 % unit_ns);
        let digits = unit_ns.ilog10() as usize;
        match rest {
            0 => format!("{whole} {unit}"),
            _ => format!("{whole}.{} {unit}", format!("{rest:0digits$}").trim_end_matches('0')),
        }
    }
}

impl SpanNs {
    /// Rounded down to a time that prints as what it is: nothing is promised by rounding.
    ///
    /// ```
    /// use wakescope_core::units::SpanNs;
    /// assert_eq!(SpanNs(124_999_999_999).rounded_down(), SpanNs(124_800_000_000));
    /// assert_eq!(SpanNs(124_999_999_999).rounded_down().to_string(), "2.08 min");
    /// ```
    pub fn rounded_down(self) -> Self {
        Self(self.0 - self.0 % self.step_ns())
    }

    /// Rounded up to a time that prints as what it is, of one that is needed: less would not do.
    ///
    /// ```
    /// use wakescope_core::units::SpanNs;
    /// assert_eq!(SpanNs(124_800_000_001).rounded_up(), SpanNs(125_400_000_000));
    /// assert_eq!(SpanNs(124_800_000_001).rounded_up().to_string(), "2.09 min");
    /// ```
    pub fn rounded_up(self) -> Self {
        match self.0 % self.step_ns() {
            0 => self,
            beyond => Self(self.0.saturating_add(self.step_ns() - beyond)),
        }
    }

    /// What the last digit stands for that is printed of it.
    fn step_ns(self) -> u64 {
        let unit_ns = UNITS.iter().rfind(|(_, ns)| self.0 >= *ns).map_or(1, |(_, ns)| *ns);
        let step_ns = match self.0 / unit_ns {
            ..10 => unit_ns / 100,
            10..100 => unit_ns / 10,
            _ => unit_ns,
        };
        step_ns.max(1)
    }
}

/// Units from the smallest, each with its length in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

impl fmt::Display for SpanNs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rank = UNITS.iter().rposition(|&(_, ns)| self.0 >= ns).unwrap_or(0);
        // Rounding may carry into the next unit: 999.7 µs is 1.00 ms, not 1000 µs.
        if let Some(&(_, next_ns)) = UNITS.get(rank + 1) {
            if round_to_three_digits(self.0, UNITS[rank].1).0 * u128::from(UNITS[rank].1)
                >= u128::from(next_ns) * 1000
            {
                rank += 1;
            }
        }
        let (unit, unit_ns) = UNITS[rank];
        let text = if unit_ns == 1 {
            self.0.to_string()
        } else {
            let (thousandths, decimals) = round_to_three_digits(self.0, unit_ns);
            decimal(thousandths, decimals)
        };
        f.pad(&format!("{text} {unit}"))
    }
}

/// `value / unit_ns` rounded to three significant digits: thousandths, and the decimals to show.
fn round_to_three_digits(value_ns: u64, unit_ns: u64) -> (u128, usize) {
    let thousandths = |step: u128| {
        let scaled = u128::from(value_ns) * 1000 / step;
        let unit = u128::from(unit_ns);
        (scaled + unit / 2) / unit * step
    };
    let (value, unit) = (u128::from(value_ns), u128::from(unit_ns));
    // 9.995 rounds to 10.0: the number of decimals follows from the rounded value.
    if thousandths(10) < 10_000 && value < unit * 10 {
        (thousandths(10), 2)
    } else if thousandths(100) < 100_000 && value < unit * 100 {
        (thousandths(100), 1)
    } else {
        (thousandths(1000), 0)
    }
}

fn decimal(thousandths: u128, decimals: usize) -> String {
    let whole = thousandths / 1000;
    match decimals {
        0 => whole.to_string(),
        _ => {
            let fraction = format!("{:03}", thousandths % 1000);
            format!("{whole}.{}", &fraction[..decimals])
        }
    }
}

/// Why a piece of text is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpanError(String);

impl std::str::FromStr for SpanNs {
    type Err = SpanError;

    /// Reads `500us`, `1.5ms`, `10s`, `5min`, `14h` or `2d`. A unit is required: a bare number
    /// means microseconds to one tool and seconds to the next.
    fn from_str(text: &str) -> Result<Self, SpanError> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim());
        if text.starts_with('-') {
            return Err(SpanError(format!("`{text}` is negative; a length of time is not")));
        }
        if number.is_empty() || number == "." || number.matches('.').count() > 1 {
            return Err(SpanError(format!(
                "`{text}` is not a length of time; write a number and a unit, as in 500us, 1.5ms or 10s"
            )));
        }
        let unit_ns = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" | "sec" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            "" => {
                return Err(SpanError(format!(
                    "`{text}` has no unit; write {text}us, {text}ms or {text}s"
                )));
            }
            _ => {
                return Err(SpanError(format!(
                    "`{unit}` is not a unit of time; use ns, us, ms, s, min, h or d"
                )));
            }
        };
        let too_long = || SpanError(format!("`{text}` is longer than the maximum of 292 years"));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole: u64 = match whole {
            "" => 0,
            _ => whole.parse().map_err(|_| too_long())?,
        };
        let mut span = whole.checked_mul(unit_ns).ok_or_else(too_long)?;
        let mut place_ns = unit_ns;
        for digit in fraction.bytes() {
            place_ns /= 10;
            span = span.checked_add(u64::from(digit - b'0') * place_ns).ok_or_else(too_long)?;
        }
        if i64::try_from(span).is_err() {
            return Err(too_long());
        }
        Ok(Self(span))
    }
}

/// A count with thousands separators: `20,000`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun, which is given in the singular: `1 sample`, `20,000 samples`, `2 expiries`.
/// Every text that counts something takes it from here.
pub fn counted(count: u64, noun: &str) -> String {
    let noun = match (count, noun.strip_suffix('y')) {
        (1, _) => noun.to_owned(),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    };
    format!("{} {noun}", grouped(count))
}

/// The first word for one thing, the second for any other number of things: `was` or `were`.
pub fn one_or_many(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn prints(span_ns: u64, want: &str) {
        assert_eq!(SpanNs(span_ns).to_string(), want, "{span_ns} ns");
    }

    #[test]
    fn spans_print_three_digits() {
        prints(0, "0 ns");
        prints(7, "7 ns");
        prints(999, "999 ns");
        prints(1_000, "1.00 µs");
        prints(8_123, "8.12 µs");
        prints(9_994, "9.99 µs");
        prints(9_995, "10.0 µs");
        prints(12_040, "12.0 µs");
        prints(99_949, "99.9 µs");
        prints(99_950, "100 µs");
        prints(412_499, "412 µs");
        prints(999_499, "999 µs");
        prints(999_500, "1.00 ms");
        prints(4_310_000, "4.31 ms");
        prints(1_000_000_000, "1.00 s");
        prints(59_940_000_000, "59.9 s");
        prints(59_990_000_000, "1.00 min");
        prints(330_000_000_000, "5.50 min");
        prints(52_200_000_000_000, "14.5 h");
        prints(u64::MAX, "213504 d");
    }

    #[track_caller]
    fn parses(text: &str, want: Option<u64>) {
        assert_eq!(text.parse::<SpanNs>().ok().map(|s| s.0), want, "{text:?}");
    }

    #[test]
    fn spans_parse_with_a_unit_only() {
        parses("500us", Some(500_000));
        parses("500 µs", Some(500_000));
        parses("1ms", Some(1_000_000));
        parses("1.5ms", Some(1_500_000));
        parses(".5s", Some(500_000_000));
        parses("14h", Some(50_400_000_000_000));
        parses("0s", Some(0));
        parses("0.1234567891s", Some(123_456_789));
        for bad in [
            "",
            "10",
            "ms",
            "-1ms",
            "1.2.3s",
            "1xs",
            "1 parsec",
            ".",
            "99999999999999999999s",
            "400000d",
        ] {
            parses(bad, None);
        }
    }

    #[test]
    fn arguments_are_exact() {
        for (span_ns, want) in [
            (0, "0s"),
            (1, "1ns"),
            (50_000, "50us"),
            (1_000_000, "1ms"),
            (1_050_000, "1050us"),
            (1_050_001, "1050001ns"),
            (10_000_000, "10ms"),
            (1_500_000_000, "1500ms"),
            (90_000_000_000, "90s"),
        ] {
            assert_eq!(SpanNs(span_ns).as_argument(), want);
        }
    }

    #[test]
    fn spans_have_all_digits_in_full() {
        for (span_ns, want) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (74_604, "74.604 µs"),
            (1_000_001, "1.000001 ms"),
            (60_500_000_000, "60.5 s"),
        ] {
            assert_eq!(SpanNs(span_ns).in_full(), want);
        }
    }

    #[test]
    fn counts_are_grouped() {
        for (count, want) in [(0, "0"), (999, "999"), (1_000, "1,000"), (20_000_000, "20,000,000")]
        {
            assert_eq!(grouped(count), want);
        }
    }

    #[test]
    fn one_thing_is_not_many() {
        for (count, noun, want) in [
            (1, "sample", "1 sample"),
            (0, "sample", "0 samples"),
            (20_000, "late wakeup", "20,000 late wakeups"),
            (1, "expiry", "1 expiry"),
            (2, "expiry", "2 expiries"),
            (3, "day", "3 days"),
        ] {
            assert_eq!(counted(count, noun), want);
        }
        assert_eq!([1, 2].map(|n| one_or_many(n, "was", "were")), ["was", "were"]);
    }

    proptest! {
        #[test]
        fn printed_spans_are_within_half_a_percent(span_ns in 1_000_u64..50_000_000_000) {
            let text = SpanNs(span_ns).to_string();
            let back = text.replace(' ', "").parse::<SpanNs>().unwrap().0;
            prop_assert!(back.abs_diff(span_ns) <= span_ns / 180, "{span_ns} -> {text} -> {back}");
        }

        #[test]
        fn what_is_rounded_down_prints_as_no_more(span_ns in 1_u64..8_640_000_000_000_000) {
            let down = SpanNs(span_ns).rounded_down();
            prop_assert!(down.0 <= span_ns && span_ns - down.0 <= span_ns / 100, "{down}");
            if down.0 < 60_000_000_000 {
                let text = down.to_string();
                prop_assert_eq!(text.replace(' ', "").parse::<SpanNs>().unwrap(), down, "{}", text);
            }
            let minutes = down.to_string().strip_suffix(" min").map(|n| n.parse::<f64>().unwrap());
            if let Some(minutes) = minutes {
                prop_assert!(minutes * 60e9 <= span_ns as f64 + 1.0, "{} {}", span_ns, minutes);
            }
        }

        #[test]
        fn what_is_rounded_up_is_the_next_that_is_rounded_down(
            span_ns in 1_u64..8_640_000_000_000_000,
        ) {
            let up = SpanNs(span_ns).rounded_up();
            prop_assert!(up.0 >= span_ns && up.0 - span_ns <= span_ns / 100, "{up}");
            prop_assert_eq!(up.rounded_down(), up);
            prop_assert_eq!(SpanNs(up.0 - 1).rounded_down() < SpanNs(span_ns), true, "{}", up);
        }

        #[test]
        fn an_argument_is_read_as_what_it_was(span_ns in 0..=i64::MAX as u64, zeroes in 0_u32..10) {
            // Whole units are as likely as odd lengths.
            let round = 10_u64.pow(zeroes);
            for span in [SpanNs(span_ns), SpanNs(span_ns / round * round)] {
                let text = span.as_argument();
                prop_assert_eq!(text.parse::<SpanNs>(), Ok(span), "{}", text);
                prop_assert!(!text.contains(' '));
            }
        }

        #[test]
        fn parsing_never_panics(text in "\\PC{0,20}") {
            let _ = text.parse::<SpanNs>();
        }
    }
}
