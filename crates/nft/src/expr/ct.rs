//! `ct`: what connection tracking knows of a packet.

use crate::headers::{self, CT, Key};
use crate::json::Json;
use crate::text::{Parser, Printer, Result};
use crate::types::{IPV6, Ty};

/// A key of `ct`, with direction and family.
#[derive(Debug, Clone, PartialEq)]
pub struct Ct {
    /// The key.
    pub key: &'static Key,
    /// `original` or `reply`.
    pub direction: Option<&'static str>,
    /// `ip` or `ip6`, of addresses.
    pub family: Option<&'static str>,
}

const DIRECTIONS: [&str; 2] = ["original", "reply"];
const FAMILIES: [&str; 2] = ["ip", "ip6"];

impl Ct {
    pub(super) fn ty(&self) -> Ty {
        if self.family == Some("ip6") { &IPV6 } else { self.key.1 }
    }

    pub(super) fn print(&self, p: &mut Printer) {
        p.put("ct ");
        for part in [self.direction, self.family].into_iter().flatten() {
            p.put(part);
            p.put(" ");
        }
        p.put(self.key.0);
    }

    pub(super) fn json(&self) -> Json {
        let key = match self.family {
            Some(family) => Json::Text(format!("{family} {}", self.key.0)),
            None => Json::text(self.key.0),
        };
        let mut members = vec![("key", key)];
        members.extend(self.direction.map(|way| ("dir", Json::text(way))));
        Json::object(vec![("ct", Json::object(members))])
    }

    pub(crate) fn parse(p: &mut Parser) -> Result<Self> {
        let direction = DIRECTIONS.into_iter().find(|way| p.eat(way));
        let mut family = FAMILIES.into_iter().find(|family| p.eat(family));
        let word = p.word("a key of ct")?;
        let Some(key) = headers::key(CT, &word) else {
            return Err(p.refused(&format!("expected a key of ct instead of {word}")));
        };
        if family.is_none() && matches!(key.0, "saddr" | "daddr") {
            family = p.address_family();
        }
        let direction = direction.filter(|_| key.0 != "protocol");
        Ok(Self { key, direction, family })
    }

    pub(super) fn read(body: &Json) -> Option<Self> {
        let text = |name| body.get(name).and_then(Json::as_text);
        let mut name = text("key")?;
        let mut family = FAMILIES.into_iter().find(|family| text("family") == Some(family));
        if let Some((of, key)) = name.split_once(' ') {
            family = FAMILIES.into_iter().find(|family| *family == of);
            name = key;
        }
        let direction = match text("dir") {
            Some(way) => Some(DIRECTIONS.into_iter().find(|name| *name == way)?),
            None => None,
        };
        let direction = direction.filter(|_| name != "protocol");
        Some(Self { key: headers::key(CT, name)?, direction, family })
    }
}
