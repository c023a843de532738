//! From when to when stored windows are, and how much of that time was watched.

use crate::date::Date;
use crate::units::SpanNs;
use crate::watch::Window;

/// Dates are known to the second.
const UNSURE_NS: i128 = 2_000_000_000;

/// The times of windows, in the order in which they are read.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    times: Vec<Times>,
    boot: Option<String>,
}

/// When a window was.
#[derive(Clone, Copy, Debug)]
struct Times {
    began: Date,
    window_ns: u64,
    /// From the start of its watch, ns.
    begin_ns: u64,
    /// By the clock of its boot, ns; `None` if that clock or the boot is not known.
    boottime_ns: Option<u64>,
    /// The number of its boot. Windows that are read after those of another boot have another number.
    boot: u64,
}

/// The time of windows together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many windows.
    pub windows: u64,
    /// When the first one began.
    pub first: Date,
    /// When the last one ended.
    pub end: Date,
    /// How long nobody watched between the first window and the last, ns; 0 if it is less than can be known.
    pub not_watched_ns: u64,
    /// How long the machine was suspended while it was watched, ns; 0 if it is less than can be known.
    pub suspended_ns: u64,
    /// By how much the clock was set forward, ns.
    pub forward_ns: u64,
    /// By how much windows of earlier versions say that the clock was set forward, or ran on while the machine was
    /// suspended, ns.
    pub forward_or_suspended_ns: u64,
    /// By how much the clock was set back, ns.
    pub back_ns: u64,
    /// How much dates of one boot overlap where no two windows say by how much the clock was set back, ns.
    pub overlap_ns: u64,
    watched_ns: u64,
}

impl Timeline {
    /// Adds the next window, unless its date is none.
    pub fn add(&mut self, window: &Window) {
        let Some(began) = Date::parse(&window.started) else { return };
        let boot = window.boots.first().and_then(|boot| boot.boot.clone());
        let last = self.times.last().map_or(0, |times| times.boot);
        let number = last + u64::from(self.boot != boot);
        let boottime_ns = boot.as_ref().and(window.boottime_ns);
        let (window_ns, begin_ns) = (window.window_ns, window.begin_ns);
        self.times.push(Times { began, window_ns, begin_ns, boottime_ns, boot: number });
        self.boot = boot;
    }

    /// That of all windows; `None` if there is none.
    pub fn extent(&self) -> Option<Extent> {
        let (first, last) = (self.times.first()?, self.times.last()?);
        let mut times = self.times.clone();
        // Windows are read in the order of their dates. After the clock was set back, that is another one than that
        // in which they were counted.
        let is_alike = |a: &Times, b: &Times| {
            a.boot == b.boot && a.boottime_ns.is_some() == b.boottime_ns.is_some()
        };
        for of_boot in times.chunk_by_mut(is_alike) {
            of_boot.sort_by_key(|times| times.boottime_ns);
        }
        let mut sums = Sums::default();
        times.windows(2).for_each(|pair| sums.add(&pair[0], &pair[1]));
        let watched = times.iter().map(|times| times.window_ns);
        let sure = |ns| if ns > UNSURE_NS { unsigned(ns) } else { 0 };
        Some(Extent {
            windows: times.len() as u64,
            first: first.began,
            end: last.end(),
            not_watched_ns: sure(sums.not_watched),
            suspended_ns: sure(sums.suspended),
            forward_ns: unsigned(sums.forward),
            forward_or_suspended_ns: unsigned(sums.forward_or_suspended),
            back_ns: unsigned(sums.back),
            overlap_ns: unsigned(sums.overlap),
            watched_ns: watched.fold(0, u64::saturating_add),
        })
    }
}

impl Times {
    fn end(&self) -> Date {
        self.began.after(SpanNs(self.window_ns))
    }

    /// How much later `next`, of the same boot, began by the boot's own clock than this one had been counted for,
    /// ns.
    fn boottime_until(&self, next: &Self) -> Option<i128> {
        let [from, to] = [self.boottime_ns?, next.boottime_ns?].map(i128::from);
        Some(to - from - i128::from(self.window_ns))
    }
}

/// What came between windows, ns. Dates are cut to whole seconds, but their errors do not add up.
#[derive(Default)]
struct Sums {
    not_watched: i128,
    suspended: i128,
    forward: i128,
    forward_or_suspended: i128,
    back: i128,
    overlap: i128,
}

