//! `snat`, `dnat`, `masquerade` and `redirect`: what the flow of the packet is given.
//!
//! Addresses and ports are constants, ranges, or what a map gives; a key without an element ends the rule. In family inet
//! packets of the other family pass by. Source: kernel `net/netfilter/nft_nat.c`, `nft_masq.c`, `nft_redir.c`.

use std::net::IpAddr;

use crate::expr::Expr;
use crate::lower::constants;
use crate::lower::load::Load;
use crate::lower::load::lookup::Lookup;
use crate::lower::read;
use crate::lower::scope::Scope;
use crate::lower::set::{Key, Span};
use crate::lower::width;
use crate::lower::word::{Loaded, number};
use crate::stmt;
use crate::types::IPV6;
use conntrack::Side;
use packet::{ipv4, ipv6};
use rules::Transit;
use rules::model::Family;
use rules::nat::{Gives, Mapping, Ports, Range, Translation};

/// Where an address comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// The rule.
    Rule,
    /// The output device.
    Output,
    /// The input device.
    Input,
}

/// What addresses or ports are chosen from.
#[derive(Debug)]
enum Given {
    /// A constant, or a range.
    Span(Span),
    /// What an expression comes to.
    Load(Box<dyn Load>),
    /// What a map gives: an address, or an address and a port.
    Map(Lookup<Key>),
}

/// A translation.
#[derive(Debug)]
pub(crate) struct Nat {
    side: Side,
    from: From,
    /// The family that it is for is IPv6; `None` for both.
    six: Option<bool>,
    address: Option<Given>,
    port: Option<Given>,
    random: bool,
    persistent: bool,
    /// Prefixes are translated one to one.
    netmap: bool,
}

/// Bits of the statement's flags.
const RANDOM: u8 = 3;
const PERSISTENT: u8 = 4;
const NETMAP: u8 = 8;

/// What a translation comes to for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// The flow is translated so.
    To(Translation),
    /// The flow is left as it is.
    Nothing,
    /// The rule ends without a translation.
    Ends,
    /// What becomes of it is not known.
    Unknown,
}

/// One part of what a translation is chosen from.
enum Part {
    Known(Span),
    /// One of several, or not known.
    Vague,
    Ends,
    Unknown,
}

