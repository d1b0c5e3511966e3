//! Constants of rules and elements as numbers.

use super::load::meta::name_number;
use super::load::time;
use super::set::{Key, Span};
use super::word::ones;
use crate::expr::Expr;
use crate::types::{self, Data, Ty, Value};

/// The numbers that a constant stands for, in a field of `bits` bits.
pub(crate) fn span(expr: &Expr, bits: u32) -> Option<Span> {
    match expr {
        Expr::Value(value) => of_value(value),
        Expr::Prefix(value, len) => {
            let host = ones(bits.checked_sub(*len)?);
            let low = value.as_number()? & !host;
            Some(Span { low, high: low | host })
        }
        Expr::Range(ends) => {
            let (low, high) = (span(&ends.0, bits)?, span(&ends.1, bits)?);
            Some(Span { low: low.low, high: high.high })
        }
        _ => None,
    }
}

/// The key that an element, or the right side of a comparison, stands for.
pub(crate) fn key(expr: &Expr, bits: &[u32]) -> Option<Key> {
    match expr {
        Expr::Concat(parts) if parts.len() == bits.len() => {
            parts.iter().zip(bits).map(|(part, bits)| span(part, *bits)).collect()
        }
        Expr::Concat(_) => None,
        other => Some([span(other, *bits.first()?)?].into_iter().collect()),
    }
}

fn of_value(value: &Value) -> Option<Span> {
    match &value.data {
        Data::Number(number) => Some(Span::one(*number)),
        Data::Digits(_) => None,
        Data::Text(text) => of_text(value.ty, text),
    }
}

fn of_text(ty: Ty, text: &str) -> Option<Span> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match ty.name {
        // A number stands for a device that the listing did not find.
        "iface_index" if text == "0" => Some(Span::one(0)),
        "iface_index" if digits => None,
        "iface_index" => Some(Span::one(name_number(text))),
        "ifname" | "ifkind" | "string" => Some(name(text)),
        "hour" if digits => text.parse().ok().map(Span::one),
        "hour" => time::hour(text).map(Span::one),
        "time_date" => time::date(text).map(Span::one),
        "day" => types::DAY_NAMES
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, day)| Span::one((*day).into()))
            .or_else(|| text.parse().ok().map(Span::one)),
        _ => None,
    }
}

/// The numbers of a name, of which a star at the end stands for any rest.
fn name(text: &str) -> Span {
    if let Some(start) = text.strip_suffix("\\*") {
        return Span::one(name_number(&format!("{start}*")));
    }
    match text.strip_suffix('*') {
        Some(start) => {
            let low = name_number(start);
            Span { low, high: low | ones(128 - 8 * start.len().min(15) as u32) }
        }
        None => Span::one(name_number(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{IFACE_INDEX, IFNAME, IPV4};

    #[test]
    fn a_prefix_and_a_name_with_a_star_are_spans() {
        let prefix = Expr::Prefix(Box::new(Expr::number(&IPV4, 0x0a01_0203)), 8);
        assert_eq!(span(&prefix, 32), Some(Span { low: 0x0a00_0000, high: 0x0aff_ffff }));
        let star = span(&Expr::text(&IFNAME, "eth*"), 128);
        assert!(star.is_some_and(|span| span.holds(name_number("eth12"))));
        assert!(star.is_some_and(|span| !span.holds(name_number("et"))));
        assert_eq!(span(&Expr::text(&IFNAME, "e\\*"), 128), Some(Span::one(name_number("e*"))));
        assert_eq!(span(&Expr::text(&IFACE_INDEX, "7"), 32), None);
        assert!(key(&Expr::Concat(vec![]), &[32]).is_none());
    }
}
