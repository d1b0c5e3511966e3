//! `-m pkttype`: whom the link layer addressed.
//!
//! A packet that this host sends is `unicast` to every hook that it passes, as is a packet received without an Ethernet
//! header; so `outgoing` of a cooked capture, which no hook sees, is read as `unicast`. Source: iptables-extensions(8);
//! kernel `net/netfilter/xt_pkttype.c`; `PACKET_*` of `linux/if_packet.h`.

use crate::ext::{Args, BRIDGE, IP, Match, MatchKind, Opt, Printer, Support};
use crate::value;
use packet::{Read, ethernet};

use crate::error::What;
use crate::family::Hook;
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "pkttype",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("pkt-type").invertible()],
    support: Support::Evaluated,
    parse,
};

const HOST: u8 = 0;

/// Types by name; the first name of each is printed.
const NAMES: [(&str, u8); 7] = [
    ("unicast", HOST),
    ("broadcast", 1),
    ("multicast", 2),
    ("otherhost", 3),
    ("bcast", 1),
    ("mcast", 2),
    ("host", HOST),
];

/// The match on a bridge, where a frame that is to be forwarded is addressed to another host.
pub(crate) static FRAME_KIND: MatchKind = MatchKind {
    families: BRIDGE,
    options: &[Opt::value("pkttype-type").invertible()],
    parse: parse_frame,
    ..KIND
};

/// Types of frames by number.
const FRAME_NAMES: [&str; 7] =
    ["host", "broadcast", "multicast", "otherhost", "outgoing", "loopback", "fastroute"];
const BROADCAST: u8 = 1;
const MULTICAST: u8 = 2;
const OTHERHOST: u8 = 3;

#[derive(Debug)]
struct FrameType {
    kind: u8,
    invert: bool,
}

fn parse_frame(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("pkttype-type")?;
    let named = FRAME_NAMES.iter().position(|name| name.eq_ignore_ascii_case(given.text()));
    let kind = named.map(|kind| kind as u8).or_else(|| value::u8(given.text()).filter(|k| *k < 7));
    let kind = kind.ok_or_else(|| given.expected(FRAME_NAMES.join(", ")))?;
    Ok(Box::new(FrameType { kind, invert: given.invert }))
}

impl Match for FrameType {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "pkttype-type", FRAME_NAMES[usize::from(self.kind)]);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let kind = match transit.packet.read::<6>(ethernet::DESTINATION.start) {
            _ if transit.hook == Hook::Output => HOST,
            Read::Known([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => BROADCAST,
            Read::Known([first, ..]) if first & 1 == 1 => MULTICAST,
            Read::Known(_) => match transit.to_host {
                Some(true) => HOST,
                Some(false) => OTHERHOST,
                None => return Outcome::MAYBE,
            },
            _ => return Outcome::MAYBE,
        };
        Outcome::from_bool((kind == self.kind) != self.invert)
    }
}

#[derive(Debug)]
struct PacketType {
    kind: u8,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("pkt-type")?;
    let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(given.text()));
    let (_, kind) =
        named.ok_or_else(|| given.expected("unicast, broadcast, multicast or otherhost"))?;
    Ok(Box::new(PacketType { kind: *kind, invert: given.invert }))
}

impl Match for PacketType {
    fn print(&self, to: &mut Printer) {
        let named = NAMES.iter().find(|(_, kind)| *kind == self.kind);
        to.option(self.invert, "pkt-type", named.map_or("unicast", |(name, _)| name));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let kind = transit.packet_type();
        kind.map_or(Outcome::MAYBE, |kind| Outcome::from_bool((kind == self.kind) != self.invert))
    }

    fn predicate(&self) -> Option<Predicate> {
        Some(Predicate::is(Field::PacketType, self.kind.into()).inverted(self.invert))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, print};
    use crate::family::Family;
    use packet::Link;

    #[test]
    fn other_names_print_as_the_first() {
        for (given, printed) in
            [("Host", "unicast"), ("bcast", "broadcast"), ("MCAST", "multicast")]
        {
            let text = print(Family::Ipv4, &format!("-m pkttype --pkt-type {given}")).unwrap();
            assert_eq!(text, format!("-m pkttype --pkt-type {printed}"));
        }
        assert!(print(Family::Ipv4, "-m pkttype --pkt-type uni").is_err());
    }

    #[test]
    fn the_destination_of_a_received_frame_decides() {
        let broadcast = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 8, 0], &ipv4(17, &[0; 8])].concat();
        let frame = Frame {
            link: Link::Ethernet,
            hook: Hook::Input,
            family: Family::Ipv4,
            ..Frame::ip(&broadcast)
        };
        assert_eq!(frame.evaluate("-m pkttype --pkt-type broadcast"), Outcome::YES);
        let sent = Frame { hook: Hook::Output, ..frame };
        assert_eq!(sent.evaluate("-m pkttype --pkt-type unicast"), Outcome::YES);
        let bare = ipv4(17, &[0; 8]);
        assert_eq!(Frame::ip(&bare).evaluate("-m pkttype ! --pkt-type unicast"), Outcome::NO);
    }
}
