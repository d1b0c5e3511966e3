//! `snat`, `dnat`, `masquerade` and `redirect`.

use crate::expr::Expr;
use crate::family::Family;
use crate::json::{self, Json};
use crate::text::{Parser, Printer, Result};
use crate::types::{IPV4, IPV6, SERVICE, Ty};

/// A translation.
#[derive(Debug, Clone, PartialEq)]
pub struct Nat {
    /// `snat`, `dnat`, `masquerade` or `redirect`.
    pub kind: &'static str,
    /// `ip` or `ip6`, where it is written.
    pub family: Option<&'static str>,
    /// The new address, or a map that gives address and port.
    pub addr: Option<Expr>,
    /// The new port.
    pub port: Option<Expr>,
    /// Flags: a bit for each of `FLAGS`.
    pub flags: u8,
    /// Whether prefixes are translated one to one.
    pub prefix: bool,
}

const KINDS: [&str; 4] = ["snat", "dnat", "masquerade", "redirect"];
const FLAGS: [&str; 4] = ["random", "fully-random", "persistent", "netmap"];

/// The bit of `netmap`, which `prefix` implies.
const NETMAP: u8 = 8;

/// Types of address and port, as a family has them.
pub(super) fn types(family: Option<&str>, of: Family) -> [Ty; 2] {
    let six = family == Some("ip6") || family.is_none() && of == Family::Ip6;
    [if six { &IPV6 } else { &IPV4 }, &SERVICE]
}

impl Printer {
    /// Writes an address of NAT, in brackets if a port may follow an IPv6 address.
    pub fn address(&mut self, addr: &Expr, port: bool) {
        let six = |expr: &Expr| matches!(expr, Expr::Value(value) if value.ty == &IPV6);
        match addr {
            Expr::Range(ends) if port && six(&ends.0) => {
                self.address(&ends.0, true);
                self.put("-");
                self.address(&ends.1, true);
            }
            Expr::Value(_) if port && six(addr) => {
                self.put("[");
                addr.print(self);
                self.put("]");
            }
            _ => addr.print(self),
        }
    }
}

impl Nat {
    pub(super) fn parse(p: &mut Parser) -> Result<Self> {
        let kind = p.one_of(&KINDS, "a kind of NAT")?;
        let mut nat = Self { kind, family: None, addr: None, port: None, flags: 0, prefix: false };
        nat.family = ["ip", "ip6"].into_iter().find(|family| p.eat(family));
        nat.prefix = p.eat("prefix");
        nat.flags = if nat.prefix { NETMAP } else { 0 };
        if p.eat("addr") {
            p.expect(".")?;
            p.expect("port")?;
        } else if p.eat("interval") {
            // An older spelling of what the map says.
        }
        if p.eat("to") || p.address_family().is_some() {
            let wants = types(nat.family, p.family);
            if !p.is(":") {
                let mut found = wants;
                if nat.family.is_none() && p.address_family() == Some("ip6") {
                    found[0] = &IPV6;
                }
                nat.addr = Some(p.data(&found)?);
            }
            if p.eat(":") {
                nat.port = Some(p.data(&[&SERVICE])?);
            }
        } else if p.eat(":") {
            nat.port = Some(p.data(&[&SERVICE])?);
        }
        while let Some(at) = FLAGS.iter().position(|flag| p.eat(flag)) {
            nat.flags |= 1 << at;
            p.eat(",");
        }
        Ok(nat)
    }

    pub(super) fn print(&self, p: &mut Printer) {
        p.put(self.kind);
        if let Some(family) = self.family {
            p.put(&format!(" {family}"));
        }
        p.put(if self.prefix { " prefix" } else { "" });
        if self.addr.is_some() || self.port.is_some() {
            p.put(" to ");
        }
        if let Some(addr) = &self.addr {
            p.address(addr, self.port.is_some());
        }
        if let Some(port) = &self.port {
            p.put(":");
            port.print(p);
        }
        let set: Vec<&str> =
            self.flag_names().filter(|flag| !self.prefix || *flag != "netmap").collect();
        if !set.is_empty() {
            p.put(&format!(" {}", set.join(",")));
        }
    }

    fn flag_names(&self) -> impl Iterator<Item = &'static str> {
        let flags = self.flags;
        FLAGS
            .into_iter()
            .enumerate()
            .filter(move |(at, _)| flags >> at & 1 == 1)
            .map(|(_, name)| name)
    }

    pub(super) fn json(&self, p: &Printer) -> Json {
        let mut members = Vec::new();
        members.extend(self.family.map(|family| ("family", Json::text(family))));
        members.extend(self.addr.as_ref().map(|addr| ("addr", addr.json(p))));
        members.extend(self.port.as_ref().map(|port| ("port", port.json(p))));
        let flags: Vec<Json> = self.flag_names().map(Json::text).collect();
        if !flags.is_empty() {
            members.push(("flags", Json::List(flags)));
        }
        if self.prefix {
            members.push(("type_flags", Json::List(vec![Json::text("prefix")])));
        }
        Json::object(vec![(self.kind, Json::object(members).or_null())])
    }

    pub(super) fn read(name: &str, body: &Json, cx: &json::Cx) -> Option<Self> {
        let kind = KINDS.into_iter().find(|kind| *kind == name)?;
        let family = match body.get("family") {
            Some(family) => {
                Some(["ip", "ip6"].into_iter().find(|name| family.as_text() == Some(name))?)
            }
            None => None,
        };
        let wants = types(family, cx.family);
        let mut nat = Self { kind, family, addr: None, port: None, flags: 0, prefix: false };
        if let Some(addr) = body.get("addr") {
            nat.addr = Some(addr.data(&wants).or_else(|| addr.data(&[&IPV6, &SERVICE]))?);
        }
        if let Some(port) = body.get("port") {
            nat.port = Some(port.data(&[&SERVICE])?);
        }
        for flag in body.get("flags").map_or(&[][..], Json::items) {
            nat.flags |= 1 << FLAGS.iter().position(|name| flag.as_text() == Some(name))?;
        }
        for flag in body.get("type_flags").map_or(&[][..], Json::items) {
            nat.prefix |= flag.as_text()? == "prefix";
        }
        nat.flags |= if nat.prefix { NETMAP } else { 0 };
        Some(nat)
    }
}
