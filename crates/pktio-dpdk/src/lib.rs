//! Ports over DPDK: everything that its drivers drive, from physical devices to `net_null`, as [`pktio::Port`]s.
//!
//! Contract: built where pkg-config finds libdpdk 22.11 (Debian: `libdpdk-dev`); elsewhere [`Eal::init`] says that it
//! was not, and nothing else can be called. The EAL is started once in a process, before anything else that needs its
//! privileges is given up: it maps pages and starts threads. Frames are mbufs, not copies of them.
//!
//! Source: the DPDK 22.11 programmer's guide (environment abstraction layer, mempool, mbuf, poll mode driver).
#![deny(unsafe_code)]

mod config;
#[cfg(dpdk)]
mod device;
#[cfg(dpdk)]
mod eal;
#[cfg(dpdk)]
mod mbuf;
#[cfg(dpdk)]
mod port;
#[cfg(not(dpdk))]
mod stub;
#[cfg(dpdk)]
mod sys;

pub use config::{DpdkConfig, EalError};
#[cfg(dpdk)]
pub use eal::Eal;
#[cfg(dpdk)]
pub use mbuf::Mbufs;
#[cfg(dpdk)]
pub use port::DpdkPort;
#[cfg(not(dpdk))]
pub use stub::{DpdkPort, Eal, Mbufs};

/// Whether it was built with DPDK: else every device is refused.
pub const IS_BUILT: bool = cfg!(dpdk);
