//! [`Descriptor`]: a frame as a middlebox sees it that is not written in Rust: where the frame lies, where its headers
//! begin, and the verdict on it.
//!
//! Contract: 48 bytes in host byte order at the offsets of [`Descriptor::FIELDS`], which change with [`LAYOUT_VERSION`]
//! alone. Offsets of headers are proven: a whole IP header with its options lies within the frame's bytes, and a
//! transport header begins no later than they end. Of what comes back only the verdict is believed; address and length
//! are checked against the room that the frame has (`Waiting::take_back`).

use std::mem::offset_of;

/// The version of the layout of [`Descriptor`].
pub const LAYOUT_VERSION: u32 = 1;

/// A frame that waits for its verdict.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Descriptor {
    /// Address of the frame's first byte. A middlebox that removes bytes at the front, or adds some, changes it.
    pub address: u64,
    /// When the frame came, in nanoseconds since the Unix epoch.
    pub time: u64,
    /// Number of bytes in memory. A middlebox may change it.
    pub length: u32,
    /// Number of bytes on the wire.
    pub wire_length: u32,
    /// Number of usable bytes before the first one.
    pub headroom: u16,
    /// Number of usable bytes after the last one.
    pub tailroom: u16,
    /// Where the IP header begins, from the first byte; [`Descriptor::NONE`] if there is none.
    pub network: u16,
    /// Where the transport header begins, from the first byte; [`Descriptor::NONE`] if there is none, as in later
    /// fragments.
    pub transport: u16,
    /// The frame's EtherType, after VLAN tags.
    pub ethertype: u16,
    /// The frame's protocol, after extension headers; [`Descriptor::NO_PROTOCOL`] if it is no IP packet.
    pub protocol: u8,
    /// [`Descriptor::FRAGMENT`] and the other flags.
    pub flags: u8,
    /// The wire that the frame crosses, in the order of the configuration.
    pub wire: u16,
    /// The wire's end on which the frame came in: 0 or 1.
    pub from: u8,
    /// A [`Verdict`](super::Verdict); 0 at first.
    pub verdict: u8,
    /// The frame's number in its capture, or on its port.
    pub number: u64,
}

impl Descriptor {
    /// The value for a header that the frame does not have.
    pub const NONE: u16 = u16::MAX;
    /// The value for the protocol of a frame that is no IP packet.
    pub const NO_PROTOCOL: u8 = u8::MAX;
    /// The frame is a fragment.
    pub const FRAGMENT: u8 = 1;
    /// The frame is the first fragment.
    pub const FIRST_FRAGMENT: u8 = 2;
    /// The frame has fewer bytes here than on the wire.
    pub const TRUNCATED: u8 = 4;
    /// The frame's link has no Ethernet header.
    pub const NOT_ETHERNET: u8 = 8;

    /// The fields in their order, each with its offset in bytes.
    pub const FIELDS: [(&'static str, usize); 15] = [
        ("address", offset_of!(Self, address)),
        ("time", offset_of!(Self, time)),
        ("length", offset_of!(Self, length)),
        ("wire_length", offset_of!(Self, wire_length)),
        ("headroom", offset_of!(Self, headroom)),
        ("tailroom", offset_of!(Self, tailroom)),
        ("network", offset_of!(Self, network)),
        ("transport", offset_of!(Self, transport)),
        ("ethertype", offset_of!(Self, ethertype)),
        ("protocol", offset_of!(Self, protocol)),
        ("flags", offset_of!(Self, flags)),
        ("wire", offset_of!(Self, wire)),
        ("from", offset_of!(Self, from)),
        ("verdict", offset_of!(Self, verdict)),
        ("number", offset_of!(Self, number)),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Handlers in other languages rely on these numbers.
    #[test]
    fn the_layout_of_version_1() {
        let offsets = Descriptor::FIELDS.map(|(_, offset)| offset);
        assert_eq!(offsets, [0, 8, 16, 20, 24, 26, 28, 30, 32, 34, 35, 36, 38, 39, 40]);
        assert_eq!((size_of::<Descriptor>(), align_of::<Descriptor>()), (48, 8));
    }
}
