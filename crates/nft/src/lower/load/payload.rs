//! `payload`: bits of the packet, counted from one of its headers.
//!
//! What is read is what the kernel loads: whole bytes around the bits. A header that ends before the last of them is no
//! match. Of a fragment that does not start its packet, aligned loads of 1, 2 or 4 bytes read on all the same: IPv4 where
//! the header would be, IPv6 at its own header; other loads of the transport header are no match.
//! Source: kernel `net/netfilter/nft_payload.c` and `nft_payload_fast_eval` in `nf_tables_core.c`; measured on 6.18.

use super::{Load, bytes};
use crate::headers::Base;
use crate::lower::word::{Loaded, Word, number, ones};
use packet::{L4, Read, ipv4};
use rules::model::{Family, Hook};
use rules::{Iface, Transit};

/// Bits at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payload {
    /// Where counting begins.
    pub base: Base,
    /// First bit.
    pub offset: u32,
    /// Width in bits, at most 128.
    pub bits: u32,
}

/// The names of the headers in `nft --debug=netlink`.
const NAMES: [&str; 5] = ["link", "network", "transport", "inner", "tunnel"];

impl Payload {
    /// First byte of what the kernel loads, and how many.
    pub(crate) fn span(&self) -> (usize, usize) {
        let first = self.offset / 8;
        let last = bytes(self.offset + self.bits);
        (first as usize, (last - first) as usize)
    }

    /// Whether a fragment that does not start its packet is read all the same.
    fn is_fast(&self) -> bool {
        let (first, len) = self.span();
        matches!(len, 1 | 2 | 4) && first.is_multiple_of(len)
    }

    /// Where its header begins in the frame.
    fn start(&self, transit: &Transit<'_, '_>) -> Read<usize> {
        match self.base {
            Base::Network => Read::Known(transit.packet.network_offset()),
            Base::Transport => self.transport(transit),
            Base::Link => link(transit),
            Base::Inner => inner(transit),
            Base::Tunnel => Read::Unknown,
        }
    }

    fn transport(&self, transit: &Transit<'_, '_>) -> Read<usize> {
        match transit.upper_layer() {
            L4::Upper(upper) => Read::Known(upper.offset),
            L4::Fragment { .. } if !self.is_fast() => Read::Absent,
            L4::Fragment { .. } => match transit.family {
                Family::Ipv6 => Read::Known(transit.packet.network_offset()),
                _ => transit
                    .net::<1>(ipv4::VERSION_IHL.start)
                    .map(|[first]| transit.packet.network_offset() + usize::from(first & 0x0f) * 4),
            },
            L4::Unknown => Read::Unknown,
            L4::Broken { .. } | L4::None => Read::Absent,
        }
    }

    fn cut(&self, number: u128) -> u128 {
        let after = (8 - (self.offset + self.bits) % 8) % 8;
        number >> after & ones(self.bits)
    }
}

impl Load for Payload {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        let (first, len) = self.span();
        let start = match self.start(transit) {
            Read::Known(start) => start + first,
            Read::Unknown => return Loaded::anything(self.bits),
            Read::Absent => return Loaded::nothing(),
        };
        if len > 16 {
            return Loaded::anything(self.bits);
        }
        match transit.packet.read_slice(start, len) {
            Read::Known(bytes) => Loaded::known(self.cut(number(bytes))),
            Read::Absent => Loaded::nothing(),
            // Of bytes that are there, the known ones still tell. A packet whose length is not known may end.
            Read::Unknown => {
                let mut word = Word { value: 0, unknown: 0 };
                for at in start..start + len {
                    let byte = transit.packet.read::<1>(at);
                    let ([value], unknown) = byte.known().map_or(([0], 0xff), |byte| (byte, 0));
                    word.value = word.value << 8 | u128::from(value);
                    word.unknown = word.unknown << 8 | unknown;
                }
                let word = Word { value: self.cut(word.value), unknown: self.cut(word.unknown) };
                let loaded = Loaded::word(word);
                if transit.packet.is_open() { loaded.or_nothing() } else { loaded }
            }
        }
    }

    fn lacks(&self) -> Option<&str> {
        match self.base {
            _ if self.bits > 128 => Some("payload of more than 16 bytes"),
            Base::Tunnel => Some("payload of a tunnel"),
            _ => None,
        }
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        let (first, len) = self.span();
        let base = NAMES[self.base as usize];
        show(format!("payload load {len}b @ {base} header + {first}"));
    }
}

