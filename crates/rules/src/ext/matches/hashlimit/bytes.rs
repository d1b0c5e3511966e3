//! Rates of bytes, `512kb/s`: the cost of 16 bytes in a bucket of 2^32 - 1.

/// Milliseconds after which an idle entry goes, for a rate of bytes.
pub(super) const EXPIRE: u32 = 15_000;
/// The expiry with a burst.
pub(super) const EXPIRE_BURST: u32 = 60_000;

/// The kernel counts bytes in units of 16.
const SHIFT: u32 = 4;

/// Bytes of a unit letter; any other letter is none.
pub(super) fn factor(unit: Option<char>) -> u64 {
    match unit {
        Some('m') => 1 << 20,
        Some('k') => 1 << 10,
        _ => 1,
    }
}

/// The cost of `number[k|m]b/s`; `None` if it is not that, or the rate is below 16 or too large for the
/// kernel to tell apart.
pub(super) fn cost(text: &str) -> Option<u32> {
    let text = text.strip_suffix("b/s")?;
    let number = text.trim_end_matches(['k', 'm']);
    let unit = match &text[number.len()..] {
        "" => None,
        "k" => Some('k'),
        "m" => Some('m'),
        _ => return None,
    };
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(factor(unit))?;
    let units = u32::try_from(bytes >> SHIFT).ok()?;
    (0 < units && units < u32::MAX).then(|| cost_of(units))
}

fn cost_of(units: u32) -> u32 {
    u32::MAX / units.saturating_add(1)
}

/// Bytes a second of a cost.
pub(super) fn rate(cost: u32) -> u64 {
    let units = u32::MAX.checked_div(cost).unwrap_or(u32::MAX);
    u64::from(units.saturating_sub(1)) << SHIFT
}

/// A cost as a rate, in the largest unit that gives the same cost.
pub(super) fn rate_text(cost: u32) -> String {
    let bytes = rate(cost);
    let same = |unit: u64| {
        let whole = bytes & !(unit - 1);
        bytes >= unit && cost_of((whole >> SHIFT) as u32) == cost
    };
    match (same(1 << 20), same(1 << 10)) {
        (true, _) => format!("{}mb/s", bytes >> 20),
        (_, true) => format!("{}kb/s", bytes >> 10),
        _ => format!("{bytes}b/s"),
    }
}

/// A burst of this number of times the rate of a cost.
pub(super) fn burst_text(cost: u32, times: u32) -> String {
    match rate(cost).saturating_mul(times.into()) {
        bytes if bytes >= 1 << 20 => format!("{}mb", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{}kb", bytes >> 10),
        bytes => format!("{bytes}b"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_bytes_read_and_print() {
        for text in ["4kb/s", "10mb/s", "123456b/s", "16b/s", "40mb/s"] {
            assert_eq!(rate_text(cost(text).unwrap()), text);
        }
        assert_eq!(rate_text(cost("1024kb/s").unwrap()), "1mb/s");
        for wrong in ["b/s", "15b/s", "0kb/s", "4gb/s", "4kmb/s", "-4kb/s", "4kb", "68719476720b/s"]
        {
            assert_eq!(cost(wrong), None, "{wrong}");
        }
    }
}
