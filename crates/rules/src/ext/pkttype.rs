//! `-m pkttype`: whom the link layer addressed.
//!
//! A packet that this host sends is `unicast` to every hook that it passes, as is one that came without
//! an Ethernet header; so `outgoing` of a cooked capture, which no hook sees, is read as `unicast`.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_pkttype.c`; `PACKET_*` of
//! `linux/if_packet.h`.

use super::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::model::Hook;
use crate::outcome::Outcome;
use crate::save::What;
use crate::transit::Transit;

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "pkttype",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("pkt-type").invertible()],
    support: Support::Evaluated,
    parse,
};

const HOST: u8 = 0;
const OUTGOING: u8 = 4;

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

/// `skb->pkt_type` at this hook.
fn packet_type(transit: &Transit<'_, '_>) -> u8 {
    if matches!(transit.hook, Hook::Output | Hook::Postrouting) {
        return HOST;
    }
    match transit.packet.headers().link.packet_type {
        None | Some(OUTGOING) => HOST,
        Some(kind) => kind,
    }
}

impl Match for PacketType {
    fn print(&self, to: &mut Printer) {
        let named = NAMES.iter().find(|(_, kind)| *kind == self.kind);
        to.option(self.invert, "pkt-type", named.map_or("unicast", |(name, _)| name));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        Outcome::from_bool((packet_type(transit) == self.kind) != self.invert)
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::{Frame, ipv4, print};
    use super::*;
    use crate::model::Family;
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
        assert_eq!(frame.judge("-m pkttype --pkt-type broadcast"), Outcome::YES);
        let sent = Frame { hook: Hook::Output, ..frame };
        assert_eq!(sent.judge("-m pkttype --pkt-type unicast"), Outcome::YES);
        let bare = ipv4(17, &[0; 8]);
        assert_eq!(Frame::ip(&bare).judge("-m pkttype ! --pkt-type unicast"), Outcome::NO);
    }
}
