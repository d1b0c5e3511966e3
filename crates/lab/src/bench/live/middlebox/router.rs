//! [`Router`]: a middlebox as people write them: it drops what its list denies by the five-tuple, gives everything else
//! another source, and lowers times to live.
//!
//! Contract: TCP and UDP over IPv4 with whole headers; everything else passes as it is. Checksums are kept by RFC 1624
//! updates, and a datagram without one stays without. The same in another language is measured beside it.

use live::{Middlebox, Offsets, Shown, Verdict, Waiting};
use packet::{checksum, ethertype};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// From the beginning of an IPv4 header.
const TTL: usize = 8;
const HEADER_SUM: usize = 10;
const SOURCE: usize = 12;
/// From the beginning of a transport header.
const TCP_SUM: usize = 16;
const UDP_SUM: usize = 6;

/// Bits of a five-tuple: addresses, ports, protocol, in network order, the protocol last.
#[derive(Clone, Copy, Debug)]
pub struct Denied {
    /// Those that matter.
    pub mask: u128,
    /// What they have to be.
    pub value: u128,
}

/// What it does to packets.
#[derive(Clone, Debug)]
pub struct Router {
    /// What is dropped.
    pub denied: Vec<Denied>,
    /// What packets come from afterwards: address and port.
    pub source: ([u8; 4], u16),
}

impl Middlebox for Router {
    fn burst(&mut self, frames: &mut Waiting) {
        for Shown { bytes, offsets, verdict, .. } in frames.frames() {
            *verdict = self.judge(bytes, offsets);
        }
    }
}

impl Router {
    /// Looks at one frame, and rewrites it if it passes.
    #[inline]
    pub fn judge(&self, bytes: &mut [u8], offsets: &Offsets) -> Verdict {
        let Offsets { network, transport, ethertype: ethertype::IPV4, protocol, .. } = *offsets
        else {
            return Verdict::Pass;
        };
        let (network, transport) = (usize::from(network), usize::from(transport));
        let sum = match protocol {
            TCP => TCP_SUM,
            UDP => UDP_SUM,
            _ => return Verdict::Pass,
        };
        let Some((ip, upper)) = bytes.split_at_mut_checked(transport) else { return Verdict::Pass };
        let (Some(ip), true) = (ip.get_mut(network..), upper.len() >= sum + 2) else {
            return Verdict::Pass;
        };
        let Some(ip) = ip.first_chunk_mut::<20>() else { return Verdict::Pass };
        let tuple = tuple(ip, [upper[0], upper[1], upper[2], upper[3]], protocol);
        if self.denied.iter().any(|denied| tuple & denied.mask == denied.value) || ip[TTL] <= 1 {
            return Verdict::Drop;
        }
        self.translate(ip, upper, sum, protocol);
        let word = u16::from_be_bytes([ip[TTL], ip[TTL + 1]]);
        ip[TTL] -= 1;
        update(ip, HEADER_SUM, word, word - 0x100);
        Verdict::Pass
    }

    /// Gives a packet another source.
    #[inline]
    fn translate(&self, ip: &mut [u8; 20], upper: &mut [u8], sum: usize, protocol: u8) {
        let ([a, b, c, d], port) = self.source;
        let has_sum = protocol == TCP || upper[sum..sum + 2] != [0, 0];
        for (at, new) in [(SOURCE, [a, b]), (SOURCE + 2, [c, d])] {
            let old = u16::from_be_bytes([ip[at], ip[at + 1]]);
            let word = u16::from_be_bytes(new);
            ip[at..at + 2].copy_from_slice(&new);
            update(ip, HEADER_SUM, old, word);
            if has_sum {
                update(upper, sum, old, word);
            }
        }
        let old = u16::from_be_bytes([upper[0], upper[1]]);
        upper[..2].copy_from_slice(&port.to_be_bytes());
        if has_sum {
            update(upper, sum, old, port);
            // A sum of 0 says that there is none.
            if protocol == UDP && upper[sum..sum + 2] == [0, 0] {
                upper[sum..sum + 2].fill(0xff);
            }
        }
    }
}

/// A five-tuple, as [`Denied`] has it.
#[inline]
fn tuple(ip: &[u8; 20], ports: [u8; 4], protocol: u8) -> u128 {
    let mut key = [0; 16];
    key[3..11].copy_from_slice(&ip[SOURCE..]);
    key[11..15].copy_from_slice(&ports);
    key[15] = protocol;
    u128::from_be_bytes(key)
}

