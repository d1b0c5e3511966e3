//! Packet rates, as `-m limit` and `-m hashlimit` write them: `3/sec`, `10/min`, `1/hour`, `1/day`.
//!
//! They are held as the kernel holds them, as the time between two packets in fractions of a second, so
//! what prints is that time read back. Source: iptables-extensions(8), "limit".

/// Units by their longest name, with their length in seconds; the shortest first.
const UNITS: [(&str, u64); 4] = [("second", 1), ("minute", 60), ("hour", 3600), ("day", 86_400)];

/// Units as they print, the longest first.
const PRINTED: [(&str, u64); 4] = [("day", 86_400), ("hour", 3600), ("min", 60), ("sec", 1)];

/// Time between two packets in `1/scale` seconds, and the seconds of the unit that the rate was given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) period: u64,
    pub(crate) unit: u64,
}

impl Rate {
    /// Reads `count[/unit]`, the unit in any case and abbreviated at will; `None` also for a rate so
    /// fast that the period would be 0.
    pub(crate) fn parse(text: &str, scale: u64) -> Option<Self> {
        let (count, unit) = match text.split_once('/') {
            Some((count, unit)) => (count, unit_seconds(unit)?),
            None => (text, 1),
        };
        let digits = count.bytes().all(|byte| byte.is_ascii_digit());
        let count: u64 = count.parse().ok().filter(|count| digits && *count > 0)?;
        let period = scale * unit / count;
        (period > 0).then_some(Self { period, unit })
    }
}

fn unit_seconds(text: &str) -> Option<u64> {
    let starts =
        |name: &str| name.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    UNITS.iter().find(|(name, _)| !text.is_empty() && starts(name)).map(|(_, seconds)| *seconds)
}

/// A period of `1/scale` seconds as a rate, in the unit that loses least, and that unit's seconds.
pub(crate) fn rate_text(period: u64, scale: u64) -> (String, u64) {
    let period = period.max(1);
    let ends = |seconds: u64| {
        let unit = seconds * scale;
        period > unit || unit / period < unit % period
    };
    let shorter = PRINTED.iter().skip(1).position(|(_, seconds)| ends(*seconds));
    let (name, seconds) = PRINTED[shorter.unwrap_or(PRINTED.len() - 1)];
    (format!("{}/{name}", seconds * scale / period), seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: u64 = 10_000;

    #[test]
    fn rates_read_and_print() {
        let print = |text| rate_text(Rate::parse(text, SCALE).unwrap().period, SCALE).0;
        assert_eq!(print("1/s"), "1/sec");
        assert_eq!(print("3"), "3/sec");
        assert_eq!(print("60/minute"), "1/sec");
        assert_eq!(print("5/MIN"), "5/min");
        assert_eq!(print("1000/hour"), "1000/hour");
        assert_eq!(print("10000/second"), "10000/sec");
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for wrong in ["", "0", "/s", "1/", "1/week", "-1/s", "+1/s", "10001/s", "1/seconds"] {
            assert_eq!(Rate::parse(wrong, SCALE), None, "{wrong}");
        }
    }
}
