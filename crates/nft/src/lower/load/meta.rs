//! `meta`: what the kernel notes of a packet next to its bytes, and by which devices it passes.
//!
//! Names of devices are their bytes on the left of 16; a device that is not there has the empty one. `iif` and `oif`
//! compare indices, which a listing shows as the names that they have then: names are compared. A number stands for a
//! device that no longer exists. Source: kernel `net/netfilter/nft_meta.c`.

use super::Load;
use crate::lower::word::{Loaded, Word};
use host::LinkKind;
use packet::L4;
use rules::model::{Family, Hook};
use rules::{Iface, Transit};

/// A key of `meta` that is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meta {
    /// Bytes of the packet from its network header on.
    Length,
    /// EtherType of the network header.
    Protocol,
    /// Family of the packet.
    Family,
    /// Protocol of the upper layer.
    Upper,
    /// Mark.
    Mark,
    /// Name of the input device.
    InputName,
    /// Name of the output device.
    OutputName,
    /// The input device itself.
    Input,
    /// The output device itself.
    Output,
    /// Type of the input device.
    InputType,
    /// Group of the input device.
    InputGroup,
    /// Group of the output device.
    OutputGroup,
    /// Whom the link layer addressed.
    PacketType,
}

/// The keys by name, as rules and the bytecode have them.
const KEYS: [(&str, &str, Meta); 13] = [
    ("length", "len", Meta::Length),
    ("protocol", "protocol", Meta::Protocol),
    ("nfproto", "nfproto", Meta::Family),
    ("l4proto", "l4proto", Meta::Upper),
    ("mark", "mark", Meta::Mark),
    ("iifname", "iifname", Meta::InputName),
    ("oifname", "oifname", Meta::OutputName),
    ("iif", "iif", Meta::Input),
    ("oif", "oif", Meta::Output),
    ("iiftype", "iiftype", Meta::InputType),
    ("iifgroup", "iifgroup", Meta::InputGroup),
    ("oifgroup", "oifgroup", Meta::OutputGroup),
    ("pkttype", "pkttype", Meta::PacketType),
];

/// `ARPHRD_ETHER`, and `ARPHRD_LOOPBACK`.
const ETHERNET: u128 = 1;
const LOOPBACK: u128 = 772;
/// `ARPHRD_NONE`, which TUN devices have.
const NONE: u128 = 0xfffe;

impl Meta {
    /// Finds a key that is evaluated.
    pub(crate) fn find(name: &str) -> Option<Self> {
        KEYS.iter().find(|key| key.0 == name).map(|key| key.2)
    }
}

impl Load for Meta {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        match self {
            Self::Length if transit.packet.is_open() => Loaded::unknown(32),
            Self::Length => Loaded::known(transit.packet.len() as u128),
            Self::Protocol => protocol(transit),
            Self::Family => Loaded::known(if transit.family == Family::Ipv6 { 10 } else { 2 }),
            Self::Upper => upper(transit),
            Self::Mark => Loaded::word(Word {
                value: transit.mark.value.into(),
                unknown: transit.mark.unknown.into(),
            }),
            Self::InputName | Self::Input => name(transit.input),
            Self::OutputName | Self::Output => name(transit.output),
            Self::InputType => kind(transit),
            Self::InputGroup => group(transit.input, transit),
            Self::OutputGroup => group(transit.output, transit),
            Self::PacketType => match transit.packet_type() {
                Some(kind) => Loaded::known(kind.into()),
                None => Loaded::unknown(8),
            },
        }
    }

    fn always(&self) -> bool {
        matches!(self, Self::Mark | Self::Length | Self::Family)
    }

    fn asks_for(&self) -> Option<&'static str> {
        match self {
            Self::InputGroup | Self::OutputGroup => {
                Some("the group of the device is not known (--links, or links.txt of a folder)")
            }
            Self::InputType => Some("the type of the input device is not known"),
            _ => None,
        }
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        let name = KEYS.iter().find(|key| key.2 == *self).map_or("", |key| key.1);
        show(format!("meta load {name}"));
    }
}

/// The number that stands for the name of a device.
pub(crate) fn name_number(name: &str) -> u128 {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(name.bytes().take(15)) {
        *to = from;
    }
    u128::from_be_bytes(bytes)
}

fn name(device: Iface<'_>) -> Loaded {
    match device {
        Iface::Named(name) => Loaded::known(name_number(name)),
        Iface::Absent => Loaded::known(0),
        Iface::Unknown => Loaded::unknown(128),
    }
}

fn protocol(transit: &Transit<'_, '_>) -> Loaded {
    match transit.family {
        Family::Ipv4 => Loaded::known(0x800),
        Family::Ipv6 => Loaded::known(0x86dd),
        Family::Arp | Family::Bridge => {
            Loaded::known(transit.packet.headers().link.ethertype.into())
        }
    }
}

fn upper(transit: &Transit<'_, '_>) -> Loaded {
    match transit.upper_layer() {
        L4::Upper(upper) => Loaded::known(upper.protocol.into()),
        L4::Fragment { protocol, .. } => Loaded::known(protocol.into()),
        L4::Unknown => Loaded::anything(8),
        L4::Broken { .. } | L4::None => Loaded::nothing(),
    }
}

/// The type of the input device, which is missing where there is none. At postrouting the kernel takes the device that the
/// packet is at, which is the other one by then.
fn kind(transit: &Transit<'_, '_>) -> Loaded {
    if transit.hook == Hook::Postrouting {
        return output_kind(transit);
    }
    let link = &transit.packet.headers().link;
    match transit.input {
        Iface::Absent => Loaded::nothing(),
        Iface::Named("lo") => Loaded::known(LOOPBACK),
        _ if link.loopback => Loaded::known(LOOPBACK),
        Iface::Named(_) if link.ethernet.is_some() || link.source_mac.is_some() => {
            Loaded::known(ETHERNET)
        }
        Iface::Named(_) => Loaded::unknown(16),
        Iface::Unknown => Loaded::anything(16),
    }
}

fn output_kind(transit: &Transit<'_, '_>) -> Loaded {
    let Iface::Named(name) = transit.output else { return Loaded::unknown(16) };
    let link = transit.host.links().named(name);
    match link.map(|link| (link.kind, link.mac)) {
        Some((LinkKind::Loopback, _)) => Loaded::known(LOOPBACK),
        Some((_, Some(_))) => Loaded::known(ETHERNET),
        Some((LinkKind::Tun, None)) => Loaded::known(NONE),
        Some(_) | None => Loaded::unknown(16),
    }
}

fn group(device: Iface<'_>, transit: &Transit<'_, '_>) -> Loaded {
    match device {
        Iface::Absent => Loaded::nothing(),
        Iface::Unknown => Loaded::anything(32),
        Iface::Named(name) => {
            let link = transit.host.links().named(name);
            match link.and_then(|link| link.group) {
                Some(group) => Loaded::known(group.into()),
                None => Loaded::unknown(32),
            }
        }
    }
}
