//! The worker of a usual frame, by its bytes alone: TCP or UDP, whole, of IPv4 without options right after an Ethernet
//! header.
//!
//! Contract: [`Key::usual_shard`] says what [`Key::shard`] says of the parsed packet, or nothing. A property test holds it
//! to that.

use packet::{ethernet, ethertype, ipv4, tcp, udp};

use super::key::{ABOVE_PORTS, Key};

const NETWORK: usize = ethernet::HEADER_LEN;
const UPPER: usize = NETWORK + ipv4::MIN_HEADER_LEN;
/// Up to the shortest TCP header, which is longer than that of UDP.
const LEN: usize = UPPER + tcp::MIN_HEADER_LEN;
/// Version 4 and five words.
const NO_OPTIONS: u8 = 0x45;

impl Key {
    /// Which of `shards` has the flow of a usual frame; nothing where it is another one.
    #[inline]
    #[must_use]
    pub fn usual_shard(&self, frame: &[u8], shards: usize) -> Option<usize> {
        let start = frame.first_chunk::<LEN>()?;
        let half = |at: usize| u16::from_be_bytes([start[at], start[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let protocol = start[NETWORK + ipv4::PROTOCOL.start];
        let len = NETWORK + usize::from(half(NETWORK + ipv4::TOTAL_LEN.start));
        let fragment = half(NETWORK + ipv4::FRAGMENT.start) & !ipv4::DONT_FRAGMENT;
        let is_usual = half(ethernet::TYPE.start) == ethertype::IPV4
            && start[NETWORK] == NO_OPTIONS
            && fragment == 0
            && matches!(protocol, tcp::PROTOCOL | udp::PROTOCOL)
            && (LEN..=frame.len()).contains(&len);
        if !is_usual {
            return None;
        }
        let word = match self {
            Self::Addresses => {
                let [source, destination] = [ipv4::SOURCE, ipv4::DESTINATION];
                word(NETWORK + source.start).wrapping_add(word(NETWORK + destination.start))
            }
            Self::Ports(alike) => {
                let [one, other] = [half(UPPER), half(UPPER + 2)].map(|port| alike.of(port).into());
                Self::word_of_ports(protocol, [one, other])
            }
        };
        Some(Self::shard_of_word(word, shards))
    }

    /// The number of a protocol and two ports.
    pub(super) fn word_of_ports(protocol: u8, [one, other]: [u32; 2]) -> u32 {
        (u32::from(protocol) << ABOVE_PORTS) + one + other
    }
}

#[cfg(test)]
mod tests {
    use packet::{Checksums, Link, Packet};
    use proptest::prelude::*;

    use super::*;

    /// A usual frame, of which some bytes are others.
    fn frames() -> impl Strategy<Value = Vec<u8>> {
        let header = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 50, 1, 2, 0x40, 0, 64];
        let rest = prop::collection::vec(any::<u8>(), LEN - header.len() + 6..LEN + 20);
        let changed = prop::collection::vec((0..LEN + 6, any::<u8>()), 0..3);
        (rest, any::<bool>(), changed).prop_map(move |(rest, is_tcp, changed)| {
            let mut frame: Vec<u8> = header.into_iter().chain(rest).collect();
            frame[NETWORK + ipv4::PROTOCOL.start] = if is_tcp { 6 } else { 17 };
            for (at, byte) in changed {
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
            }
            frame
        })
    }

    proptest! {
        #[test]
        fn it_is_what_parsing_says(
            mut frame in frames(), shards in 1_usize..9, alike in prop::collection::vec(any::<u16>(), 0..9),
        ) {
            for key in [Key::Addresses, Key::Ports(alike.into_iter().collect())] {
                let usual = key.usual_shard(&frame, shards);
                let len = frame.len();
                let packet = Packet::parse(&mut frame, len, Link::Ethernet, Checksums::Ignore);
                prop_assert!(usual.is_none_or(|shard| shard == key.shard(&packet, shards)));
            }
        }
    }

    #[test]
    fn a_usual_frame_is_one() {
        let mut frame = vec![0; LEN + 10];
        frame[12..23].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 1, 2, 0x40, 0, 64]);
        frame[23] = udp::PROTOCOL;
        assert!(Key::Addresses.usual_shard(&frame, 2).is_some());
        // More fragments follow.
        frame[20] = 0x20;
        assert!(Key::Addresses.usual_shard(&frame, 2).is_none());
    }
}
