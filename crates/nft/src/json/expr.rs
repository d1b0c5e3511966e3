//! Expressions of JSON, and elements of sets.

use super::{Cx, Json, integer};
use crate::expr::{Element, Expr, Field, Operator, fold};
use crate::family::Family;
use crate::stmt::Verdict;
use crate::types::{ETHER, INTEGER, IPV4, IPV6, Kind, RAW, STRING, Ty, VERDICT, Value};

/// Most expressions within each other.
const DEPTH: u32 = 40;

/// Expressions of JSON: methods of it, for statements and expressions hold each other.
impl Json {
    /// Reads what a comparison reads, or the key of a map.
    pub fn left(&self) -> Option<Expr> {
        expr(self, &[], DEPTH)
    }

    /// Reads what something of these types is compared with.
    pub fn right(&self, types: &[Ty]) -> Option<Expr> {
        expr(self, types, DEPTH)
    }

    /// Reads a value of these types: a constant, something read, or what a map gives.
    pub fn data(&self, types: &[Ty]) -> Option<Expr> {
        if types == [&VERDICT] {
            let (name, body) = self.one()?;
            return Verdict::read(name, body).map(Expr::Verdict);
        }
        if let Some(body) = self.get("map") {
            return body.map(types).map(|pair| Expr::Map(Box::new(pair)));
        }
        expr(self, types, DEPTH)
    }

    /// Reads the key of a map and its data.
    pub fn map(&self, types: &[Ty]) -> Option<(Expr, Expr)> {
        let key = self.get("key")?.left()?;
        let data = self.get("data")?;
        if let Some(name) = data.as_text() {
            return Some((key, Expr::Named(name.strip_prefix('@')?.into())));
        }
        let of = key.types();
        let items = data.get("set")?.items().iter();
        let elements: Option<Vec<Element>> =
            items.map(|item| element(item, &of, Some(types), None)).collect();
        Some((key, Expr::Set(elements?)))
    }

    /// Reads what belongs to an element besides its key.
    pub fn element_rest(&self, key: Expr, cx: &Cx) -> Option<Element> {
        element_rest(key, self, cx)
    }

    /// Reads a constant of a type.
    pub fn constant(&self, ty: Ty) -> Option<Value> {
        constant(self, ty)
    }
}

/// Reads a constant of a type.
fn constant(json: &Json, ty: Ty) -> Option<Value> {
    match json {
        Json::Text(text) => Value::parse(ty, text).or_else(|| Value::parse(&RAW, text)),
        Json::Number(value) if ty.kind == Kind::Time => {
            Some(Value::number(ty, u128::try_from(*value).ok()?.saturating_mul(1000)))
        }
        Json::Number(value) if ty.kind == Kind::Text => Value::parse(ty, &value.to_string()),
        Json::Number(value) => {
            let value = u128::try_from(*value).ok()?;
            let fits = ty.bits == 0 || ty.bits >= 128 || value >> ty.bits == 0;
            Some(Value::number(if fits { ty } else { &RAW }, value))
        }
        Json::Bool(value) => Some(Value::number(ty, u128::from(*value))),
        _ => None,
    }
}

fn expr(json: &Json, types: &[Ty], depth: u32) -> Option<Expr> {
    let depth = depth.checked_sub(1)?;
    let ty = types.first().copied().unwrap_or(&INTEGER);
    match json {
        Json::Text(text) if text == "*" => return Some(Expr::Any),
        Json::Text(text) if text.starts_with('@') => return Some(Expr::Named(text[1..].into())),
        // Bits that any of may be set.
        Json::List(bits) => return operands(Operator::Or, bits, types, depth),
        Json::Object(_) => {}
        // Of a constant on the left nothing says the type.
        Json::Text(text) if types.is_empty() => {
            let guesses: [Ty; 3] = [&IPV4, &IPV6, &ETHER];
            let value = guesses.into_iter().find_map(|ty| Value::parse(ty, text));
            let value = value.or_else(|| constant(json, ty));
            return value.or_else(|| Value::parse(&STRING, text)).map(Expr::Value);
        }
        other => return constant(other, ty).map(Expr::Value),
    }
    let (name, body) = json.one()?;
    match name {
        "concat" => {
            let part = |(at, part)| {
                let ty = types.get(at).or(types.last()).copied();
                expr(part, ty.as_slice(), depth)
            };
            body.items()
                .iter()
                .enumerate()
                .map(part)
                .collect::<Option<Vec<Expr>>>()
                .map(Expr::Concat)
        }
        "set" => {
            let mut elements = Vec::new();
            for item in body.items() {
                elements.push(element(item, types, None, None)?);
            }
            Some(Expr::Set(elements))
        }
        "prefix" => {
            let addr = expr(body.get("addr")?, types, depth)?;
            Some(Expr::Prefix(Box::new(addr), integer(body.get("len")?)?))
        }
        "range" => match body.items() {
            [low, high] => Expr::range(expr(low, types, depth)?, expr(high, types, depth)?),
            _ => None,
        },
        "map" => body.map(types).map(|pair| Expr::Map(Box::new(pair))),
        _ => {
            if let Some(op) = Operator::find(name) {
                return operands(op, body.items(), types, depth);
            }
            if let Some(verdict) = Verdict::read(name, body) {
                return Some(Expr::Verdict(verdict));
            }
            Field::read(name, body).map(Field::expr)
        }
    }
}

/// Reads an operation on two values or more.
fn operands(op: Operator, items: &[Json], types: &[Ty], depth: u32) -> Option<Expr> {
    let mut all = None;
    for item in items {
        let shift = matches!(op, Operator::Left | Operator::Right);
        let of = match &all {
            Some(_) if shift => vec![&INTEGER],
            Some(Expr::Value(_)) if !types.is_empty() => types.to_vec(),
            Some(left) => vec![left.ty()],
            None => types.to_vec(),
        };
        let next = expr(item, &of, depth)?;
        if !next.is_operand() {
            return None;
        }
        all = Some(match all {
            Some(left) => fold(op, left, next),
            None => next,
        });
    }
    all
}

/// Reads an element, of a map a pair.
pub(super) fn element(
    json: &Json,
    key: &[Ty],
    data: Option<&[Ty]>,
    cx: Option<&Cx>,
) -> Option<Element> {
    if let (Some(types), Json::List(pair)) = (data, json)
        && let [of, value] = &pair[..]
    {
        let mut element = element(of, key, None, cx)?;
        element.data = Some(value.data(types)?);
        return Some(element);
    }
    match json.get("elem") {
        Some(body) => {
            let of = body.get("val")?.right(key)?;
            element_rest(of, body, cx.unwrap_or(&Cx { family: Family::Ip, sets: &|_| None }))
        }
        None => json.right(key).map(Element::new),
    }
}

/// Reads what belongs to an element besides its key.
fn element_rest(key: Expr, body: &Json, cx: &Cx) -> Option<Element> {
    let mut element = Element::new(key);
    let Json::Object(members) = body else { return None };
    for (name, value) in members {
        let seconds =
            || value.as_number().map(|seconds| seconds.unsigned_abs().saturating_mul(1000));
        match &**name {
            "val" => {}
            "timeout" => element.timeout = Some(seconds()?),
            "expires" => element.expires = Some(seconds()?),
            "comment" => element.comment = Some(value.as_text()?.into()),
            _ => element.stmts.push(Json::object(vec![(name, value.clone())]).statement(cx)),
        }
    }
    Some(element)
}
