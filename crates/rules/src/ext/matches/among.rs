//! `--among-src`, `--among-dst`: Ethernet addresses of a list, each with an IPv4 address or without.
//!
//! ebtables takes an address without IPv4 address as one with any, and IPv4 addresses from IPv4 and ARP alone.
//! As soon as some list has one, ebtables-nft asks for IPv4 first, after a tag or not; then it looks both up at
//! once and takes a missing one as 0.0.0.0.
//!
//! Source: ebtables-nft(8); kernel `ebt_among.c` of ebtables-legacy; `nft --debug=netlink` of rules loaded by
//! ebtables-nft 1.8.9.

use packet::{Read, arp, ethernet, ethertype, ipv4};

use crate::backend::Backend;
use crate::error::What;
use crate::ext::{Args, BRIDGE, Given, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "among",
    aliases: &[],
    families: BRIDGE,
    protocol: None,
    options: &[Opt::value("among-dst").invertible(), Opt::value("among-src").invertible()],
    support: Support::Evaluated,
    parse,
};

const OPTIONS: [&str; 2] = ["among-src", "among-dst"];

#[derive(Debug)]
struct Among {
    /// The lists of sources and of destinations.
    lists: [Option<List>; 2],
}

#[derive(Debug)]
struct List {
    /// In order.
    pairs: Vec<([u8; 6], Option<[u8; 4]>)>,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let [source, destination] = OPTIONS.map(|name| args.get(name).map(list).transpose());
    Ok(Box::new(Among { lists: [source?, destination?] }))
}

fn list(given: &Given<'_>) -> Result<List, What> {
    let mut pairs = Vec::new();
    for word in value::list(given.text()) {
        let (mac, addr) = match word.split_once('=') {
            Some((mac, addr)) => (mac, Some(addr)),
            None => (word, None),
        };
        let read = value::mac(mac).zip(match addr {
            None => Some(None),
            Some(addr) => addr.parse::<std::net::Ipv4Addr>().ok().map(|addr| Some(addr.octets())),
        });
        pairs.push(read.ok_or_else(|| given.expected("a comma list of MAC[=ADDRESS]"))?);
    }
    if pairs.is_empty() {
        return Err(given.expected("a comma list of MAC[=ADDRESS]"));
    }
    pairs.sort_unstable();
    pairs.dedup();
    Ok(List { pairs, invert: given.invert })
}

impl Match for Among {
    fn print(&self, to: &mut Printer) {
        for (list, option) in self.lists.iter().zip(OPTIONS) {
            let Some(list) = list else { continue };
            let pairs = list.pairs.iter().map(|(mac, addr)| {
                let mac = mac.map(|byte| format!("{byte:x}")).join(":");
                match addr {
                    Some([a, b, c, d]) => format!("{mac}={a}.{b}.{c}.{d}"),
                    None => mac,
                }
            });
            to.option(list.invert, option, pairs.collect::<Vec<_>>().join(","));
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let ends = [
            (ethernet::SOURCE.start, ipv4::SOURCE.start, arp::SENDER_PROTOCOL.start),
            (ethernet::DESTINATION.start, ipv4::DESTINATION.start, arp::TARGET_PROTOCOL.start),
        ];
        if let Some(other) = self.needs_ipv4(transit) {
            return other;
        }
        self.lists.iter().zip(ends).fold(Outcome::YES, |all, (list, (mac, of_ip, of_arp))| {
            all.and_then(|| match list {
                None => Outcome::YES,
                Some(list) => list.evaluate(transit, mac, [of_ip, of_arp]),
            })
        })
    }
}

impl Among {
    /// What ebtables-nft says of frames without IPv4 as soon as a list has an IPv4 address: no, `!` or not.
    fn needs_ipv4(&self, transit: &Transit<'_, '_>) -> Option<Outcome> {
        let has_addr = self.lists.iter().flatten().any(List::has_addr);
        if transit.backend != Backend::Nft || !has_addr {
            return None;
        }
        let before = transit.packet.network_offset().saturating_sub(2);
        match transit.packet.read::<2>(before) {
            Read::Known(kind) if u16::from_be_bytes(kind) == ethertype::IPV4 => None,
            Read::Unknown => Some(Outcome::MAYBE),
            Read::Known(_) | Read::Absent => Some(Outcome::NO),
        }
    }
}

impl List {
    fn has_addr(&self) -> bool {
        self.pairs.iter().any(|(_, addr)| addr.is_some())
    }

    fn evaluate(&self, transit: &Transit<'_, '_>, mac: usize, at: [usize; 2]) -> Outcome {
        let Read::Known(mac) = transit.packet.read(mac) else { return Outcome::MAYBE };
        match transit.backend {
            Backend::Nft => self.evaluate_at_once(transit, mac, at[0]),
            Backend::Legacy => self.evaluate_by_type(transit, mac, at),
        }
    }

    fn evaluate_at_once(&self, transit: &Transit<'_, '_>, mac: [u8; 6], at: usize) -> Outcome {
        let wanted = match self.has_addr() {
            false => [0; 4],
            true => match transit.net::<4>(at) {
                Read::Known(addr) => addr,
                Read::Unknown => return Outcome::MAYBE,
                Read::Absent => return Outcome::NO,
            },
        };
        let is = |(m, a): &([u8; 6], Option<[u8; 4]>)| *m == mac && a.unwrap_or([0; 4]) == wanted;
        Outcome::from_bool(self.pairs.iter().any(is) != self.invert)
    }

