//! Moves bytes. Ports that receive and transmit bursts of frames: capture files, an in-memory
//! loopback, and (later) live interfaces.
//!
//! Contract: nothing here looks inside a frame. A port yields bytes with what the capture knows about
//! them (time, link type, interface, direction, captured and wire length) and takes bytes back; what the
//! bytes mean is for the crates above. Offline ports are portable, need no privilege, and never panic
//! whatever a capture holds.
#![forbid(unsafe_code)]

mod burst;
mod fault;
mod frame;
mod link;
mod loopback;
pub mod pcap_file;
mod port;

pub use burst::Burst;
pub use fault::{FaultPort, FaultRates};
pub use frame::{Direction, Frame, FrameMeta, FrameMut, Timestamp};
pub use link::LinkType;
pub use loopback::LoopbackPort;
pub use pcap_file::{CaptureReader, Damage, EndOfFile, Interface};
pub use port::{Port, PortError, Stats};
