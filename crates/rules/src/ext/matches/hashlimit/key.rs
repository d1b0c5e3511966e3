//! Which entry of a table a packet finds.
//!
//! Ports are read where the header would be, be it a fragment that has none; protocols without ports have 0 and 0.
//! Source: Linux 6.18 `net/netfilter/xt_hashlimit.c` (`hashlimit_init_dst`), `proto_ports_offset`.

use packet::{Read, ipv4, ipv6_ext};

use crate::ext::TableConfig;
use crate::ext::kit::buckets::{Key, by};
use crate::family::Family;
use crate::transit::Transit;

/// The entry that a packet finds.
pub(super) enum Found {
    /// This one.
    Key(Key),
    /// None: the packet is dropped on the spot.
    Drop,
    /// Nothing says which.
    Unknown,
}

/// The entry of a packet in such a table.
pub(super) fn of(config: &TableConfig, transit: &Transit<'_, '_>) -> Found {
    match read(config, transit) {
        Read::Known(key) => Found::Key(key),
        Read::Absent => Found::Drop,
        Read::Unknown => Found::Unknown,
    }
}

fn read(config: &TableConfig, transit: &Transit<'_, '_>) -> Read<Key> {
    let mut key = Key::default();
    let sides = [
        (by::SOURCE, [12, 8], config.source_bits, &mut key.source),
        (by::DESTINATION, [16, 24], config.destination_bits, &mut key.destination),
    ];
    for (bit, [v4, v6], bits, to) in sides {
        if config.mode & bit == 0 {
            continue;
        }
        let read = match transit.family {
            Family::Ipv6 => transit.net::<16>(v6).map(|bytes| *to = bytes),
            _ => transit.net::<4>(v4).map(|bytes| to[..4].copy_from_slice(&bytes)),
        };
        if read != Read::Known(()) {
            return Read::Unknown;
        }
        mask(to, bits);
    }
    if config.mode & (by::SOURCE_PORT | by::DESTINATION_PORT) == 0 {
        return Read::Known(key);
    }
    ports(transit).map(|[source, destination]| {
        let counts = |bit, port| if config.mode & bit == 0 { 0 } else { port };
        key.ports = [counts(by::SOURCE_PORT, source), counts(by::DESTINATION_PORT, destination)];
        key
    })
}

/// Keeps the first bits.
fn mask(address: &mut [u8; 16], bits: u8) {
    for (byte, at) in address.iter_mut().zip(0u8..) {
        let kept = bits.saturating_sub(at * 8).min(8);
        *byte &= (0xff00u16 >> kept) as u8;
    }
}

/// What stands where the ports would; absent where the packet ends before that.
fn ports(transit: &Transit<'_, '_>) -> Read<[u16; 2]> {
    let network = transit.packet.network_offset();
    let upper = match transit.family {
        Family::Ipv6 => ipv6_ext::skip(&*transit.packet, network).map(|at| (at.kind, at.offset)),
        _ => match (transit.net::<1>(0), transit.net::<1>(ipv4::PROTOCOL.start)) {
            (Read::Known([first]), Read::Known([protocol])) => {
                Read::Known((protocol, network + usize::from(first & 0xf) * 4))
            }
            _ => Read::Unknown,
        },
    };
    let (protocol, offset) = match upper {
        Read::Known(upper) => upper,
        Read::Unknown => return Read::Unknown,
        Read::Absent => return Read::Absent,
    };
    let skipped = match protocol {
        // TCP, UDP, DCCP, ESP (half of its index each), SCTP, UDP-Lite.
        6 | 17 | 33 | 50 | 132 | 136 => 0,
        // AH, likewise.
        51 => 4,
        _ => return Read::Known([0, 0]),
    };
    let words = transit.packet.read::<4>(offset.saturating_add(skipped));
    words.map(|[a, b, c, d]| [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}
