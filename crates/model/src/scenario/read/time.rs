//! Times and frequencies.

use std::ops::RangeInclusive;

use wakescope_core::units::SpanNs;

use super::at::At;
use super::error::Problem;
use super::limits;

const SPAN: &str = "a length of time with its unit, as in \"3us\"";
const PERIOD: &str = "a time from one to the next, as in \"1ms\", or a frequency, as in \"2048Hz\"";
const PS_OF_A_SECOND: u64 = 1_000_000_000_000;

/// A length of time in nanoseconds, of at most an hour.
pub(super) fn span_ns(at: &At<'_>) -> Result<u64, Problem> {
    whole_ns(at, picoseconds(at, at.text(SPAN)?)?)
}

/// The same, but not 0.
pub(super) fn some_ns(at: &At<'_>) -> Result<u64, Problem> {
    match span_ns(at)? {
        0 => Err(at.found_instead_of("more than no time")),
        ns => Ok(ns),
    }
}

/// A time from one to the next in nanoseconds, or a frequency of which that is a whole number.
pub(super) fn period_ns(at: &At<'_>) -> Result<u64, Problem> {
    let text = at.text(PERIOD)?;
    let Some(hz) = hertz(text, 1..=1_000_000_000) else { return some_ns(at) };
    if PS_OF_A_SECOND % hz != 0 {
        return Err(at.found_instead_of("a whole number of nanoseconds from one to the next"));
    }
    whole_ns(at, PS_OF_A_SECOND / hz)
}

/// A probe's period in picoseconds. That of a frequency is rounded to them.
pub(super) fn period_ps(at: &At<'_>) -> Result<u64, Problem> {
    let text = at.text(PERIOD)?;
    let ps = match hertz(text, 1..=1_000_000_000) {
        Some(hz) => (PS_OF_A_SECOND + hz / 2) / hz,
        None => picoseconds(at, text)?,
    };
    if ps < limits::PERIOD_PS {
        return Err(at.found_instead_of("a period of at least 1 µs"));
    }
    Ok(ps)
}

/// Ticks a second.
pub(super) fn tick_hz(at: &At<'_>) -> Result<u32, Problem> {
    let expected = format!("off, or a frequency of 1 to {} Hz, as in \"250Hz\"", limits::TICK_HZ);
    let text = at.text(&expected)?;
    let hz = if text == "off" { Some(0) } else { hertz(text, 1..=limits::TICK_HZ) };
    hz.and_then(|hz| u32::try_from(hz).ok()).ok_or_else(|| at.found_instead_of(&expected))
}

fn hertz(text: &str, range: RangeInclusive<u64>) -> Option<u64> {
    let number = text.strip_suffix("Hz")?;
    let (number, unit) = match number.strip_suffix('k') {
        Some(number) => (number, 1_000),
        None => (number, 1),
    };
    let hz = number.trim_end().parse::<u64>().ok()?.checked_mul(unit)?;
    range.contains(&hz).then_some(hz)
}

fn whole_ns(at: &At<'_>, ps: u64) -> Result<u64, Problem> {
    // Less than a nanosecond would silently become none.
    if ps % 1_000 == 0 { Ok(ps / 1_000) } else { Err(at.found_instead_of("whole nanoseconds")) }
}

/// A length of time, exactly.
fn picoseconds(at: &At<'_>, text: &str) -> Result<u64, Problem> {
    let span: SpanNs = text
        .parse()
        .map_err(|e: wakescope_core::units::SpanError| at.problem(cut(&e.to_string())))?;
    if span.0 > limits::LENGTH_NS {
        return Err(at.found_instead_of("at most an hour"));
    }
    exact_ps(text.trim()).ok_or_else(|| at.found_instead_of("whole picoseconds"))
}

/// `text` is known to be a length of time of at most an hour.
fn exact_ps(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let unit: SpanNs = format!("1{}", &text[end..]).parse().ok()?;
    let (whole, fraction) = text[..end].split_once('.').unwrap_or((&text[..end], ""));
    let fraction = fraction.trim_end_matches('0');
    let places = u32::try_from(fraction.len()).ok().filter(|places| *places <= 18)?;
    let parse =
        |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<u128>().ok() };
    let unit_ps = u128::from(unit.0) * 1_000;
    let scale = 10_u128.pow(places);
    let beyond = parse(fraction)? * unit_ps;
    let ps = parse(whole)?.checked_mul(unit_ps)?.checked_add(beyond / scale)?;
    if beyond % scale == 0 { u64::try_from(ps).ok() } else { None }
}

fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}
