//! [`Reopened`]: what opens a device that has come back, where privileges are dropped.

use super::privileges::{Privileges, Reopen};
use super::settings::{Gone, Kind, LinkLoss, PortSettings, Settings};

/// Requests that a process which opens devices for a run may be sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reopened {
    /// Packet sockets.
    pub packet_sockets: bool,
    /// Queues of these TUN devices.
    pub tuns: Vec<String>,
    /// Sockets of AF_XDP for these interfaces: names, or patterns of them.
    pub xdps: Vec<String>,
    /// Taking these interfaces up and down: names, or patterns of them.
    pub links: Vec<String>,
}

impl Settings {
    /// The requests that a process of its own is to serve for this run; `None` where there is no such process, or
    /// nothing for it to do.
    #[must_use]
    pub fn reopened(&self) -> Option<Reopened> {
        if self.privileges == Privileges::Off || self.reopen != Reopen::Parent {
            return None;
        }
        let mut reopened = Reopened::default();
        for port in self.joined().filter(|port| port.gone == Gone::Wait) {
            match &port.kind {
                Kind::AfPacket { .. } => reopened.packet_sockets = true,
                Kind::AfXdp { device, .. } => {
                    // A packet socket keeps the interface in promiscuous mode.
                    reopened.packet_sockets = true;
                    reopened.xdps.push(device.clone());
                }
                Kind::Tun { device } => reopened.tuns.push(device.clone()),
                _ => {}
            }
        }
        let passed = self.wires.iter().filter(|wire| wire.link == LinkLoss::Pass);
        let ends = passed.flat_map(|wire| wire.ports).filter_map(|place| self.ports.get(place));
        reopened.links = ends.filter_map(interface).collect();
        (reopened != Reopened::default()).then_some(reopened)
    }

    /// Ports of AF_XDP whose devices are waited for in vain, with the names of those: `reopen = "keep"` keeps no
    /// `CAP_BPF`.
    pub(crate) fn waited_for_in_vain(&self) -> impl Iterator<Item = (&PortSettings, &str)> {
        let is_kept = self.privileges != Privileges::Off && self.reopen == Reopen::Keep;
        let waited = self.ports.iter().filter(move |port| is_kept && port.gone == Gone::Wait);
        waited.filter_map(|port| match &port.kind {
            Kind::AfXdp { device, .. } => Some((port, &**device)),
            _ => None,
        })
    }
}

/// The interface of a port, as it is named.
fn interface(port: &PortSettings) -> Option<String> {
    match &port.kind {
        Kind::AfPacket { device, .. } | Kind::AfXdp { device, .. } | Kind::Tun { device } => {
            Some(device.clone())
        }
        _ => None,
    }
}
