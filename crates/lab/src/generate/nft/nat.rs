//! Translations: `snat`, `dnat`, `masquerade`, `redirect`, to constants, ranges, prefixes and what maps give.
//!
//! What the kernel draws at random (`random`, a port of several where the flow's own will not do) is unknown to tamis, so it
//! is drawn seldom.

use std::sync::Arc;

use super::super::draw::{Craft, Piece};
use super::concat::all;
use super::field::{Field, Kind};
use super::pick::{fields, is_no_key};
use super::{Drawing, Part, Sort};
use crate::scene::{LOCAL_V4, LOCAL_V6};
use rules::model::Family;

/// One ruleset in this many statements has what the kernel draws.
const DRAWN_ONE_IN: u32 = 12;

/// An address that flows are given, as nft reads it.
fn show(address: [u8; 16], family: Family) -> String {
    let kind = if family == Family::Ipv6 { Kind::V6 } else { Kind::V4 };
    kind.show(number(address, family))
}

fn number(address: [u8; 16], family: Family) -> u128 {
    match family {
        Family::Ipv6 => u128::from_be_bytes(address),
        _ => {
            let [a, b, c, d, ..] = address;
            u32::from_be_bytes([a, b, c, d]).into()
        }
    }
}

impl Drawing<'_> {
    /// The parts that translate the flows of a hook: a test of their protocol where ports ask for one, and the statement.
    pub(super) fn translation(&mut self, hook: &str) -> Vec<Part> {
        let family = self.nat_family();
        let (kind, other) = match hook {
            "prerouting" => ("dnat", "redirect"),
            "postrouting" => ("snat", "masquerade"),
            _ => ("snat", "snat"),
        };
        let kind = if self.draw.one_in(4) { other } else { kind };
        let mut parts = Vec::new();
        let wants_ports = self.draw.one_in(2);
        let has_ports = wants_ports && self.port_protocol(&mut parts);
        let mut craft: Craft = Arc::new(|_| {});
        let (mut items, to) = match kind {
            "redirect" | "masquerade" if !has_ports => (Vec::new(), String::new()),
            "redirect" if self.draw.one_in(4) => {
                let protocol = self.about.upper.and_then(|item| item.strip_prefix("payload "));
                let protocol = protocol.unwrap_or("th");
                let [a, b, c, d] = std::array::from_fn(|_| self.draw.port().max(1));
                let to = format!(" to :{protocol} dport map {{ {a} : {b}, {c} : {d} }}");
                (vec!["nat map"], to)
            }
            "redirect" | "masquerade" => {
                let (item, ports) = self.ports(kind == "masquerade");
                (vec![item], format!(" to :{ports}"))
            }
            _ => self.nat_target(kind, family, has_ports, &mut craft),
        };
        items.insert(0, kind);
        let drawn = self.draw.rng.u32(..DRAWN_ONE_IN);
        let flags = match drawn {
            // nft 1.0.6 forgets the prefix where flags follow.
            _ if to.contains("prefix") => "",
            0 => " random",
            1 if self.draw.one_in(2) => " fully-random",
            2 | 3 => " persistent",
            _ => "",
        };
        items.extend((!flags.is_empty()).then_some(if flags == " persistent" {
            "nat persistent"
        } else {
            "nat random"
        }));
        let (sets, to) = match to.split_once('@') {
            Some((_, name)) => (vec![name.to_owned()], to.clone()),
            None => (Vec::new(), to),
        };
        let piece = Piece { text: format!("{kind}{to}{flags}"), craft };
        parts.push(Part { sets, ..Part::of(Sort::Statement, &items, piece) });
        parts
    }

    /// The family that a translation is for.
    fn nat_family(&mut self) -> Family {
        use super::TableFamily;
        match (self.family, self.about.family) {
            (TableFamily::Ip, _) => Family::Ipv4,
            (TableFamily::Ip6, _) => Family::Ipv6,
            (TableFamily::Inet, Some(family)) => family,
            (TableFamily::Inet, None) => self.draw.pick(&[Family::Ipv4, Family::Ipv6]),
        }
    }

    /// Whether the rule says a protocol with ports, which it is made to where it says none.
    fn port_protocol(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.about.upper {
            Some(item) => matches!(
                item,
                "payload tcp" | "payload udp" | "payload udplite" | "payload sctp" | "payload dccp"
            ),
            None => {
                let (name, protocol) = self.draw.pick(&[("tcp", 6), ("udp", 17), ("tcp", 6)]);
                self.about.upper = Some(if name == "tcp" { "payload tcp" } else { "payload udp" });
                let piece =
                    Piece::new(format!("meta l4proto {name}"), move |p| p.protocol = protocol);
                parts.push(Part::test(&["meta l4proto"], piece));
                true
            }
        }
    }

    /// Ports: one, or now and then several.
    fn ports(&mut self, is_source: bool) -> (&'static str, String) {
        let port = self.draw.port().max(1);
        // Of several source ports the kernel draws one.
        match self.draw.one_in(if is_source { 4 } else { 2 }) {
            false => ("nat port", port.to_string()),
            true => {
                let last = port.saturating_add(self.draw.pick(&[1, 3, 500]));
                ("nat ports", format!("{port}-{last}"))
            }
        }
    }

    /// An address that flows are given. Where destinations change some are the host's own.
    fn nat_address(&mut self, family: Family, own: bool) -> String {
        if own && self.draw.one_in(6) {
            let list = if family == Family::Ipv6 { &LOCAL_V6 } else { &LOCAL_V4 };
            return self.draw.pick(list).to_owned();
        }
        let address = self.address(family);
        show(address, family)
    }

    /// Two addresses, the first below or equal the second.
    fn nat_range(&mut self, family: Family) -> String {
        let first = number(self.address(family), family);
        let most = if family == Family::Ipv6 { u128::MAX } else { u32::MAX.into() };
        let last = match self.draw.rng.u8(..4) {
            0 => number(self.address(family), family),
            1 => first.saturating_add(200).min(most),
            _ => first.saturating_add(3).min(most),
        };
        let kind = if family == Family::Ipv6 { Kind::V6 } else { Kind::V4 };
        format!("{}-{}", kind.show(first.min(last)), kind.show(first.max(last)))
    }

    /// A network, of which a flow's address keeps the rest.
    fn nat_prefix(&mut self, family: Family) -> String {
        let bits = if family == Family::Ipv6 { 128 } else { 32 };
        let len = bits - self.draw.pick(&[4, 8, 9, 16]);
        let host = (1_u128 << (bits - len)) - 1;
        if bits == 32 {
            // Whether an IPv4 address that stays as it is counts as translated is up to what the kernel finds on its stack.
            return format!("198.18.{}.0/{}", self.draw.rng.u8(..), len.max(24));
        }
        let kind = if family == Family::Ipv6 { Kind::V6 } else { Kind::V4 };
        format!("{}/{len}", kind.show(number(self.address(family), family) & !host))
    }

    /// What stands after `snat` or `dnat`.
    fn nat_target(
        &mut self,
        kind: &str,
        family: Family,
        has_ports: bool,
        craft: &mut Craft,
    ) -> (Vec<&'static str>, String) {
        let word = match (self.family, family) {
            (super::TableFamily::Inet, Family::Ipv6) => " ip6",
            (super::TableFamily::Inet, _) => " ip",
            _ => "",
        };
        let prefix_word = if family == Family::Ipv6 { " ip6 prefix" } else { " ip prefix" };
        let own = kind == "dnat";
        match self.draw.rng.u8(..14) {
            0..=5 => {
                if let Some((item, text)) = self.nat_map(kind, family, has_ports, craft) {
                    let word = if item == "nat prefix map" { prefix_word } else { word };
                    return (vec![item], format!("{word} to {text}"));
                }
            }
            6 | 7 if !has_ports => {
                let prefix = self.nat_prefix(family);
                return (vec!["nat prefix"], format!("{prefix_word} to {prefix}"));
            }
            8 if !has_ports => {
                let prefix = self.nat_prefix(family);
                return (vec!["nat range"], format!("{word} to {prefix}"));
            }
            9..=11 if !has_ports => {
                let name = if family == Family::Ipv6 { "ip6" } else { "ip" };
                let [a, b] = std::array::from_fn(|_| self.nat_address(family, own));
                let key = match self.draw.one_in(2) {
                    true => "numgen inc mod 2".to_owned(),
                    false => format!("jhash {name} saddr mod 2 seed 0x1"),
                };
                let to = format!("{word} to {key} map {{ 0 : {a}, 1 : {b} }}");
                return (vec!["nat map of numbers"], to);
            }
            9..=11 => {
                let (item, ports) = self.ports(kind == "snat");
                return (vec![item], format!("{word} to :{ports}"));
            }
            _ => {}
        }
        let (mut items, address) = match self.draw.one_in(3) {
            true => (vec!["nat range"], self.nat_range(family)),
            false => (vec!["nat address"], self.nat_address(family, own)),
        };
        if !has_ports {
            return (items, format!("{word} to {address}"));
        }
        let (item, ports) = self.ports(kind == "snat");
        items.push(item);
        let address = match family {
            Family::Ipv6 => {
                address.split('-').map(|one| format!("[{one}]")).collect::<Vec<_>>().join("-")
            }
            _ => address,
        };
        (items, format!("{word} to {address}:{ports}"))
    }

    /// A map that gives addresses, or addresses with ports, or networks.
    fn nat_map(
        &mut self,
        kind: &str,
        family: Family,
        has_ports: bool,
        craft: &mut Craft,
    ) -> Option<(&'static str, String)> {
        let about = self.about;
        self.about.family = Some(family);
        let key = |drawing: &mut Self| fields(drawing, 1).first().copied();
        let key = (0..4).find_map(|_| key(self).filter(|key| !is_no_key(*key)));
        if !has_ports {
            self.about = super::About { family: about.family, ..self.about };
        }
        let key: Field = key?;
        let intervals = self.draw.one_in(2) && key.kind.bits().is_some();
        let (keys, chosen) = self.tuples(&[key], intervals);
        *craft = all(keys[chosen].crafts.clone());
        let own = kind == "dnat";
        let shape = self.draw.rng.u8(..6);
        let name = if family == Family::Ipv6 { "ip6" } else { "ip" };
        let ports =
            self.about.upper.and_then(|item| item.strip_prefix("payload ")).unwrap_or("tcp");
        let (item, data) = match shape {
            0..=4 if has_ports => ("nat map of ports", format!("{name} daddr . {ports} dport")),
            0..=2 if !has_ports => ("nat prefix map", format!("{name} daddr")),
            _ => ("nat map", format!("{name} daddr")),
        };
        let pairs: Vec<String> = keys
            .iter()
            .map(|key| {
                let data = match item {
                    "nat prefix map" => self.nat_prefix(family),
                    "nat map of ports" => {
                        let address = self.nat_address(family, own);
                        format!("{address} . {}", self.draw.port().max(1))
                    }
                    _ => self.nat_address(family, own),
                };
                format!("{} : {data}", key.text)
            })
            .collect();
        let elements = format!("{{ {} }}", pairs.join(", "));
        if self.draw.one_in(2) || item == "nat prefix map" {
            return Some((item, format!("{} map {elements}", key.name)));
        }
        let flags = if intervals { "flags interval ; " } else { "" };
        let body = format!("typeof {} : {data} ; {flags}elements = {elements} ; ", key.name);
        let map = self.declare("map", &body);
        Some((item, format!("{} map @{map}", key.name)))
    }
}
