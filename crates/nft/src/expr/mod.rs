//! Expressions: what a rule reads of a packet, and what it compares that with.
//! A kind of field is a file of this folder, with its text and its JSON both ways.

mod binary;
mod ct;
mod fib;
mod field;
mod hash;
mod keyed;
mod operator;
mod options;
mod payload;

pub use binary::fold;
pub use ct::Ct;
pub use fib::Fib;
pub use field::Field;
pub use hash::Hash;
pub use keyed::Keyed;
pub use operator::Operator;
pub use options::{Part, Space};
pub use payload::Payload;

use crate::json::Json;
use crate::stmt::{Stmt, Verdict};
use crate::text::Printer;
use crate::types::{INTEGER, Kind, RAW, Style, Ty, Value};

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Value(Value),
    /// Something read of the packet or its surroundings.
    Field(Box<Field>),
    /// `addr/len`.
    Prefix(Box<Expr>, u32),
    /// `low-high`, both within.
    Range(Box<(Expr, Expr)>),
    /// `a . b`.
    Concat(Vec<Expr>),
    /// An anonymous set, or the pairs of an anonymous map.
    Set(Vec<Element>),
    /// `@name`, a named set or map.
    Named(Box<str>),
    /// `key map data`: what the key's element holds.
    Map(Box<(Expr, Expr)>),
    /// An operation on two numbers.
    Binary(Operator, Box<(Expr, Expr)>),
    /// A verdict, as data of a map.
    Verdict(Verdict),
    /// `*`, every key without an element.
    Any,
    /// What this release does not know, as JSON has it.
    Unknown(Json),
}

/// An element of a set, or a pair of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// Key.
    pub key: Expr,
    /// What a map gives for it.
    pub data: Option<Expr>,
    /// Life of the element in milliseconds.
    pub timeout: Option<u128>,
    /// What remains of it, in milliseconds.
    pub expires: Option<u128>,
    /// Comment.
    pub comment: Option<Box<str>>,
    /// Counter, limit, quota, … of this element.
    pub stmts: Vec<Stmt>,
}

impl Element {
    /// Makes an element that is only a key.
    pub fn new(key: Expr) -> Self {
        Self { key, data: None, timeout: None, expires: None, comment: None, stmts: Vec::new() }
    }

    fn is_plain(&self) -> bool {
        self.timeout.is_none()
            && self.expires.is_none()
            && self.comment.is_none()
            && self.stmts.is_empty()
    }
}

impl Field {
    /// Makes an expression of it.
    pub fn expr(self) -> Expr {
        Expr::Field(Box::new(self))
    }
}

impl Expr {
    /// Makes the number of a type.
    pub fn number(ty: Ty, value: u128) -> Self {
        Self::Value(Value::number(ty, value))
    }

    /// Makes text of a type.
    pub fn text(ty: Ty, text: &str) -> Self {
        Self::Value(Value::text(ty, text))
    }

    /// Makes a range, unless its end is before its beginning.
    pub fn range(low: Self, high: Self) -> Option<Self> {
        let ends = low.as_number().zip(high.as_number());
        ends.is_none_or(|(low, high)| low <= high).then(|| Self::Range(Box::new((low, high))))
    }

    /// Says whether it may be an operand.
    pub fn is_operand(&self) -> bool {
        match self {
            Self::Value(value) => value.as_number().is_some(),
            Self::Field(_) | Self::Binary(..) => true,
            _ => false,
        }
    }

    /// Reads the number of a constant.
    pub fn as_number(&self) -> Option<u128> {
        match self {
            Self::Value(value) => value.as_number(),
            _ => None,
        }
    }

    /// Says what type its value is of.
    pub fn ty(&self) -> Ty {
        match self {
            Self::Value(value) => value.ty,
            Self::Field(field) => field.ty(),
            Self::Binary(Operator::Left | Operator::Right, _) => &RAW,
            Self::Binary(_, pair) => {
                let (left, right) = &**pair;
                let ty = if matches!(left, Self::Value(_)) { right.ty() } else { left.ty() };
                if ty.kind == Kind::Text { &RAW } else { ty }
            }
            Self::Prefix(of, _) => of.ty(),
            Self::Range(pair) => pair.0.ty(),
            Self::Concat(parts) => parts.first().map_or(&INTEGER, Self::ty),
            _ => &INTEGER,
        }
    }

    /// Says the types of its parts: several of a concatenation, else one.
    pub fn types(&self) -> Vec<Ty> {
        match self {
            Self::Concat(parts) => parts.iter().map(Self::ty).collect(),
            other => vec![other.ty()],
        }
    }

