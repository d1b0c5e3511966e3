//! Expressions as the walk reads them: each becomes a [`Load`], under its name if it is not evaluated.

use super::constants;
use super::load::Load;
use super::load::connection::Connection;
use super::load::constant::{Constant, Unevaluated};
use super::load::fib::Fib;
use super::load::hash::{Jhash, Random};
use super::load::lookup::Lookup;
use super::load::meta::Meta;
use super::load::operation::Operation;
use super::load::part::Part;
use super::load::payload::Payload;
use super::load::route::SegmentSize;
use super::load::time::Time;
use super::scope::Scope;
use super::width;
use super::word::ones;
use crate::expr::{self, Ct, Expr, Field, Keyed, Space};
use crate::headers::Base;
use crate::text::Printer;

/// What an expression reads.
pub(crate) type Loads = Box<dyn Load>;

/// Reads the parts of an expression: several of a concatenation, else one.
pub(crate) fn parts(expr: &Expr, scope: &Scope<'_>) -> Box<[Loads]> {
    match expr {
        Expr::Concat(parts) => parts.iter().map(|part| one(part, scope)).collect(),
        other => [one(other, scope)].into(),
    }
}

/// Reads an expression.
pub(crate) fn one(expr: &Expr, scope: &Scope<'_>) -> Loads {
    match expr {
        Expr::Value(_) => match constants::span(expr, width::of(expr)) {
            Some(span) if span.low == span.high => Box::new(Constant(span.low)),
            _ => unevaluated("a constant of this form", expr, false),
        },
        Expr::Field(read) => field(read, expr, scope),
        Expr::Binary(operator, pair) => Box::new(Operation {
            operator: *operator,
            left: one(&pair.0, scope),
            right: one(&pair.1, scope),
            bits: width::of(expr).max(32),
        }),
        Expr::Map(pair) => {
            let (key, data) = &**pair;
            match scope.map(data, &width::of_parts(key), &[128]) {
                Ok(map) => Box::new(Lookup { key: parts(key, scope), map }),
                Err(why) => unevaluated(why, expr, tracks(expr)),
            }
        }
        _ => unevaluated("an expression of this form", expr, tracks(expr)),
    }
}

/// Whether an expression asks for connection tracking.
pub(crate) fn tracks(expr: &Expr) -> bool {
    match expr {
        Expr::Field(field) => matches!(&**field, Field::Ct(_)),
        Expr::Binary(_, pair) | Expr::Map(pair) => tracks(&pair.0) || tracks(&pair.1),
        Expr::Concat(parts) => parts.iter().any(tracks),
        _ => false,
    }
}

/// Whether an expression is this key of `meta` or `ct`.
pub(crate) fn is_key(expr: &Expr, of: &str, key: &str) -> bool {
    let Expr::Field(field) = expr else { return false };
    match &**field {
        Field::Keyed(keyed) => keyed.of == of && keyed.key.0 == key,
        Field::Ct(ct) => of == "ct" && ct.key.0 == key,
        _ => false,
    }
}

/// What is not evaluated, under a name.
fn unevaluated(name: &str, expr: &Expr, tracks: bool) -> Loads {
    Box::new(Unevaluated { name: name.into(), bits: width::of(expr), tracks })
}

fn field(read: &Field, expr: &Expr, scope: &Scope<'_>) -> Loads {
    let known: Option<Loads> = match read {
        Field::Payload(expr::Payload::Field(header, _)) if header.base == Base::Inner => None,
        Field::Payload(payload) => Some(Box::new(of_payload(payload))),
        Field::Keyed(keyed) => of_keyed(keyed),
        Field::Ct(ct) => of_ct(ct),
        Field::Part(part) => Some(Box::new(of_part(part))),
        Field::Fib(fib) => Fib::new(fib.result.0, &fib.flags).map(|fib| Box::new(fib) as Loads),
        Field::Hash(hash) => of_hash(hash, scope),
        Field::Inner(..) => None,
    };
    known.unwrap_or_else(|| unevaluated(&name(read), expr, tracks(expr)))
}

