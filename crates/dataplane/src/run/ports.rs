//! Opening ports: from what a configuration says of them to what a worker drives.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pktio::{CaptureReader, FaultPort, MemoryPort, Pool, PortError};

use super::capture_port::CapturePort;
use super::config::{BurstSettings, ConfigError, Gone, Kind, Named, PortSettings, Settings};
use super::device::{Device, Open, Opened};
use super::topology;
use super::wire::BoxedPort;
use super::workers::Queues;

/// Frames that a loopback holds, and hands over at a time.
const LOOPED: usize = 1024;
const LOOPED_BURST: usize = 64;
/// Bytes of a frame of the largest MTU of Ethernet, with tags.
const LOOPED_BYTES: usize = 2048;

/// Whether everything that ports need is there; nothing is made or changed.
///
/// # Errors
/// A capture cannot be read, or is none, or the folder of one that is to be written is not there.
pub(super) fn check(settings: &Settings) -> Result<(), ConfigError> {
    for port in &settings.ports {
        let Kind::Pcap { file, out } = &port.kind else { continue };
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
            Kind::Pcap { file, out } => {
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

/// A port that is open.
pub(super) struct OpenPort {
    pub(super) queues: Queues,
    /// What it is to be looked after by, if it is a device that may go and come back.
    pub(super) device: Option<Arc<Device>>,
}

/// Opens the port at a place of the configuration, with a queue for each of so many workers if it has several.
///
/// # Errors
/// The port fails.
pub(super) fn open(
    settings: &Settings,
    place: usize,
    workers: usize,
) -> Result<OpenPort, PortError> {
    let PortSettings { name, kind, gone } = &settings.ports[place];
    let is_device = matches!(kind, Kind::AfPacket { .. } | Kind::Tun { .. });
    if !is_device || *gone == Gone::End {
        let queues = open_queues(settings, place, workers)?.queues;
        return Ok(OpenPort { queues, device: None });
    }
    let (name, settings) = (name.clone(), settings.clone());
    let open: Open = Box::new(move || match open_queues(&settings, place, workers)? {
        Found { name, idle_latency, queues: Queues::Each(queues) } => {
            Ok(Opened { name, queues, idle_latency })
        }
        Found { name, idle_latency, queues: Queues::One(queue) } => {
            Ok(Opened { name, queues: vec![queue], idle_latency })
        }
    });
    let (device, queues) = Device::open(&name, open)?;
    let queues = queues.into_iter().map(|queue| Box::new(queue) as BoxedPort).collect();
    Ok(OpenPort { queues: Queues::Each(queues), device: Some(device) })
}

/// Queues of a port as it was found: by the name that its device has.
struct Found {
    name: String,
    queues: Queues,
    idle_latency: Duration,
}

/// Opens the queues of the port at a place, the first time and each time that its device has come back: the only way to
/// what needs privileges.
fn open_queues(settings: &Settings, place: usize, workers: usize) -> Result<Found, PortError> {
    let PortSettings { name, kind, .. } = &settings.ports[place];
    let port: BoxedPort = match kind {
        Kind::Pcap { file, out } => {
            let [file, out] = [file, out].map(|named| named.as_ref().map(|named| &*named.path));
            Box::new(CapturePort::open(name, file, out)?)
        }
        Kind::AfPacket { device } => {
            let name = devices::found(device)?;
            let (queues, idle_latency) = devices::af_packet(&name, workers, settings.burst)?;
            return Ok(Found { name, queues: Queues::Each(queues), idle_latency });
        }
        Kind::Tun { device } => {
            let queues = Queues::Each(devices::tun(device, workers, settings.burst)?);
            return Ok(Found { name: device.clone(), queues, idle_latency: Duration::ZERO });
        }
        Kind::Loopback => {
            let pool = Pool::new(2 * LOOPED, LOOPED_BYTES, 0);
            Box::new(MemoryPort::looped(&pool, LOOPED, LOOPED_BURST))
        }
        // Ports that it wraps stand before it, and are opened with one queue.
        Kind::Fault { of, seed, rates } => match open_queues(settings, *of, 1)?.queues {
            Queues::One(port) => Box::new(FaultPort::new(port, *seed, *rates)),
            Queues::Each(ports) => {
                let port = ports.into_iter().next().ok_or_else(|| gone(name))?;
                Box::new(FaultPort::new(port, *seed, *rates))
            }
        },
    };
    let idle_latency = Duration::ZERO;
    Ok(Found { name: name.clone(), queues: Queues::One(port), idle_latency })
}

/// Devices whose memory is far from workers that use it.
pub(super) fn apart(settings: &Settings, cores: &[Option<usize>]) -> Vec<String> {
    let devices = settings.ports.iter().filter_map(|port| match &port.kind {
        Kind::AfPacket { device } => Some(device),
        Kind::Tun { .. } | Kind::Pcap { .. } | Kind::Loopback | Kind::Fault { .. } => None,
    });
    devices.filter_map(|device| topology::apart(device, cores)).collect()
}

fn gone(name: &str) -> PortError {
    PortError::Gone { name: name.to_owned() }
}

/// Ports that are devices of the kernel's.
#[cfg(target_os = "linux")]
mod devices {
    use std::io::{self, ErrorKind};
    use std::time::Duration;

    use pktio::{AfPacketConfig, AfPacketPort, Pool, PortError, TunConfig, TunPort};

    use super::super::device::is_like;
    use super::{BoxedPort, BurstSettings};

    /// Frames that are copied out of a ring that is nearly full, and bytes of each.
    const COPIES: usize = 512;
    /// Chunks of a TUN device's frames, which may be superframes, and the room before each.
    const CHUNKS: usize = 256;
    const CHUNK_BYTES: usize = 66 * 1024;
    const HEADROOM: usize = 64;
    /// The device of this name, or the first one that is like it.
    pub(super) fn found(device: &str) -> Result<String, PortError> {
        if !device.contains(['*', '?']) {
            return Ok(device.to_owned());
        }
        let failed = |source| PortError::Io { name: device.to_owned(), offset: 0, source };
        let mut names = pktio::device::names().map_err(failed)?.into_iter();
        let first = names.find(|name| is_like(name, device));
        first.ok_or_else(|| failed(io::Error::new(ErrorKind::NotFound, "no such device")))
    }

    pub(super) fn af_packet(
        device: &str,
        queues: usize,
        burst: BurstSettings,
    ) -> Result<(Vec<BoxedPort>, Duration), PortError> {
        let pool = Pool::new(COPIES, CHUNK_BYTES, HEADROOM);
        let BurstSettings { rx, tx, drain_us } = burst;
        let config = AfPacketConfig {
            burst_frames: rx,
            send_frames: tx,
            drain_us,
            ..AfPacketConfig::new(device)
        };
        let ports = AfPacketPort::open_queues(&config, queues as u16, &pool)?;
        let idle_latency = ports.first().map(AfPacketPort::block_timeout).unwrap_or_default();
        let ports = ports.into_iter().map(|port| Box::new(port) as BoxedPort).collect();
        Ok((ports, idle_latency))
    }

    pub(super) fn tun(
        device: &str,
        queues: usize,
        burst: BurstSettings,
    ) -> Result<Vec<BoxedPort>, PortError> {
        let pool = Pool::new(CHUNKS.max(2 * burst.rx) * queues, CHUNK_BYTES, HEADROOM);
        let config = TunConfig {
            name: device.to_owned(),
            queues: queues as u16,
            offload: true,
            burst_frames: burst.rx,
        };
        let ports = TunPort::open(&config, &pool)?;
        Ok(ports.into_iter().map(|port| Box::new(port) as BoxedPort).collect())
    }
}

#[cfg(not(target_os = "linux"))]
mod devices {
    use std::io;
    use std::time::Duration;

    use pktio::PortError;

    use super::{BoxedPort, BurstSettings};

    fn none(device: &str) -> PortError {
        let source = io::ErrorKind::Unsupported.into();
        PortError::Io { name: device.to_owned(), offset: 0, source }
    }

    pub(super) fn found(device: &str) -> Result<String, PortError> {
        Ok(device.to_owned())
    }

    pub(super) fn af_packet(
        device: &str,
        _: usize,
        _: BurstSettings,
    ) -> Result<(Vec<BoxedPort>, Duration), PortError> {
        Err(none(device))
    }

    pub(super) fn tun(
        device: &str,
        _: usize,
        _: BurstSettings,
    ) -> Result<Vec<BoxedPort>, PortError> {
        Err(none(device))
    }
}
