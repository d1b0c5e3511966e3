//! Ports of the kind `dpdk`: joins the crate that links DPDK to the crate that runs ports.
//!
//! Contract: the EAL starts with the first of them, and so before anything is given up that it needs; it ends with the
//! last port and frame.

use std::io;
use std::time::Duration;

use live::config::Settings;
use live::{BoxedPort, OpenDpdk};
use pktio::PortError;
use pktio_dpdk::{DpdkConfig, DpdkPort, Eal};

/// What the EAL calls this process.
const PROGRAM: &str = "tamis";

/// Opens ports of DPDK.
#[derive(Debug, Default)]
pub(crate) struct DpdkPorts {
    eal: Option<Eal>,
}

impl OpenDpdk for DpdkPorts {
    fn open(
        &mut self,
        settings: &Settings,
        device: &str,
        queues: u16,
    ) -> Result<Vec<BoxedPort>, PortError> {
        let eal = match &mut self.eal {
            Some(eal) => eal,
            none => none.insert(start(settings, device)?),
        };
        let burst = settings.burst;
        let config = DpdkConfig {
            queues,
            rx_burst: burst.rx,
            tx_burst: burst.tx,
            free_burst: burst.free,
            drain: Duration::from_micros(burst.drain_us.into()),
            ..DpdkConfig::new(device)
        };
        let ports = DpdkPort::open(eal, &config)?;
        Ok(ports.into_iter().map(|port| Box::new(port) as BoxedPort).collect())
    }
}

fn start(settings: &Settings, device: &str) -> Result<Eal, PortError> {
    Eal::init(PROGRAM, &settings.eal).map_err(|error| {
        let source = io::Error::other(error.to_string());
        PortError::Io { name: device.to_owned(), offset: 0, source }
    })
}
