//! Clocks of pcapng interfaces: how many ticks a second has, and where counting starts.
//!
//! Contract: exact where nanoseconds can be, rounded down otherwise, saturating at the ends of
//! [`Timestamp`]. Source: draft-ietf-opsawg-pcapng, options `if_tsresol` and `if_tsoffset`.

use crate::timestamp::Timestamp;

/// The highest power of ten that 64 bits hold.
const MAX_DECIMAL_EXPONENT: u8 = 19;

/// A tick, as a fraction or multiple of a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tick {
    Nanos(u64),
    PerNano(u64),
    /// 2^-n seconds.
    BinaryFraction(u8),
    /// Finer than 64 bits of ticks can express a nanosecond in.
    Negligible,
}

/// The clock of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    tick: Tick,
    offset_seconds: i64,
}

impl Default for Clock {
    /// Microseconds since the epoch.
    fn default() -> Self {
        Self { tick: Tick::Nanos(1000), offset_seconds: 0 }
    }
}

impl Clock {
    /// Sets the tick from the value of `if_tsresol`: the negative exponent of 10, or of 2 with the top bit.
    pub(super) fn set_resolution(&mut self, tsresol: u8) {
        let exponent = tsresol & 0x7f;
        self.tick = if tsresol & 0x80 != 0 {
            Tick::BinaryFraction(exponent)
        } else if exponent <= 9 {
            Tick::Nanos(10_u64.pow(u32::from(9 - exponent)))
        } else if exponent - 9 <= MAX_DECIMAL_EXPONENT {
            Tick::PerNano(10_u64.pow(u32::from(exponent - 9)))
        } else {
            Tick::Negligible
        };
    }

    /// Sets the seconds that are added to every time, from the value of `if_tsoffset`.
    pub(super) fn set_offset(&mut self, seconds: i64) {
        self.offset_seconds = seconds;
    }

    /// The instant `ticks` after the start of this clock.
    pub(super) fn at(self, ticks: u64) -> Timestamp {
        // At most 2^64 ticks times 10^9, plus 2^63 seconds in nanoseconds: below 2^95.
        let ticks = i128::from(ticks);
        let nanos = match self.tick {
            Tick::Nanos(nanos) => ticks * i128::from(nanos),
            Tick::PerNano(count) => ticks / i128::from(count),
            Tick::BinaryFraction(exponent) => (ticks * 1_000_000_000) >> exponent,
            Tick::Negligible => 0,
        };
        Timestamp::saturating_from_nanos(nanos + i128::from(self.offset_seconds) * 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(tsresol: u8, ticks: u64) -> i64 {
        let mut clock = Clock::default();
        clock.set_resolution(tsresol);
        clock.at(ticks).as_nanos()
    }

    #[test]
    fn decimal_and_binary_resolutions() {
        assert_eq!(Clock::default().at(1_000_001).as_nanos(), 1_000_001_000);
        assert_eq!(nanos(0, 2), 2_000_000_000);
        assert_eq!(nanos(9, 7), 7);
        assert_eq!(nanos(12, 7_999), 7);
        assert_eq!(nanos(28, u64::MAX), 1);
        assert_eq!(nanos(29, u64::MAX), 0);
        assert_eq!(nanos(0x80, 3), 3_000_000_000);
        assert_eq!(nanos(0x80 | 32, 3 << 31), 1_500_000_000);
        assert_eq!(nanos(0xff, u64::MAX), 0);
    }

    #[test]
    fn times_beyond_the_range_saturate() {
        assert_eq!(nanos(0, u64::MAX), i64::MAX);
        let mut clock = Clock::default();
        clock.set_offset(-1);
        assert_eq!(clock.at(0).as_nanos(), -1_000_000_000);
        clock.set_offset(i64::MIN);
        assert_eq!(clock.at(u64::MAX).as_nanos(), i64::MIN);
    }
}