/// Has a checksum follow a word that changes.
#[inline]
fn update(bytes: &mut [u8], at: usize, old: u16, new: u16) {
    let sum = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    bytes[at..at + 2].copy_from_slice(&checksum::update(sum, old, new).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::craft::{Addresses, Craft, Fragment, Message};
    use packet::tcp::Flags;
    use proptest::prelude::*;

    const SOURCE: ([u8; 4], u16) = ([192, 0, 2, 1], 61000);

    fn offsets(ethertype: u16, protocol: u8, transport: u16) -> Offsets {
        Offsets { network: 14, transport, ethertype, protocol, flags: 0 }
    }

    fn craft(from: [u8; 4], to: [u8; 4], message: Message) -> Craft {
        let addresses = Addresses::V4 { source: from, destination: to };
        Craft { payload_len: 20, ..Craft::new(addresses, message) }
    }

    /// Ports of TCP, or of UDP.
    fn message(is_tcp: bool, source: u16, destination: u16) -> Message {
        match is_tcp {
            true => Message::tcp(source, destination, Flags::ACK),
            false => Message::udp(source, destination),
        }
    }

    proptest! {
        /// What leaves is what somebody would have made who has that source, and one hop less to go.
        #[test]
        fn a_packet_is_one_of_its_new_source(
            from in any::<[u8; 4]>(), to in any::<[u8; 4]>(),
            ports in any::<[u16; 2]>(), is_tcp in any::<bool>(), ttl in 0..255_u8,
        ) {
            let router = Router { denied: Vec::new(), source: SOURCE };
            let packet = Craft { ttl, ..craft(from, to, message(is_tcp, ports[0], ports[1])) };
            let mut frame = packet.frame();
            let protocol = if is_tcp { TCP } else { UDP };
            let verdict = router.judge(&mut frame, &offsets(0x800, protocol, 34));
            if ttl <= 1 {
                prop_assert_eq!((verdict, frame), (Verdict::Drop, packet.frame()));
                return Ok(());
            }
            let after = craft(SOURCE.0, to, message(is_tcp, SOURCE.1, ports[1]));
            let after = Craft { ttl: ttl - 1, ..after }.frame();
            prop_assert_eq!((verdict, frame), (Verdict::Pass, after));
        }
    }

    #[test]
    fn a_datagram_without_a_checksum_stays_without() {
        let mut frame = craft([10, 0, 0, 1], [10, 0, 0, 2], Message::udp(1, 2)).frame();
        frame[40..42].fill(0);
        let router = Router { denied: Vec::new(), source: SOURCE };
        router.judge(&mut frame, &offsets(0x800, UDP, 34));
        assert_eq!((&frame[26..30], &frame[40..42]), (&SOURCE.0[..], &[0, 0][..]));
    }

    #[test]
    fn what_is_denied_is_dropped_and_what_it_cannot_read_passes() {
        // From 10.1.0.0/16 to port 53 of UDP.
        let mask = 0xffff_0000_u128 << 72 | 0xffff_u128 << 8 | 0xff;
        let value = 0x0a01_0000_u128 << 72 | 53 << 8 | u128::from(UDP);
        let router = Router { denied: vec![Denied { mask, value }], source: SOURCE };
        let judge = |packet: Craft, offsets: Offsets| {
            let before = packet.frame();
            let mut frame = before.clone();
            (router.judge(&mut frame, &offsets), frame == before)
        };
        let to = [10, 0, 0, 2];
        let udp = |from, port| craft(from, to, Message::udp(5, port));
        let at = |protocol, transport| offsets(0x800, protocol, transport);
        assert_eq!(judge(udp([10, 1, 7, 7], 53), at(UDP, 34)), (Verdict::Drop, true));
        assert_eq!(judge(udp([10, 1, 7, 7], 54), at(UDP, 34)), (Verdict::Pass, false));
        assert_eq!(judge(udp([10, 2, 7, 7], 53), at(UDP, 34)), (Verdict::Pass, false));
        let fragment = Some(Fragment { offset: 64, more: false });
        let later = Craft { fragment, ..udp([10, 1, 7, 7], 53) };
        assert_eq!(judge(later, at(UDP, u16::MAX)), (Verdict::Pass, true));
        assert_eq!(judge(udp([10, 1, 7, 7], 53), offsets(0x86dd, UDP, 54)), (Verdict::Pass, true));
        assert_eq!(judge(udp([10, 1, 7, 7], 53), at(UDP, 61)), (Verdict::Pass, true));
    }
}