/// The Ethernet header: packets that this host makes have none, nor has a packet of another device.
fn link(transit: &Transit<'_, '_>) -> Read<usize> {
    let link = &transit.packet.headers().link;
    match (transit.hook, transit.input) {
        (Hook::Output, _) | (Hook::Postrouting, Iface::Absent) => return Read::Absent,
        (Hook::Postrouting, Iface::Unknown) => return Read::Unknown,
        _ => {}
    }
    // What the kernel shows of a tag that the device took off depends on the device.
    match link.ethernet {
        Some(_) if link.vlan.is_some() => Read::Unknown,
        Some(start) => Read::Known(start),
        None => Read::Unknown,
    }
}

/// What follows the transport header.
fn inner(transit: &Transit<'_, '_>) -> Read<usize> {
    let upper = match transit.upper_layer() {
        L4::Upper(upper) => upper,
        L4::Unknown => return Read::Unknown,
        L4::Fragment { .. } | L4::Broken { .. } | L4::None => return Read::Absent,
    };
    let header = match upper.protocol {
        6 => {
            return transit
                .packet
                .upper::<20>(&upper, 0)
                .map(|header| upper.offset + usize::from(header[12] >> 4) * 4);
        }
        17 => 8,
        // GRE, whose header has options, and protocols without an inner header.
        47 => return Read::Unknown,
        _ => return Read::Absent,
    };
    Read::Known(upper.offset + header)
}

#[cfg(test)]
mod tests {
    use crate::lower::probe::{Frame, craft, lowered};
    use packet::craft::Message;
    use rules::Outcome as O;
    use rules::model::Family;

    /// nft 1.0.6 reads no names of GRE: what the kernel is held to are the same bits by their place.
    #[test]
    fn fields_of_gre_are_bits_of_its_header() {
        // With a key and a sequence number, version 1, of IPv6.
        let header = vec![0x30, 0x01, 0x86, 0xdd, 0, 0, 0, 1, 0, 0, 0, 2];
        let gre = |source, destination| {
            let message = Message::Other { protocol: 47, header: header.clone() };
            Frame::of(&craft(source, destination, message))
        };
        let frames = [gre("10.0.0.1", "10.0.0.2"), gre("2001:db8::1", "2001:db8::2")];
        for (rule, placed, says) in [
            ("gre protocol ip6", "@th,16,16 0x86dd", O::YES),
            ("gre protocol ip", "@th,16,16 0x800", O::NO),
            ("gre protocol { ip, ip6 }", "@th,16,16 { 0x800, 0x86dd }", O::YES),
            ("gre version 1", "@th,13,3 1", O::YES),
            ("gre version 0", "@th,13,3 0", O::NO),
            ("gre flags == 6", "@th,0,5 6", O::YES),
            ("gre flags == 4", "@th,0,5 4", O::NO),
        ] {
            for frame in &frames {
                assert_eq!(frame.says(rule), says, "{rule}");
                assert_eq!(frame.says_in("inet", "", rule), says, "{rule}");
                assert_eq!(frame.says(&format!("meta l4proto gre {placed}")), says, "{placed}");
                let header = if frame.family() == Family::Ipv6 { 54 } else { 34 };
                assert_eq!(frame.clone().cut(header).says(rule), O::MAYBE, "{rule}, cut");
            }
            assert_eq!(Frame::syn(22).says(rule), O::NO, "{rule} of TCP");
        }
    }

    #[test]
    fn fields_of_gre_are_read_from_json_too() {
        let text =
            "table ip t {\n\tchain c {\n\t\tgre version 1\n\t\tgre protocol ip6 accept\n\t}\n}\n";
        let ruleset = crate::text::parse("t", text, &|_| Err(String::new())).unwrap();
        let json = crate::json::write::ruleset(&ruleset, &mut Default::default());
        assert!(
            json.contains(r#"{"payload": {"protocol": "gre", "field": "protocol"}}"#),
            "{json}"
        );
        let read = crate::json::read::ruleset(&json).unwrap();
        let [read, given] = [&read, &ruleset]
            .map(|ruleset| crate::text::print::ruleset(ruleset, Default::default()));
        assert_eq!(read, given);
        assert!(lowered(text, Family::Ipv4).unknown.is_empty());
    }
}
