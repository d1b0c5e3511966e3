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
    /// Nanoseconds since the epoch.
    Time,
    /// Day of the week, Sunday 0.
    Day,
    /// Second of the day, in the host's zone: rules name hours in it.
    Hour,
}

impl Time {
    /// Finds a key.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "time" => Self::Time,
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
            Self::Time => u128::from(time),
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
            Self::Time => "time",
            Self::Day => "day",
            Self::Hour => "hour",
        };
        show(format!("meta load {name}"));
    }
}

/// Reads `HH:MM[:SS]` as the second of a day.
pub(crate) fn hour(text: &str) -> Option<u128> {
    let mut parts = text.split(':').map(|part| part.parse::<u32>().ok());
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    let whole = parts.next().is_none() && hours < 24 && minutes < 60 && seconds < 60;
    whole.then(|| (hours * 3600 + minutes * 60 + seconds).into())
}
