//! Opening ports: from what a configuration says of them to what a worker drives.

use std::path::Path;

use pktio::{CaptureReader, FaultPort, MemoryPort, Pool, PortError};

use super::capture_port::CapturePort;
use super::config::{ConfigError, Kind, Named, PortSettings, Settings, Ttl, WireSettings};
use super::wire::BoxedPort;
use super::{device, doctor};
use crate::arrival::Crossing;

/// Frames that a loopback holds, and hands over at a time.
const LOOPED: usize = 1024;
const LOOPED_BURST: usize = 64;
/// Bytes of a frame of the largest MTU of Ethernet, with tags.
const LOOPED_BYTES: usize = 2048;

/// Whether everything that ports need is there; nothing is made or changed.
///
/// # Errors
/// A capture cannot be read, or is none, or the folder of one that is to be written is not there; there is no such
/// interface.
pub(super) fn check(settings: &Settings) -> Result<(), ConfigError> {
    for port in &settings.ports {
        if let Kind::AfPacket { device } = &port.kind {
            let names = device::names();
            if !names.contains(device) {
                let what = format!("expected one of the interfaces {}", names.join(" "));
                return Err(settings.refuse(port.at, format!("{what}, found \"{device}\"")));
            }
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
            Kind::AfPacket { .. } | Kind::Tun { .. } | Kind::Loopback | Kind::Fault { .. } => false,
        };
        if settings.ports.iter().any(is_used) {
            let what = format!("{}: expected a file of its own", path.display());
            return Err(settings.refuse(*at, what));
        }
    }
    Ok(())
}

/// What is odd about interfaces that ports are: whatever else takes frames that come in by them.
pub(super) fn warnings(settings: &Settings) -> Vec<String> {
    let mut told = Vec::new();
    let interfaces = settings.ports.iter().filter_map(|port| match &port.kind {
        Kind::AfPacket { device } => Some((port.at.line, device)),
        _ => None,
    });
    for (line, name) in interfaces {
        let mut tell = |what: String| told.push(format!("{}:{line}: {name} {what}", settings.file));
        if let Some(master) = device::master(name) {
            tell(format!(
                "belongs to {master}, which takes its frames as well: ip link set {name} nomaster"
            ));
        }
        for address in device::addresses(name) {
            tell(format!(
                "has the address {address}: its host answers as well: ip addr flush dev {name}"
            ));
        }
        for setting in device::forwarding(name) {
            let what = "is forwarded from by its host, which may pass frames on a second time";
            tell(format!("{what}: {setting} is 1"));
        }
    }
    if settings.ports.iter().any(|port| matches!(port.kind, Kind::AfPacket { .. }))
        && let Some((why, todo)) = doctor::packet_socket()
    {
        told.push(format!("{}: af_packet: {why}: {todo}", settings.file));
    }
    told
}

/// How frames cross a wire in each direction, once its ports are open.
pub(super) fn crossings(settings: &Settings, wire: &WireSettings) -> [Crossing; 2] {
    let ages = wire.ttl == Ttl::Lower;
    let [first, second] = wire.ports.map(|place| mtu(settings, place));
    [[second, first], [first, second]].map(|[mtu, mtu_back]| Crossing { ages, mtu, mtu_back })
}

/// Bytes of the longest packet of the port at a place: as its device says, or as it is given.
fn mtu(settings: &Settings, place: usize) -> Option<u32> {
    let port = settings.ports.get(place)?;
    match &port.kind {
        Kind::AfPacket { device } | Kind::Tun { device } => device::mtu(device),
        Kind::Fault { of, .. } => mtu(settings, *of),
        Kind::Pcap { .. } | Kind::Loopback => port.mtu,
    }
}

/// Opens the port at a place of the configuration.
///
/// # Errors
/// The port fails.
pub(super) fn open(settings: &Settings, place: usize) -> Result<BoxedPort, PortError> {
    let PortSettings { name, kind, .. } = &settings.ports[place];
    Ok(match kind {
        Kind::Pcap { file, pace, out } => {
            let [file, out] = [file, out].map(|named| named.as_ref().map(|named| &*named.path));
            Box::new(CapturePort::open(name, file, *pace, out)?)
        }
        Kind::AfPacket { device } => devices::af_packet(device)?,
        Kind::Tun { device } => devices::tun(device)?,
        Kind::Loopback => {
            let pool = Pool::new(2 * LOOPED, LOOPED_BYTES, 0);
            Box::new(MemoryPort::looped(&pool, LOOPED, LOOPED_BURST))
        }
        // Ports that it wraps stand before it.
        Kind::Fault { of, seed, rates } => {
            Box::new(FaultPort::new(open(settings, *of)?, *seed, *rates))
        }
    })
}

/// Ports that are devices of the kernel's.
#[cfg(target_os = "linux")]
mod devices {
    use pktio::{AfPacketConfig, AfPacketPort, Pool, PortError, TunConfig, TunPort};

    use super::BoxedPort;

    /// Frames that are copied out of a ring that is nearly full, and bytes of each.
    const COPIES: usize = 512;
    /// Chunks of a TUN device's frames, which may be superframes, and the room before each.
    const CHUNKS: usize = 256;
    const CHUNK_BYTES: usize = 66 * 1024;
    const HEADROOM: usize = 64;
    /// Frames received at once.
    const BURST_FRAMES: usize = 64;

    pub(super) fn af_packet(device: &str) -> Result<BoxedPort, PortError> {
        let pool = Pool::new(COPIES, CHUNK_BYTES, HEADROOM);
        Ok(Box::new(AfPacketPort::open(&AfPacketConfig::new(device), &pool)?))
    }

    pub(super) fn tun(device: &str) -> Result<BoxedPort, PortError> {
        let pool = Pool::new(CHUNKS, CHUNK_BYTES, HEADROOM);
        let (name, offload) = (device.to_owned(), true);
        let config = TunConfig { name, queues: 1, offload, burst_frames: BURST_FRAMES };
        let port = TunPort::open(&config, &pool)?.pop();
        Ok(Box::new(port.ok_or_else(|| PortError::Gone { name: device.to_owned() })?))
    }
}

#[cfg(not(target_os = "linux"))]
mod devices {
    use std::io;

    use pktio::PortError;

    use super::BoxedPort;

    fn none(device: &str) -> PortError {
        let source = io::ErrorKind::Unsupported.into();
        PortError::Io { name: device.to_owned(), offset: 0, source }
    }

    pub(super) fn af_packet(device: &str) -> Result<BoxedPort, PortError> {
        Err(none(device))
    }

    pub(super) fn tun(device: &str) -> Result<BoxedPort, PortError> {
        Err(none(device))
    }
}
