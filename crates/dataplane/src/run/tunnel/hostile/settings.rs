//! Ends of a tunnel that know each other by their numbers: their keys, their insides, and what each is told.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ::tunnel::{Prefix, PresharedKey, PrivateKey};

use crate::run::config::tunnel::{Ciphers, Dscp, Hooks, PeerSettings, Table, TunnelSettings};
use crate::run::config::{At, Named, Privileges};

/// Bytes of the longest inner packet.
pub(in super::super) const MTU: u16 = 1_420;
const AT: At = At { line: 1, column: 1 };

/// An address of an end's inside.
pub(in super::super) fn inside(of: u8, host: u8, is_v6: bool) -> IpAddr {
    match is_v6 {
        false => Ipv4Addr::new(10, of, 0, host).into(),
        true => Ipv6Addr::new(0xfd00 | u16::from(of), 0, 0, 0, 0, 0, 0, host.into()).into(),
    }
}

pub(in super::super) fn key(of: u8) -> PrivateKey {
    PrivateKey::new([of; 32])
}

/// Another end, as an end is told of it: everything of its own inside is its.
pub(in super::super) fn peer(of: u8, endpoint: Option<SocketAddr>) -> PeerSettings {
    PeerSettings {
        name: format!("peer{of}"),
        key: key(of).public(),
        preshared: PresharedKey::default(),
        preshared_file: None,
        endpoint: endpoint.map(|endpoint| endpoint.to_string().parse().expect("an endpoint")),
        allowed: [(false, 16), (true, 16)]
            .map(|(is_v6, len)| Prefix::new(inside(of, 0, is_v6), len).expect("a prefix"))
            .to_vec(),
        keepalive: None,
        at: AT,
    }
}

pub(in super::super) fn settings(of: u8, peers: Vec<PeerSettings>) -> TunnelSettings {
    TunnelSettings {
        file: "none".to_owned(),
        name: format!("tunnel{of}"),
        key: key(of),
        key_file: Named { path: "none".into(), at: AT },
        addresses: Vec::new(),
        listen: 0,
        mtu: MTU,
        ciphers: Ciphers::Auto,
        mark: None,
        device: None,
        dscp: Dscp::Copy,
        dns: Vec::new(),
        search: Vec::new(),
        table: Table::Off,
        hooks: Hooks::default(),
        rules: Vec::new(),
        ipset: None,
        bans: None,
        workers: 1,
        privileges: Privileges::Off,
        control: "none".into(),
        metrics: None,
        peers,
    }
}
