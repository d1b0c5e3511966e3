//! Moves bytes. Ports that receive and transmit bursts of frames: capture files, joined ports in memory, and live
//! interfaces.
//!
//! Contract: nothing here looks inside a frame. A port yields bytes with what the capture knows about
//! them (time, link type, interface, direction, captured and wire length) and takes bytes back; what the
//! bytes mean is for the crates above. Offline ports are portable, need no privilege, and never panic
//! whatever a capture holds.
#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
mod af_packet;
#[cfg(target_os = "linux")]
mod af_xdp;
#[cfg(target_os = "linux")]
mod bpf;
mod burst;
#[cfg(target_os = "linux")]
pub mod datagram;
#[cfg(target_os = "linux")]
pub mod device;
mod envelope;
mod fault;
pub mod file;
mod frame;
mod link;
#[cfg(target_os = "linux")]
mod mapping;
mod memory;
mod memory_port;
mod opener;
pub mod pcap_file;
mod pool;
mod port;
mod readiness;
#[cfg(target_os = "linux")]
mod socket;
mod timestamp;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(target_os = "linux")]
mod vnet;
mod xdp_mode;
mod xdp_sockets;

#[cfg(target_os = "linux")]
pub use af_packet::{AfPacketConfig, AfPacketPort, Fanout, FanoutKind, FilterInstruction};
#[cfg(target_os = "linux")]
pub use af_xdp::{AfXdpConfig, AfXdpPort, Attached, SHORTEST_RINGS, Umem, XdpLacking, XdpLosses};
#[cfg(target_os = "linux")]
pub use bpf::instruction as bpf_instruction;
pub use burst::Burst;
pub use envelope::{Envelope, Lost};
pub use fault::{FaultCounts, FaultPort, FaultRates};
pub use frame::{
    ChecksumState, Direction, Frame, FrameMeta, FrameMut, LiveMeta, SegmentKind, Segments, VlanTag,
};
pub use link::LinkType;
#[cfg(target_os = "linux")]
pub use mapping::would_map;
pub use memory::{FrameBuf, Memory, Region, Taken};
pub use memory_port::MemoryPort;
pub use opener::{InProcess, Opener, TunLanes};
pub use pcap_file::{
    CaptureReader, CaptureWriter, Damage, EndOfFile, Interface, Pace, PacedReader, Speed,
};
pub use pool::Pool;
pub use port::{BoxedPort, Port, PortError, Stats};
pub use readiness::{Bell, Readiness};
pub use timestamp::Timestamp;
#[cfg(target_os = "linux")]
pub use tun::{Offloads, TunConfig, TunPort};
pub use xdp_mode::XdpMode;
pub use xdp_sockets::XdpSockets;
