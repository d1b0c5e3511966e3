//! `[workers]` and `[burst]`: the workers, and how many frames they move at a time.

use toml::de::{DeTable, DeValue};

use super::{BurstSettings, Cores, Order, Workers};
use dataplane::keys::{Section, Value, Wrong, found};

/// Workers at most: a ring leads from each to each.
pub(super) const MOST_WORKERS: u64 = 64;

/// The highest number of a core.
const MOST_CORE: u64 = 1023;

/// Frames of a burst, and of one call that sends.
const MOST_RECEIVED: u64 = 1024;
const MOST_SENT: u64 = 512;

/// Microseconds that frames may be held back.
const MOST_DRAIN: u64 = 1_000_000;

/// Which frames keep their order in each scheme.
const SCHEMES: [(&str, Order); 2] = [("run_to_completion", Order::Flow), ("ordered", Order::Wire)];

/// Which frames keep their order on wires that do not say so: by `[workers] scheme`.
pub(super) fn scheme(top: &DeTable<'_>) -> Result<Order, Wrong> {
    let Some(value) = top.get("workers") else { return Ok(Order::default()) };
    let section = Section::any("[workers]", value)?;
    Ok(section.choice("scheme", &SCHEMES, &[])?.unwrap_or_default())
}

/// Which frames keep their order on a wire: by its own `scheme`, or else `of_all`, and by `order`.
pub(super) fn order(wire: &Section<'_, '_>, of_all: Order) -> Result<Order, Wrong> {
    let scheme = wire.choice("scheme", &SCHEMES, &[])?.unwrap_or(of_all);
    let words = [("wire", Order::Wire), ("flow", Order::Flow)];
    match (scheme, wire.choice("order", &words, &[])?, wire.get("order")) {
        (Order::Flow, Some(Order::Wire), Some(order)) => {
            let what = "expected scheme = \"ordered\" for order = \"wire\"";
            Err((order.span(), what.to_owned()))
        }
        (_, order, _) => Ok(order.unwrap_or(scheme)),
    }
}

pub(super) fn workers(top: &DeTable<'_>) -> Result<Workers, Wrong> {
    let Some(value) = top.get("workers") else { return Ok(Workers::default()) };
    let section = Section::new("[workers]", value, &["cores", "count", "scheme"], &[])?;
    let cores = match section.get("cores") {
        None => Cores::Any,
        Some(list) if list.get_ref().is_array() => Cores::These(numbers(list)?),
        Some(word) if !word.get_ref().is_str() => {
            return Err(found(word, "\"compact\", \"scatter\" or a list of cores"));
        }
        Some(_) => {
            let is_compact =
                section.choice("cores", &[("compact", true), ("scatter", false)], &[])?;
            if is_compact == Some(true) { Cores::Compact } else { Cores::Scatter }
        }
    };
    let count = one_or_more(&section, "count", MOST_WORKERS)?;
    match (&cores, section.get("count")) {
        (Cores::These(_), Some(count)) => {
            Err((count.span(), "expected no count beside a list of cores".to_owned()))
        }
        _ => Ok(Workers { cores, count }),
    }
}

pub(super) fn burst(top: &DeTable<'_>) -> Result<BurstSettings, Wrong> {
    let mut burst = BurstSettings::default();
    let Some(value) = top.get("burst") else { return Ok(burst) };
    let section = Section::new("[burst]", value, &["rx", "tx", "free", "drain_us"], &[])?;
    burst.rx = one_or_more(&section, "rx", MOST_RECEIVED)?.unwrap_or(burst.rx);
    burst.tx = one_or_more(&section, "tx", MOST_SENT)?.unwrap_or(burst.tx);
    burst.free = one_or_more(&section, "free", MOST_SENT)?.unwrap_or(burst.free);
    if let Some(drain) = section.number("drain_us", MOST_DRAIN)? {
        burst.drain_us = drain as u32;
    }
    Ok(burst)
}

/// The numbers of cores in a list, each once.
fn numbers(list: &Value<'_>) -> Result<Vec<usize>, Wrong> {
    let mut numbers = Vec::new();
    for value in list.get_ref().as_array().into_iter().flatten() {
        let what = format!("a core from 0 to {MOST_CORE} that is not in the list before");
        let DeValue::Integer(number) = value.get_ref() else { return Err(found(value, &what)) };
        match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(core) if core <= MOST_CORE && !numbers.contains(&(core as usize)) => {
                numbers.push(core as usize);
            }
            _ => {
                return Err((value.span(), format!("expected {what}, found {}", number.as_str())));
            }
        }
    }
    match numbers.len() as u64 {
        1..=MOST_WORKERS => Ok(numbers),
        many => Err((list.span(), format!("expected 1 to {MOST_WORKERS} cores, found {many}"))),
    }
}

pub(super) fn one_or_more(
    section: &Section<'_, '_>,
    key: &str,
    most: u64,
) -> Result<Option<usize>, Wrong> {
    match (section.number(key, most)?, section.get(key)) {
        (Some(0), Some(value)) => {
            Err((value.span(), format!("expected a whole number from 1 to {most}, found 0")))
        }
        (number, _) => Ok(number.map(|number| number as usize)),
    }
}
