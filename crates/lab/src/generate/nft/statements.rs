//! Statements: what is set, counted down, refused and decided.

use super::super::draw::Piece;
use super::pick::{is_no_key, pick_field};
use super::{Drawing, Part, Sort, TableFamily};
use rules::model::Family;

impl Drawing<'_> {
    /// A statement in the middle of a rule, if what it tries may be drawn.
    pub(super) fn middle(&mut self) -> Option<Part> {
        let choice = self.draw.rng.u8(..20);
        let part = match choice {
            // The kernel takes it at one hook, and tamis does not know it: the more often where that may be.
            _ if self.sets_packet_type() && self.draw.one_in(3) => Part::statement(
                "meta pkttype set",
                self.pick_text(&["meta pkttype set host", "meta pkttype set other"]),
            ),
            0..=3 => self.set_mark(),
            4 => Part::statement(
                "ct mark set",
                self.pick_text(&["ct mark set meta mark", "ct mark set 0x1", "ct mark set 0x10"]),
            ),
            5 | 6 => Part::statement(
                "meta priority set",
                self.pick_text(&["meta priority set 1:2", "meta priority set none"]),
            ),
            7 => Part::statement("notrack", "notrack"),
            8 => Part::statement(
                "ct label set",
                self.pick_text(&["ct label set 1", "ct label set 0"]),
            ),
            9 | 10 => self.mangle(),
            11 => {
                Part::statement("log", self.pick_text(&["log prefix \"x \"", "log group 7", "log"]))
            }
            12 => {
                let (named, set) = self.object("counter", "");
                Part { sets: vec![set], ..Part::statement("counter name", named) }
            }
            13 => {
                let (helper, protocol) =
                    self.draw.pick(&[("ftp", "tcp"), ("tftp", "udp"), ("sip", "udp")]);
                let body = format!("type \"{helper}\" protocol {protocol} ; ");
                let (named, set) = self.object("ct helper", &body);
                let named = named.replacen("ct helper name", "ct helper set", 1);
                Part { sets: vec![set], ..Part::statement("ct helper set", named) }
            }
            _ => {
                let field = pick_field(self).filter(|field| !is_no_key(*field))?;
                self.mark_by_map(field)
            }
        };
        part.items.iter().all(|item| self.may(item)).then_some(part)
    }

    /// A use of a named object of a kind: of one that is there, or of a new one; and its name.
    fn object(&mut self, kind: &str, body: &str) -> (String, String) {
        let is = |(_, declared): &&(String, String)| declared.starts_with(kind);
        let known: Vec<String> =
            self.sets.iter().filter(is).map(|(name, _)| name.clone()).collect();
        let name = match known.is_empty() || self.draw.one_in(3) {
            true => self.declare(kind, body),
            false => known[self.draw.rng.usize(..known.len())].clone(),
        };
        (format!("{kind} name \"{name}\""), name)
    }

    fn pick_text(&mut self, texts: &[&'static str]) -> &'static str {
        self.draw.pick(texts)
    }

    fn sets_packet_type(&self) -> bool {
        !self.told && self.hooks.iter().all(|hook| *hook == "prerouting")
    }

    fn set_mark(&mut self) -> Part {
        let value = self.draw.pick(&[0_u32, 1, 2, 0x10, 0xff00, 0x1234]);
        let text = match self.draw.rng.u8(..8) {
            0 => format!("meta mark set meta mark & {value:#x}"),
            1 => format!("meta mark set meta mark | {value:#x}"),
            2 => format!("meta mark set meta mark ^ {value:#x}"),
            3 => format!("meta mark set meta mark & 0xffffff00 | {:#x}", value & 0xff),
            4 => "meta mark set ct mark".to_owned(),
            _ => format!("meta mark set {value:#x}"),
        };
        let item = if text.contains("ct mark") { "meta mark set ct mark" } else { "meta mark set" };
        Part::statement(item, text)
    }

    fn mangle(&mut self) -> Part {
        let upper = match self.about.upper {
            None => &["tcp dport set 443", "udp sport set 53", "udp dport set 80"][..],
            Some("payload tcp") => &["tcp dport set 443", "tcp window set 77"],
            Some("payload udp") => &["udp sport set 53", "udp dport set 80"],
            Some(_) => &["tcp option maxseg size set 1000"],
        };
        let four =
            ["ip ttl set 40", "ip dscp set cs1", "ip ecn set ce", "ip daddr set 203.0.113.2"];
        let six = ["ip6 hoplimit set 9", "ip6 dscp set 8", "ip6 saddr set 2001:db8::3"];
        let network = match (self.family, self.about.family) {
            (TableFamily::Ip, _) | (_, Some(Family::Ipv4)) => &four[..],
            (TableFamily::Ip6, _) | (_, Some(Family::Ipv6)) => &six,
            (TableFamily::Inet, _) => self.draw.pick(&[&four[..], &six]),
        };
        let text = match self.draw.rng.u8(..14) {
            0..=4 => self.pick_text(upper),
            5 => "tcp option maxseg size set 1000",
            6 if self.about.upper == Some("payload icmp") => "icmp code set 1",
            _ => self.pick_text(network),
        };
        match text.split_once(' ') {
            Some(("ip", _)) => self.about.family = Some(Family::Ipv4),
            Some(("ip6", _)) => self.about.family = Some(Family::Ipv6),
            Some(("tcp", field)) if !field.starts_with("option") => {
                self.about.upper = Some("payload tcp");
            }
            Some(("udp", _)) => self.about.upper = Some("payload udp"),
            _ => {}
        }
        // It asks for the header first.
        Part::test(&["payload set"], Piece::plain(text))
    }

    /// A test that keeps something: it spends when it is asked.
    pub(super) fn spending(&mut self) -> Option<Part> {
        let count = self.draw.pick(&[1_u32, 2, 5, 40]);
        let over = if self.draw.one_in(3) { "over " } else { "" };
        let by_name = self.draw.one_in(3);
        let (item, text) = match self.draw.rng.u8(..4) {
            0 => (
                "limit packets",
                format!(
                    "limit rate {over}{}/day burst {count} packets",
                    self.draw.pick(&[1, 2, 3])
                ),
            ),
            1 => (
                "limit bytes",
                format!(
                    "limit rate {over}{} bytes/day burst {} bytes",
                    self.draw.pick(&[1, 5]),
                    count * 100
                ),
            ),
            2 => ("quota", format!("quota {over}{} bytes", count * 100)),
            _ => ("ct count", format!("ct count {over}{count}")),
        };
        let Some((kind, body)) = text.split_once(' ').filter(|_| by_name && item != "ct count")
        else {
            return self.may(item).then(|| Part::test(&[item], Piece::plain(text)));
        };
        let item = if kind == "limit" { "limit name" } else { "quota name" };
        let (named, name) = self.object(kind, &format!("{body} ; "));
        let part = Part::test(&[item], Piece::plain(named));
        self.may(item).then_some(Part { sets: vec![name], ..part })
    }

    /// What ends a rule, and the chain that it jumps or goes to.
    pub(super) fn verdict(
        &mut self,
        chains: &[usize],
        is_base: bool,
        asks: bool,
    ) -> Option<(Part, Option<usize>)> {
        let (item, text, to) = match self.draw.rng.u8(..20) {
            0..=5 | 13..=15 if !chains.is_empty() => {
                let chain = self.draw.pick(chains);
                ("jump", format!("jump c{chain}"), Some(chain))
            }
            6 | 7 if asks && !chains.is_empty() => {
                let chain = self.draw.pick(chains);
                ("goto", format!("goto c{chain}"), Some(chain))
            }
            8 if asks => ("accept", "accept".to_owned(), None),
            9 if asks => ("drop", "drop".to_owned(), None),
            11 if !is_base || asks && self.draw.one_in(4) => ("return", "return".to_owned(), None),
            12 => ("continue", "continue".to_owned(), None),
            10 if asks && !self.hooks.contains(&"postrouting") => {
                ("reject", self.reject().to_owned(), None)
            }
            _ => return None,
        };
        let part = Part::of(Sort::Statement, &[item], Piece::plain(text));
        self.may(item).then_some((part, to))
    }

    fn reject(&mut self) -> &'static str {
        let four = ["reject with icmp port-unreachable", "reject with icmp admin-prohibited"];
        let six = ["reject with icmpv6 no-route", "reject with icmpv6 admin-prohibited"];
        let both = ["reject with icmpx host-unreachable", "reject with icmpx admin-prohibited"];
        let own = match (self.family, self.about.family) {
            (TableFamily::Ip, _) | (_, Some(Family::Ipv4)) => four,
            (TableFamily::Ip6, _) | (_, Some(Family::Ipv6)) => six,
            (TableFamily::Inet, _) => self.draw.pick(&[four, six, both, both]),
        };
        let reset = matches!(self.about.upper, None | Some("payload tcp"));
        match self.draw.rng.u8(..6) {
            0 if reset => "reject with tcp reset",
            0 | 1 => "reject",
            choice => own[usize::from(choice) % 2],
        }
    }
}
