//! [`Draft`]: a packet as fields, before it is bytes.

use rules::model::Family;

use crate::scene::{NEAR_MAC, Scene, Wire};

/// A packet under construction. [`Draft::bytes`] makes it consistent: lengths, checksum, next headers.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Where it is going.
    pub scene: Scene,
    /// Ethernet destination, source; used on veth.
    pub macs: [[u8; 6]; 2],
    /// VLAN tag control information, if tagged.
    pub vlan: Option<u16>,
    /// Source address; IPv4 in the first 4 bytes.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// TOS or traffic class.
    pub tos: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv4: flags and fragment offset as the header holds them. IPv6: a fragment header's second word,
    /// added when not 0.
    pub fragment: u16,
    /// IPv4 options, padded with zeros to a multiple of 4; at most 40 bytes.
    pub options: Vec<u8>,
    /// IPv6 extension headers: type, and all bytes after the next-header byte.
    pub extensions: Vec<(u8, Vec<u8>)>,
    /// Upper-layer protocol.
    pub protocol: u8,
    /// Source and destination port.
    pub ports: (u16, u16),
    /// TCP flags; the upper two bits are ECN's.
    pub flags: u8,
    /// TCP reserved bits, as the low half of byte 12.
    pub reserved: u8,
    /// TCP options.
    pub tcp_options: Vec<u8>,
    /// ICMP type and code.
    pub icmp: (u8, u8),
    /// First bytes of the upper layer, where a match asks for them: in place of what the protocol gives.
    pub upper: Vec<(usize, Vec<u8>)>,
    /// What follows the upper-layer header.
    pub payload: Vec<u8>,
    /// Bytes overwritten at the end, by offset from the network header.
    pub patches: Vec<(usize, Vec<u8>)>,
    /// Total length from the network header on that the payload is cut or filled to.
    pub total_len: Option<usize>,
}

impl Draft {
    /// A UDP packet between two addresses.
    #[must_use]
    pub fn new(scene: Scene, source: [u8; 16], destination: [u8; 16]) -> Self {
        Self {
            scene,
            macs: [NEAR_MAC, [2, 0, 0, 0, 0, 1]],
            vlan: None,
            source,
            destination,
            tos: 0,
            ttl: 64,
            fragment: 0,
            options: Vec::new(),
            extensions: Vec::new(),
            protocol: 17,
            ports: (1024, 53),
            flags: 0x02,
            reserved: 0,
            tcp_options: Vec::new(),
            icmp: (8, 0),
            upper: Vec::new(),
            payload: Vec::new(),
            patches: Vec::new(),
            total_len: None,
        }
    }

    /// Whether it is IPv6.
    #[must_use]
    pub fn ipv6(&self) -> bool {
        self.scene.family == Family::Ipv6
    }

    /// The frame as it is sent.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut frame = self.link();
        let network = frame.len();
        let mut upper = self.upper_layer();
        let headers = if self.ipv6() { self.network_v6() } else { self.network_v4() };
        if let Some(total) = self.total_len {
            upper.resize(total.saturating_sub(headers.len()), 0x5a);
        }
        frame.extend(headers);
        frame.extend(upper);
        for (at, bytes) in &self.patches {
            if let Some(room) = frame.get_mut(network + at..network + at + bytes.len()) {
                room.copy_from_slice(bytes);
            }
        }
        set_lengths(&mut frame[network..], self.ipv6());
        set_checksum(&mut frame[network..]);
        frame
    }

    fn link(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(128);
        if self.scene.wire == Wire::Tun {
            return frame;
        }
        frame.extend(self.macs.as_flattened());
        if let Some(tci) = self.vlan {
            frame.extend([0x81, 0]);
            frame.extend(tci.to_be_bytes());
        }
        frame.extend(if self.ipv6() { [0x86, 0xdd] } else { [8, 0] });
        frame
    }

    fn network_v4(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4).min(40), 0);
        let mut header = vec![0x45 + (options.len() / 4) as u8, self.tos, 0, 0, 0, 0];
        header.extend(self.fragment.to_be_bytes());
        header.extend([self.ttl, self.protocol, 0, 0]);
        header.extend(&self.source[..4]);
        header.extend(&self.destination[..4]);
        header.extend(options);
        header
    }

    fn network_v6(&self) -> Vec<u8> {
        let mut extensions = self.extensions.clone();
        if self.fragment != 0 {
            let [high, low] = self.fragment.to_be_bytes();
            extensions.push((44, vec![0, high, low, 0, 0, 0, 1]));
        }
        let first = extensions.first().map_or(self.protocol, |(kind, _)| *kind);
        let mut header = vec![0x60 | self.tos >> 4, self.tos << 4, 0, 0, 0, 0, first, self.ttl];
        header.extend(self.source);
        header.extend(self.destination);
        for (index, (_, body)) in extensions.iter().enumerate() {
            header.push(extensions.get(index + 1).map_or(self.protocol, |(kind, _)| *kind));
            header.extend(body);
        }
        header
    }

    fn upper_layer(&self) -> Vec<u8> {
        let mut upper = match self.protocol {
            6 => self.tcp(),
            1 | 58 => {
                let mut icmp = vec![self.icmp.0, self.icmp.1];
                icmp.resize(8, 0);
                icmp
            }
            17 | 136 => {
                let mut udp = self.both_ports();
                udp.extend((8 + self.payload.len() as u16).to_be_bytes());
                udp.extend([0, 0]);
                udp
            }
            33 | 132 => {
                let mut bytes = self.both_ports();
                bytes.resize(12, 0);
                bytes
            }
            _ => Vec::new(),
        };
        for (at, bytes) in &self.upper {
            let end = at + bytes.len();
            if upper.len() < end {
                upper.resize(end, 0);
            }
            upper[*at..end].copy_from_slice(bytes);
        }
        upper.extend(&self.payload);
        upper
    }

    fn both_ports(&self) -> Vec<u8> {
        [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()].concat()
    }

    fn tcp(&self) -> Vec<u8> {
        let mut options = self.tcp_options.clone();
        options.resize(options.len().next_multiple_of(4).min(40), 0);
        let mut tcp = self.both_ports();
        tcp.extend([0, 0, 0, 1, 0, 0, 0, 2]);
        tcp.push((5 + options.len() as u8 / 4) << 4 | self.reserved & 0x0f);
        tcp.extend([self.flags, 0x20, 0, 0, 0, 0, 0]);
        tcp.extend(options);
        tcp
    }
}

/// Writes the length that the packet has into its header. Packets beyond 64 KiB keep what they say.
pub fn set_lengths(packet: &mut [u8], ipv6: bool) {
    let (at, less) = if ipv6 { (4, 40) } else { (2, 0) };
    let len = u16::try_from(packet.len().saturating_sub(less)).unwrap_or(u16::MAX);
    if let Some(room) = packet.get_mut(at..at + 2) {
        room.copy_from_slice(&len.to_be_bytes());
    }
}

/// Writes an IPv4 header's checksum; anything else is left alone.
pub fn set_checksum(packet: &mut [u8]) {
    let len = match packet.first() {
        Some(first) if first >> 4 == 4 => usize::from(first & 0x0f) * 4,
        _ => return,
    };
    let Some(header) = packet.get_mut(..len).filter(|header| header.len() >= 20) else { return };
    header[10..12].fill(0);
    let checksum = !packet::checksum::sum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}
