//! Opening ports: from what a configuration says of them to what a worker drives.

use std::path::Path;

use pktio::{CaptureReader, FaultPort, MemoryPort, Pool, PortError};

use super::capture_port::CapturePort;
use super::config::{ConfigError, Kind, Named, PortSettings, Settings};
use super::wire::BoxedPort;

pub(super) use devices::Devices;

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
            Kind::AfPacket { .. }
            | Kind::AfXdp { .. }
            | Kind::Tun { .. }
            | Kind::Loopback
            | Kind::Fault { .. } => false,
        };
        if settings.ports.iter().any(is_used) {
            let what = format!("{}: expected a file of its own", path.display());
            return Err(settings.refuse(*at, what));
        }
    }
    Ok(())
}

/// Opens the port at a place of the configuration, with what the devices of one run share.
///
/// # Errors
/// The port fails.
pub(super) fn open(
    settings: &Settings,
    place: usize,
    shared: &mut Devices,
) -> Result<BoxedPort, PortError> {
    let PortSettings { name, kind, .. } = &settings.ports[place];
    Ok(match kind {
        Kind::Pcap { file, out } => {
            let [file, out] = [file, out].map(|named| named.as_ref().map(|named| &*named.path));
            Box::new(CapturePort::open(name, file, out)?)
        }
        Kind::AfPacket { device } => devices::af_packet(device)?,
        Kind::AfXdp { device, .. } => shared.af_xdp(settings, device)?,
        Kind::Tun { device } => devices::tun(device)?,
        Kind::Loopback => {
            let pool = Pool::new(2 * LOOPED, LOOPED_BYTES, 0);
            Box::new(MemoryPort::looped(&pool, LOOPED, LOOPED_BURST))
        }
        // Ports that it wraps stand before it.
        Kind::Fault { of, seed, rates } => {
            Box::new(FaultPort::new(open(settings, *of, shared)?, *seed, *rates))
        }
    })
}

/// Ports that are devices of the kernel's.
#[cfg(target_os = "linux")]
mod devices {
    use pktio::{
        AfPacketConfig, AfPacketPort, AfXdpConfig, AfXdpPort, Pool, PortError, TunConfig, TunPort,
        Umem,
    };

    use super::super::config::{Kind, PortSettings, Settings};
    use super::BoxedPort;

    /// Frames that are copied out of a ring that is nearly full, and bytes of each.
    const COPIES: usize = 512;
    /// Chunks of a TUN device's frames, which may be superframes, and the room before each.
    const CHUNKS: usize = 256;
    const CHUNK_BYTES: usize = 66 * 1024;
    const HEADROOM: usize = 64;
    /// Frames received at once.
    const BURST_FRAMES: usize = 64;

    /// What the devices of one run share, and what is odd about them.
    #[derive(Default)]
    pub(in super::super) struct Devices {
        /// One for all, so that frames go from one to the other as they lie.
        umem: Option<Umem>,
        pub(in super::super) warnings: Vec<String>,
    }

    impl Devices {
        pub(super) fn af_xdp(
            &mut self,
            settings: &Settings,
            device: &str,
        ) -> Result<BoxedPort, PortError> {
            let configs: Vec<AfXdpConfig> = settings.ports.iter().filter_map(xdp_config).collect();
            let umem = match &self.umem {
                Some(umem) => umem,
                None => self.umem.insert(Umem::for_ports(&configs)?),
            };
            let config = configs.iter().find(|config| config.interface == device);
            let gone = || PortError::Gone { name: device.to_owned() };
            let port = AfXdpPort::open(config.ok_or_else(gone)?, umem)?;
            let attached = port.attached();
            if attached.refused.is_some() || u32::from(attached.queues) < attached.channels {
                self.warnings.push(format!("{device}: {attached}"));
            }
            Ok(Box::new(port))
        }
    }

    fn xdp_config(port: &PortSettings) -> Option<AfXdpConfig> {
        let Kind::AfXdp { device, queues, mode } = &port.kind else { return None };
        Some(AfXdpConfig { queues: *queues, mode: *mode, ..AfXdpConfig::new(device) })
    }

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

    use super::super::config::Settings;
    use super::BoxedPort;

    /// There is nothing to share.
    #[derive(Default)]
    pub(in super::super) struct Devices {
        pub(in super::super) warnings: Vec<String>,
    }

    impl Devices {
        pub(super) fn af_xdp(
            &mut self,
            _settings: &Settings,
            device: &str,
        ) -> Result<BoxedPort, PortError> {
            Err(none(device))
        }
    }

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
