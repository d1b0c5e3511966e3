//! Comparisons, and what else begins with an expression: `vmap` and `set`.

use crate::expr::{Expr, Field, Operator, Part, Payload};
use crate::json::Json;
use crate::text::{Parser, Printer, Result};
use crate::types::Kind;

/// A comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Compare {
    /// How.
    pub op: Op,
    /// What is read.
    pub left: Expr,
    /// What it is compared with.
    pub right: Expr,
}

/// Refuses numbers that have more bits than what they are compared with, and maps.
fn fits(left: &Expr, right: &Expr) -> std::result::Result<(), String> {
    let bits = match left {
        Expr::Field(field) => bits_of(field),
        _ => 128,
    };
    let is_wide =
        |expr: &Expr| bits < 128 && expr.as_number().is_some_and(|number| number >> bits != 0);
    let wide = |expr: &Expr| match expr {
        Expr::Range(ends) => is_wide(&ends.0) || is_wide(&ends.1),
        other => is_wide(other),
    };
    let found = match right {
        Expr::Set(elements) if elements.iter().any(|element| element.data.is_some()) => {
            return Err("expected elements of a set, found elements of a map".to_owned());
        }
        Expr::Set(elements) => elements.iter().any(|element| wide(&element.key)),
        other => wide(other),
    };
    match found {
        true => Err(format!("expected a number of {bits} bits")),
        false => Ok(()),
    }
}

/// The width of a field of a header.
fn bits_of(field: &Field) -> u32 {
    match field {
        Field::Payload(Payload::Field(_, field)) => field.bits,
        Field::Part(Part::Field(_, _, field, _)) => field.bits,
        _ => 128,
    }
}

/// A relation. Equality covers being within a range, a prefix or a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Any of the bits is set: `ct state new,established`, without a sign.
    Any,
    /// `==`
    Equal,
    /// `!=`
    Differs,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
    /// `!`: none of the bits is set.
    None,
}

const OPS: [(&str, &str, Op); 8] = [
    ("in", "", Op::Any),
    ("==", "eq", Op::Equal),
    ("!=", "ne", Op::Differs),
    ("<", "lt", Op::Less),
    (">", "gt", Op::Greater),
    ("<=", "le", Op::AtMost),
    (">=", "ge", Op::AtLeast),
    ("!", "!", Op::None),
];

impl Compare {
    /// Makes a comparison; without a sign it is equality, but of single bits.
    pub fn new(op: Op, left: Expr, right: Expr) -> Self {
        let bits = left.ty().kind == Kind::Bits
            && matches!(right, Expr::Value(_))
            && !matches!(left, Expr::Binary(..));
        let op = if op == Op::Any && !bits { Op::Equal } else { op };
        Self { op, left, right }
    }

    /// Reads the sign and what follows it.
    pub(super) fn rest(mut left: Expr, p: &mut Parser) -> Result<Self> {
        let found =
            OPS[1..].iter().find(|(sign, word, _)| p.is(sign) || p.is(word) && !p.is_quoted());
        let op = found.map_or(Op::Any, |found| found.2);
        if found.is_some() {
            p.next();
        }
        if p.is("exists") || p.is("missing") {
            Self::asks_for_route(&mut left);
        }
        let place = p.place();
        let right = p.right(&left.types())?;
        fits(&left, &right).map_err(|what| p.refused_at(place, &what))?;
        if p.eat("/") {
            let mask = p.right(&left.types())?;
            let left = crate::expr::fold(Operator::And, left, mask);
            return Ok(Self::new(if op == Op::Any { Op::Equal } else { op }, left, right));
        }
        Ok(Self::new(op, left, right))
    }

    /// Makes `fib … oif` the question whether there is a route, as its answer is one of `exists` and `missing`.
    fn asks_for_route(left: &mut Expr) {
        if let Expr::Field(field) = left
            && let Field::Fib(fib) = &mut **field
        {
            fib.check();
        }
    }

    /// Writes it as text.
    pub(super) fn print(&self, p: &mut Printer) {
        self.left.print(p);
        let bits = self.left.ty().kind == Kind::Bits && matches!(self.right, Expr::Value(_));
        let explicit = bits || matches!(self.left, Expr::Binary(..));
        p.put(" ");
        if self.op != Op::Any && (self.op != Op::Equal || explicit) {
            p.put(OPS[self.op as usize].0);
            p.put(" ");
        }
        match &self.right {
            Expr::Value(value) if matches!(self.op, Op::Any | Op::None) => {
                value.print(&mut p.out, p.style)
            }
            other => other.print(p),
        }
    }

    /// Writes it as JSON.
    pub(super) fn json(&self, p: &Printer) -> Json {
        let right = match &self.right {
            Expr::Value(value) if matches!(self.op, Op::Any | Op::None) => value.json(p.style),
            other => other.json(p),
        };
        let members = vec![
            ("op", Json::text(OPS[self.op as usize].0)),
            ("left", self.left.json(p)),
            ("right", right),
        ];
        Json::object(vec![("match", Json::object(members))])
    }

    /// Reads it of JSON.
    pub(super) fn read(body: &Json) -> Option<Self> {
        let op = match body.get("op") {
            Some(op) => OPS.iter().find(|(sign, _, _)| op.as_text() == Some(sign))?.2,
            None => Op::Any,
        };
        let mut left = body.get("left")?.left()?;
        if matches!(body.get("right"), Some(Json::Bool(_))) {
            Self::asks_for_route(&mut left);
        }
        let right = body.get("right")?.right(&left.types())?;
        Some(Self::new(op, left, right))
    }
}
