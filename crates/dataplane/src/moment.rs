//! [`Moment`]: a point in time as users write it.

use conntrack::SECOND;
use pktio::Timestamp;

/// A moment, on the clock or counted from the first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since the Unix epoch.
    At(u64),
    /// Nanoseconds after the first packet.
    After(u64),
}

impl Moment {
    /// Reads RFC 3339, or `+SECONDS` with a fraction.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let Some(seconds) = text.strip_prefix('+') else {
            let at = Timestamp::parse_rfc3339(text)?;
            return u64::try_from(at.as_nanos()).ok().map(Self::At);
        };
        let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
            return None;
        }
        let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
        whole.parse::<u64>().ok()?.checked_mul(SECOND)?.checked_add(nanos).map(Self::After)
    }

    /// Nanoseconds since the Unix epoch, where the first packet came at `start`.
    #[must_use]
    pub fn nanos(self, start: u64) -> u64 {
        match self {
            Self::At(time) => time,
            Self::After(span) => start.saturating_add(span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read() {
        assert_eq!(Moment::parse("+1.5"), Some(Moment::After(1_500_000_000)));
        assert_eq!(Moment::parse("+0"), Some(Moment::After(0)));
        assert_eq!(Moment::parse("1970-01-01T00:00:01Z"), Some(Moment::At(1_000_000_000)));
        for wrong in ["", "+", "+x", "+1.", "+-1", "5", "yesterday", "+99999999999999"] {
            assert_eq!(Moment::parse(wrong), None, "{wrong}");
        }
    }
}