    /// The kernel looks for the IPv4 address first, whatever the list asks for: a frame that should have one and has
    /// not is never matched.
    fn evaluate_by_type(&self, transit: &Transit<'_, '_>, mac: [u8; 6], at: [usize; 2]) -> Outcome {
        let addr = match self.addr_by_type(transit, at) {
            Ok(addr) => addr,
            Err(outcome) => return outcome,
        };
        let mut own = self.pairs.iter().filter(|(known, _)| *known == mac).peekable();
        if own.peek().is_none() {
            return Outcome::from_bool(self.invert);
        }
        let Some(addr) = addr else { return Outcome::MAYBE };
        let found = own.any(|(_, wanted)| wanted.is_none_or(|wanted| wanted == addr));
        Outcome::from_bool(found != self.invert)
    }

    /// The IPv4 address of IPv4 and ARP, after a tag or not, else 0.0.0.0; None where it was not captured. An error is
    /// what its lack comes to.
    fn addr_by_type(
        &self,
        transit: &Transit<'_, '_>,
        [of_ip, of_arp]: [usize; 2],
    ) -> Result<Option<[u8; 4]>, Outcome> {
        let known = |read: Read<[u8; 4]>| match read {
            Read::Known(addr) => Ok(Some(addr)),
            Read::Unknown => Ok(None),
            Read::Absent => Err(Outcome::NO),
        };
        let kind = match transit.packet.read::<2>(transit.packet.network_offset().saturating_sub(2))
        {
            Read::Known(kind) => u16::from_be_bytes(kind),
            Read::Unknown => return Err(Outcome::MAYBE),
            Read::Absent => return Err(Outcome::NO),
        };
        match kind {
            // All of the header has to be there.
            ethertype::IPV4 if transit.net::<1>(ipv4::MIN_HEADER_LEN - 1) == Read::Absent => {
                Err(Outcome::NO)
            }
            ethertype::IPV4 => known(transit.net(of_ip)),
            ethertype::ARP => match transit.net::<2>(arp::HARDWARE_LEN.start) {
                Read::Known([6, 4]) => known(transit.net(of_arp)),
                Read::Known(_) | Read::Absent => Err(Outcome::NO),
                Read::Unknown => Err(Outcome::MAYBE),
            },
            _ => Ok(Some([0; 4])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{Family, Hook};
    use crate::save::{LoadOptions, load};
    use host::Host;
    use packet::Packet;

    /// What a rule of ebtables-legacy says of a frame from 02:00:00:00:00:01 to a bridge's other side.
    fn legacy(rule: &str, after_macs: &[u8]) -> Outcome {
        let text = format!("*filter\n:FORWARD ACCEPT\n-A FORWARD {rule} -j ACCEPT\n");
        let options = LoadOptions { family: Some(Family::Bridge), ..LoadOptions::default() };
        let ruleset = load(&text, &options).unwrap().ruleset;
        let mut frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], after_macs].concat();
        let len = frame.len();
        let headers = packet::parse_frame(&frame, len);
        let mut packet = Packet::with_headers(&mut frame, headers);
        let host = Host::default();
        let transit = Transit::new(&mut packet, Family::Bridge, Hook::Forward, &host);
        ruleset.tables[0].chains[0].rules[0].matches[0].body.evaluate(&transit)
    }

    fn arp(lengths: [u8; 2]) -> Vec<u8> {
        let mut bytes = vec![8, 6, 0, 1, 8, 0, lengths[0], lengths[1], 0, 1];
        bytes.extend([2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
        bytes
    }

    #[test]
    fn an_address_that_is_not_there_is_no_match_whatever_the_list_asks_for() {
        let listed = "--among-src 2:0:0:0:0:1";
        let (not_listed, other) = ("! --among-src 2:0:0:0:0:1", "! --among-src 2:0:0:0:0:9");
        let tagged = |frame: &[u8]| [&[0x81, 0, 0, 5], frame].concat();
        let ip = |len: usize| [&[8, 0][..], &vec![0x45; len]].concat();
        for (frame, whole) in [
            (arp([6, 4]), true),
            (arp([8, 4]), false),
            (arp([6, 4])[..15].to_vec(), false),
            (ip(20), true),
            (ip(19), false),
            (tagged(&arp([6, 4])), true),
            (tagged(&arp([6, 8])), false),
            (vec![0x86, 0xdd], true),
        ] {
            let answers = [listed, not_listed, other].map(|rule| legacy(rule, &frame));
            let expected = [whole, false, whole].map(Outcome::from_bool);
            assert_eq!(answers, expected, "{frame:x?}");
        }
        let with_addr = "--among-src 2:0:0:0:0:1=10.0.0.1";
        assert_eq!(legacy(with_addr, &arp([6, 4])), Outcome::YES);
        assert_eq!(legacy(with_addr, &tagged(&arp([6, 4]))), Outcome::YES);
    }
}
