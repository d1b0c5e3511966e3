//! Forms of single statements: masks that are prefixes, bits that are tested, ranges that are neighbours.

use crate::expr::{Element, Expr, Operator};
use crate::model::Family;
use crate::stmt::{Compare, Nat, Op, Stmt};
use crate::types::{Kind, Ty, Value};

/// Simplifies a statement.
pub(super) fn stmt(stmt: &mut Stmt, family: Family) {
    match stmt {
        Stmt::Compare(of) => compare(of),
        Stmt::Nat(nat) => nat_families(nat, family),
        Stmt::Forward(forward)
            if forward.kind == "tproxy" && matches!(family, Family::Ip | Family::Ip6) =>
        {
            forward.family = None;
        }
        _ => {}
    }
}

fn width(ty: Ty) -> u32 {
    if ty.bits == 0 || ty.bits > 128 { 128 } else { ty.bits }
}

fn ones(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

fn is_address(ty: Ty) -> bool {
    matches!(ty.kind, Kind::Ipv4 | Kind::Ipv6)
}

fn compare(of: &mut Compare) {
    mask_of_prefix(of);
    let right = of.right.as_number();
    if let (Expr::Binary(op, pair), Some(right)) = (&mut of.left, right)
        && let Some(constant) = pair.1.as_number()
        && matches!(of.op, Op::Equal | Op::Differs)
    {
        let ty = pair.0.ty();
        let equal = of.op == Op::Equal;
        let (op, value) = match op {
            // Numbers of labels are numbers of bits.
            Operator::Xor if ty.name != "ct_label" => (of.op, Expr::number(ty, right ^ constant)),
            Operator::And if ty.kind == Kind::Bits && right == 0 => {
                (if equal { Op::None } else { Op::Any }, Expr::number(ty, constant))
            }
            Operator::And if ty.kind == Kind::Bits && constant == ones(width(ty)) => {
                (of.op, of.right.clone())
            }
            Operator::And if is_address(ty) && right & !constant == 0 => {
                match prefix_len(constant, width(ty)) {
                    Some(len) => (of.op, Expr::Prefix(Box::new(Expr::number(ty, right)), len)),
                    None => return,
                }
            }
            _ => return,
        };
        let left = std::mem::replace(&mut pair.0, Expr::Any);
        *of = Compare { op, left, right: value };
    }
    if let Expr::Set(elements) = &mut of.right {
        merge(elements);
    }
}

/// A prefix of what is no address is a mask.
fn mask_of_prefix(of: &mut Compare) {
    if let Expr::Prefix(value, len) = &of.right
        && let Expr::Value(Value { ty, .. }) = **value
        && !is_address(ty)
        && ty.kind != Kind::Ether
        && ty.bits > 0
        && *len <= ty.bits
        && let Some(number) = value.as_number()
    {
        let mask = ones(ty.bits) & !ones(ty.bits - len);
        // A length counts from the left, but of fields narrower than a byte it is the mask itself.
        let right = Expr::number(ty, number & mask);
        let left = std::mem::replace(&mut of.left, Expr::Any);
        of.left = Expr::Binary(Operator::And, Box::new((left, Expr::number(ty, mask))));
        of.right = right;
    }
}

fn prefix_len(mask: u128, bits: u32) -> Option<u32> {
    let len = bits.checked_sub(mask.trailing_zeros().min(bits))?;
    (mask == ones(bits) & !ones(bits - len) && len > 0).then_some(len)
}

fn bounds(key: &Expr) -> Option<(Ty, u128, u128)> {
    match key {
        Expr::Value(value) => value.as_number().map(|number| (value.ty, number, number)),
        Expr::Range(ends) => Some((ends.0.ty(), ends.0.as_number()?, ends.1.as_number()?)),
        Expr::Prefix(value, len) => {
            let ty = value.ty();
            let host = ones(width(ty).checked_sub(*len)?);
            let low = value.as_number()? & !host;
            Some((ty, low, low | host))
        }
        _ => None,
    }
}

/// Makes the expression of an interval: a value, a prefix of addresses or a range.
fn interval(ty: Ty, low: u128, high: u128) -> Expr {
    if low == high {
        return Expr::number(ty, low);
    }
    let size = high - low;
    if is_address(ty) && size & size.wrapping_add(1) == 0 && low & size == 0 {
        let len = width(ty) - size.count_ones();
        return Expr::Prefix(Box::new(Expr::number(ty, low)), len);
    }
    Expr::Range(Box::new((Expr::number(ty, low), Expr::number(ty, high))))
}

/// Joins the neighbouring intervals of an anonymous set that has any.
fn merge(elements: &mut Vec<Element>) {
    let has =
        elements.iter().any(|element| matches!(element.key, Expr::Range(_) | Expr::Prefix(..)));
    if !has {
        return;
    }
    let all: Option<Vec<_>> = elements
        .iter()
        .map(|element| {
            let is_plain = *element == Element::new(element.key.clone());
            bounds(&element.key).filter(|(_, low, high)| is_plain && low <= high)
        })
        .collect();
    let Some(mut all) = all else { return };
    all.sort_by_key(|(_, low, _)| *low);
    let mut merged: Vec<(Ty, u128, u128)> = Vec::new();
    for (ty, low, high) in all {
        match merged.last_mut() {
            Some(last) if low <= last.2.saturating_add(1) => last.2 = last.2.max(high),
            _ => merged.push((ty, low, high)),
        }
    }
    *elements =
        merged.into_iter().map(|(ty, low, high)| Element::new(interval(ty, low, high))).collect();
}

fn nat_families(nat: &mut Nat, family: Family) {
    if let Some(Expr::Range(_)) = &nat.addr
        && let Some((ty, low, high)) = nat.addr.as_ref().and_then(bounds)
        && low <= high
    {
        nat.addr = Some(interval(ty, low, high));
    }
    if family == Family::Inet
        && nat.family.is_none()
        && let Some(addr) = &nat.addr
        && !matches!(addr, Expr::Map(_))
        && is_address(addr.ty())
    {
        nat.family = Some(if addr.ty().kind == Kind::Ipv4 { "ip" } else { "ip6" });
    }
}
