//! `payload`: fields of headers by name, and raw bits as `@th,16,16`.

use crate::headers::{self, BASES, Base, Field, Header};
use crate::json::{self, Json};
use crate::text::{Parser, Printer, Result};
use crate::types::{RAW, Ty};

/// Bits of the packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Payload {
    /// A field of a header.
    Field(&'static Header, &'static Field),
    /// Bits at a place.
    Raw {
        /// Where counting begins.
        base: Base,
        /// First bit.
        offset: u32,
        /// Width in bits.
        len: u32,
    },
}

impl Payload {
    pub(super) fn ty(&self) -> Ty {
        match self {
            Self::Field(_, field) => field.ty,
            Self::Raw { .. } => &RAW,
        }
    }

    /// Finds a field by the names of its header and itself.
    pub fn find(header: &str, field: &str) -> Option<Self> {
        let header = headers::find(headers::PAYLOAD, header)?;
        Some(Self::Field(header, header.field(field)?))
    }

    pub(super) fn print(&self, p: &mut Printer) {
        match self {
            Self::Field(header, field) => p.put(&format!("{} {}", header.name, field.name)),
            Self::Raw { base, offset, len } => {
                p.put(&format!("@{},{offset},{len}", BASES[*base as usize].0));
            }
        }
    }

    pub(super) fn json(&self) -> Json {
        let members = match self {
            Self::Field(header, field) => {
                vec![("protocol", Json::text(header.name)), ("field", Json::text(field.name))]
            }
            Self::Raw { base, offset, len } => vec![
                ("base", Json::text(BASES[*base as usize].0)),
                ("offset", Json::Number(i128::from(*offset))),
                ("len", Json::Number(i128::from(*len))),
            ],
        };
        Json::object(vec![("payload", Json::object(members))])
    }

    pub(super) fn parse(word: &str, p: &mut Parser) -> Result<Self> {
        if let Some((_, base)) =
            word.strip_prefix('@').and_then(|name| BASES.iter().find(|base| base.0 == name))
        {
            p.expect(",")?;
            let offset = p.integer()?;
            p.expect(",")?;
            return Ok(Self::Raw { base: *base, offset, len: p.integer()? });
        }
        let Some(header) = headers::find(headers::PAYLOAD, word) else {
            return Err(p.wanted("a field of a packet"));
        };
        let mut name = p.word("the field of a header")?;
        if word == "arp" && matches!(name.as_str(), "saddr" | "daddr") {
            name = format!("{name} {}", p.word("ether or ip")?);
        }
        match header.field(&name) {
            Some(field) => Ok(Self::Field(header, field)),
            None => {
                let names: Vec<&str> = header.fields.iter().map(|field| field.name).collect();
                Err(p.refused(&format!(
                    "{word} has no field {name}: expected one of {}",
                    names.join(", ")
                )))
            }
        }
    }

    pub(super) fn read(body: &Json) -> Option<Self> {
        if let Some(base) = body.get("base") {
            let base = base.as_text()?;
            let (_, base) = BASES.iter().find(|(name, _)| *name == base)?;
            let number = |name| json::integer(body.get(name)?);
            return Some(Self::Raw { base: *base, offset: number("offset")?, len: number("len")? });
        }
        Self::find(body.get("protocol")?.as_text()?, body.get("field")?.as_text()?)
    }
}
