//! [`Device`]: a device that runs, shared by the ports that are its queues.
//!
//! Contract: a device is closed with the last of these ports; a device that an EAL argument made is then removed, too.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::config::DpdkConfig;
use crate::eal::Eal;
use crate::mbuf::MbufPool;
use crate::sys::{self, Opened};

/// Bytes of a frame that an MTU does not count: addresses, EtherType, and two VLAN tags.
const LINK_BYTES: usize = 14 + 2 * 4;

/// A device that runs.
#[derive(Debug)]
pub(crate) struct Device {
    number: u16,
    pub(crate) queues: u16,
    /// Bytes of the longest frame that it sends.
    pub(crate) frame_bytes: usize,
    /// What it receives into.
    pub(crate) pool: Arc<MbufPool>,
}

impl Device {
    /// Starts a device.
    pub(crate) fn open(eal: &Eal, config: &DpdkConfig) -> io::Result<Self> {
        let devices = sys::devices();
        let is_it = |(name, number): &&(String, u16)| {
            *name == config.device || number.to_string() == config.device
        };
        let Some((_, number)) = devices.iter().find(is_it) else {
            let names: Vec<&str> = devices.iter().map(|(name, _)| &**name).collect();
            let what = format!("no such device; the EAL has: {}", names.join(" "));
            return Err(io::Error::new(ErrorKind::NotFound, what));
        };
        let socket = sys::socket_of(*number);
        let pool = MbufPool::at(eal, socket, config.free_burst.min(DpdkConfig::MOST_BURST))?;
        let mut opened = Opened { queues: config.queues.max(1), mtu: 0, socket };
        sys::start(*number, &mut opened, pool.pool)?;
        let frame_bytes = usize::from(opened.mtu) + LINK_BYTES;
        Ok(Self { number: *number, queues: opened.queues, frame_bytes, pool })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// Frames that it lost, of all queues.
    pub(crate) fn lost(&self) -> u64 {
        sys::lost(self.number)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        sys::close(self.number);
    }
}
