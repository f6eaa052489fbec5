//! Dates as [RFC3339] writes them.

/// The milliseconds from 1970 to a date such as `2025-03-01T12:00:00.5Z`; `None`: it is no date of
/// that form, or an earlier one.
pub(super) fn epoch_ms(date: &str) -> Option<f64> {
    let (day, rest) = date.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, offset) = match rest.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, 0),
        None => {
            let at = rest.rfind(['+', '-'])?;
            let sign = if rest[at..].starts_with('+') { 1 } else { -1 };
            (&rest[..at], sign * 60 * minutes(&rest[at + 1..])?)
        }
    };
    let (hours_and_minutes, seconds) = clock.split_at_checked(5)?;
    let seconds: f64 = seconds.strip_prefix(':')?.parse().ok().filter(|seconds| (0.0..61.0).contains(seconds))?;
    let whole = days(day)? * 86_400 + minutes(hours_and_minutes)? * 60 - offset;
    (whole >= 0).then_some((whole as f64 + seconds) * 1e3)
}

/// The minutes of `hh:mm`.
fn minutes(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    Some(number(hours, 0..24)? * 60 + number(minutes, 0..60)?)
}

/// The days from 1970 to `yyyy-mm-dd`.
fn days(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let year = number(parts.next()?, 1970..10_000)?;
    let month = number(parts.next()?, 1..13)?;
    let day = number(parts.next()?, 1..32)?;
    // Counted in years that begin with March, the day that leap years add is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    // From 1 March of year 0 to 1 January 1970 it is 719,468 days.
    Some(365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468)
}

fn number(text: &str, within: core::ops::Range<i64>) -> Option<i64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && within.contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        assert_eq!(epoch_ms("1970-01-01T00:00:00.000Z"), Some(0.0));
        assert_eq!(epoch_ms("2000-02-29T12:00:00Z"), Some(951_825_600_000.0));
        assert_eq!(epoch_ms("2001-09-09T01:46:40.25Z"), Some(1_000_000_000_250.0));
        assert_eq!(epoch_ms("2001-09-09t03:46:40+02:00"), Some(1_000_000_000_000.0));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in ["", "unknown", "2001-13-01T00:00:00Z", "2001-01-01", "2001-01-01T00:00Z", "äöüäöüäöüäöü"]
        {
            assert_eq!(epoch_ms(text), None, "{text}");
        }
    }
}
