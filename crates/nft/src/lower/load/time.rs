//! `meta time`, `meta day` and `meta hour`: the packet's own time.
//!
//! The kernel counts days in its own zone and hours in UTC; nft turns the hour that a rule names into UTC when it loads it,
//! by the zone of the host. Near the moment at which an answer changes it is open. Source: kernel
//! `net/netfilter/nft_meta.c` (`nft_meta_weekday`, `nft_meta_hour`); nftables `src/meta.c`.

use super::Load;
use crate::lower::word::Loaded;
use rules::Transit;

const SECOND: u64 = 1_000_000_000;
const DAY: i64 = 86_400;
/// A tick of the slowest clock, in nanoseconds.
const TICK: u64 = 10_000_000;

/// What is asked of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// Nanoseconds since the epoch, in the host's zone: rules name dates in it.
    Moment,
    /// Day of the week, Sunday 0.
    Day,
    /// Second of the day, in the host's zone: rules name hours in it.
    Hour,
}

impl Time {
    /// Finds a key.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "time" => Self::Moment,
            "day" => Self::Day,
            "hour" => Self::Hour,
            _ => return None,
        })
    }

    fn at(self, time: u64, transit: &Transit<'_, '_>) -> Option<u128> {
        let second = (time / SECOND).cast_signed();
        let zone = transit.host.zone.as_ref()?.offset_at(second)?;
        let local = second.checked_add(zone.into())?;
        Some(match self {
            Self::Moment => {
                let whole = u128::from(local.max(0).cast_unsigned()) * u128::from(SECOND);
                whole + u128::from(time % SECOND)
            }
            Self::Day => (local.div_euclid(DAY) + 4).rem_euclid(7).cast_unsigned().into(),
            Self::Hour => local.rem_euclid(DAY).cast_unsigned().into(),
        })
    }
}

impl Load for Time {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        let is_described = transit.packet.described().is_some();
        let Some(now) = transit.time.filter(|_| !is_described) else { return Loaded::unknown(64) };
        let value = |time| match self.at(time, transit) {
            Some(value) => Loaded::known(value),
            None => Loaded::unknown(64),
        };
        value(now.saturating_sub(TICK)).or(value(now)).or(value(now.saturating_add(TICK)))
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some("the time zone of the host's kernel is not known (--tz)")
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        let name = match self {
            Self::Moment => "time",
            Self::Day => "day",
            Self::Hour => "hour",
        };
        show(format!("meta load {name}"));
    }
}

/// The second of the packet's day in UTC, and the host's zone in seconds; `None` if something of it is not known.
pub(crate) fn universal_hour(transit: &Transit<'_, '_>) -> Option<(Loaded, i64)> {
    let is_described = transit.packet.described().is_some();
    let now = transit.time.filter(|_| !is_described)?;
    let second = |time: u64| (time / SECOND).cast_signed();
    let zone = transit.host.zone.as_ref()?.offset_at(second(now))?;
    let hour = |time| Loaded::known(second(time).rem_euclid(DAY).cast_unsigned().into());
    let late = hour(now.saturating_add(TICK));
    Some((hour(now.saturating_sub(TICK)).or(hour(now)).or(late), zone.into()))
}

/// A second of a day in a zone as one in UTC.
pub(crate) fn to_universal(second: u128, zone: i64) -> u128 {
    let second = i64::try_from(second).unwrap_or(0);
    (second - zone).rem_euclid(DAY).cast_unsigned().into()
}

/// Reads `HH:MM[:SS]` as the second of a day.
pub(crate) fn hour(text: &str) -> Option<u128> {
    let mut parts = text.split(':').map(|part| part.parse::<u32>().ok());
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    let whole = parts.next().is_none() && hours < 24 && minutes < 60 && seconds < 60;
    whole.then(|| (hours * 3600 + minutes * 60 + seconds).into())
}

/// Reads `YYYY-MM-DD HH:MM:SS` as nanoseconds since the epoch in the zone that it is meant in.
pub(crate) fn date(text: &str) -> Option<u128> {
    let (date, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days of a year that begins with March: the day that a leap year has more is its last.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    if !(1900..9999).contains(&year) {
        return None;
    }
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let since_1970 = u128::try_from(days - 719_468).ok()?;
    Some((since_1970 * DAY as u128 + hour(time)?) * u128::from(SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_since_the_epoch() {
        let seconds = |text| date(text).map(|nanos| nanos / u128::from(SECOND));
        assert_eq!(seconds("1970-01-01 00:00:01"), Some(1));
        assert_eq!(seconds("2019-06-21 17:00:00"), Some(1_561_136_400));
        assert_eq!(seconds("2024-02-29 00:00:00"), Some(1_709_164_800));
        assert_eq!(seconds("2024-13-01 00:00:00"), None);
        assert_eq!(seconds("1561136400"), None);
        assert_eq!(hour("17:00"), Some(61_200));
        assert_eq!(hour("24:00"), None);
    }
}