impl Nat {
    /// Makes it of the statement; why not, if it is not evaluated.
    pub(crate) fn new(nat: &stmt::Nat, scope: &Scope<'_>) -> Result<Self, &'static str> {
        let (side, from) = match nat.kind {
            "snat" => (Side::Source, From::Rule),
            "dnat" => (Side::Destination, From::Rule),
            "masquerade" => (Side::Source, From::Output),
            _ => (Side::Destination, From::Input),
        };
        let six = match (nat.family, &nat.addr) {
            (Some(family), _) => Some(family == "ip6"),
            (None, Some(addr)) => is_six(addr),
            (None, None) => None,
        };
        let six_packet = scope.family == Family::Ipv6;
        let bits = [if six.unwrap_or(six_packet) { 128 } else { 32 }, 16];
        let given = |expr: &Expr, bits: &[u32]| Given::new(expr, bits, scope);
        Ok(Self {
            side,
            from,
            six,
            address: nat.addr.as_ref().map(|addr| given(addr, &bits)).transpose()?,
            port: nat.port.as_ref().map(|port| given(port, &bits[1..])).transpose()?,
            random: nat.flags & RANDOM != 0,
            persistent: nat.flags & PERSISTENT != 0,
            netmap: nat.prefix || nat.flags & NETMAP != 0,
        })
    }

    /// Whether packets of a family pass by.
    pub(crate) fn passes_by(&self, family: Family) -> bool {
        self.six.is_some_and(|six| six != (family == Family::Ipv6))
    }

    /// What it comes to for a packet.
    pub(crate) fn resolve(&self, transit: &Transit<'_, '_>) -> Resolved {
        if self.passes_by(transit.family) {
            return Resolved::Ends;
        }
        let mut range =
            Range { random: self.random, persistent: self.persistent, ..Range::default() };
        let (address, of_map) = match &self.address {
            Some(Given::Map(lookup)) => match of_map(lookup, transit) {
                Ok(key) => (key.first().map(|span| Part::Known(*span)), key.get(1).copied()),
                Err(part) => (Some(part), None),
            },
            Some(given) => (Some(given.part(transit)), None),
            None => (None, None),
        };
        let port = of_map.map(Part::Known).or(self.port.as_ref().map(|port| port.part(transit)));
        match port {
            Some(Part::Known(span)) => {
                let [first, last] = [span.low, span.high].map(|port| port as u16);
                range.ports = Some(Ports { first, last, base: None });
            }
            Some(Part::Ends) => return Resolved::Ends,
            Some(Part::Vague | Part::Unknown) => return Resolved::Unknown,
            None => {}
        }
        match address {
            Some(Part::Known(span)) => {
                range.addresses = self.addresses(span, transit);
                if range.addresses.is_none() {
                    return Resolved::To(Translation::somewhere(self.side, range));
                }
            }
            Some(Part::Ends) => return Resolved::Ends,
            Some(Part::Unknown) => return Resolved::Unknown,
            Some(Part::Vague) => return Resolved::To(Translation::somewhere(self.side, range)),
            None => {}
        }
        match self.from {
            From::Rule => Resolved::To(Translation::to(self.side, range)),
            From::Output => {
                rules::nat::masquerade(transit, range).map_or(Resolved::Nothing, Resolved::To)
            }
            From::Input => Resolved::To(rules::nat::redirect(transit, range)),
        }
    }

    /// The translation of a packet of which it is not known what it is translated to.
    pub(crate) fn somewhere(&self) -> Translation {
        Translation::somewhere(self.side, Range::default())
    }

    /// First and last address; of a prefix that is translated one to one, what the packet's own becomes.
    fn addresses(&self, span: Span, transit: &Transit<'_, '_>) -> Option<[IpAddr; 2]> {
        let six = transit.family == Family::Ipv6;
        if !self.netmap {
            return Some([span.low, span.high].map(|address| address_of(address, six)));
        }
        let start = match (self.side, six) {
            (Side::Source, false) => ipv4::SOURCE.start,
            (Side::Destination, false) => ipv4::DESTINATION.start,
            (Side::Source, true) => ipv6::SOURCE.start,
            (Side::Destination, true) => ipv6::DESTINATION.start,
        };
        let own = match six {
            true => number(&transit.net::<16>(start).known()?),
            false => number(&transit.net::<4>(start).known()?),
        };
        let host = span.low ^ span.high;
        let to = span.low & !host | own & host;
        // The kernel compares an IPv4 address with 12 more bytes that it has not written (`nft_nat_setup_netmap`): whether an
        // address that stays as it is counts as translated is not known.
        (six || to != own).then(|| [address_of(to, six); 2])
    }

    /// What the bytecode loads for it.
    pub(crate) fn bytecode(&self, show: &mut dyn FnMut(String)) {
        for given in self.address.iter().chain(&self.port) {
            match given {
                Given::Span(_) => {}
                Given::Load(load) => load.bytecode(show),
                Given::Map(lookup) => lookup.key.iter().for_each(|part| part.bytecode(show)),
            }
        }
    }

    /// What it gives every flow, if that depends on no packet.
    pub(crate) fn mapping(&self, family: Family) -> Option<Mapping> {
        if self.netmap || self.passes_by(family) {
            return None;
        }
        let span = |given: &Option<Given>| match given {
            Some(Given::Span(span)) => Some(Some(*span)),
            None => Some(None),
            Some(_) => None,
        };
        let (address, port) = (span(&self.address)?, span(&self.port)?);
        let six = family == Family::Ipv6;
        let range = Range {
            addresses: address
                .map(|span| [span.low, span.high].map(|address| address_of(address, six))),
            ports: port.map(|span| Ports {
                first: span.low as u16,
                last: span.high as u16,
                base: None,
            }),
            random: self.random,
            persistent: self.persistent,
        };
        Some(Mapping { side: self.side, range, redirects: self.from == From::Input })
    }

    /// Which ports flows have that it translates.
    pub(crate) fn gives(&self, family: Family) -> Gives {
        let Some(Mapping { side, range, .. }) = self.mapping(family) else { return Gives::Left };
        match self.from {
            // One address, which the device has.
            From::Output => {
                let one = Range::address(std::net::Ipv4Addr::UNSPECIFIED.into()).addresses;
                Range { addresses: one, ..range }.gives(side)
            }
            From::Rule | From::Input => range.gives(side),
        }
    }
}

impl Given {
    fn new(expr: &Expr, bits: &[u32], scope: &Scope<'_>) -> Result<Self, &'static str> {
        let own = bits.first().copied().unwrap_or(32);
        if let Some(span) = constants::span(expr, own) {
            return Ok(Self::Span(span));
        }
        if let Expr::Map(pair) = expr {
            let (key, data) = &**pair;
            let parts = data_parts(data).unwrap_or(1).min(bits.len());
            let map = scope.map(data, &width::of_parts(key), &bits[..parts])?;
            return Ok(Self::Map(Lookup { key: read::parts(key, scope), map }));
        }
        let load = read::one(expr, scope);
        match load.lacks() {
            Some(_) => Err("a translation to what is not evaluated"),
            None => Ok(Self::Load(load)),
        }
    }

    fn part(&self, transit: &Transit<'_, '_>) -> Part {
        match self {
            Self::Span(span) => Part::Known(*span),
            Self::Load(load) => of_loaded(&load.load(transit)),
            Self::Map(lookup) => match of_map(lookup, transit) {
                Ok(key) => key.first().map_or(Part::Unknown, |span| Part::Known(*span)),
                Err(part) => part,
            },
        }
    }
}

/// How many numbers the elements of an anonymous map give.
fn data_parts(data: &Expr) -> Option<usize> {
    let Expr::Set(elements) = data else { return None };
    match elements.first()?.data.as_ref()? {
        Expr::Concat(parts) => Some(parts.len()),
        _ => Some(1),
    }
}

fn of_loaded(loaded: &Loaded) -> Part {
    if loaded.words.is_empty() {
        return Part::Ends;
    }
    match loaded.only() {
        Some(value) => Part::Known(Span::one(value)),
        None if loaded.breaks => Part::Unknown,
        None => Part::Vague,
    }
}

fn of_map(lookup: &Lookup<Key>, transit: &Transit<'_, '_>) -> Result<Key, Part> {
    let (possible, breaks) = lookup.find(transit);
    let Some(given) = lookup.given(&possible) else { return Err(Part::Unknown) };
    match (&given[..], breaks || possible.misses) {
        ([], _) => Err(Part::Ends),
        ([one], false) => Ok(Key::clone(one)),
        ([first, ..], false) if first.len() == 1 => Err(Part::Vague),
        _ => Err(Part::Unknown),
    }
}

fn address_of(number: u128, six: bool) -> IpAddr {
    match six {
        true => IpAddr::from(number.to_be_bytes()),
        false => IpAddr::from((number as u32).to_be_bytes()),
    }
}

/// Whether an address is one of IPv6; `None` where its form does not say.
fn is_six(addr: &Expr) -> Option<bool> {
    match addr {
        Expr::Value(value) => Some(value.ty == &IPV6),
        Expr::Prefix(of, _) => is_six(of),
        Expr::Range(ends) => is_six(&ends.0),
        Expr::Map(pair) => match &pair.1 {
            Expr::Set(elements) => match elements.first()?.data.as_ref()? {
                Expr::Concat(parts) => is_six(parts.first()?),
                other => is_six(other),
            },
            _ => None,
        },
        _ => None,
    }
}
