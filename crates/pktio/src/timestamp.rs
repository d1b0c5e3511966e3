//! [`Timestamp`]: an instant in nanoseconds.
//!
//! Contract: a plain value. It is always printed as RFC 3339 UTC with nine decimals, and its whole range prints
//! (years 1677 to 2262).

use std::fmt;
use std::time::SystemTime;

pub(crate) const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Nanoseconds since 1970-01-01T00:00:00Z, without leap seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The instant `nanos` nanoseconds after the epoch (before it, when negative).
    #[inline]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The instant that the machine's clock shows.
    #[must_use]
    pub fn now() -> Self {
        let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self::saturating_from_nanos(elapsed.map_or(0, |elapsed| elapsed.as_nanos() as i128))
    }

    /// Returns [`Timestamp::from_nanos`]; an instant beyond 64 bits becomes the nearest possible one.
    pub fn saturating_from_nanos(nanos: i128) -> Self {
        Self(nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// Reads RFC 3339: `2026-11-21T10:00:00.5Z`, or with an offset such as `+02:00` for `Z`. Digits of a
    /// fraction beyond the ninth are left out; leap seconds are not read.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let (date, rest) = text.split_once(['T', 't', ' '])?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let clock_length = rest.find(|c: char| !c.is_ascii_digit() && c != ':')?;
        let (clock, rest) = rest.split_at(clock_length);
        let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
        let (fraction, zone) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?),
            None => ("0", rest),
        };
        let days = days_of(year, month, day)?;
        if fraction.is_empty() || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let nanos: i64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
        let local = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
        let seconds = local.checked_sub(offset_of(zone)?)?;
        seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos).map(Self)
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(NANOS_PER_SECOND);
        let nanos = self.0.rem_euclid(NANOS_PER_SECOND);
        let (year, month, day) = civil_date(seconds.div_euclid(SECONDS_PER_DAY));
        let second = seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
    }
}

/// Year, month and day of a number of days since the epoch, in the proleptic Gregorian calendar.
///
/// Counts from 0000-03-01, so that a leap day is the last of its year and months follow one formula.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// Three numbers of these many digits, apart by a sign.
fn numbers(text: &str, sign: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let mut found = [0; 3];
    let mut parts = text.split(sign);
    for (slot, digits) in found.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        *slot = part.bytes().all(|c| c.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}

/// Number of days since the epoch of a date that exists: the inverse of [`civil_date`].
fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let counted = year - i64::from(month <= 2);
    let march_month = (month + 9) % 12;
    let (era, year_of_era) = (counted.div_euclid(400), counted.rem_euclid(400));
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    (civil_date(days) == (year, month, day)).then_some(days)
}

/// Seconds that a zone is ahead of UTC.
fn offset_of(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let ahead = if zone.starts_with('-') { -1 } else { 1 };
    let [hours, minutes, _] =
        numbers(&format!("{}:00", zone.strip_prefix(['+', '-'])?), ':', [2; 3])?;
    (hours < 24 && minutes < 60).then_some(ahead * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_print_as_rfc_3339() {
        let printed = |nanos| Timestamp::from_nanos(nanos).to_string();
        assert_eq!(printed(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(printed(-1), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(printed(951_782_400_000_000_001), "2000-02-29T00:00:00.000000001Z");
        assert_eq!(printed(1_709_251_199_123_456_789), "2024-02-29T23:59:59.123456789Z");
        assert_eq!(printed(4_107_542_400_000_000_000), "2100-03-01T00:00:00.000000000Z");
    }

    #[test]
    fn what_prints_reads_back_and_zones_count() {
        for nanos in [0, 1, 951_782_400_000_000_001, 1_709_251_199_123_456_789] {
            let text = Timestamp::from_nanos(nanos).to_string();
            assert_eq!(Timestamp::parse_rfc3339(&text).map(Timestamp::as_nanos), Some(nanos));
        }
        let same =
            ["2024-02-29T12:00:00Z", "2024-02-29t14:00:00.0+02:00", "2024-02-29 10:30:00-01:30"];
        let read = same.map(|text| Timestamp::parse_rfc3339(text).map(Timestamp::as_nanos));
        assert_eq!(read, [Some(1_709_208_000_000_000_000); 3]);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let wrong = [
            "",
            "2024-02-29",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-1-01T00:00:00Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00Z",
            "2024-01-01T00:00:00+2",
            "9999-01-01T00:00:00Z",
        ];
        for text in wrong {
            assert_eq!(Timestamp::parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn the_ends_of_the_range_print() {
        assert_eq!(Timestamp::from_nanos(i64::MAX).to_string(), "2262-04-11T23:47:16.854775807Z");
        assert_eq!(Timestamp::from_nanos(i64::MIN).to_string(), "1677-09-21T00:12:43.145224192Z");
        assert_eq!(Timestamp::saturating_from_nanos(i128::MAX).as_nanos(), i64::MAX);
        assert_eq!(Timestamp::saturating_from_nanos(i128::MIN).as_nanos(), i64::MIN);
    }
}
