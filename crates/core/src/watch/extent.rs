//! From when to when stored windows are, and how much of that time was watched.

use crate::date::Date;
use crate::units::SpanNs;
use crate::watch::Window;

/// Dates are known to the second.
const UNSURE_NS: i128 = 2_000_000_000;

/// The time of windows, in the order in which they were stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many windows.
    pub windows: u64,
    /// When the first one began.
    pub first: Date,
    /// When the last one ended.
    pub end: Date,
    /// By how much the clock was set forward within a watch, or ran on while the machine was suspended, ns.
    pub forward_ns: u64,
    /// By how much the clock was set back within a watch, ns.
    pub back_ns: u64,
    /// How much dates of one boot overlap where no two windows say by how much the clock was set back, ns.
    pub overlap_ns: u64,
    /// How long dates of several boots overlap, ns.
    foreign_ns: u64,
    watched_ns: u64,
    /// Of the last window: its boot, and its end from the start of its watch, ns.
    boot: Option<String>,
    end_ns: u64,
}

impl Extent {
    /// That of one window; `None` if its date is none.
    pub fn of(window: &Window) -> Option<Self> {
        let first = Date::parse(&window.started)?;
        Some(Self {
            windows: 1,
            first,
            end: first.after(SpanNs(window.window_ns)),
            forward_ns: 0,
            back_ns: 0,
            overlap_ns: 0,
            foreign_ns: 0,
            watched_ns: window.window_ns,
            boot: boot_of(window),
            end_ns: window.begin_ns.saturating_add(window.window_ns),
        })
    }

    /// Adds the next window. By the times that a watch counts by itself, one that follows another without a gap
    /// does so whatever their dates say.
    pub fn add(&mut self, window: &Window) {
        let Some(next) = Self::of(window) else { return };
        let later_ns = ns_between(self.end, next.first);
        let is_same_boot = self.boot == next.boot;
        let follows = is_same_boot && window.begin_ns > 0 && window.begin_ns == self.end_ns;
        let (is_later, is_earlier) = (later_ns >= UNSURE_NS, later_ns <= -UNSURE_NS);
        let sum = match (follows, is_same_boot) {
            (true, _) if is_later => &mut self.forward_ns,
            (true, _) if is_earlier => &mut self.back_ns,
            (false, true) if is_earlier => &mut self.overlap_ns,
            (false, false) if is_earlier => &mut self.foreign_ns,
            _ => &mut 0,
        };
        *sum = sum.saturating_add(u64::try_from(later_ns.unsigned_abs()).unwrap_or(u64::MAX));
        self.windows += 1;
        self.watched_ns = self.watched_ns.saturating_add(window.window_ns);
        (self.end, self.boot, self.end_ns) = (next.end, next.boot, next.end_ns);
    }

    /// How long nobody watched between the first window and the last, ns; 0 if it is less than can be known.
    pub fn not_watched_ns(&self) -> u64 {
        let back = [self.back_ns, self.overlap_ns, self.foreign_ns].map(i128::from);
        let passed = ns_between(self.first, self.end) + back.iter().sum::<i128>();
        let gaps = passed - i128::from(self.watched_ns) - i128::from(self.forward_ns);
        if gaps > UNSURE_NS { u64::try_from(gaps).unwrap_or(u64::MAX) } else { 0 }
    }

    /// When the last window would have ended if the clock had not been set since the first one began.
    pub fn end_unless_set(&self) -> Date {
        self.first.after(SpanNs(self.watched_ns.saturating_add(self.not_watched_ns())))
    }
}

fn ns_between(from: Date, to: Date) -> i128 {
    (i128::from(to.seconds()) - i128::from(from.seconds())) * 1_000_000_000
}

/// The mark of the boot; `None` if that is not known.
fn boot_of(window: &Window) -> Option<String> {
    window.boots.first()?.boot.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::boot::Boot;

    const MINUTE: u64 = 60_000_000_000;

    /// Windows of ten minutes: the time of day when each began, the minutes since its watch did, and its boot.
    #[track_caller]
    fn check(windows: &[(&str, u64, &str)], want: [u64; 4]) {
        let mut windows = windows.iter().map(|&(time, begin, boot)| Window {
            started: format!("2026-11-21T{time}Z"),
            begin_ns: begin * MINUTE,
            window_ns: 10 * MINUTE,
            boots: vec![Boot { boot: Some(boot.into()), ..Boot::default() }],
            ..Window::default()
        });
        let mut extent = Extent::of(&windows.next().unwrap()).unwrap();
        windows.for_each(|window| extent.add(&window));
        let Extent { forward_ns, back_ns, overlap_ns, .. } = extent;
        let got = [extent.not_watched_ns(), forward_ns, back_ns, overlap_ns];
        assert_eq!(got.map(|ns| ns / MINUTE), want);
        let passed = ns_between(extent.first, extent.end_unless_set());
        assert_eq!(passed, i128::from((10 * extent.windows + want[0]) * MINUTE));
    }

    #[test]
    fn a_clock_that_is_set_is_no_time_in_which_nobody_watched() {
        check(&[("01:00:00", 0, "a"), ("01:10:00", 10, "a")], [0; 4]);
        // Dates are cut to whole seconds.
        check(&[("01:00:00", 0, "a"), ("01:10:01", 10, "a"), ("01:20:00", 20, "a")], [0; 4]);
        check(&[("01:00:00", 0, "a"), ("03:10:00", 10, "a")], [0, 120, 0, 0]);
        check(&[("03:00:00", 0, "a"), ("01:10:00", 10, "a")], [0, 0, 120, 0]);
        // Both, and a time in which nobody watched.
        let windows = [
            ("01:00:00", 0, "a"),
            ("03:10:00", 10, "a"),
            ("02:20:00", 20, "a"),
            ("03:00:00", 0, "a"),
        ];
        check(&windows, [30, 120, 60, 0]);
    }

    #[test]
    fn nobody_watched_between_watches() {
        check(&[("01:00:00", 0, "a"), ("03:10:00", 0, "a")], [120, 0, 0, 0]);
        check(&[("01:00:00", 0, "a"), ("03:10:00", 0, "b")], [120, 0, 0, 0]);
        // By chance it begins at the same time of its watch, and a window of the same watch is missing.
        check(&[("01:00:00", 0, "a"), ("03:10:00", 10, "b")], [120, 0, 0, 0]);
        check(&[("01:00:00", 0, "a"), ("01:20:00", 20, "a")], [10, 0, 0, 0]);
        // The clock was set back while nobody watched; clocks of two machines, or of two boots, may differ.
        check(&[("02:00:00", 0, "a"), ("01:00:00", 0, "a")], [0, 0, 0, 70]);
        check(&[("02:00:00", 0, "a"), ("01:00:00", 0, "b")], [0; 4]);
    }
}
