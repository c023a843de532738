//! Points in time as records and other programs write them, in UTC.

use std::fmt;

use jiff::Timestamp;
use jiff::civil;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;

use crate::units::SpanNs;

/// A point in time to the second, from 1970 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date(Timestamp);

impl Date {
    /// So many seconds after 1970 began.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        let date = Timestamp::from_second(seconds).ok()?;
        (date >= Timestamp::UNIX_EPOCH).then_some(Self(date))
    }

    /// The second in which the kernel's real-time clock shows `ns`.
    pub fn from_realtime(ns: u64) -> Self {
        Self(Timestamp::UNIX_EPOCH).after(SpanNs(ns))
    }

    /// Reads RFC 3339: `2026-11-21T01:00:00Z`. Parts of a second are left out.
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_seconds(text.parse::<Timestamp>().ok()?.as_second())
    }

    /// Reads a date of mail, as of RFC 2822: `Sat, 21 Nov 2026 00:27:12 +0000`.
    pub fn parse_mail(text: &str) -> Option<Self> {
        Self::from_seconds(rfc2822::parse(text).ok()?.timestamp().as_second())
    }

    /// Reads `2026-11-21` and `00:27:12`, both UTC.
    pub fn parse_day_and_time(day: &str, time: &str) -> Option<Self> {
        let day: civil::Date = day.parse().ok()?;
        let time: civil::Time = time.parse().ok()?;
        let zoned = day.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
        Self::from_seconds(zoned.timestamp().as_second())
    }

    /// Seconds since 1970 began.
    pub fn seconds(self) -> i64 {
        self.0.as_second()
    }

    /// The second that is so much later, at most the last one of the year 9999.
    pub fn after(self, span: SpanNs) -> Self {
        let seconds = i64::try_from(span.0 / 1_000_000_000).unwrap_or(i64::MAX);
        let last = Self(Timestamp::MAX);
        Self::from_seconds(self.seconds().saturating_add(seconds)).unwrap_or(last)
    }

    /// As in mail: `Sat, 21 Nov 2026 00:27:12 +0000`.
    pub fn mail(self) -> String {
        self.0.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
    }

    /// As date(1) prints it: `Sat Nov 21 00:27:12 UTC 2026`.
    pub fn unix(self) -> String {
        self.0.strftime("%a %b %d %H:%M:%S UTC %Y").to_string()
    }
}

/// RFC 3339.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_date_1() {
        // date -u -d TEXT '+%s %a, %d %b %Y %T +0000'
        for (text, seconds, mail) in [
            ("1970-01-01T00:00:00Z", 0, "Thu, 01 Jan 1970 00:00:00 +0000"),
            ("2000-02-29T12:00:00Z", 951_825_600, "Tue, 29 Feb 2000 12:00:00 +0000"),
            ("2024-02-29T23:59:59Z", 1_709_251_199, "Thu, 29 Feb 2024 23:59:59 +0000"),
            ("2026-11-21T00:27:12.5Z", 1_795_220_832, "Sat, 21 Nov 2026 00:27:12 +0000"),
            ("2100-03-01T12:00:00Z", 4_107_585_600, "Mon, 01 Mar 2100 12:00:00 +0000"),
        ] {
            let date = Date::parse(text).unwrap();
            assert_eq!((date.seconds(), date.mail().as_str()), (seconds, mail), "{text}");
            assert_eq!(Date::parse_mail(mail), Some(date));
            assert_eq!(Date::parse(&date.to_string()), Some(date));
        }
        let date = Date::parse("2026-11-21T00:27:12Z").unwrap();
        assert_eq!(date.after(SpanNs(60_999_999_999)).unix(), "Sat Nov 21 00:28:12 UTC 2026");
        assert_eq!(date.after(SpanNs(u64::MAX)).to_string(), "2611-06-12T00:01:45Z");
        assert_eq!(Date::parse_day_and_time("1970-01-01", "00:00:01"), Date::from_seconds(1));
    }

    #[test]
    fn zones_of_mail_count() {
        for (text, want) in [
            ("Sat, 21 Nov 2026 00:27:12 +0130", Some("2026-11-20T22:57:12Z")),
            ("Thu, 29 Feb 2024 23:59:59 -0800", Some("2024-03-01T07:59:59Z")),
            ("Wed, 29 Feb 2023 00:00:00 +0000", None),
            ("Sat, 31 Nov 2026 00:27:12 +0000", None),
            ("Sat, 21 Nov 2026 24:27:12 +0000", None),
            ("Sat, 21 Nov 99999 00:27:12 +0000", None),
            ("", None),
            ("Sat, 21 Nov 2026 00:27:12 é0000", None),
        ] {
            let read = Date::parse_mail(text).map(|date| date.to_string());
            assert_eq!(read.as_deref(), want, "{text}");
        }
    }

    #[test]
    fn days_that_no_calendar_has_are_no_dates() {
        for text in [
            "",
            "x",
            "1969-12-31T00:00:00Z",
            "2026-02-31T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-21",
            "2026-11-21T01:00:00",
            "2026-11-2µT00:00:00Z",
            "99999999999-11-21T01:00:00Z",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
        assert_eq!(Date::parse_day_and_time("2026-02-31", "00:00:00"), None);
        assert_eq!(Date::from_seconds(-1), None);
        assert_eq!(Date::from_seconds(i64::MAX), None);
    }
}
