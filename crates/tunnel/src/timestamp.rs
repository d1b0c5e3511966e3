//! When an initiation was made, by its maker's clock: TAI64N (D. J. Bernstein), twelve bytes that sort as numbers do.
//! A responder takes only initiations that are later than the peer's last one, so a replayed initiation does nothing.

/// Seconds and nanoseconds. Values that no clock shows, such as 2^32 - 1 nanoseconds, sort as numbers, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    seconds: u64,
    nanoseconds: u32,
}

/// TAI64's label of the Unix epoch; leap seconds do not matter here.
const EPOCH: u64 = (1 << 62) + 10;

impl Timestamp {
    /// Returns the timestamp of a time in nanoseconds since 1970.
    #[must_use]
    pub fn at(unix: u64) -> Self {
        let nanoseconds = (unix % 1_000_000_000) as u32;
        Self { seconds: EPOCH + unix / 1_000_000_000, nanoseconds }
    }

    /// The next one; the last of all stays.
    pub(crate) fn next(self) -> Self {
        match (self.nanoseconds.checked_add(1), self.seconds.checked_add(1)) {
            (Some(nanoseconds), _) => Self { nanoseconds, ..self },
            (None, Some(seconds)) => Self { seconds, nanoseconds: 0 },
            (None, None) => self,
        }
    }

    pub(crate) fn from_wire(bytes: [u8; 12]) -> Self {
        let [s0, s1, s2, s3, s4, s5, s6, s7, nanoseconds @ ..] = bytes;
        Self {
            seconds: u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
            nanoseconds: u32::from_be_bytes(nanoseconds),
        }
    }

    pub(crate) fn to_wire(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.seconds.to_be_bytes());
        bytes[8..].copy_from_slice(&self.nanoseconds.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_sort_as_times_do() {
        let times = [0, 1, 999_999_999, 1_000_000_000, 1_700_000_000_123_456_789, u64::MAX];
        for pair in times.windows(2) {
            let (a, b) = (Timestamp::at(pair[0]), Timestamp::at(pair[1]));
            assert!(a < b && a.to_wire() < b.to_wire(), "{pair:?}");
            assert_eq!(Timestamp::from_wire(a.to_wire()), a);
        }
    }

    #[test]
    fn the_next_one_is_later_until_the_end() {
        let last = Timestamp::from_wire([0xff; 12]);
        let carried = Timestamp { seconds: 7, nanoseconds: u32::MAX };
        assert_eq!(carried.next(), Timestamp { seconds: 8, nanoseconds: 0 });
        assert!(Timestamp::at(5).next() > Timestamp::at(5));
        assert_eq!(last.next(), last);
    }
}
