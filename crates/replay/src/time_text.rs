//! Times as reports print them.

/// A time as RFC 3339 in UTC with nanoseconds.
pub(crate) fn time_text(time: u64) -> String {
    pktio::Timestamp::from_nanos(i64::try_from(time).unwrap_or(i64::MAX)).to_string()
}
