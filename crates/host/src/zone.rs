//! [`Zone`]: the time zone that the kernel holds (`sys_tz`), by which `-m time --kerneltz` counts.
//!
//! The kernel holds a number of minutes and no zone. The boot sets it to the offset of that day (`hwclock --systz`,
//! systemd), and nothing says that it is set again when summer time begins or ends. A zone given by name is taken as
//! set each time; where that is not so, the offset itself says what the kernel holds.
//!
//! Source: kernel `kernel/time/time.c` (`sys_tz`); zones come from the IANA database that jiff brings along.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Zone {
    /// Minutes ahead of UTC: positive in the east.
    Offset(i32),
    /// By its name.
    Named(Box<str>, TimeZone),
}

/// No zone is further from UTC.
const MOST: i32 = 18 * 60;

impl Zone {
    /// Reads `UTC`, an offset (`+02:00`, `-0330`, `+2`) or the name of a zone (`Europe/Berlin`).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text
            .strip_prefix('+')
            .map(|rest| (1, rest))
            .or(text.strip_prefix('-').map(|r| (-1, r)))
        {
            Some((sign, rest)) => Some(Self::Offset(sign * minutes(rest)?)),
            None if text == "UTC" => Some(Self::Offset(0)),
            None => {
                let zone = TimeZone::get(text).ok()?;
                let name = zone.iana_name().unwrap_or(text).into();
                Some(Self::Named(name, zone))
            }
        }
    }

    /// Seconds to add to UTC at a second since the epoch, in whole minutes as the kernel holds them; `None` beyond the
    /// years of the time zone database.
    #[must_use]
    pub fn offset_at(&self, second: i64) -> Option<i32> {
        match self {
            Self::Offset(minutes) => Some(minutes * 60),
            Self::Named(_, zone) => {
                let at = Timestamp::from_second(second).ok()?;
                Some(zone.to_offset(at).seconds() / 60 * 60)
            }
        }
    }
}

/// The minutes of `2`, `02`, `0230` or `02:30`.
fn minutes(text: &str) -> Option<i32> {
    let digits = |text: &str| {
        let are = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|_| are && text.len() <= 2)
    };
    let (hours, minutes) = match (text.split_once(':'), text.len()) {
        (Some(parts), _) => parts,
        (None, 4) => text.split_at_checked(2)?,
        (None, _) => (text, "0"),
    };
    let all = digits(hours)? * 60 + digits(minutes).filter(|minutes| *minutes < 60)?;
    (all <= MOST).then_some(all)
}

/// `UTC`, `+02:00` or the name.
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset(0) => f.write_str("UTC"),
            Self::Offset(minutes) => {
                let sign = if *minutes < 0 { '-' } else { '+' };
                let minutes = minutes.abs();
                write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
            Self::Named(name, _) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_read_and_print() {
        for (text, shown) in [
            ("UTC", "UTC"),
            ("+0", "UTC"),
            ("+2", "+02:00"),
            ("-0330", "-03:30"),
            ("+05:45", "+05:45"),
            ("Europe/Berlin", "Europe/Berlin"),
            ("america/new_york", "America/New_York"),
        ] {
            assert_eq!(Zone::parse(text).map(|zone| zone.to_string()).as_deref(), Some(shown));
        }
        for wrong in ["", "+", "2", "+25", "+1:60", "+1:2:3", "Mars/Olympus", "-+1", "+é9"] {
            assert_eq!(Zone::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_name_has_the_offset_of_the_day() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        // 24 November and 24 July 2026.
        assert_eq!(berlin.offset_at(1_795_478_400), Some(3600));
        assert_eq!(berlin.offset_at(1_784_851_200), Some(7200));
        assert_eq!(Zone::parse("-0330").unwrap().offset_at(0), Some(-12_600));
    }
}
