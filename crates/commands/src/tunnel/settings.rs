//! A tunnel as a run: the host's device and the tunnel's socket, each a port, and a wire between them.

use std::net::IpAddr;
use std::path::PathBuf;

use dataplane::Unresolved;
use live::config::tunnel::{HOST, TunnelSettings};
use live::config::{
    At, BurstSettings, Cores, Gone, Kind, LinkLoss, LogFormat, Named, OnPanic, Order, Other,
    PortSettings, Reopen, RestartSettings, Settings, Ttl, WireSettings, Workers,
};

use super::names;

/// The place of settings that the configuration of a tunnel does not have.
pub(super) const AT: At = At { line: 1, column: 1 };

/// The run of a tunnel.
pub(super) fn of_run(tunnel: &TunnelSettings) -> Settings {
    let host = Kind::Tun { device: tunnel.name.clone() };
    let port = |name: &str, kind, addresses| PortSettings {
        name: name.to_owned(),
        kind,
        addresses,
        mtu: None,
        at: AT,
        gone: Gone::End,
    };
    let several = tunnel.workers > 1;
    Settings {
        file: tunnel.file.clone(),
        ports: vec![
            port(HOST, host, Vec::new()),
            port(&tunnel.name, kind(tunnel), own_addresses(tunnel)),
        ],
        wires: vec![WireSettings {
            ports: [0, 1],
            ttl: Ttl::Keep,
            other: Other::Drop,
            link: LinkLoss::Keep,
            // One worker keeps all order by itself.
            order: if several { Order::Wire } else { Order::Flow },
            at: AT,
        }],
        rules: tunnel.rules.clone(),
        own: names::tables(tunnel),
        ipset: tunnel.ipset.clone(),
        bans: tunnel.bans.clone(),
        unknown: Unresolved::default(),
        on_panic: OnPanic::default(),
        connections: conntrack::Config::default().max,
        restart: RestartSettings::default(),
        privileges: tunnel.privileges,
        reopen: Reopen::No,
        socket: Some(Named { path: tunnel.control.clone(), at: AT }),
        journal: None,
        metrics: tunnel.metrics.clone(),
        log: LogFormat::default(),
        middlebox: None,
        workers: Workers { cores: Cores::Any, count: Some(tunnel.workers) },
        burst: BurstSettings::default(),
        eal: Vec::new(),
    }
}

/// The port of the tunnel, which reads the file itself.
fn kind(tunnel: &TunnelSettings) -> Kind {
    Kind::Tunnel { file: Named { path: PathBuf::from(&tunnel.file), at: AT } }
}

/// The addresses that packets leaving through the tunnel are translated to: the first of each family.
fn own_addresses(tunnel: &TunnelSettings) -> Vec<IpAddr> {
    let first = |is_v6| {
        let mut addresses = tunnel.addresses.iter().map(|(address, _)| *address);
        addresses.find(|address| address.is_ipv6() == is_v6)
    };
    [first(false), first(true)].into_iter().flatten().collect()
}