impl Sums {
    /// Adds what came between `window` and the `next` one.
    fn add(&mut self, window: &Times, next: &Times) {
        let seconds = i128::from(next.began.seconds()) - i128::from(window.began.seconds());
        // Not from the window's end as a date, which is cut once more: these errors would add up.
        let later = seconds * 1_000_000_000 - i128::from(window.window_ns);
        let is_same_boot = window.boot == next.boot;
        // The times that a watch counts by itself stand still while the machine is suspended.
        let end_ns = window.begin_ns.saturating_add(window.window_ns);
        let follows = is_same_boot && next.begin_ns > 0 && next.begin_ns == end_ns;
        if let Some(passed) = window.boottime_until(next).filter(|_| is_same_boot) {
            let gap = if follows { &mut self.suspended } else { &mut self.not_watched };
            *gap += passed;
            match later - passed {
                set if set >= UNSURE_NS => self.forward += set,
                set if set <= -UNSURE_NS => self.back -= set,
                _ => {}
            }
            return;
        }
        // Windows of two boots, or of earlier versions, have only their dates.
        match (follows, is_same_boot) {
            (true, _) if later >= UNSURE_NS => self.forward_or_suspended += later,
            (true, _) if later <= -UNSURE_NS => self.back -= later,
            (false, true) if later <= -UNSURE_NS => self.overlap -= later,
            // Clocks of two machines, or of two boots, may differ.
            (false, false) if later <= -UNSURE_NS => {}
            _ => self.not_watched += later,
        }
    }
}

fn unsigned(ns: i128) -> u64 {
    u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
}

