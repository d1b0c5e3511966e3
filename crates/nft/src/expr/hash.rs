//! `numgen`, `jhash` and `symhash`: numbers below a modulus.

use super::Expr;
use crate::json::Json;
use crate::json::member as integer;
use crate::text::{Parser, Printer, Result};

/// A number that is counted, drawn or hashed.
#[derive(Debug, Clone, PartialEq)]
pub struct Hash {
    /// `inc` or `random` of `numgen`, `jhash`, `symhash`.
    pub kind: &'static str,
    /// What is hashed.
    pub of: Option<Expr>,
    /// The modulus.
    pub modulus: u32,
    /// The seed.
    pub seed: Option<u32>,
    /// What is added.
    pub offset: u32,
}

const KINDS: [&str; 4] = ["inc", "random", "jhash", "symhash"];

impl Hash {
    fn is_numgen(&self) -> bool {
        matches!(self.kind, "inc" | "random")
    }

    pub(super) fn print(&self, p: &mut Printer) {
        p.put(if self.is_numgen() { "numgen " } else { "" });
        p.put(self.kind);
        if let Some(of) = &self.of {
            p.put(" ");
            of.print(p);
        }
        p.put(&format!(" mod {}", self.modulus));
        if let Some(seed) = self.seed {
            p.put(&format!(" seed {seed:#x}"));
        }
        if self.offset != 0 {
            p.put(&format!(" offset {}", self.offset));
        }
    }

    pub(super) fn json(&self, p: &Printer) -> Json {
        let number = |value: u32| Json::Number(i128::from(value));
        if self.is_numgen() {
            let members = vec![
                ("mode", Json::text(self.kind)),
                ("mod", number(self.modulus)),
                ("offset", number(self.offset)),
            ];
            return Json::object(vec![("numgen", Json::object(members))]);
        }
        let mut members = vec![("mod", number(self.modulus))];
        members.extend(self.seed.map(|seed| ("seed", number(seed))));
        if self.offset != 0 {
            members.push(("offset", number(self.offset)));
        }
        members.extend(self.of.as_ref().map(|of| ("expr", of.json(p))));
        Json::object(vec![(self.kind, Json::object(members))])
    }

    pub(super) fn parse(word: &str, p: &mut Parser) -> Result<Self> {
        let mut of = None;
        let kind = match word {
            "numgen" => p.one_of(&KINDS[..2], "inc or random")?,
            "jhash" => {
                p.deeper()?;
                of = Some(p.left()?);
                p.shallower();
                "jhash"
            }
            _ => "symhash",
        };
        p.expect("mod")?;
        let modulus = p.integer()?;
        let mut hash = Self { kind, of, modulus, seed: None, offset: 0 };
        if p.eat("seed") {
            hash.seed = Some(p.integer()?);
        }
        if p.eat("offset") {
            hash.offset = p.integer()?;
        }
        Ok(hash)
    }

    pub(super) fn read(name: &str, body: &Json) -> Option<Self> {
        let kind = match body.get("mode") {
            Some(mode) => KINDS[..2].iter().find(|kind| mode.as_text() == Some(kind))?,
            None => KINDS[2..].iter().find(|kind| **kind == name)?,
        };
        let of = match body.get("expr") {
            Some(of) => Some(of.left()?),
            None => None,
        };
        let modulus = integer(body, "mod")?;
        Some(Self {
            kind,
            of,
            modulus,
            seed: integer(body, "seed"),
            offset: integer(body, "offset").unwrap_or(0),
        })
    }
}
