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
    /// Of sources and of destinations.
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

    fn evaluate_by_type(&self, transit: &Transit<'_, '_>, mac: [u8; 6], at: [usize; 2]) -> Outcome {
        let mut own = self.pairs.iter().filter(|(known, _)| *known == mac).peekable();
        if own.peek().is_none() {
            return Outcome::from_bool(self.invert);
        }
        let addr = match transit.packet.headers().link.ethertype {
            ethertype::IPV4 => transit.net::<4>(at[0]),
            ethertype::ARP => match transit.net::<2>(arp::HARDWARE_LEN.start) {
                Read::Known([6, 4]) => transit.net::<4>(at[1]),
                Read::Known(_) | Read::Absent => return Outcome::NO,
                Read::Unknown => Read::Unknown,
            },
            _ => Read::Known([0; 4]),
        };
        match addr {
            Read::Known(addr) => {
                let found = own.any(|(_, wanted)| wanted.is_none_or(|wanted| wanted == addr));
                Outcome::from_bool(found != self.invert)
            }
            Read::Unknown => Outcome::MAYBE,
            Read::Absent => Outcome::NO,
        }
    }
}
