//! Opening ports: from what a configuration says of them to what a worker drives.

use std::path::Path;

use pktio::{CaptureReader, FaultPort, MemoryPort, Pool, PortError};

use super::capture_port::CapturePort;
use super::config::{ConfigError, Kind, Named, PortSettings, Settings};
use super::wire::BoxedPort;

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
            Kind::Loopback | Kind::Fault { .. } => false,
        };
        if settings.ports.iter().any(is_used) {
            let what = format!("{}: expected a file of its own", path.display());
            return Err(settings.refuse(*at, what));
        }
    }
    Ok(())
}

/// Opens the port at a place of the configuration.
///
/// # Errors
/// The port fails.
pub(super) fn open(settings: &Settings, place: usize) -> Result<BoxedPort, PortError> {
    let PortSettings { name, kind, .. } = &settings.ports[place];
    Ok(match kind {
        Kind::Pcap { file, out } => {
            let [file, out] = [file, out].map(|named| named.as_ref().map(|named| &*named.path));
            Box::new(CapturePort::open(name, file, out)?)
        }
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
