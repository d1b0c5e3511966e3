//! [`Offsets`]: where the headers of a frame begin, as reported to a middlebox.
//!
//! Contract: every offset is proven. A whole IP header with its options, or a whole IPv6 header, lies within the
//! frame's bytes; a transport header begins within them or where they end. What cannot be proven is none.

use packet::{Checksums, Headers, L3, L4, Link, Packet, parse};
use pktio::FrameMeta;

use super::descriptor::Descriptor;
use dataplane::{is_fragment, link_of};

/// Where headers begin. The values are the same as in the fields of [`Descriptor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// The IP header, or [`Descriptor::NONE`].
    pub network: u16,
    /// The header of TCP, UDP, ICMP or whatever comes after IP, or [`Descriptor::NONE`].
    pub transport: u16,
    /// The EtherType after VLAN tags.
    pub ethertype: u16,
    /// The protocol after extension headers, or [`Descriptor::NO_PROTOCOL`].
    pub protocol: u8,
    /// [`Descriptor::FRAGMENT`] and the other flags.
    pub flags: u8,
}

impl Offsets {
    /// Finds the offsets of a frame, as it crosses a wire.
    pub(super) fn of(bytes: &mut [u8], meta: &FrameMeta) -> Self {
        let link = match link_of(meta.link_type) {
            Some(Link::Ethernet) => Link::Wire,
            Some(link) => link,
            None => return Self::of_unknown(bytes, meta),
        };
        let headers = parse(link, bytes, meta.wire_length as usize, Checksums::Ignore);
        Self::by(&headers, link, bytes, meta)
    }

    /// Finds the offsets of a frame whose headers may have been found before rules rewrote it: rewriting moves none. A
    /// debug build compares the known ones with what it finds.
    pub(super) fn known(
        bytes: &mut [u8],
        meta: &FrameMeta,
        known: Option<&(Link, Headers)>,
    ) -> Self {
        match known {
            Some((link, headers)) if matches!(headers.l3, L3::Ipv4 { .. } | L3::Ipv6) => {
                let offsets = Self::by(headers, *link, bytes, meta);
                debug_assert_eq!(offsets, Self::of(bytes, meta));
                offsets
            }
            _ => Self::of(bytes, meta),
        }
    }

    fn by(headers: &Headers, link: Link, bytes: &mut [u8], meta: &FrameMeta) -> Self {
        let packet = Packet::with_headers(bytes, *headers);
        let is_fragment = is_fragment(&packet);
        let mut offsets = Self { ethertype: headers.link.ethertype, ..Self::none() };
        offsets.flags = flags(bytes, meta, link);
        let Some(network) = network(headers, bytes.len()) else { return offsets };
        offsets.network = network;
        match headers.l4 {
            L4::Upper(upper) => {
                offsets.protocol = upper.protocol;
                offsets.transport = within(upper.offset, bytes.len());
                offsets.flags |=
                    if is_fragment { Descriptor::FRAGMENT | Descriptor::FIRST_FRAGMENT } else { 0 };
            }
            L4::Fragment { protocol, .. } => {
                offsets.protocol = protocol;
                offsets.flags |= Descriptor::FRAGMENT;
            }
            L4::Broken { .. } | L4::Unknown | L4::None => {}
        }
        offsets
    }

    /// Whether the frame's link has no Ethernet header.
    pub(super) fn is_bare(&self) -> bool {
        self.flags & Descriptor::NOT_ETHERNET != 0
    }

    fn of_unknown(bytes: &[u8], meta: &FrameMeta) -> Self {
        Self { flags: flags(bytes, meta, Link::Raw), ..Self::none() }
    }

    fn none() -> Self {
        Self {
            network: Descriptor::NONE,
            transport: Descriptor::NONE,
            ethertype: 0,
            protocol: Descriptor::NO_PROTOCOL,
            flags: 0,
        }
    }
}

/// The flags that a frame's length and link set.
fn flags(bytes: &[u8], meta: &FrameMeta, link: Link) -> u8 {
    let is_cut = meta.wire_length as usize > bytes.len();
    let truncated = if is_cut { Descriptor::TRUNCATED } else { 0 };
    truncated | if link.is_ethernet() { 0 } else { Descriptor::NOT_ETHERNET }
}

