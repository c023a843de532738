//! How much of something takes how long.

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;

/// How often it is tried, and measured each time. The median counts.
const TRIES: u32 = 10;
const MEASURED: usize = 7;

/// How long to rest before each. As rarely as it is done later, caches have forgotten it.
const REST: SpanNs = SpanNs(10_000_000);

/// With what to begin, and how many times as much the next try takes at the most.
const FIRST: usize = 64;
const GROWTH: usize = 4;

/// Finds the amount, up to `most`, that takes `length`; `measure` tells how long it takes. `most` is
/// what the limit of open files allows.
pub(super) fn amount(
    length: SpanNs,
    most: usize,
    measure: impl FnMut(usize) -> Result<SpanNs, String>,
) -> Result<usize, String> {
    amount_resting(length, most, REST, measure)
}

/// What `measure` usually tells.
pub(super) fn usual(measure: impl FnMut() -> Result<SpanNs, String>) -> Result<SpanNs, String> {
    median(REST, measure)
}

fn median(
    rest: SpanNs,
    mut measure: impl FnMut() -> Result<SpanNs, String>,
) -> Result<SpanNs, String> {
    let mut times = [SpanNs(0); MEASURED];
    for time in &mut times {
        let _ = clock::sleep_until(clock::now().after(rest));
        *time = measure()?;
    }
    Ok(middle(&mut times))
}

/// The median, of an odd number of them.
pub(super) fn middle(times: &mut [SpanNs]) -> SpanNs {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn amount_resting(
    length: SpanNs,
    most: usize,
    rest: SpanNs,
    mut measure: impl FnMut(usize) -> Result<SpanNs, String>,
) -> Result<usize, String> {
    let mut amount = FIRST.min(most);
    for _ in 0..TRIES {
        let took = median(rest, || measure(amount))?;
        let next = scaled(amount, length, took).min(most);
        // Within a hundredth, which is nearer than two of them are alike.
        if next.abs_diff(amount) * 100 <= amount {
            return if next == most && took.0 * 10 < length.0 * 9 {
                Err(format!(
                    "{amount} at once, as many as the limit of open files allows, take only {took}: \
                     use a shorter time, or raise that limit"
                ))
            } else {
                Ok(next)
            };
        }
        amount = next;
    }
    Ok(amount)
}

/// How much takes `length`, if `amount` takes `took`.
pub(super) fn scaled(amount: usize, length: SpanNs, took: SpanNs) -> usize {
    let next = amount as u128 * u128::from(length.0) / u128::from(took.0.max(1));
    let most = amount.saturating_mul(GROWTH).max(1);
    usize::try_from(next).unwrap_or(usize::MAX).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(length: u64, most: usize, want: Result<usize, &str>) {
        // A microsecond by itself, and 100 ns for each.
        let cost = |n: usize| Ok(SpanNs(1_000 + 100 * u64::try_from(n).unwrap()));
        match (amount_resting(SpanNs(length), most, SpanNs(0), cost), want) {
            (Ok(got), Ok(want)) => assert!(got.abs_diff(want) * 50 <= want, "{got} {want}"),
            (Err(got), Err(want)) => assert!(got.contains(want), "{got}"),
            (got, want) => panic!("{got:?} {want:?}"),
        }
    }

    #[test]
    fn the_amount_is_found() {
        check(101_000, 100_000, Ok(1_000));
        check(10_001_000, 100_000, Ok(100_000));
        check(3_000_000, 1_000, Err("1000 at once, as many as the limit of open files allows"));
        for most in 0..4 {
            check(300_000, most, Err("the limit of open files"));
        }
        check(20_000, 100_000, Ok(190));
    }

    #[test]
    fn whatever_it_takes_the_next_amount_is_within_bounds() {
        for amount in [0, 1, 64, usize::MAX / 2, usize::MAX] {
            for length in [0, 1, 300_000, u64::MAX] {
                for took in [0, 1, 300_000, u64::MAX] {
                    let next = scaled(amount, SpanNs(length), SpanNs(took));
                    let most = amount.saturating_mul(GROWTH).max(1);
                    assert!((1..=most).contains(&next), "{amount} {length} {took}: {next}");
                }
            }
        }
    }
}
