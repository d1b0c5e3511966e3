//! Opening ports of AF_XDP: the ports that a run opens together share their memory, so that frames cross from one to
//! the other uncopied.
//!
//! Contract: a port that is opened again has memory of its own, as the kernel no longer uses the old port's, and what
//! crosses from and to it is copied once. Memory is freed with its last port and frame.

use pktio::{AfXdpConfig, AfXdpPort, Opener, PortError, Umem};

use crate::config::{Kind, PortSettings, Settings};
use crate::ports::device::found;
use pktio::BoxedPort;

/// Opens ports of AF_XDP.
#[derive(Default)]
pub(crate) struct OpenXdp {
    /// Memory that the ports share; without it each has its own.
    umem: Option<Umem>,
}

impl OpenXdp {
    /// Makes memory for all ports of a run.
    ///
    /// # Errors
    /// A device is missing, or there is no such memory.
    pub(crate) fn sharing(settings: &Settings) -> Result<Self, PortError> {
        let configs = settings.ports.iter().filter_map(|port| config(port, settings));
        let configs: Vec<_> = configs.collect::<Result<_, _>>()?;
        let umem = (!configs.is_empty()).then(|| Umem::for_ports(&configs)).transpose()?;
        Ok(Self { umem })
    }

    /// Opens a port with a part of its device's queues for each worker, or for fewer if it has fewer; returns the
    /// device's name, those parts, and a warning.
    ///
    /// # Errors
    /// The port fails.
    pub(crate) fn open(
        &self,
        opener: &dyn Opener,
        port: &PortSettings,
        workers: usize,
        settings: &Settings,
    ) -> Result<(String, Vec<BoxedPort>, Option<String>), PortError> {
        let gone = || PortError::Gone { name: port.name.clone() };
        let config = config(port, settings).ok_or_else(gone)??;
        let port = match &self.umem {
            Some(umem) => AfXdpPort::open_by(opener, &config, umem)?,
            None => AfXdpPort::open_alone(opener, &config)?,
        };
        let (name, attached) = (config.interface, port.attached());
        let is_odd = attached.refused.is_some() || u32::from(attached.queues) < attached.channels;
        let odd = is_odd.then(|| format!("{name}: {attached}"));
        let parts = port.into_parts(workers)?.into_iter();
        let queues = parts.map(|part| Box::new(part) as BoxedPort).collect();
        Ok((name, queues, odd))
    }
}

/// The settings that a port is opened with, if it is of this kind.
fn config(port: &PortSettings, settings: &Settings) -> Option<Result<AfXdpConfig, PortError>> {
    let Kind::AfXdp { device, queues, mode } = &port.kind else { return None };
    Some(found(device).map(|name| AfXdpConfig {
        queues: *queues,
        mode: *mode,
        burst_frames: settings.burst.rx,
        kept_frames: settings.ring(),
        ..AfXdpConfig::new(&name)
    }))
}
