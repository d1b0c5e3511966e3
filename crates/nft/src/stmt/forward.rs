//! `tproxy`, `dup`, `fwd`, `queue` and `synproxy`: what hands packets on.

use super::nat;
use crate::expr::Expr;
use crate::family::Family;
use crate::json::member as small;
use crate::json::{self, Json};
use crate::text::{Parser, Printer, Result};
use crate::types::{IFACE_INDEX, IPV6, SERVICE, Ty};

/// A packet, or a copy of it, handed to an address, a port or a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Forward {
    /// `tproxy`, `dup` or `fwd`.
    pub kind: &'static str,
    /// `ip` or `ip6`, where it is written.
    pub family: Option<&'static str>,
    /// Address; of `dup` and `fwd` in family netdev a device.
    pub addr: Option<Expr>,
    /// Port.
    pub port: Option<Expr>,
    /// Device.
    pub dev: Option<Expr>,
}

const KINDS: [&str; 3] = ["tproxy", "dup", "fwd"];

fn wants(kind: &str, family: Option<&str>, of: Family) -> [Ty; 2] {
    if family.is_none() && of == Family::Netdev && kind != "tproxy" {
        return [&IFACE_INDEX, &SERVICE];
    }
    nat::types(family, of)
}

impl Forward {
    pub(super) fn parse(p: &mut Parser) -> Result<Self> {
        let kind = p.one_of(&KINDS, "tproxy, dup or fwd")?;
        let family = ["ip", "ip6"].into_iter().find(|family| p.eat(family));
        p.expect("to")?;
        let mut forward = Self { kind, family, addr: None, port: None, dev: None };
        let mut wants = wants(kind, family, p.family);
        if family.is_none() && p.address_family() == Some("ip6") {
            wants[0] = &IPV6;
        }
        if !p.is(":") {
            forward.addr = Some(p.data(&wants[..1])?);
        }
        if p.eat(":") {
            forward.port = Some(p.data(&[&SERVICE])?);
        }
        if p.eat("device") {
            forward.dev = Some(p.data(&[&IFACE_INDEX])?);
        }
        Ok(forward)
    }

    pub(super) fn print(&self, p: &mut Printer) {
        p.put(self.kind);
        if let Some(family) = self.family {
            p.put(&format!(" {family}"));
        }
        p.put(" to ");
        if let Some(addr) = &self.addr {
            p.address(addr, self.port.is_some() || self.kind == "tproxy");
        }
        if let Some(port) = &self.port {
            p.put(":");
            port.print(p);
        }
        if let Some(dev) = &self.dev {
            p.put(" device ");
            dev.print(p);
        }
    }

    pub(super) fn json(&self, p: &Printer) -> Json {
        let mut members = Vec::new();
        let addr = self.addr.as_ref().map(|addr| addr.json(p));
        if self.kind == "fwd" && self.dev.is_none() {
            members.extend(addr.map(|dev| ("dev", dev)));
        } else {
            members.extend(self.family.map(|family| ("family", Json::text(family))));
            members.extend(addr.map(|addr| ("addr", addr)));
            members.extend(self.port.as_ref().map(|port| ("port", port.json(p))));
            members.extend(self.dev.as_ref().map(|dev| ("dev", dev.json(p))));
        }
        Json::object(vec![(self.kind, Json::object(members))])
    }

    pub(super) fn read(name: &str, body: &Json, cx: &json::Cx) -> Option<Self> {
        let kind = KINDS.into_iter().find(|kind| *kind == name)?;
        let family = body.get("family").and_then(Json::as_text);
        let family = ["ip", "ip6"].into_iter().find(|name| family == Some(name));
        let wants = wants(kind, family, cx.family);
        let read = |name: &str, ty: Ty| match body.get(name) {
            Some(of) => of.data(&[ty]).or_else(|| of.data(&[&IPV6])).map(Some),
            None => Some(None),
        };
        let mut forward = Self {
            kind,
            family,
            addr: read("addr", wants[0])?,
            port: read("port", &SERVICE)?,
            dev: read("dev", &IFACE_INDEX)?,
        };
        if forward.addr.is_none() && kind == "fwd" {
            forward.addr = forward.dev.take();
        }
        Some(forward)
    }
}

/// A packet handed to a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// The queue, or what gives its number.
    pub to: Expr,
    /// Whether the packet passes if nobody listens.
    pub bypass: bool,
    /// Whether the queue is chosen by processor.
    pub fanout: bool,
}

