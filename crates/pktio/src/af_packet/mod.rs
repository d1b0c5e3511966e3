//! [`AfPacketPort`]: an Ethernet interface through a packet socket. The port gets a copy of what the interface
//! receives, while the host's own stack still gets its own; what the port transmits passes the interface's queueing
//! discipline.
//!
//! Contract: frames are received without a copy, in blocks of a ring that the kernel fills (`ring.rs`), and sent from
//! where they lie (`send.rs`); the kernel copies them then. Frames that the host sends are not received. A vnet
//! header on both ways (`vnet.rs`) tells, and passes on, which checksums are unfinished and which frames are
//! superframes, so that such frames leave as they came; a VLAN tag that the kernel took out is put back.
//!
//! - The kernel sends a frame that is as long as the interface's MTU with a tag of 802.1Q, but not with a service
//!   tag: that is too long, unless the MTU is raised by its 4 bytes.
//! - A block comes when it is full, or after [`AfPacketConfig::drain_us`], in whole milliseconds: that is how long a
//!   frame on an idle link waits ([`AfPacketPort::block_timeout`]).
//! - A block goes back to the kernel with its last frame. The kernel fills blocks in turn: it stops at a block that is
//!   still out, and what arrives then is lost, and counted. So while more than half of the blocks are out, frames are
//!   copied to a pool, and their blocks go back at once. With no chunk free, they wait in the ring.
//! - An interface that goes down is reported as an error once, and what arrives after it is up again is received; until
//!   then the port is polled on a timer instead of its descriptor. A removed interface is reported, with its name, as
//!   an error from then on; the port has to be opened again.
//! - Promiscuous mode ends with the port. The ring, and the kernel's part of the socket, end with the last frame.
//! - Several ports of one process may share an interface's frames ([`Fanout`]). Fragments are not reassembled for that:
//!   all fragments of a packet go to one port, which need not be the port of their flow.
//!
//! Source: `packet(7)`; `Documentation/networking/packet_mmap.rst`; Linux `net/packet/af_packet.c`.

mod config;
mod header;
mod port;
mod ring;
mod send;
pub(crate) mod socket;
pub(crate) mod sys;

pub use config::{AfPacketConfig, Fanout, FanoutKind, FilterInstruction};
pub use port::AfPacketPort;
