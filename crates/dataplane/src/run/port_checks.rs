//! What is looked at before ports are opened: whether what they need is there, and what is odd about it.

use std::path::Path;

use pktio::{Burst, CaptureReader, Port};

use super::config::tunnel::TunnelSettings;
use super::config::{ConfigError, Kind, Named, PortSettings, Settings, innermost};
use super::device::is_like;
use super::{doctor, interface};
use crate::link::is_ip;

/// Frames of a NUMA node's devices of DPDK, with those that the devices' own queues hold.
const MBUFS: usize = (1 << 14) - 1;

/// Whether everything that ports need is there; nothing is made or changed.
///
/// # Errors
/// A capture cannot be read, or is none, or has nothing for the tunnel that it is wired to, or the folder of one that is to
/// be written is not there; there is no such interface.
pub(super) fn check(settings: &Settings) -> Result<(), ConfigError> {
    for port in &settings.ports {
        if let Some(device) = interface_of(port) {
            let names = interface::names();
            if !names.iter().any(|name| is_like(name, device)) {
                let what = format!("expected one of the interfaces {}", names.join(" "));
                let else_where = "one of another network namespace is found there alone: \
                                  ip netns exec NAME tamis run …";
                let what = format!("{what}, found \"{device}\" ({else_where})");
                return Err(settings.refuse(port.at, what));
            }
        }
        if let Kind::Tunnel { file } = &port.kind {
            TunnelSettings::read(&file.path)?;
        }
        let Kind::Pcap { file, out, .. } = &port.kind else { continue };
        if let Some(Named { path, at }) = file {
            let opened = CaptureReader::open(&path.to_string_lossy());
            opened.map_err(|error| settings.refuse(*at, error))?;
        }
        let Some(Named { path, at }) = out else { continue };
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        if folder.is_some_and(|folder| !folder.is_dir()) {
            let what = format!("{}: expected a folder that is there", path.display());
            return Err(settings.refuse(*at, what));
        }
        let is_used = |other: &PortSettings| match &other.kind {
            Kind::Pcap { file, out, .. } => {
                let is_written = |out: &Named| out.path == *path && out.at != *at;
                file.as_ref().is_some_and(|file| file.path == *path)
                    || out.as_ref().is_some_and(is_written)
            }
            Kind::AfPacket { .. }
            | Kind::AfXdp { .. }
            | Kind::Tun { .. }
            | Kind::Dpdk { .. }
            | Kind::Loopback
            | Kind::Tunnel { .. }
            | Kind::Fault { .. } => false,
        };
        if settings.ports.iter().any(is_used) {
            let what = format!("{}: expected a file of its own", path.display());
            return Err(settings.refuse(*at, what));
        }
    }
    into_tunnels(settings)
}

/// Captures that are wired to tunnels, which carry packets of IP alone.
fn into_tunnels(settings: &Settings) -> Result<(), ConfigError> {
    for wire in &settings.wires {
        let [first, second] = wire.ports.map(|place| innermost(&settings.ports, place));
        for (one, other) in [(first, second), (second, first)] {
            let (Some(Kind::Tunnel { .. }), Some(Kind::Pcap { file: Some(file), .. })) =
                (one, other)
            else {
                continue;
            };
            if let Some(found) = no_ip(&file.path) {
                let what = "expected a capture of link type RAW, IPV4 or IPV6 beside a tunnel";
                let what = format!("{}: {what}, found {found}", file.path.display());
                return Err(settings.refuse(file.at, what));
            }
        }
    }
    Ok(())
}

/// The link type of a capture of which nothing is packets of IP without a link's header, as far as its beginning tells.
fn no_ip(path: &Path) -> Option<String> {
    let mut reader = CaptureReader::open(&path.to_string_lossy()).ok()?;
    // The interfaces of pcapng stand among its frames; what a pipe has is for the run.
    if reader.interfaces().is_empty() && reader.total_bytes().is_some() {
        reader.rx_burst(&mut Burst::new()).ok()?;
    }
    let mut types = reader.interfaces().iter().map(|interface| interface.link_type);
    let first = types.next().filter(|first| !is_ip(*first))?;
    (!types.any(is_ip)).then(|| first.to_string())
}

/// What is odd about interfaces that ports are: whatever else takes frames that come in by them.
pub(super) fn warnings(settings: &Settings) -> Vec<String> {
    let mut told = Vec::new();
    let ports = settings.ports.iter();
    let interfaces = ports.filter_map(|port| Some((port.at.line, interface_of(port)?)));
    for (line, name) in interfaces {
        let mut tell = |what: String| told.push(format!("{}:{line}: {name} {what}", settings.file));
        if let Some(master) = interface::master(name) {
            tell(format!(
                "belongs to {master}, which takes its frames as well: ip link set {name} nomaster"
            ));
        }
        for address in interface::addresses(name) {
            tell(format!(
                "has the address {address}: its host answers as well: ip addr flush dev {name}"
            ));
        }
        for setting in interface::forwarding(name) {
            let what = "is forwarded from by its host, which may pass frames on a second time";
            tell(format!("{what}: {setting} is 1"));
        }
    }
    for (port, name) in settings.waited_for_in_vain() {
        let (file, line, (why, todo)) = (&settings.file, port.at.line, doctor::IN_VAIN);
        told.push(format!("{file}:{line}: {name} {why}: {todo}"));
    }
    if settings.ports.iter().any(|port| matches!(port.kind, Kind::AfPacket { .. }))
        && let Some((why, todo)) = doctor::packet_socket()
    {
        told.push(format!("{}: af_packet: {why}: {todo}", settings.file));
    }
    if settings.ports.iter().any(|port| matches!(port.kind, Kind::AfXdp { .. }))
        && let Some((why, todo)) = doctor::af_xdp()
    {
        told.push(format!("{}: af_xdp: {why}: {todo}", settings.file));
    }
    let kept = settings.ring() * settings.workers.count.unwrap_or(1);
    let has_mbufs = settings.ports.iter().any(|port| matches!(port.kind, Kind::Dpdk { .. }));
    if has_mbufs && kept > MBUFS / 2 {
        let what = "and nothing is received once they have all";
        told.push(format!(
            "{}: [middlebox] ring: middleboxes may keep {kept} of {MBUFS} frames of DPDK, {what}",
            settings.file
        ));
    }
    told
}

/// The interface that a port is, if it is one, by name or by pattern.
fn interface_of(port: &PortSettings) -> Option<&str> {
    match &port.kind {
        Kind::AfPacket { device, .. } | Kind::AfXdp { device, .. } => Some(device),
        Kind::Tun { .. }
        | Kind::Dpdk { .. }
        | Kind::Pcap { .. }
        | Kind::Loopback
        | Kind::Tunnel { .. }
        | Kind::Fault { .. } => None,
    }
}
