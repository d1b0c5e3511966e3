//! What a packet looks for in a set: its addresses, ports, MAC address, mark and interface as a [`Key`].
//!
//! Source: kernel `ip_set_getport.c`, and the `kadt` functions of each type.

use packet::{L4, Read, ipv4, ipv6, ipv6_ext};

use super::kind::Dim;
use super::{Key, Set};
use crate::family::Family;
use crate::transit::{Iface, Transit};

/// Why there is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Miss {
    /// The packet has no such thing: it is in no set of this type.
    No,
    /// What the packet has is not known.
    Unknown,
}

/// A packet's key, and what does not fit into one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looked<'p> {
    pub(super) key: Key,
    /// Interface, for types that hold one: the last word of the key is then its number in the set.
    pub(super) iface: Option<&'p str>,
    /// MAC address, for types that hold one.
    pub(super) mac: [u8; 6],
}

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const UDPLITE: u8 = 136;
pub(super) const SCTP: u8 = 132;
pub(super) const ICMP: u8 = 1;
pub(super) const ICMPV6: u8 = 58;

fn known<T>(read: Read<T>) -> Result<T, Miss> {
    match read {
        Read::Known(value) => Ok(value),
        Read::Unknown => Err(Miss::Unknown),
        Read::Absent => Err(Miss::No),
    }
}

impl Set {
    /// What a packet looks for; networks are whole addresses. `by_source` says for each dimension which end
    /// of the packet counts.
    pub(super) fn look<'p>(
        &self,
        transit: &Transit<'p, '_>,
        by_source: &[bool],
    ) -> Result<Looked<'p>, Miss> {
        let other_family = self.family.is_some_and(|family| family != transit.family);
        if other_family || by_source.len() < self.kind.dims.len() {
            return Err(Miss::No);
        }
        let mut looked = Looked { key: Key::default(), iface: None, mac: [0; 6] };
        let mut addresses = 0;
        for (dim, source) in self.kind.dims.iter().zip(by_source) {
            match dim {
                Dim::Ip | Dim::Net => {
                    looked.key.set_addr(addresses, &address(transit, *source)?);
                    self.fit(&mut looked.key, addresses, *dim)?;
                    addresses += 1;
                }
                Dim::Port => {
                    let (protocol, port) = port(transit, *source)?;
                    looked.key.set_port(protocol, port);
                }
                Dim::BarePort => looked.key.set_port(0, self.bare_port(transit, *source)?),
                Dim::Mac => {
                    looked.mac = mac(transit, *source)?;
                    looked.key.set_mac(looked.mac);
                }
                Dim::Mark if transit.mark.unknown & self.markmask != 0 => {
                    return Err(Miss::Unknown);
                }
                Dim::Mark => looked.key.set_rest(transit.mark.value & self.markmask),
                Dim::Iface => looked.iface = Some(iface(transit, *source)?),
                Dim::Set => {}
            }
        }
        if self.kind.fills_mac() {
            looked.key.set_mac([0; 6]);
        }
        Ok(looked)
    }

    /// Masks an address as the set does, and refuses what it cannot hold.
    fn fit(&self, key: &mut Key, index: usize, dim: Dim) -> Result<(), Miss> {
        if let Some(mask) = &self.mask {
            key.mask_addr(index, mask);
        }
        let outside = !(self.range.0..=self.range.1).contains(&key.first_word());
        // A hash of single addresses has none that is all zero.
        let zero = self.kind.dims == [Dim::Ip] || self.mask.is_some() && dim == Dim::Ip;
        if self.kind.is_bitmap && outside || zero && !self.kind.is_bitmap && key.is_zero_addr(index)
        {
            return Err(Miss::No);
        }
        if dim == Dim::Net {
            key.set_prefix(index, self.host_bits());
        }
        Ok(())
    }

    fn bare_port(&self, transit: &Transit<'_, '_>, source: bool) -> Result<u16, Miss> {
        let (protocol, port) = port(transit, source)?;
        let inside = (self.range.0..=self.range.1).contains(&port.into());
        if matches!(protocol, TCP | UDP) && inside { Ok(port) } else { Err(Miss::No) }
    }
}

fn address(transit: &Transit<'_, '_>, source: bool) -> Result<[u8; 16], Miss> {
    let mut addr = [0; 16];
    if transit.family == Family::Ipv6 {
        let field = if source { ipv6::SOURCE } else { ipv6::DESTINATION };
        return known(transit.net(field.start));
    }
    let field = if source { ipv4::SOURCE } else { ipv4::DESTINATION };
    addr[..4].copy_from_slice(&known(transit.net::<4>(field.start))?);
    Ok(addr)
}

/// Protocol and port: an ICMP type and code stand for one, and other protocols have port 0.
fn port(transit: &Transit<'_, '_>, source: bool) -> Result<(u8, u16), Miss> {
    let (protocol, offset) = match transit.family {
        Family::Ipv6 => {
            let found = known(ipv6_ext::skip(&*transit.packet, transit.packet.network_offset()))?;
            if found.fragment_offset != 0 {
                return Err(Miss::No);
            }
            (found.kind, found.offset)
        }
        _ => match transit.packet.headers().l4 {
            L4::Upper(upper) => (upper.protocol, upper.offset),
            L4::Fragment { protocol, .. } if has_port(protocol) && protocol != ICMPV6 => {
                return Err(Miss::No);
            }
            L4::Fragment { protocol, .. } => return nonzero(protocol, 0),
            L4::Unknown => return Err(Miss::Unknown),
            L4::Broken { .. } | L4::None => return Err(Miss::No),
        },
    };
    if transit.family != Family::Ipv6 {
        nonzero(protocol, 0)?;
    }
    if !has_port(protocol) {
        return Ok((protocol, 0));
    }
    // The kernel wants all of the header.
    let len = match protocol {
        TCP => 20,
        SCTP => 12,
        _ => 8,
    };
    if transit.packet.read_slice(offset, len) == Read::Absent {
        return Err(Miss::No);
    }
    let is_icmp = matches!(protocol, ICMP | ICMPV6);
    let at = if is_icmp || source { offset } else { offset + 2 };
    let field = known(transit.packet.read::<2>(at))?;
    Ok((protocol, u16::from_be_bytes(field)))
}

fn nonzero(protocol: u8, port: u16) -> Result<(u8, u16), Miss> {
    if protocol == 0 { Err(Miss::No) } else { Ok((protocol, port)) }
}

fn has_port(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | UDPLITE | SCTP | ICMP | ICMPV6)
}

/// Reads an address of the Ethernet header; an all-zero address is a miss.
fn mac(transit: &Transit<'_, '_>, source: bool) -> Result<[u8; 6], Miss> {
    let link = &transit.packet.headers().link;
    let offset = if source { link.source_mac } else { link.ethernet };
    let mac = known(offset.map_or(Read::Absent, |offset| transit.packet.read(offset)))?;
    if mac == [0; 6] { Err(Miss::No) } else { Ok(mac) }
}

fn iface<'p>(transit: &Transit<'p, '_>, source: bool) -> Result<&'p str, Miss> {
    match if source { transit.input } else { transit.output } {
        Iface::Named("") | Iface::Absent => Err(Miss::No),
        Iface::Named(name) => Ok(name),
        Iface::Unknown => Err(Miss::Unknown),
    }
}
