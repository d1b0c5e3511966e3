//! Checks before ports are opened: whether what they need is there, and what is odd about it.

use std::path::Path;

use pktio::{Burst, Port};

use crate::config::tunnel::TunnelSettings;
use crate::config::{ConfigError, Kind, Named, Settings, innermost};
use crate::ports::capture_port;
use crate::ports::device::is_like;
use crate::ports::{doctor, interface};
use dataplane::is_ip;

/// Frames of a NUMA node's devices of DPDK, including the frames in the devices' own queues.
const MBUFS: usize = (1 << 14) - 1;

/// Checks that everything that ports need is there; makes and changes nothing.
///
/// # Errors
/// A capture cannot be read, or is none, or has nothing for the tunnel that it is wired to; the folder of a capture
/// that is to be written is missing; there is no such interface.
pub(crate) fn check(settings: &Settings) -> Result<(), ConfigError> {
    for port in &settings.ports {
        if let Some(device) = port.interface() {
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
            capture_port::read(path).map_err(|error| settings.refuse(*at, error))?;
        }
        let Some(Named { path, at }) = out else { continue };
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        if folder.is_some_and(|folder| !folder.is_dir()) {
            let what = format!("{}: expected a folder that is there", path.display());
            return Err(settings.refuse(*at, what));
        }
    }
    into_tunnels(settings)
}

/// Refuses captures of other link types on wires to tunnels, which carry packets of IP alone.
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

/// The link type of a capture that has no packets of IP without a link's header, as far as its beginning shows.
fn no_ip(path: &Path) -> Option<String> {
    let mut reader = capture_port::read(path).ok()?;
    // The interfaces of pcapng stand among its frames.
    if reader.interfaces().is_empty() {
        reader.rx_burst(&mut Burst::new()).ok()?;
    }
    let mut types = reader.interfaces().iter().map(|interface| interface.link_type);
    let first = types.next().filter(|first| !is_ip(*first))?;
    (!types.any(is_ip)).then(|| first.to_string())
}

/// Warnings about interfaces that are ports: whatever else takes the frames that they receive.
pub(crate) fn warnings(settings: &Settings) -> Vec<String> {
    let mut told = Vec::new();
    let ports = settings.ports.iter();
    let interfaces = ports.filter_map(|port| Some((port.at.line, port.interface()?)));
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
