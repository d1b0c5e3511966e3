//! `[privileges]`: what a run gives up once everything is open, and who opens a device that has come back.

use toml::de::DeTable;

use super::{Gone, Kind, LinkLoss, PortSettings, Settings};
use crate::keys::{Section, Wrong};

/// Whether privileges are given up once everything is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Privileges {
    /// Those that the kernel lets go.
    #[default]
    Auto,
    /// All, or it does not start.
    Required,
    /// None.
    Off,
}

/// Who opens a device that has come back, where privileges are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reopen {
    /// A process of its own, which keeps what that takes.
    #[default]
    Parent,
    /// The run itself, which keeps what that takes.
    Keep,
    /// Nobody.
    No,
}

/// What a process may be asked for that opens devices for a run.
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

pub(super) fn read(top: &DeTable<'_>) -> Result<(Privileges, Reopen), Wrong> {
    let Some(value) = top.get("privileges") else { return Ok(Default::default()) };
    let section = Section::new("[privileges]", value, &["drop", "reopen"], &[])?;
    let drop =
        [("auto", Privileges::Auto), ("required", Privileges::Required), ("off", Privileges::Off)];
    let reopen = [("parent", Reopen::Parent), ("keep", Reopen::Keep), ("no", Reopen::No)];
    let privileges = section.choice("drop", &drop, &[])?.unwrap_or_default();
    Ok((privileges, section.choice("reopen", &reopen, &[])?.unwrap_or_default()))
}

impl Settings {
    /// What a process of its own is to do for this run; `None` where there is to be none, or nothing to do for it.
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
                    // One keeps the interface in promiscuous mode.
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
    pub(in super::super) fn waited_for_in_vain(
        &self,
    ) -> impl Iterator<Item = (&PortSettings, &str)> {
        let is_kept = self.privileges != Privileges::Off && self.reopen == Reopen::Keep;
        let waited = self.ports.iter().filter(move |port| is_kept && port.gone == Gone::Wait);
        waited.filter_map(|port| match &port.kind {
            Kind::AfXdp { device, .. } => Some((port, &**device)),
            _ => None,
        })
    }
}

/// The interface that a port is, as it is named.
fn interface(port: &PortSettings) -> Option<String> {
    match &port.kind {
        Kind::AfPacket { device, .. } | Kind::AfXdp { device, .. } | Kind::Tun { device } => {
            Some(device.clone())
        }
        _ => None,
    }
}
