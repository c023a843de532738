//! When the kernel measures what the programs of a watch take. That delays each run a little, so it is not always.

use wakescope_core::units::{MonoNs, SpanNs};

/// How often it measures one interval at least, and at most.
const EVERY: SpanNs = SpanNs(600_000_000_000);
const AT_MOST_EVERY: SpanNs = SpanNs(10_000_000_000);

/// If so many times as many switches come in a second as when a run was measured, or as few, another one is measured.
/// (6.18: 8,155 runs in a second were given the 1,602 ns of a quieter one. Another watch measured 399 ns for 8,264.)
const CHANGE: f64 = 4.0;

/// Decides which interval is measured next. The first one is, without being asked for.
pub(super) struct CostMeasurements {
    /// From when on another one is.
    next: MonoNs,
    /// From when on another one may be.
    earliest: MonoNs,
    /// Switches in a second when one was measured last.
    rate: Option<f64>,
}

impl CostMeasurements {
    /// Those of a watch that begins at `begin`.
    pub(super) fn from(begin: MonoNs) -> Self {
        Self { next: begin.after(EVERY), earliest: begin.after(AT_MOST_EVERY), rate: None }
    }

    /// Whether the interval that begins `now` is to be measured.
    pub(super) fn is_due(&mut self, now: MonoNs) -> bool {
        let is_due = now >= self.next;
        if is_due {
            (self.next, self.earliest) = (now.after(EVERY), now.after(AT_MOST_EVERY));
        }
        is_due
    }

    /// Takes an interval with so many switches, that was `measured` or not.
    pub(super) fn note(&mut self, switches: u64, span: SpanNs, measured: bool) {
        let rate = switches.max(1) as f64 / span.0.max(1) as f64;
        match self.rate {
            Some(then) if !measured => {
                if rate >= then * CHANGE || rate * CHANGE <= then {
                    self.next = self.earliest;
                }
            }
            _ => self.rate = Some(rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The seconds in which a run was measured, where so many switches came in each.
    fn measured(seconds: u64, switches: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut measurements = CostMeasurements::from(MonoNs(0));
        let mut is_measured = true;
        let mut found = Vec::new();
        for second in 0..seconds {
            found.extend(is_measured.then_some(second));
            measurements.note(switches(second), SpanNs(SECOND), is_measured);
            is_measured = measurements.is_due(MonoNs((second + 1) * SECOND));
        }
        found
    }

    #[test]
    fn a_run_is_measured_now_and_then_and_where_another_number_of_them_comes() {
        assert_eq!(measured(1_300, |_| 100), [0, 600, 1_200]);
        assert_eq!(measured(100, |second| if second < 50 { 100 } else { 399 }), [0]);
        assert_eq!(measured(100, |second| if second < 50 { 100 } else { 400 }), [0, 51]);
        assert_eq!(measured(700, |second| if second < 50 { 100 } else { 20 }), [0, 51, 651]);
        // At most once in ten seconds, however often it changes.
        assert_eq!(measured(45, |second| 100 + second % 2 * 9_900), [0, 10, 20, 30, 40]);
        assert_eq!(measured(30, |_| 0), [0]);
    }
}