impl Extent {
    /// When the last window would have ended if the clock had not been set since the first one began, and the
    /// machine had not been suspended while it was watched.
    pub fn end_unless_set(&self) -> Date {
        self.first.after(SpanNs(self.watched_ns.saturating_add(self.not_watched_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::boot::Boot;

    const MINUTE: u64 = 60_000_000_000;

    /// A window of ten minutes: the time of day when it began, the minutes since its watch did, and its boot.
    fn window(time: &str, begin: u64, boot: &str) -> Window {
        Window {
            started: format!("2026-11-21T{time}Z"),
            begin_ns: begin * MINUTE,
            window_ns: 10 * MINUTE,
            boots: vec![Boot { boot: Some(boot.into()), ..Boot::default() }],
            ..Window::default()
        }
    }

    fn extent(windows: impl IntoIterator<Item = Window>) -> Extent {
        let mut timeline = Timeline::default();
        windows.into_iter().for_each(|window| timeline.add(&window));
        let extent = timeline.extent().unwrap();
        let covered = SpanNs(10 * MINUTE * extent.windows + extent.not_watched_ns);
        assert_eq!(extent.end_unless_set(), extent.first.after(covered));
        extent
    }

    /// Minutes that were not watched, by which the clock was set forward or the machine was suspended, by which it was
    /// set back, and by which dates overlap: of windows of earlier versions.
    #[track_caller]
    fn check_dated(windows: &[(&str, u64, &str)], want: [u64; 4]) {
        let got = extent(windows.iter().map(|&(time, begin, boot)| window(time, begin, boot)));
        assert_eq!((got.suspended_ns, got.forward_ns), (0, 0));
        let Extent { not_watched_ns, forward_or_suspended_ns, back_ns, overlap_ns, .. } = got;
        let got = [not_watched_ns, forward_or_suspended_ns, back_ns, overlap_ns];
        assert_eq!(got.map(|ns| ns / MINUTE), want);
    }

    /// Minutes that were not watched, in which the machine was suspended, and by which the clock was set forward and
    /// back: of windows that also have the minutes of their boot's clock.
    #[track_caller]
    fn check(windows: &[(&str, u64, &str, u64)], want: [u64; 4]) {
        let got = extent(windows.iter().map(|&(time, begin, boot, boottime)| Window {
            boottime_ns: Some(boottime * MINUTE),
            ..window(time, begin, boot)
        }));
        assert_eq!((got.forward_or_suspended_ns, got.overlap_ns), (0, 0));
        let Extent { not_watched_ns, suspended_ns, forward_ns, back_ns, .. } = got;
        let got = [not_watched_ns, suspended_ns, forward_ns, back_ns];
        assert_eq!(got.map(|ns| ns / MINUTE), want);
    }

    #[test]
    fn a_clock_that_is_set_is_no_time_in_which_nobody_watched() {
        check_dated(&[("01:00:00", 0, "a"), ("01:10:00", 10, "a")], [0; 4]);
        // Dates are cut to whole seconds.
        let cut = [("01:00:00", 0, "a"), ("01:10:01", 10, "a"), ("01:20:00", 20, "a")];
        check_dated(&cut, [0; 4]);
        check_dated(&[("01:00:00", 0, "a"), ("03:10:00", 10, "a")], [0, 120, 0, 0]);
        check_dated(&[("03:00:00", 0, "a"), ("01:10:00", 10, "a")], [0, 0, 120, 0]);
        // Both, and a time in which nobody watched.
        let windows = [
            ("01:00:00", 0, "a"),
            ("03:10:00", 10, "a"),
            ("02:20:00", 20, "a"),
            ("03:00:00", 0, "a"),
        ];
        check_dated(&windows, [30, 120, 60, 0]);
    }

    /// Each window ends a moment before its last second is over: a day of them once had a minute that nobody watched.
    #[test]
    fn parts_of_seconds_do_not_add_up() {
        let windows = (0..100).map(|number| {
            let minutes = 10 * number;
            let time = format!("{:02}:{:02}:00", minutes / 60, minutes % 60);
            let window_ns = 10 * MINUTE - 50_000;
            Window { window_ns, begin_ns: number * window_ns, ..window(&time, 0, "a") }
        });
        let mut timeline = Timeline::default();
        windows.for_each(|window| timeline.add(&window));
        let extent = timeline.extent().unwrap();
        let Extent { not_watched_ns, forward_or_suspended_ns, back_ns, .. } = extent;
        assert_eq!((not_watched_ns, forward_or_suspended_ns, back_ns), (0, 0, 0));
    }

    #[test]
    fn nobody_watched_between_watches() {
        check_dated(&[("01:00:00", 0, "a"), ("03:10:00", 0, "a")], [120, 0, 0, 0]);
        check_dated(&[("01:00:00", 0, "a"), ("03:10:00", 0, "b")], [120, 0, 0, 0]);
        // By chance it begins at the same time of its watch, and a window of the same watch is missing.
        check_dated(&[("01:00:00", 0, "a"), ("03:10:00", 10, "b")], [120, 0, 0, 0]);
        check_dated(&[("01:00:00", 0, "a"), ("01:20:00", 20, "a")], [10, 0, 0, 0]);
        // The clock was set back while nobody watched; clocks of two machines, or of two boots, may differ.
        check_dated(&[("02:00:00", 0, "a"), ("01:00:00", 0, "a")], [0, 0, 0, 70]);
        check_dated(&[("02:00:00", 0, "a"), ("01:00:00", 0, "b")], [0; 4]);
    }

    #[test]
    fn the_clock_of_a_boot_tells_what_dates_do_not() {
        check(&[("01:00:00", 0, "a", 5), ("01:10:00", 10, "a", 15)], [0; 4]);
        // Within a watch: the clock was set, or the machine was suspended, or both.
        check(&[("01:00:00", 0, "a", 5), ("03:10:00", 10, "a", 15)], [0, 0, 120, 0]);
        check(&[("01:00:00", 0, "a", 5), ("03:10:00", 10, "a", 135)], [0, 120, 0, 0]);
        check(&[("01:00:00", 0, "a", 5), ("03:10:00", 10, "a", 75)], [0, 60, 60, 0]);
        // Between two watches: a service that begins anew after an update, and a clock that is days late until then.
        check(&[("01:00:00", 0, "a", 5), ("23:10:00", 0, "a", 16)], [1, 0, 22 * 60 - 1, 0]);
        check(&[("01:00:00", 0, "a", 5), ("03:10:00", 0, "a", 135)], [120, 0, 0, 0]);
        check(&[("02:00:00", 0, "a", 5), ("01:00:00", 0, "a", 15)], [0, 0, 0, 70]);
        // Two boots have two clocks, and a boot that is not known has none.
        check(&[("01:00:00", 0, "a", 500), ("03:10:00", 0, "b", 5)], [120, 0, 0, 0]);
        let mut windows = [window("01:00:00", 0, "a"), window("03:10:00", 0, "a")];
        for window in &mut windows {
            window.boottime_ns = Some(7);
            window.boots.clear();
        }
        assert_eq!(extent(windows).not_watched_ns, 120 * MINUTE);
        // Of the same boot, an earlier version stored the first one.
        let later = Window { boottime_ns: Some(7), ..window("03:10:00", 0, "a") };
        assert_eq!(extent([window("01:00:00", 0, "a"), later]).not_watched_ns, 120 * MINUTE);
    }

    /// Files of windows are read in the order of their dates.
    #[test]
    fn windows_may_be_read_in_another_order_than_they_were_counted() {
        let windows = [
            ("01:10:00", 10, "a", 15),
            ("01:20:00", 20, "a", 25),
            ("03:00:00", 0, "a", 5),
            ("03:20:00", 140, "a", 145),
        ];
        check(&windows, [110, 0, 0, 120]);
    }
}
