//! `meta`, `rt`, `socket`, `osf`, `ipsec` and `tunnel`: a key each, of a table.

use crate::headers::{self, BARE_META, IPSEC, Key, META, RT, SOCKET, TUNNEL};
use crate::json::Json;
use crate::json::member as integer;
use crate::text::{Parser, Printer, Result};
use crate::types::{IPV6, STRING, Ty};

static OSF: &[Key] = &[("name", &STRING), ("version", &STRING)];

/// A key with what narrows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Keyed {
    /// `meta`, `rt`, …
    pub of: &'static str,
    /// The key.
    pub key: &'static Key,
    /// `ip` or `ip6`: of `rt nexthop` and of `ipsec`'s addresses.
    pub family: Option<&'static str>,
    /// `in` or `out` of `ipsec`, `loose` or `skip` of `osf ttl`.
    pub mode: Option<&'static str>,
    /// `spnum` of `ipsec`, `level` of `socket cgroupv2`.
    pub level: u32,
}

static TABLES: [(&str, &[Key]); 6] = [
    ("meta", META),
    ("rt", RT),
    ("socket", SOCKET),
    ("osf", OSF),
    ("ipsec", IPSEC),
    ("tunnel", TUNNEL),
];

const MODES: [&str; 4] = ["in", "out", "loose", "skip"];

impl Keyed {
    pub(super) fn ty(&self) -> Ty {
        if self.family == Some("ip6") { &IPV6 } else { self.key.1 }
    }

    pub(super) fn is_route(word: &str) -> bool {
        headers::key(RT, word).is_some() || matches!(word, "ip" | "ip6")
    }

    fn new(of: &str, key: &str) -> Option<Self> {
        let (of, table) = TABLES.iter().find(|table| table.0 == of)?;
        let key = if key == "secpath" { "ipsec" } else { key };
        Some(Self { of, key: headers::key(table, key)?, family: None, mode: None, level: 0 })
    }

    /// Makes a key of `meta`.
    pub fn meta(key: &str, p: &Parser) -> Result<Self> {
        Self::new("meta", key)
            .ok_or_else(|| p.refused(&format!("expected a key of meta instead of {key}")))
    }

    pub(super) fn print(&self, p: &mut Printer) {
        if self.of != "meta" || !BARE_META.contains(&self.key.0) {
            p.put(self.of);
            p.put(" ");
        }
        if let Some(mode) = self.mode {
            p.put(if self.of == "osf" { "ttl " } else { "" });
            p.put(mode);
            p.put(" ");
        }
        if self.of == "ipsec" && self.level != 0 {
            p.put(&format!("spnum {} ", self.level));
        }
        if let Some(family) = self.family {
            p.put(family);
            p.put(" ");
        }
        p.put(self.key.0);
        if self.of == "socket" && self.key.0 == "cgroupv2" {
            p.put(&format!(" level {}", self.level));
        }
    }

    pub(super) fn json(&self) -> Json {
        let mut members = vec![("key", Json::text(self.key.0))];
        if let Some(family) = self.family {
            members.push(("family", Json::text(family)));
        }
        if let Some(mode) = self.mode {
            members.push((if self.of == "osf" { "ttl" } else { "dir" }, Json::text(mode)));
        }
        if self.of == "ipsec" {
            members.push(("spnum", Json::Number(i128::from(self.level))));
        }
        if self.key.0 == "cgroupv2" {
            members.push(("level", Json::Number(i128::from(self.level))));
        }
        Json::object(vec![(self.of, Json::object(members))])
    }

    pub(super) fn parse(of: &str, p: &mut Parser) -> Result<Self> {
        let mut family = None;
        let mut mode = None;
        let mut level = 0;
        if of == "osf" && p.eat("ttl") {
            mode = Some(p.one_of(&MODES[2..], "loose or skip")?);
        }
        if of == "ipsec" {
            mode = Some(p.one_of(&MODES[..2], "in or out")?);
            if p.eat("spnum") {
                level = p.integer()?;
            }
        }
        if matches!(of, "ipsec" | "rt") {
            family = ["ip", "ip6"].into_iter().find(|family| p.eat(family));
        }
        let word = p.word("a key")?;
        let Some(mut keyed) = Self::new(of, &word) else {
            return Err(p.refused(&format!("expected a key of {of} instead of {word}")));
        };
        if of == "rt" && word == "nexthop" && family.is_none() {
            family = p.address_family();
        }
        if word == "cgroupv2" && p.eat("level") {
            level = p.integer()?;
        }
        (keyed.family, keyed.mode, keyed.level) = (family, mode, level);
        Ok(keyed)
    }

    pub(super) fn read(of: &str, body: &Json) -> Option<Self> {
        let mut keyed = Self::new(of, body.get("key")?.as_text()?)?;
        keyed.family = match body.get("family") {
            Some(family) => {
                Some(["ip", "ip6"].into_iter().find(|name| family.as_text() == Some(name))?)
            }
            None => None,
        };
        keyed.mode = match body.get("dir").or_else(|| body.get("ttl")) {
            Some(mode) => Some(MODES.into_iter().find(|name| mode.as_text() == Some(name))?),
            None => None,
        };
        keyed.level = integer(body, "spnum").or_else(|| integer(body, "level")).unwrap_or(0);
        Some(keyed)
    }
}
