//! How wide the values of expressions are, in bits.

use crate::expr::{Expr, Field, Part, Payload};
use crate::model::KeyType;
use crate::types::Ty;

/// Width of numbers whose type has none: registers have 32 bits.
const REGISTER: u32 = 32;

/// Width of a type.
pub(crate) fn of_type(ty: Ty) -> u32 {
    match ty.name {
        // Devices are compared by their names.
        "string" | "iface_index" => 128,
        "boolean" => 8,
        _ if ty.bits == 0 => REGISTER,
        _ => ty.bits,
    }
}

/// Widths of the parts of a key.
pub(crate) fn of_key(key: &KeyType) -> Vec<u32> {
    match key {
        KeyType::Types(types) => types.iter().map(|ty| of_type(ty)).collect(),
        KeyType::Of(expr) => of_parts(expr),
    }
}

/// Widths of the parts of an expression: several of a concatenation, else one.
pub(crate) fn of_parts(expr: &Expr) -> Vec<u32> {
    match expr {
        Expr::Concat(parts) => parts.iter().map(of).collect(),
        other => vec![of(other)],
    }
}

/// Width of an expression.
pub(crate) fn of(expr: &Expr) -> u32 {
    match expr {
        Expr::Field(field) => of_field(field),
        Expr::Binary(_, pair) => match &pair.0 {
            Expr::Value(_) => of(&pair.1),
            left => of(left),
        },
        other => of_type(other.ty()),
    }
}

fn of_field(field: &Field) -> u32 {
    match field {
        Field::Payload(Payload::Field(_, field)) => field.bits,
        Field::Payload(Payload::Raw { len, .. }) => *len,
        Field::Part(Part::Field(_, _, field, _)) => field.bits,
        Field::Part(Part::Raw(_, _, len)) => *len,
        Field::Inner(_, field) => of_field(field),
        Field::Ct(ct) if matches!(ct.key.0, "bytes" | "packets" | "avgpkt") => 64,
        other => of_type(other.ty()),
    }
}
