//! The time of a record in the words of other formats.

/// A point of time, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    seconds: u64,
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// 1970 began on a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Days from one year 400 to the next, and from 0000-03-01 to 1970-01-01.
const ERA: u64 = 146_097;
const EPOCH: u64 = 719_468;

impl Date {
    /// Reads `2026-11-21T01:00:00Z`, also with parts of a second, which are left out. `None` before
    /// 1970.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let number = |from: usize, to: usize| {
            let digits = text.get(from..to).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
            digits.parse::<u64>().ok()
        };
        let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        let marked = marks.iter().all(|&(at, mark)| text.as_bytes().get(at) == Some(&mark));
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let sane = (1..=12).contains(&month) && (1..=31).contains(&day);
        if !marked || !sane || !text.ends_with('Z') || year < 1970 {
            return None;
        }
        // Years that begin in March have their odd day at the end.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let day_of_era = year % 400 * 365 + year % 400 / 4 - year % 400 / 100;
        let days = year / 400 * ERA + day_of_era + (153 * month + 2) / 5 + day - 1 - EPOCH;
        Some(Self { seconds: ((days * 24 + hour) * 60 + minute) * 60 + second })
    }

    pub(super) fn after(self, seconds: u64) -> Self {
        Self { seconds: self.seconds.saturating_add(seconds) }
    }

    /// Seconds since 1970.
    pub(super) fn epoch(self) -> u64 {
        self.seconds
    }

    /// `Sat, 21 Nov 2026 00:27:12 +0000`
    pub(super) fn of_mail(self) -> String {
        let Parts { weekday, year, month, day, time } = self.parts();
        format!("{weekday}, {day:02} {month} {year} {time} +0000")
    }

    /// `Sat Nov 21 00:27:12 UTC 2026`
    pub(super) fn of_unix(self) -> String {
        let Parts { weekday, year, month, day, time } = self.parts();
        format!("{weekday} {month} {day:02} {time} UTC {year}")
    }

    fn parts(self) -> Parts {
        let (days, second) = (self.seconds / 86_400, self.seconds % 86_400);
        let shifted = days + EPOCH;
        let day_of_era = shifted % ERA;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let year = shifted / ERA * 400 + year_of_era + u64::from(month >= 10);
        let place = |of: u64, length: usize| usize::try_from(of).unwrap_or(0) % length;
        Parts {
            weekday: WEEKDAYS[place(days % 7, 7)],
            year,
            month: MONTHS[place(month + 2, 12)],
            day: day_of_year - (153 * month + 2) / 5 + 1,
            time: format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60),
        }
    }
}

struct Parts {
    weekday: &'static str,
    year: u64,
    month: &'static str,
    day: u64,
    time: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, epoch: u64, mail: &str) {
        let date = Date::parse(text).unwrap();
        assert_eq!((date.epoch(), date.of_mail().as_str()), (epoch, mail));
    }

    #[test]
    fn dates_are_those_of_date_1() {
        // date -u -d TEXT '+%s %a, %d %b %Y %T +0000'
        check("1970-01-01T00:00:00Z", 0, "Thu, 01 Jan 1970 00:00:00 +0000");
        check("2024-02-29T23:59:59Z", 1_709_251_199, "Thu, 29 Feb 2024 23:59:59 +0000");
        check("2026-11-21T00:27:12.5Z", 1_795_220_832, "Sat, 21 Nov 2026 00:27:12 +0000");
        check("2100-03-01T12:00:00Z", 4_107_585_600, "Mon, 01 Mar 2100 12:00:00 +0000");
        let date = Date::parse("2026-11-21T00:27:12Z").unwrap().after(60);
        assert_eq!(date.of_unix(), "Sat Nov 21 00:28:12 UTC 2026");
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "x",
            "1969-12-31T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-21",
            "2026-11-2µT00:00:00Z",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
    }
}
