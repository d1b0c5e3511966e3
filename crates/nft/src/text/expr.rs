//! Expressions in text.

use super::lexer::Kind as Token;
use super::{Parser, Result, exact};
use crate::expr::{Element, Expr, Field, Operator, fold};
use crate::headers::BASES;
use crate::stmt::{Stmt, Verdict};
use crate::types::{ETHER, INTEGER, IPV4, IPV6, Kind, RAW, STRING, Ty, VERDICT, Value};

/// What may stand in a place.
#[derive(Clone, Copy)]
struct Want<'a> {
    /// Types of its parts; none on the left of a comparison.
    types: &'a [Ty],
    /// Whether it may be read of the packet.
    fields: bool,
    /// Whether a comma goes on with bits.
    comma: bool,
    /// Whether a word that begins a field is one even if it is a value as well.
    first: bool,
}

impl Want<'_> {
    fn ty(&self, at: usize) -> Ty {
        self.types.get(at).or_else(|| self.types.last()).copied().unwrap_or(&INTEGER)
    }
}

impl Parser<'_> {
    /// Reads what a comparison reads, or the key of a map.
    pub fn left(&mut self) -> Result<Expr> {
        self.left_from(None)
    }

    /// Reads the same, whose first field may have been read.
    pub fn left_from(&mut self, first: Option<Field>) -> Result<Expr> {
        self.concat(
            Want { types: &[], fields: true, comma: false, first: true },
            first.map(Field::expr),
        )
    }

    /// Reads the key of an element that a rule adds to a set of these types.
    pub fn key(&mut self, types: &[Ty]) -> Result<Expr> {
        self.concat(Want { types, fields: true, comma: false, first: true }, None)
    }

    /// Reads what something is compared with.
    pub fn right(&mut self, types: &[Ty]) -> Result<Expr> {
        self.concat(Want { types, fields: false, comma: true, first: false }, None)
    }

    /// Reads a value: a constant, something read, or what a map gives.
    pub fn data(&mut self, types: &[Ty]) -> Result<Expr> {
        if types == [&VERDICT] {
            return match Verdict::parse(self)? {
                Some(verdict) => Ok(Expr::Verdict(verdict)),
                None => Err(self.wanted("a verdict")),
            };
        }
        let value = self.concat(Want { types, fields: true, comma: true, first: false }, None)?;
        if self.eat("map") {
            let data = self.map_data(&value.types(), types)?;
            return Ok(Expr::Map(Box::new((value, data))));
        }
        Ok(value)
    }

    /// Reads `{ key : data, … }` or `@map`.
    pub fn map_data(&mut self, key: &[Ty], data: &[Ty]) -> Result<Expr> {
        if self.is("{") {
            return Ok(Expr::Set(self.elements(key, Some(data))?));
        }
        self.set_name().map(Expr::Named)
    }

    fn concat(&mut self, want: Want, first: Option<Expr>) -> Result<Expr> {
        self.deeper()?;
        let first = self.binary(0, want.ty(0), want, first)?;
        if !self.is(".") {
            self.shallower();
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat(".") {
            parts.push(self.binary(0, want.ty(parts.len()), want, None)?);
        }
        self.shallower();
        Ok(Expr::Concat(exact(parts)))
    }

    fn binary(&mut self, least: u8, ty: Ty, want: Want, first: Option<Expr>) -> Result<Expr> {
        self.deeper()?;
        let mut left = match first {
            Some(first) => first,
            None => self.primary(ty, want)?,
        };
        if matches!(left, Expr::Value(_)) {
            left = self.interval(left, ty, want)?;
        }
        while left.is_operand()
            && !self.is_quoted()
            && let Some(op) = Operator::find(self.peek())
            && op.binding() > least
        {
            self.next();
            let shift = matches!(op, Operator::Left | Operator::Right);
            let of = match &left {
                _ if shift => &INTEGER,
                Expr::Value(_) if !want.types.is_empty() => ty,
                other if other.ty().kind == Kind::Text => &RAW,
                other => other.ty(),
            };
            let right = self.binary(op.binding(), of, want, None)?;
            if !right.is_operand() {
                return Err(self.refused("expected a number or something read as an operand"));
            }
            left = fold(op, left, right);
        }
        if want.comma && ty.kind == Kind::Bits && matches!(left, Expr::Value(_)) {
            while self.eat(",") {
                let more = self.primary(ty, want)?;
                left = fold(Operator::Or, left, more);
            }
        }
        self.shallower();
        Ok(left)
    }

    fn interval(&mut self, left: Expr, ty: Ty, want: Want) -> Result<Expr> {
        if want.types.is_empty() {
            return Ok(left);
        }
        if ty.kind != Kind::Bits && self.is("/") {
            self.next();
            let len: u32 = self.integer()?;
            let most = if ty.bits == 0 { 128 } else { ty.bits };
            if len > most {
                return Err(self.refused(&format!("expected a length of at most {most} bits")));
            }
            let left = Expr::Prefix(Box::new(left), len);
            if !self.eat("-") {
                return Ok(left);
            }
            return self.range_from(left, ty, want);
        }
        if self.eat("-") {
            return self.range_from(left, ty, want);
        }
        Ok(left)
    }

    fn range_from(&mut self, low: Expr, ty: Ty, want: Want) -> Result<Expr> {
        let backward = self.refused("expected a range whose end is not before its beginning");
        let high = self.primary(ty, want)?;
        Expr::range(low, high).ok_or(backward)
    }

    fn primary(&mut self, ty: Ty, want: Want) -> Result<Expr> {
        if self.eat("(") {
            let inner = self.binary(0, ty, Want { comma: true, ..want }, None)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.is("{") {
            return self.elements(want.types, None).map(Expr::Set);
        }
        if self.eat("[") {
            let addr = self.primary(ty, want)?;
            self.expect("]")?;
            return Ok(addr);
        }
        match self.lex.kind {
            Token::Quoted => {
                let value = Value::parse(ty, self.peek());
                let value = value.or_else(|| {
                    Value::parse(&STRING, self.peek()).filter(|_| want.types.is_empty())
                });
                let Some(value) = value else {
                    return Err(self.wanted(&format!("a value of type {}", ty.name)));
                };
                self.next();
                Ok(Expr::Value(value))
            }
            Token::Word => self.bare(ty, want),
            _ => Err(self.wanted(&format!("a value of type {}", ty.name))),
        }
    }

    fn bare(&mut self, ty: Ty, want: Want) -> Result<Expr> {
        let word = self.peek().to_owned();
        if let Some(name) = word.strip_prefix('@')
            && !(want.fields && BASES.iter().any(|base| base.0 == name))
        {
            return self.set_name().map(Expr::Named);
        }
        if ty == &VERDICT
            && let Some(verdict) = Verdict::parse(self)?
        {
            return Ok(Expr::Verdict(verdict));
        }
        let begins = want.fields && Field::begins(&word);
        let textual = matches!(ty.kind, Kind::Text | Kind::Object);
        if begins && (textual || want.first || Value::parse(ty, &word).is_none()) {
            return Field::parse(self).map(Field::expr);
        }
        if let Some(value) = Value::parse(ty, &word) {
            self.next();
            return Ok(Expr::Value(value));
        }
        if let Some(at) = word.find(':').filter(|at| *at > 0)
            && let Some(value) = Value::parse(ty, &word[..at])
        {
            self.lex.cut(at);
            self.next();
            return Ok(Expr::Value(value));
        }
        let guesses: &[Ty] = if want.types.is_empty() { &[&IPV4, &IPV6, &ETHER] } else { &[&RAW] };
        if want.fields
            && let Some(value) = guesses.iter().find_map(|ty| Value::parse(ty, &word))
        {
            self.next();
            return Ok(Expr::Value(value));
        }
        Err(self.wanted(&format!("a value of type {}", ty.name)))
    }

    /// Reads `{ … }`, elements of a set or pairs of a map.
    pub(super) fn elements(&mut self, key: &[Ty], data: Option<&[Ty]>) -> Result<Vec<Element>> {
        self.deeper()?;
        self.open()?;
        let mut elements = Vec::new();
        if self.is("}") {
            return Err(self.wanted("an element"));
        }
        while !self.is("}") {
            let want = Want { types: key, fields: false, comma: false, first: false };
            // All that no other element is: of elements alone.
            let of = if self.eat("*") { Expr::Any } else { self.concat(want, None)? };
            if let Expr::Set(inner) = of {
                elements.extend(inner);
            } else {
                let mut element = self.element_rest(of)?;
                if self.eat(":") {
                    self.lines();
                    element.data = Some(self.data(data.unwrap_or(&[&VERDICT][..]))?);
                }
                elements.push(element);
            }
            self.lines();
            if !self.eat(",") {
                break;
            }
            self.lines();
        }
        self.close()?;
        self.shallower();
        Ok(exact(elements))
    }

    /// Reads what follows a key: its timeout, comment, counter and the like.
    pub fn element_rest(&mut self, key: Expr) -> Result<Element> {
        let mut element = Element::new(key);
        loop {
            if self.eat("timeout") {
                element.timeout = Some(if self.eat("never") { 0 } else { self.span()? });
            } else if self.eat("expires") {
                element.expires = Some(self.span()?);
            } else if self.eat("comment") {
                element.comment = Some(self.word("a comment")?.into());
            } else {
                let word = self.peek().to_owned();
                match Stmt::state(&word, self)? {
                    Some(stmt) => element.stmts.push(stmt),
                    None => return Ok(element),
                }
            }
        }
    }

    /// Says whether a label of SELinux is given by a map of labels.
    pub(crate) fn is_secmark_map(&self, left: &Expr) -> bool {
        left.ty() == &crate::types::SECMARK && !self.is("ct") && !self.is("meta")
    }
}
