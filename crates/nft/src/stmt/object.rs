//! Uses of named objects: `counter name "x"`, `ct helper set "x"`, and by a map.

use crate::expr::Expr;
use crate::json::Json;
use crate::text::{Parser, Printer, Result};
use crate::types::{self, Ty};

/// A use of a named object.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Kind of the object, its row in [`KINDS`].
    pub kind: &'static Kind,
    /// Name of the object, or a map that gives it.
    pub name: Expr,
}

/// A kind of named objects.
#[derive(Debug, PartialEq)]
pub struct Kind {
    /// As JSON names it.
    pub name: &'static str,
    /// What a rule says before the name.
    words: &'static str,
    /// Type of its name in maps.
    pub ty: Ty,
}

/// The kinds.
pub static KINDS: [Kind; 9] = [
    Kind { name: "counter", words: "counter name ", ty: &types::COUNTER },
    Kind { name: "quota", words: "quota name ", ty: &types::QUOTA },
    Kind { name: "limit", words: "limit name ", ty: &types::LIMIT },
    Kind { name: "ct helper", words: "ct helper set ", ty: &types::CT_HELPER },
    Kind { name: "ct timeout", words: "ct timeout set ", ty: &types::CT_TIMEOUT },
    Kind { name: "ct expectation", words: "ct expectation set ", ty: &types::CT_EXPECTATION },
    Kind { name: "synproxy", words: "synproxy name ", ty: &types::SYNPROXY },
    Kind { name: "secmark", words: "meta secmark set ", ty: &types::SECMARK },
    Kind { name: "tunnel", words: "tunnel name ", ty: &types::TUNNEL },
];

impl Named {
    pub(super) fn parse(kind: &str, p: &mut Parser) -> Result<Self> {
        let Some(kind) = KINDS.iter().find(|row| row.name == kind) else {
            return Err(p.wanted("a named object"));
        };
        Ok(Self { kind, name: p.data(&[kind.ty])? })
    }

    pub(super) fn print(&self, p: &mut Printer) {
        p.put(self.kind.words);
        self.name.print(p);
    }

    pub(super) fn json(&self, p: &Printer) -> Json {
        Json::object(vec![(self.kind.name, self.name.json(p))])
    }

    pub(super) fn read(name: &str, body: &Json) -> Option<Self> {
        let kind = KINDS.iter().find(|kind| kind.name == name)?;
        if !matches!(body, Json::Text(_)) && body.get("map").is_none() {
            return None;
        }
        Some(Self { kind, name: body.data(&[kind.ty])? })
    }
}
