//! Ends of a tunnel that know each other by their numbers: their keys, their insides, and their settings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ::tunnel::{Prefix, PrivateKey};

use crate::config::tunnel::{Dscp, PeerSettings, Table, TunnelSettings};
use crate::config::{At, Named, Privileges};

/// Bytes of the longest inner packet.
pub(crate) const MTU: u16 = 1_420;
const AT: At = At { line: 1, column: 1 };

/// An address of an end's inside.
pub(crate) fn inside(of: u8, host: u8, is_v6: bool) -> IpAddr {
    match is_v6 {
        false => Ipv4Addr::new(10, of, 0, host).into(),
        true => Ipv6Addr::new(0xfd00 | u16::from(of), 0, 0, 0, 0, 0, 0, host.into()).into(),
    }
}

pub(crate) fn key(of: u8) -> PrivateKey {
    PrivateKey::new([of; 32])
}

/// The settings by which an end knows another: all of the other's inside is allowed.
pub(crate) fn peer(of: u8, endpoint: Option<SocketAddr>) -> PeerSettings {
    PeerSettings {
        endpoint: endpoint.map(|endpoint| endpoint.to_string().parse().expect("an endpoint")),
        allowed: [(false, 16), (true, 16)]
            .map(|(is_v6, len)| Prefix::new(inside(of, 0, is_v6), len).expect("a prefix"))
            .to_vec(),
        ..PeerSettings::new(format!("peer{of}"), key(of).public(), AT)
    }
}

pub(crate) fn settings(of: u8, peers: Vec<PeerSettings>) -> TunnelSettings {
    let key_file = Named { path: "none".into(), at: AT };
    TunnelSettings {
        mtu: MTU,
        dscp: Dscp::Copy,
        table: Table::Off,
        privileges: Privileges::Off,
        control: "none".into(),
        peers,
        ..TunnelSettings::usual(&format!("tunnel{of}"), (key(of), key_file))
    }
}
