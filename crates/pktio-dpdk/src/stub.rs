//! What there is without DPDK: an EAL that does not start, and so no port.
//!
//! Contract: the names of the real ones; none of these values can exist.

use pktio::{Burst, Port, PortError, Readiness, Stats};

use crate::config::{DpdkConfig, EalError};

/// DPDK's environment abstraction layer, which this build does not have.
#[derive(Clone, Debug)]
pub enum Eal {}

impl Eal {
    /// Says that there is none.
    ///
    /// # Errors
    /// Always [`EalError::NotBuilt`].
    pub fn init(_program: &str, _arguments: &[String]) -> Result<Self, EalError> {
        Err(EalError::NotBuilt)
    }

    /// Names of its devices.
    pub fn devices(&self) -> Vec<String> {
        match *self {}
    }
}

/// A queue of a device.
#[derive(Debug)]
pub enum DpdkPort {}

impl DpdkPort {
    /// Opens a device: one port for each queue.
    ///
    /// # Errors
    /// None: without an EAL it cannot be called.
    pub fn open(eal: &Eal, _config: &DpdkConfig) -> Result<Vec<Self>, PortError> {
        match *eal {}
    }

    /// The memory that its frames are in.
    pub fn mbufs(&self) -> Mbufs {
        match *self {}
    }
}

impl Port for DpdkPort {
    fn rx_burst(&mut self, _burst: &mut Burst) -> Result<usize, PortError> {
        match *self {}
    }

    fn tx_burst(&mut self, _burst: &mut Burst) -> Result<usize, PortError> {
        match *self {}
    }

    fn readiness(&self) -> Readiness<'_> {
        match *self {}
    }

    fn stats(&self) -> Stats {
        match *self {}
    }
}

/// How much of a port's memory is free.
#[derive(Clone, Debug)]
pub enum Mbufs {}

impl Mbufs {
    /// All mbufs.
    pub fn all(&self) -> usize {
        match *self {}
    }

    /// Mbufs that nobody has.
    pub fn free(&self) -> usize {
        match *self {}
    }
}
