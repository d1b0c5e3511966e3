//! `reject`.

use crate::family::Family;
use crate::json::Json;
use crate::text::{Parser, Printer, Result};
use crate::types::{ICMP_CODE, ICMPV6_CODE, ICMPX_CODE, Ty, Value};

/// An answer that refuses a packet.
#[derive(Debug, Clone, PartialEq)]
pub enum Reject {
    /// A reset.
    Reset,
    /// What the rule's network header and the family make of it; rules of rulesets say what.
    Usual,
    /// An error of ICMP: its code, whose type says which ICMP.
    Code(Value),
}

const KINDS: [(&str, Ty); 3] =
    [("icmp", &ICMP_CODE), ("icmpv6", &ICMPV6_CODE), ("icmpx", &ICMPX_CODE)];

impl Reject {
    /// Returns what `reject` alone means in a family.
    pub fn usual(family: Family) -> Self {
        Self::Code(match family {
            Family::Ip => Value::number(&ICMP_CODE, 3),
            Family::Ip6 => Value::number(&ICMPV6_CODE, 4),
            _ => Value::number(&ICMPX_CODE, 1),
        })
    }

    pub(super) fn parse(p: &mut Parser) -> Result<Self> {
        p.next();
        if !p.eat("with") {
            return Ok(Self::Usual);
        }
        if p.eat("tcp") {
            p.expect("reset")?;
            return Ok(Self::Reset);
        }
        let kind = p.one_of(&["icmp", "icmpv6", "icmpx"], "tcp, icmp, icmpv6 or icmpx")?;
        p.eat("type");
        let (_, ty) = KINDS[KINDS.iter().position(|(name, _)| *name == kind).unwrap_or(0)];
        let word = p.word("a code of ICMP")?;
        match Value::parse(ty, &word) {
            Some(code) => Ok(Self::Code(code)),
            None => Err(p.refused(&format!("expected a code of {kind} instead of {word}"))),
        }
    }

    pub(super) fn print(&self, p: &mut Printer) {
        if *self == Self::usual(p.family) {
            p.put("reject");
            return;
        }
        match self {
            Self::Usual => p.put("reject"),
            Self::Reset => p.put("reject with tcp reset"),
            Self::Code(code) => {
                let kind =
                    KINDS.iter().find(|(_, ty)| *ty == code.ty).map_or("icmp", |kind| kind.0);
                p.put(&format!("reject with {kind} "));
                match code.name() {
                    Some(name) => p.put(name),
                    None => code.print(&mut p.out, p.style),
                }
            }
        }
    }

    pub(super) fn json(&self, p: &Printer) -> Json {
        match self {
            Self::Usual => Json::Null,
            Self::Reset => Json::object(vec![("type", Json::text("tcp reset"))]),
            Self::Code(code) => {
                let kind =
                    KINDS.iter().find(|(_, ty)| *ty == code.ty).map_or("icmp", |kind| kind.0);
                Json::object(vec![
                    ("type", Json::text(kind)),
                    ("expr", code.name().map_or_else(|| code.json(p.style), Json::text)),
                ])
            }
        }
    }

    pub(super) fn read(body: &Json) -> Option<Self> {
        let Some(kind) = body.get("type") else { return Some(Self::Usual) };
        let kind = kind.as_text()?;
        if kind == "tcp reset" {
            return Some(Self::Reset);
        }
        let (_, ty) = KINDS.iter().find(|(name, _)| *name == kind)?;
        match body.get("expr") {
            Some(code) => code.constant(ty).map(Self::Code),
            None => Some(Self::Usual),
        }
    }
}