/// Where the IP header begins, if it is here as a whole.
fn network(headers: &Headers, len: usize) -> Option<u16> {
    let header_len = match headers.l3 {
        L3::Ipv4 { header_len } => header_len,
        L3::Ipv6 => 40,
        L3::Arp | L3::Other | L3::Fault(_) | L3::Unknown => return None,
    };
    let is_whole = headers.network + header_len <= len;
    u16::try_from(headers.network).ok().filter(|_| is_whole)
}

/// An offset up to which all bytes are here.
fn within(offset: usize, len: usize) -> u16 {
    u16::try_from(offset).ok().filter(|_| offset <= len).unwrap_or(Descriptor::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::craft::{Addresses, Craft, Fragment, Message};
    use pktio::LinkType;
    use proptest::prelude::*;

    /// Checks the offsets against the bytes, by a look at them and nothing else.
    fn holds(bytes: &[u8], offsets: Offsets) -> Result<(), TestCaseError> {
        let Offsets { network, transport, protocol, .. } = offsets;
        if network == Descriptor::NONE {
            prop_assert_eq!((transport, protocol), (Descriptor::NONE, Descriptor::NO_PROTOCOL));
            return Ok(());
        }
        let network = usize::from(network);
        prop_assert!(network < bytes.len());
        let header_len = match bytes[network] >> 4 {
            4 => usize::from(bytes[network] & 0xf) * 4,
            6 => 40,
            version => return Err(TestCaseError::fail(format!("version {version}"))),
        };
        prop_assert!(header_len >= 20 && network + header_len <= bytes.len());
        if transport != Descriptor::NONE {
            let transport = usize::from(transport);
            prop_assert!((network + header_len..=bytes.len()).contains(&transport));
        }
        Ok(())
    }

    fn of(bytes: &mut [u8], wire_length: usize, link_type: LinkType) -> Offsets {
        let wire_length = wire_length as u32;
        Offsets::of(bytes, &FrameMeta { link_type, wire_length, ..FrameMeta::default() })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// Frames that are cut off anywhere, with some bytes that are anything.
        #[test]
        fn what_is_told_is_proven(
            is_v6 in any::<bool>(), is_tagged in any::<bool>(), fragment in 0..4_u16,
            keep in 0..120_usize, is_captured in any::<bool>(),
            noise in prop::collection::vec((0..60_usize, any::<u8>()), 0..6),
            link in prop::sample::select(vec![
                LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL, LinkType(9999),
            ]),
        ) {
            let ends = match is_v6 {
                false => ["10.0.0.1", "10.0.0.2"],
                true => ["2001:db8::1", "2001:db8::2"],
            };
            let [source, destination] = ends.map(|text| text.parse().expect("an address"));
            let addresses = Addresses::new(source, destination).expect("one family");
            let whole = Craft { payload_len: 40, ..Craft::new(addresses, Message::udp(1, 2)) };
            let fragment = (fragment > 0)
                .then(|| Fragment { offset: (fragment - 1) * 16, more: fragment < 3 });
            let mut bytes = Craft { fragment, ..whole }.frame();
            if is_tagged {
                bytes.splice(12..12, [0x81, 0, 0, 7]);
            }
            let wire_length = bytes.len();
            bytes.truncate(keep);
            for (at, byte) in noise {
                if let Some(old) = bytes.get_mut(at) {
                    *old = byte;
                }
            }
            // Cut off where it came from, or where it was captured.
            let wire_length = if is_captured { wire_length } else { bytes.len() };
            let before = bytes.clone();
            let offsets = of(&mut bytes, wire_length, link);
            prop_assert_eq!(&before, &bytes);
            holds(&bytes, offsets)?;
            let is_cut = wire_length > bytes.len();
            prop_assert_eq!(offsets.flags & Descriptor::TRUNCATED != 0, is_cut);
            let is_bare = link != LinkType::ETHERNET;
            prop_assert_eq!(offsets.flags & Descriptor::NOT_ETHERNET != 0, is_bare);
        }

        #[test]
        fn noise_is_told_of_as_it_is(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for link in [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL2] {
                let len = bytes.len();
                let offsets = of(&mut bytes, len, link);
                holds(&bytes, offsets)?;
            }
        }
    }
}