impl Queue {
    pub(super) fn parse(p: &mut Parser) -> Result<Self> {
        p.next();
        let mut queue = Self { to: Expr::number(&SERVICE, 0), bypass: false, fanout: false };
        loop {
            if p.eat("bypass") {
                queue.bypass = true;
            } else if p.eat("fanout") {
                queue.fanout = true;
            } else if p.eat("num") || p.eat("to") {
                queue.to = p.data(&[&SERVICE])?;
            } else if !p.eat("flags") && !p.eat(",") {
                return Ok(queue);
            }
        }
    }

    fn flags(&self) -> Vec<&'static str> {
        [(self.bypass, "bypass"), (self.fanout, "fanout")]
            .into_iter()
            .filter(|flag| flag.0)
            .map(|flag| flag.1)
            .collect()
    }

    pub(super) fn print(&self, p: &mut Printer) {
        p.put("queue");
        let flags = self.flags();
        if !flags.is_empty() {
            p.put(&format!(" flags {}", flags.join(",")));
        }
        p.put(" to ");
        self.to.print(p);
    }

    pub(super) fn json(&self, p: &Printer) -> Json {
        let mut members = vec![("num", self.to.json(p))];
        let flags = self.flags();
        if !flags.is_empty() {
            members.push(("flags", Json::List(flags.into_iter().map(Json::text).collect())));
        }
        Json::object(members)
    }

    pub(super) fn read(body: &Json) -> Option<Self> {
        let to = match body.get("num") {
            Some(to) => to.data(&[&SERVICE])?,
            None => Expr::number(&SERVICE, 0),
        };
        let has = |name| {
            body.get("flags")
                .is_some_and(|flags| flags.items().iter().any(|flag| flag.as_text() == Some(name)))
        };
        Some(Self { to, bypass: has("bypass"), fanout: has("fanout") })
    }
}

/// Handshakes answered for a server, in a rule or as a named object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synproxy {
    /// Largest segment and scale of the window.
    pub mss: Option<(u32, u32)>,
    /// Whether timestamps are offered.
    pub timestamp: bool,
    /// Whether selective acknowledgements are offered.
    pub sack: bool,
}

impl Synproxy {
    /// Reads what follows `synproxy`; a named one has lines of its own.
    pub fn parse(p: &mut Parser) -> Result<Self> {
        let mut synproxy = Self::default();
        loop {
            if p.eat("mss") {
                synproxy.mss = Some((p.integer()?, synproxy.mss.map_or(0, |mss| mss.1)));
            } else if p.eat("wscale") {
                synproxy.mss = Some((synproxy.mss.map_or(0, |mss| mss.0), p.integer()?));
            } else if p.eat("timestamp") {
                synproxy.timestamp = true;
            } else if p.eat("sack-perm") {
                synproxy.sack = true;
            } else {
                return Ok(synproxy);
            }
        }
    }

    /// Takes what another line says.
    pub fn merge(&mut self, line: &Self) {
        if let Some((mss, scale)) = line.mss {
            let old = self.mss.unwrap_or((0, 0));
            self.mss = Some((mss.max(old.0), scale.max(old.1)));
        }
        self.timestamp |= line.timestamp;
        self.sack |= line.sack;
    }

    /// Writes it, each part after `between`; flags belong together.
    pub fn print(&self, p: &mut Printer, between: &str) {
        if let Some((mss, scale)) = self.mss {
            p.put(&format!("{between}mss {mss}{between}wscale {scale}"));
        }
        let flags = self.flags();
        if !flags.is_empty() {
            p.put(&format!("{between}{}", flags.join(" ")));
        }
    }

    fn flags(&self) -> Vec<&'static str> {
        [(self.timestamp, "timestamp"), (self.sack, "sack-perm")]
            .into_iter()
            .filter(|flag| flag.0)
            .map(|flag| flag.1)
            .collect()
    }

    /// Writes the members of its JSON.
    pub fn json(&self) -> Vec<(&'static str, Json)> {
        let mut members = Vec::new();
        if let Some((mss, scale)) = self.mss {
            members.extend([("mss", Json::of(mss)), ("wscale", Json::of(scale))]);
        }
        let flags = self.flags();
        if !flags.is_empty() {
            members.push(("flags", Json::List(flags.into_iter().map(Json::text).collect())));
        }
        members
    }

    /// Reads it of JSON.
    pub fn read(body: &Json) -> Option<Self> {
        let has = |name| {
            body.get("flags")
                .is_some_and(|flags| flags.items().iter().any(|flag| flag.as_text() == Some(name)))
        };
        let mss = small(body, "mss").map(|mss| (mss, small(body, "wscale").unwrap_or(0)));
        Some(Self { mss, timestamp: has("timestamp"), sack: has("sack-perm") })
    }
}
