//! Dates as programs write them, as RFC 3339 in UTC.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds since 1970 of a date of mail: `Sat, 21 Nov 2026 00:27:12 +0000`.
pub(super) fn of_mail(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, time, zone] = words.as_slice() else { return None };
    let month = MONTHS.iter().position(|m| m == month)? + 1;
    let seconds = days(digits(year)?, i64::try_from(month).ok()?, digits(day)?)? * 86_400;
    let (sign, zone) = match zone.split_at_checked(1)? {
        ("+", zone) => (1, digits(zone)?),
        ("-", zone) => (-1, digits(zone)?),
        _ => return None,
    };
    Some(seconds + of_day(time)? - sign * (zone / 100 * 3_600 + zone % 100 * 60))
}

/// Seconds since 1970 of `2026-11-21` and `00:27:12`, in UTC.
pub(super) fn of_day_and_time(day: &str, time: &str) -> Option<i64> {
    let parts: Vec<&str> = day.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return None };
    Some(days(digits(year)?, digits(month)?, digits(day)?)? * 86_400 + of_day(time)?)
}

fn of_day(time: &str) -> Option<i64> {
    let parts: Vec<&str> = time.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else { return None };
    let (hours, minutes, seconds) = (digits(hours)?, digits(minutes)?, digits(seconds)?);
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(hours * 3_600 + minutes * 60 + seconds)
}

fn digits(text: &str) -> Option<i64> {
    if text.len() > 4 { None } else { super::lines::number(text)?.try_into().ok() }
}

/// RFC 3339 of seconds since 1970, up to the year 9999.
pub(super) fn rfc3339(seconds: i64) -> Option<String> {
    if !(0..253_402_300_800).contains(&seconds) {
        return None;
    }
    let (day, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(day);
    let (hours, minutes) = (of_day / 3_600, of_day / 60 % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{:02}Z", of_day % 60))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` if there is no such date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // A year that begins in March has its odd day at its end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let number = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let number = number - 719_468;
    let (_, _, back) = civil(number);
    (back == day).then_some(number)
}

/// Year, month and day of a number of days since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_mail_are_read() {
        let read = |text| of_mail(text).and_then(rfc3339);
        for (text, want) in [
            ("Sat, 21 Nov 2026 00:27:12 +0000", Some("2026-11-21T00:27:12Z")),
            ("Sat, 21 Nov 2026 00:27:12 +0130", Some("2026-11-20T22:57:12Z")),
            ("Thu, 29 Feb 2024 23:59:59 -0800", Some("2024-03-01T07:59:59Z")),
            ("Wed, 29 Feb 2023 00:00:00 +0000", None),
            ("Sat, 31 Nov 2026 00:27:12 +0000", None),
            ("Sat, 21 Nov 2026 24:27:12 +0000", None),
            ("Sat, 21 Nov 99999 00:27:12 +0000", None),
            ("", None),
            ("Sat, 21 Nov 2026 00:27:12 é0000", None),
        ] {
            assert_eq!(read(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn days_are_counted_without_gaps() {
        for day in 0..200_000 {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), Some(day));
        }
        assert_eq!(of_day_and_time("1970-01-01", "00:00:01"), Some(1));
        assert_eq!(rfc3339(-1), None);
    }
}
