//! Builds packets of conversations with right lengths and checksums.

use packet::checksum;

/// An address of either family, IPv4 in the first 4 bytes.
pub type Addr = [u8; 16];

/// Source and destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// IPv6?
    pub ipv6: bool,
    /// Source address.
    pub source: Addr,
    /// Destination address.
    pub destination: Addr,
}

impl Ends {
    /// The other way round.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source, ..self }
    }

    fn pseudo(&self, protocol: u8, len: usize) -> u16 {
        if self.ipv6 {
            return checksum::pseudo_v6(self.source, self.destination, protocol, len as u32);
        }
        let four = |addr: Addr| [addr[0], addr[1], addr[2], addr[3]];
        checksum::pseudo_v4(four(self.source), four(self.destination), protocol, len as u16)
    }
}

/// A packet of `protocol` around `upper`, whose checksum field stands at `sum_at` and is filled in.
#[must_use]
pub fn packet(ends: Ends, protocol: u8, mut upper: Vec<u8>, sum_at: usize) -> Vec<u8> {
    // ICMP for IPv4 has no pseudo header.
    let pseudo = if protocol == 1 { 0 } else { ends.pseudo(protocol, upper.len()) };
    if let Some(room) = upper.get_mut(sum_at..sum_at + 2) {
        room.fill(0);
    }
    let sum = !checksum::add(pseudo, checksum::sum(&upper));
    if let Some(room) = upper.get_mut(sum_at..sum_at + 2) {
        room.copy_from_slice(&sum.to_be_bytes());
    }
    network(ends, protocol, &upper)
}

fn network(ends: Ends, protocol: u8, upper: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40 + upper.len());
    if ends.ipv6 {
        bytes.extend([0x60, 0, 0, 0]);
        bytes.extend((upper.len() as u16).to_be_bytes());
        bytes.extend([protocol, 64]);
        bytes.extend(ends.source);
        bytes.extend(ends.destination);
    } else {
        bytes.extend([0x45, 0]);
        bytes.extend((20 + upper.len() as u16).to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
        bytes.extend(&ends.source[..4]);
        bytes.extend(&ends.destination[..4]);
        let sum = !checksum::sum(&bytes);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    bytes.extend(upper);
    bytes
}

/// A TCP segment.
#[derive(Debug, Clone, Default)]
pub struct Segment {
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// Window as it stands in the header.
    pub window: u16,
    /// Options, a multiple of 4 bytes.
    pub options: Vec<u8>,
    /// Data.
    pub payload: Vec<u8>,
}

impl Segment {
    /// The packet.
    #[must_use]
    pub fn packet(&self, ends: Ends) -> Vec<u8> {
        let mut tcp = Vec::with_capacity(60 + self.payload.len());
        tcp.extend(self.ports.0.to_be_bytes());
        tcp.extend(self.ports.1.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([(5 + self.options.len() as u8 / 4) << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&self.options);
        tcp.extend(&self.payload);
        packet(ends, 6, tcp, 16)
    }
}

/// A UDP datagram.
#[must_use]
pub fn udp(ends: Ends, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut udp = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    udp.extend((8 + payload.len() as u16).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(payload);
    packet(ends, 17, udp, 6)
}

/// An ICMP or ICMPv6 message: type, code, the second word, and what follows.
#[must_use]
pub fn icmp(ends: Ends, (kind, code): (u8, u8), word: [u8; 4], body: &[u8]) -> Vec<u8> {
    let mut icmp = vec![kind, code, 0, 0];
    icmp.extend(word);
    icmp.extend(body);
    packet(ends, if ends.ipv6 { 58 } else { 1 }, icmp, 2)
}

/// Writes the number that a packet is told by: the IPv4 identification, or the IPv6 flow label.
pub fn number(packet: &mut [u8], number: u16) {
    let [high, low] = number.to_be_bytes();
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            packet[4..6].copy_from_slice(&[high, low]);
            crate::generate::draft::set_checksum(packet);
        }
        _ => packet[2..4].copy_from_slice(&[high, low]),
    }
}
