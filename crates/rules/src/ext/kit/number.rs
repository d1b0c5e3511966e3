//! Options whose value is one number, with the error that names the range.

use crate::error::What;
use crate::ext::Given;
use crate::names::protocol_number;
use crate::value;

/// A number of at least `low` and at most `high`.
pub(crate) fn between(given: &Given<'_>, low: u64, high: u64) -> Result<u64, What> {
    value::number(given.text(), high)
        .filter(|value| *value >= low)
        .ok_or_else(|| given.expected(format!("a number {low}-{high}")))
}

/// A number of at least `low` that fits 32 bits.
pub(crate) fn u32_from(given: &Given<'_>, low: u32) -> Result<u32, What> {
    between(given, low.into(), u32::MAX.into()).map(|value| value as u32)
}

/// A number that fits 32 bits.
pub(crate) fn u32(given: &Given<'_>) -> Result<u32, What> {
    u32_from(given, 0)
}

/// `value[/mask]` of 32 bits, or one of a few names for a value.
pub(crate) fn named_masked(given: &Given<'_>, names: &[(&str, u32)]) -> Result<(u32, u32), What> {
    let named = names.iter().find(|(name, _)| *name == given.text());
    named
        .map(|(_, value)| (*value, u32::MAX))
        .or_else(|| value::masked_u32(given.text()))
        .ok_or_else(|| given.expected("value or value/mask of 32 bits"))
}

/// A protocol by number or name.
pub(crate) fn protocol(given: &Given<'_>) -> Result<u8, What> {
    value::u8(given.text())
        .or_else(|| protocol_number(given.text()))
        .ok_or_else(|| given.expected("a protocol name or number 0-255"))
}