    /// Writes it as text.
    pub fn print(&self, p: &mut Printer) {
        match self {
            Self::Value(value) if value.ty.kind == Kind::Bits => {
                let mut text = String::new();
                value.print(&mut text, p.style);
                p.put(&text.replace(',', " | "));
            }
            Self::Value(value) => value.print(&mut p.out, p.style),
            Self::Field(field) => field.print(p),
            Self::Prefix(of, len) => {
                of.print(p);
                p.put(&format!("/{len}"));
            }
            Self::Range(pair) if pair.0.ty().kind == Kind::Time => {
                let seconds = |expr: &Self| expr.as_number().unwrap_or(0) / 1000;
                p.put(&format!("{}s-{}s", seconds(&pair.0), seconds(&pair.1)));
            }
            Self::Range(pair) => {
                let style = p.style;
                p.style.numeric = true;
                pair.0.print(p);
                p.put("-");
                pair.1.print(p);
                p.style = style;
            }
            Self::Concat(parts) => p.list(parts, " . ", Self::print),
            Self::Set(elements) => {
                p.put("{ ");
                p.list(elements, ", ", Element::print);
                p.put(" }");
            }
            Self::Named(name) => p.put(&format!("@{name}")),
            Self::Map(pair) => {
                pair.0.print(p);
                p.put(" map ");
                pair.1.print(p);
            }
            Self::Binary(op, pair) => self.print_operation(*op, pair, p),
            Self::Verdict(verdict) => verdict.print(p),
            Self::Any => p.put("*"),
            Self::Unknown(json) => p.put(&format!("unknown {}", json.to_text())),
        }
    }

    /// Writes it as JSON.
    pub fn json(&self, p: &Printer) -> Json {
        match self {
            Self::Value(value) => bits(value.json(p.style)),
            Self::Field(field) => field.json(p),
            Self::Prefix(of, len) => Json::object(vec![(
                "prefix",
                Json::object(vec![("addr", of.json(p)), ("len", Json::Number(i128::from(*len)))]),
            )]),
            Self::Range(ends) => {
                let ends = [&ends.0, &ends.1].map(|end| match end {
                    Self::Value(value) => value.json(Style { numeric: true, ..p.style }),
                    other => other.json(p),
                });
                Json::object(vec![("range", Json::List(ends.into()))])
            }
            Self::Concat(parts) => {
                Json::object(vec![("concat", Json::each(parts, |part| part.json(p)))])
            }
            Self::Set(elements) => {
                Json::object(vec![("set", Json::each(elements, |element| element.json(p)))])
            }
            Self::Named(name) => Json::Text(format!("@{name}")),
            Self::Map(parts) => Json::object(vec![(
                "map",
                Json::object(vec![("key", parts.0.json(p)), ("data", parts.1.json(p))]),
            )]),
            Self::Binary(op, parts) => {
                let mut all = Vec::new();
                self.each_operand(*op, parts, &mut |part| all.push(part.json(p)));
                Json::object(vec![(op.name(), Json::List(all))])
            }
            Self::Verdict(verdict) => verdict.json(),
            Self::Any => Json::text("*"),
            Self::Unknown(json) => json.clone(),
        }
    }
}

fn bits(json: Json) -> Json {
    match json {
        Json::List(_) => Json::object(vec![("|", json)]),
        other => other,
    }
}

impl Element {
    /// Writes it as text.
    pub fn print(&self, p: &mut Printer) {
        self.key.print(p);
        for stmt in &self.stmts {
            p.put(" ");
            stmt.print(p);
        }
        if let Some(timeout) = self.timeout {
            p.put(" timeout ");
            p.span(timeout);
        }
        if let Some(expires) = self.expires {
            p.put(" expires ");
            p.span(expires);
        }
        if let Some(comment) = &self.comment {
            p.put(&format!(" comment \"{comment}\""));
        }
        if let Some(data) = &self.data {
            p.put(" : ");
            data.print(p);
        }
    }

    /// Writes it as JSON.
    pub fn json(&self, p: &Printer) -> Json {
        let mut key = self.key.json(p);
        if !self.is_plain() {
            let mut members = vec![("val", key)];
            let seconds = |ms: u128| Json::Number((ms / 1000).cast_signed());
            members.extend(self.timeout.map(|ms| ("timeout", seconds(ms))));
            members.extend(self.expires.map(|ms| ("expires", seconds(ms))));
            members.extend(self.comment.as_ref().map(|text| ("comment", Json::text(text))));
            let mut object = Json::object(members);
            for stmt in &self.stmts {
                object.merge(stmt.json(p));
            }
            key = Json::object(vec![("elem", object)]);
        }
        match &self.data {
            Some(data) => Json::List(vec![key, data.json(p)]),
            None => key,
        }
    }
}
