//! What leads from times of the guest's clock to those of the emulator's plugin.

use std::ops::RangeInclusive;

use wakescope_core::units::grouped;

/// The plugin counts from the first reading of the clock by a program, which is that of the first process. Where
/// programs ask the kernel for the time it counts from the first instruction, and the first process reads the clock
/// at most this long after that, ns. It has to fault its program in: guests of 7.3 took 1,017 µs. All that happens in
/// so much more of the time is written of each late wakeup.
pub(super) const FIRST_READING_NS: u64 = 3_000_000;

/// The plugin's time can be behind by less than this, ns.
pub(super) const BEHIND_NS: u64 = 1_000_000;

/// How far the first reading may be before the instruction that read, ns: one takes up to 8, and times are rounded.
const NEAR_NS: u64 = 16;

/// Where the distance is searched if the plugin counts from `process_ns`, and the guest's first process read
/// `began_ns` first.
pub(super) fn possible(process_ns: u64, began_ns: u64) -> RangeInclusive<u64> {
    let least = process_ns.saturating_sub(began_ns);
    least.saturating_sub(NEAR_NS)..=least.saturating_add(FIRST_READING_NS)
}

/// The only distance, of those that are `possible`, at which each of `times` is among `readings`. Both are
/// in order.
pub(super) fn distance(
    whose: &str,
    times: &[u64],
    readings: &[u64],
    possible: RangeInclusive<u64>,
) -> Result<u64, String> {
    let Some(first) = times.first() else { return Err(format!("{whose} read no clock in them")) };
    let from = readings.partition_point(|now| *now < first.saturating_add(*possible.start()));
    let candidates = readings[from..].iter().map(|now| now - first);
    let mut candidates: Vec<u64> = candidates.take_while(|d| possible.contains(d)).collect();
    candidates.dedup();
    let is_read =
        |time: u64, distance: u64| readings.binary_search(&time.saturating_add(distance)).is_ok();
    let fits = |distance: &&u64| times.iter().all(|time| is_read(*time, **distance));
    let mut fitting = candidates.iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some(distance), None) => Ok(*distance),
        (Some(_), Some(_)) => {
            Err(format!("the clock of {whose} fits the emulator's in more than one way"))
        }
        (None, _) => {
            let matched = |d: &u64| times.iter().filter(|time| is_read(**time, *d)).count();
            let most = candidates.iter().map(matched).max().unwrap_or(0);
            Err(format!(
                "the clock of {whose} fits the emulator's in no way: at most {} of its {} times are \
                 readings of the clock that the emulator saw",
                grouped(most as u64),
                grouped(times.len() as u64)
            ))
        }
    }
}
