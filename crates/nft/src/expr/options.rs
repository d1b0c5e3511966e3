//! Extension headers of IPv6, options of TCP and IPv4, chunks of SCTP: whether they are there, or a field of them.

use crate::headers::{self, Field, Header};
use crate::json::Json;
use crate::json::member as integer;
use crate::text::{Parser, Printer, Result};
use crate::types::{BOOLEAN, INTEGER, Ty};

/// What a part belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// IPv6's extension headers.
    Extension,
    /// TCP's options.
    Tcp,
    /// IPv4's options.
    Ip,
    /// SCTP's chunks.
    Sctp,
}

/// How JSON and text name each, and what it has.
static SPACES: [(&str, &str, &[Header]); 4] = [
    ("exthdr", "exthdr", headers::EXTENSION),
    ("tcp option", "tcp", headers::TCP_OPTION),
    ("ip option", "ip", headers::IP_OPTION),
    ("sctp chunk", "sctp", headers::SCTP_CHUNK),
];

/// A part of a packet that may be missing, or what of it is read.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Whether it is there.
    Exists(Space, &'static Header),
    /// A field of it; the index of repeated ones (`sid[1]`).
    Field(Space, &'static Header, &'static Field, Option<u32>),
    /// Bits of an option of TCP by its number: kind, first bit, width.
    Raw(u32, u32, u32),
    /// Whether an option of TCP is there that has no name.
    Number(u32),
}

impl Part {
    pub(super) fn ty(&self) -> Ty {
        match self {
            Self::Exists(..) | Self::Number(_) => &BOOLEAN,
            Self::Field(_, _, field, _) => field.ty,
            Self::Raw(..) => &INTEGER,
        }
    }

    pub(super) fn follows(word: &str, next: &str) -> bool {
        matches!((word, next), ("tcp" | "ip", "option") | ("sctp", "chunk")) || word == "exthdr"
    }

    pub(crate) fn print(&self, p: &mut Printer) {
        match self {
            Self::Exists(space, header) => {
                p.put(&format!("{} {}", SPACES[*space as usize].0, header.name))
            }
            Self::Field(space, header, field, index) => {
                if *space != Space::Extension {
                    p.put(SPACES[*space as usize].0);
                    p.put(" ");
                }
                p.put(&format!("{} {}", header.name, field.name));
                if let Some(index) = index {
                    p.put(&format!("[{index}]"));
                }
            }
            Self::Raw(kind, offset, len) => p.put(&format!("tcp option @{kind},{offset},{len}")),
            Self::Number(kind) => p.put(&format!("tcp option {kind}")),
        }
    }

    pub(super) fn json(&self) -> Json {
        let number = |value: u32| Json::Number(i128::from(value));
        let (name, members) = match self {
            Self::Exists(space, header) => {
                (SPACES[*space as usize].0, vec![("name", Json::text(header.name))])
            }
            Self::Field(space, header, field, index) => {
                let field = match index {
                    Some(index) => format!("{}[{index}]", field.name),
                    None => field.name.to_owned(),
                };
                let members = vec![("name", Json::text(header.name)), ("field", Json::Text(field))];
                (SPACES[*space as usize].0, members)
            }
            Self::Raw(kind, offset, len) => {
                let members = vec![
                    ("base", number(*kind)),
                    ("offset", number(*offset)),
                    ("len", number(*len)),
                ];
                ("tcp option", members)
            }
            Self::Number(kind) => (
                "tcp option",
                vec![("base", number(*kind)), ("offset", number(0)), ("len", number(8))],
            ),
        };
        Json::object(vec![(name, Json::object(members))])
    }

    pub(super) fn parse(word: &str, p: &mut Parser) -> Result<Self> {
        let space = match word {
            "tcp" => Space::Tcp,
            "ip" => Space::Ip,
            "sctp" => Space::Sctp,
            _ => Space::Extension,
        };
        if space == Space::Extension && word != "exthdr" {
            let name = p.word("the field of an extension header")?;
            return Self::field(space, word, &name, p);
        }
        if space != Space::Extension {
            p.next();
        }
        Self::option(space, p)
    }

    /// Reads what follows `tcp option`, also after `reset`.
    pub(crate) fn option(space: Space, p: &mut Parser) -> Result<Self> {
        let name = p.word("the name of an option")?;
        if let Some(kind) = name.strip_prefix('@').and_then(|kind| kind.parse().ok()) {
            p.expect(",")?;
            let offset = p.integer()?;
            p.expect(",")?;
            return Ok(Self::Raw(kind, offset, p.integer()?));
        }
        let table = SPACES[space as usize].2;
        if let Ok(kind) = name.parse::<u32>() {
            let known = table.iter().find(|header| header.number == kind);
            return Ok(known.map_or(Self::Number(kind), |header| Self::Exists(space, header)));
        }
        let name = if name == "echo" { "timestamp" } else { &name };
        let Some(header) = headers::find(table, name) else {
            return Err(p.wanted("the name of an option"));
        };
        if header.field(p.peek()).is_some() {
            let field = p.word("a field")?;
            return Self::field(space, header.name, &field, p);
        }
        Ok(Self::Exists(space, header))
    }

    fn field(space: Space, header: &str, field: &str, p: &mut Parser) -> Result<Self> {
        let mut index = None;
        if p.eat("[") {
            index = Some(p.integer()?);
            p.expect("]")?;
        }
        match Self::find(space, header, field, index) {
            Some(part) => Ok(part),
            None => Err(p.wanted(&format!("a field of {header} instead of {field}"))),
        }
    }

    fn find(space: Space, header: &str, field: &str, index: Option<u32>) -> Option<Self> {
        let header = if header == "sack0" { "sack" } else { header };
        let header = headers::find(SPACES[space as usize].2, header)?;
        Some(Self::Field(space, header, header.field(field)?, index))
    }

    pub(super) fn read(name: &str, body: &Json) -> Option<Self> {
        let space = SPACES.iter().position(|space| space.0 == name)?;
        let space = [Space::Extension, Space::Tcp, Space::Ip, Space::Sctp][space];
        if body.get("base").is_some() {
            let (kind, offset, len) =
                (integer(body, "base")?, integer(body, "offset")?, integer(body, "len")?);
            return Some(if (offset, len) == (0, 8) {
                Self::Number(kind)
            } else {
                Self::Raw(kind, offset, len)
            });
        }
        let header = body.get("name")?.as_text()?;
        let Some(field) = body.get("field") else {
            return Some(Self::Exists(space, headers::find(SPACES[space as usize].2, header)?));
        };
        let field = field.as_text()?;
        match field.split_once('[') {
            Some((field, index)) => {
                Self::find(space, header, field, Some(index.strip_suffix(']')?.parse().ok()?))
            }
            None => Self::find(space, header, field, None),
        }
    }
}
