//! What an expression reads: one variant for each kind, whose files have its text and JSON.

use super::{Ct, Fib, Hash, Keyed, Part, Payload};
use crate::headers::{self, Header};
use crate::json::Json;
use crate::text::{Parser, Printer, Result};
use crate::types::Ty;

/// What is read of a packet, its connection or the host.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// Bytes at a place.
    Payload(Payload),
    /// An extension header, an option or a chunk, or a field of it.
    Part(Part),
    /// A key of `meta`, `rt`, `socket`, `osf`, `ipsec`, `tunnel`.
    Keyed(Keyed),
    /// What connection tracking knows.
    Ct(Ct),
    /// A question to the routes.
    Fib(Fib),
    /// A number that is counted, drawn or hashed.
    Hash(Hash),
    /// A field of the packet within a tunnel.
    Inner(&'static Header, Box<Self>),
}

impl Field {
    /// Says what type its value is of.
    pub fn ty(&self) -> Ty {
        match self {
            Self::Payload(payload) => payload.ty(),
            Self::Part(part) => part.ty(),
            Self::Keyed(keyed) => keyed.ty(),
            Self::Ct(ct) => ct.ty(),
            Self::Fib(fib) => fib.result.1,
            Self::Hash(_) => &crate::types::INTEGER,
            Self::Inner(_, field) => field.ty(),
        }
    }

    /// Writes it as text.
    pub fn print(&self, p: &mut Printer) {
        match self {
            Self::Payload(payload) => payload.print(p),
            Self::Part(part) => part.print(p),
            Self::Keyed(keyed) => keyed.print(p),
            Self::Ct(ct) => ct.print(p),
            Self::Fib(fib) => fib.print(p),
            Self::Hash(hash) => hash.print(p),
            Self::Inner(tunnel, field) => {
                p.put(tunnel.name);
                p.put(" ");
                field.print(p);
            }
        }
    }

    /// Writes it as JSON.
    pub fn json(&self, p: &Printer) -> Json {
        match self {
            Self::Payload(payload) => payload.json(),
            Self::Part(part) => part.json(),
            Self::Keyed(keyed) => keyed.json(),
            Self::Ct(ct) => ct.json(),
            Self::Fib(fib) => fib.json(),
            Self::Hash(hash) => hash.json(p),
            Self::Inner(tunnel, field) => match field.json(p) {
                Json::Object(mut members) if members.len() == 1 => {
                    if let Json::Object(inner) = &mut members[0].1 {
                        inner.insert(0, ("tunnel".into(), Json::text(tunnel.name)));
                    }
                    Json::Object(members)
                }
                other => other,
            },
        }
    }

    /// Says whether a word begins a field.
    pub fn begins(word: &str) -> bool {
        let words = [
            "meta", "ct", "fib", "osf", "socket", "ipsec", "numgen", "jhash", "symhash", "tunnel",
            "exthdr", "rt",
        ];
        words.contains(&word)
            || word.starts_with('@') && headers::BASES.iter().any(|(name, _)| *name == &word[1..])
            || headers::UNQUALIFIED.contains(&word)
            || matches!(word, "dscp" | "hour" | "time" | "day") && word != "dscp"
            || headers::find(headers::PAYLOAD, word).is_some()
            || headers::find(headers::EXTENSION, word).is_some()
    }

    /// Reads a field that begins with the current word.
    pub fn parse(p: &mut Parser) -> Result<Self> {
        let word = p.word("a field")?;
        Ok(match word.as_str() {
            "ct" => Self::Ct(Ct::parse(p)?),
            "fib" => Self::Fib(Fib::parse(p)?),
            "numgen" | "jhash" | "symhash" => Self::Hash(Hash::parse(&word, p)?),
            "meta" | "osf" | "socket" | "ipsec" => Self::Keyed(Keyed::parse(&word, p)?),
            "tunnel" => Self::Keyed(Keyed::parse(&word, p)?),
            "rt" if Keyed::is_route(p.peek()) => Self::Keyed(Keyed::parse(&word, p)?),
            "hour" | "time" | "day" => Self::Keyed(Keyed::meta(&word, p)?),
            _ if headers::UNQUALIFIED.contains(&word.as_str()) => {
                Self::Keyed(Keyed::meta(&word, p)?)
            }
            "tcp" | "ip" | "sctp" | "exthdr" if Part::follows(&word, p.peek()) => {
                Self::Part(Part::parse(&word, p)?)
            }
            _ if headers::find(headers::EXTENSION, &word).is_some() => {
                Self::Part(Part::parse(&word, p)?)
            }
            _ => return Self::packet(&word, p),
        })
    }

    /// Reads `tunnel path` and `tunnel id`; `tunnel name`, which is a statement, is left after its word `name`.
    pub(crate) fn parse_tunnel(p: &mut Parser) -> Result<Option<Self>> {
        p.next();
        if p.eat("name") {
            return Ok(None);
        }
        Ok(Some(Self::Keyed(Keyed::parse("tunnel", p)?)))
    }

    fn packet(word: &str, p: &mut Parser) -> Result<Self> {
        if let Some(header) = headers::find(headers::PAYLOAD, word) {
            let inner = headers::TUNNELS.contains(&word) && header.field(p.peek()).is_none();
            if inner && headers::find(headers::PAYLOAD, p.peek()).is_some() {
                p.deeper()?;
                let field = Self::parse(p)?;
                p.shallower();
                return Ok(Self::Inner(header, Box::new(field)));
            }
        }
        Ok(Self::Payload(Payload::parse(word, p)?))
    }

    /// Reads the field that an object of JSON with one member is.
    pub fn read(name: &str, body: &Json) -> Option<Self> {
        Some(match name {
            "payload" => {
                let field = Self::Payload(Payload::read(body)?);
                match body.get("tunnel").and_then(Json::as_text) {
                    Some(tunnel) => {
                        Self::Inner(headers::find(headers::PAYLOAD, tunnel)?, Box::new(field))
                    }
                    None => field,
                }
            }
            "exthdr" | "tcp option" | "ip option" | "sctp chunk" => {
                Self::Part(Part::read(name, body)?)
            }
            "meta" | "rt" | "socket" | "osf" | "ipsec" | "tunnel" => {
                Self::Keyed(Keyed::read(name, body)?)
            }
            "ct" => Self::Ct(Ct::read(body)?),
            "fib" => Self::Fib(Fib::read(body)?),
            "numgen" | "jhash" | "symhash" => Self::Hash(Hash::read(name, body)?),
            _ => return None,
        })
    }
}
