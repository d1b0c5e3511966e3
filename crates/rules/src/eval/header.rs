//! Judges a rule's own tests (`-s -d -i -o -p -f`).
//!
//! Source: kernel `ip_packet_match` in `net/ipv4/netfilter/ip_tables.c`, `ip6_packet_match` in
//! `net/ipv6/netfilter/ip6_tables.c`.

use packet::{L4, Read};

use super::Cause;
use crate::model::{Family, Header, IfaceTest, MaskedAddr, ProtocolTest};
use crate::outcome::Outcome;
use crate::transit::{Iface, Transit};

/// What the tests say, and the first one that could not tell.
#[inline]
pub(super) fn judge(header: &Header, transit: &Transit<'_, '_>) -> (Outcome, Option<Cause>) {
    let mut all = Outcome::YES;
    let mut cause = None;
    let mut and = |outcome: Outcome, what: Cause| {
        all = all.and_then(|| outcome);
        if !outcome.is_known() && cause.is_none() {
            cause = Some(what);
        }
        all.may_match()
    };
    let (source, destination) = match transit.family {
        Family::Ipv6 => (8, 24),
        _ => (12, 16),
    };
    let go_on = header
        .source
        .as_ref()
        .is_none_or(|test| and(address(test, source, transit), Cause::Bytes))
        && header
            .destination
            .as_ref()
            .is_none_or(|test| and(address(test, destination, transit), Cause::Bytes))
        && header.input.as_ref().is_none_or(|test| and(iface(test, transit.input), Cause::Input))
        && header
            .output
            .as_ref()
            .is_none_or(|test| and(iface(test, transit.output), Cause::Output))
        && header.protocol.is_none_or(|test| and(protocol(test, transit), Cause::Bytes));
    if let (true, Some(invert)) = (go_on, header.fragment) {
        and(fragment(transit).invert(invert), Cause::Bytes);
    }
    (all, if all.is_known() { None } else { cause })
}

#[inline]
fn address(test: &MaskedAddr, offset: usize, transit: &Transit<'_, '_>) -> Outcome {
    let same = match transit.family {
        Family::Ipv6 => transit.net::<16>(offset).map(|addr| {
            let mask = u128::from_ne_bytes(test.mask);
            u128::from_ne_bytes(addr) & mask == u128::from_ne_bytes(test.addr)
        }),
        _ => transit.net::<4>(offset).map(|addr| {
            let first =
                |bytes: &[u8; 16]| u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            u32::from_ne_bytes(addr) & first(&test.mask) == first(&test.addr)
        }),
    };
    match same {
        Read::Known(same) => Outcome::from_bool(same != test.invert),
        Read::Unknown | Read::Absent => Outcome::MAYBE,
    }
}

fn iface(test: &IfaceTest, iface: Iface<'_>) -> Outcome {
    match iface {
        Iface::Named(name) => Outcome::from_bool(test.accepts(name)),
        Iface::Absent => Outcome::from_bool(test.accepts("")),
        Iface::Unknown => Outcome::MAYBE,
    }
}

/// IPv6 walks the extension headers to find the protocol; a chain that is cut off there is a hot drop.
fn protocol(test: ProtocolTest, transit: &Transit<'_, '_>) -> Outcome {
    let is = |number: u8| Outcome::from_bool((number == test.number) != test.invert);
    match transit.packet.headers().l4 {
        L4::Upper(upper) => is(upper.protocol),
        L4::Fragment { protocol, .. } => is(protocol),
        L4::Broken { fragment: false } => Outcome::HOT_DROP,
        L4::Broken { fragment: true } | L4::None => Outcome::NO,
        L4::Unknown => match transit.family {
            Family::Ipv6 => Outcome::MAYBE.or(Outcome::HOT_DROP),
            _ => Outcome::MAYBE,
        },
    }
}

/// `-f`: a fragment that does not start the packet.
fn fragment(transit: &Transit<'_, '_>) -> Outcome {
    match transit.packet.headers().l4 {
        L4::Fragment { .. } => Outcome::YES,
        L4::Unknown => Outcome::MAYBE,
        L4::Upper(_) | L4::Broken { .. } | L4::None => Outcome::NO,
    }
}