/// The name of a kind of field, without what narrows it.
pub(crate) fn name(field: &Field) -> String {
    match field {
        Field::Keyed(keyed) => format!("{} {}", keyed.of, keyed.key.0),
        Field::Ct(ct) => format!("ct {}", ct.key.0),
        Field::Fib(fib) => format!("fib {}", fib.result.0),
        Field::Hash(hash) if matches!(hash.kind, "inc" | "random") => {
            format!("numgen {}", hash.kind)
        }
        Field::Hash(hash) => hash.kind.to_owned(),
        Field::Inner(tunnel, _) => format!("{} with a packet within", tunnel.name),
        Field::Payload(_) | Field::Part(_) => {
            let mut printer = Printer::default();
            field.print(&mut printer);
            printer.out
        }
    }
}

/// Bits of the packet.
pub(crate) fn of_payload(payload: &expr::Payload) -> Payload {
    match payload {
        expr::Payload::Field(header, field) => {
            Payload { base: header.base, offset: field.offset, bits: field.bits }
        }
        expr::Payload::Raw { base, offset, len } => {
            Payload { base: *base, offset: *offset, bits: *len }
        }
    }
}

fn of_keyed(keyed: &Keyed) -> Option<Loads> {
    if keyed.of == "rt" && keyed.key.0 == "mtu" {
        return Some(Box::new(SegmentSize));
    }
    if keyed.of != "meta" {
        return None;
    }
    if let Some(time) = Time::find(keyed.key.0) {
        return Some(Box::new(time));
    }
    Some(Box::new(Meta::find(keyed.key.0)?))
}

fn of_ct(ct: &Ct) -> Option<Loads> {
    let six = ct.family.map(|family| family == "ip6");
    // Constants that labels are compared with are numbers of bits, which the comparison has to know.
    let found = Connection::find(ct.key.0, ct.direction, six).filter(|_| ct.key.0 != "label")?;
    Some(Box::new(found))
}

/// The labels of the connection, as bits.
pub(crate) fn labels() -> Option<Loads> {
    Some(Box::new(Connection::find("label", None, None)?))
}

fn of_part(part: &expr::Part) -> Part {
    match part {
        expr::Part::Exists(space, header) => {
            Part { space: *space, kind: header.number, field: None }
        }
        expr::Part::Field(space, header, field, index) => {
            // Repeated fields are counted from 1.
            let before = index.map_or(0, |index| index.saturating_sub(1) * field.bits);
            let field = Some((field.offset + before, field.bits));
            Part { space: *space, kind: header.number, field }
        }
        expr::Part::Raw(kind, offset, len) => {
            Part { space: Space::Tcp, kind: *kind, field: Some((*offset, *len)) }
        }
        expr::Part::Number(kind) => Part { space: Space::Tcp, kind: *kind, field: None },
    }
}

/// A number that is drawn, or hashed with a seed of bytes that are in the packet as they are on the wire.
fn of_hash(hash: &expr::Hash, scope: &Scope<'_>) -> Option<Loads> {
    let expr::Hash { modulus, offset, .. } = *hash;
    match (hash.kind, hash.seed, &hash.of) {
        ("random" | "inc", ..) => {
            Some(Box::new(Random { counted: hash.kind == "inc", modulus, offset }))
        }
        ("jhash", Some(seed), Some(of)) => {
            let key = match of {
                Expr::Concat(key) => &key[..],
                one => std::slice::from_ref(one),
            };
            let is_payload = |expr: &Expr| matches!(expr, Expr::Field(field) if matches!(&**field, Field::Payload(_)));
            let whole =
                key.iter().all(|part| is_payload(part) && width::of(part).is_multiple_of(8));
            let key = key.iter().map(|part| (one(part, scope), width::of(part))).collect();
            whole.then(|| Box::new(Jhash { key, modulus, seed, offset }) as Loads)
        }
        _ => None,
    }
}

/// The bits of a payload that a prefix of whole bytes leaves to be loaded.
pub(crate) fn prefix(expr: &Expr, len: u32) -> Option<Payload> {
    let Expr::Field(field) = expr else { return None };
    let Field::Payload(payload) = &**field else { return None };
    let payload = of_payload(payload);
    let aligned = payload.offset.is_multiple_of(8) && len.is_multiple_of(8) && len > 0;
    let fits = len < payload.bits && payload.base != Base::Tunnel;
    (aligned && fits).then_some(Payload { bits: len, ..payload })
}

/// The first bits of a number of `bits` bits.
pub(crate) fn leading(number: u128, bits: u32, len: u32) -> u128 {
    number >> bits.saturating_sub(len) & ones(len)
}
