//! [`AfXdpPort`]: an Ethernet interface by way of AF_XDP. A program on the interface hands what comes in to sockets,
//! past the host's own stack, which does not see it.
//!
//! Contract: frames are received without a copy where the device writes to the [`Umem`] itself, and with the kernel's
//! one where not; they are transmitted from where they lie, if that is the same UMEM, else after one copy. Two ports
//! with one UMEM hand frames across as they are.
//!
//! - The program is attached by a link: it is removed with the port, or with the process, whatever ends that.
//! - A port has as many queues as are asked for and the interface has; frames of other queues go to the host's stack,
//!   so [`AfXdpPort::attached`] says how many there are. A worker may have a queue of its own
//!   ([`AfXdpPort::into_parts`]).
//! - Frames that may be longer than a chunk, by the MTU, are refused where the port is opened; superframes, which
//!   generic XDP hands over, are lost and counted.
//! - What the kernel knows of a frame besides its bytes is lost on this way: whether its checksum is unfinished
//!   ([`ChecksumState::MaybeUnfinished`]), and a VLAN tag that it took out. Of a virtual interface, the peer's
//!   offloads should be off (`ethtool -K PEER tx off tso off gso off txvlan off`).
//! - A frame is transmitted as its bytes say, with the tag of its [`LiveMeta`](crate::LiveMeta) put back; one whose
//!   checksum is unfinished is refused, and counted.
//! - While the interface is down nothing is received, and what is transmitted waits in the ring. A removed interface is
//!   an error from then on, with its name.
//! - Chunks that frames and rings of others have are not there to receive into: the kernel then loses frames, counted,
//!   until [`Port::rx_burst`] gives it chunks again.
//!
//! Source: `Documentation/networking/af_xdp.rst`; Linux `net/xdp/xsk.c`.

mod attach;
mod bpf;
mod config;
mod device;
mod port;
mod probe;
mod queue;
mod ring;
mod sys;
mod umem;

pub use self::attach::Attached;
pub(crate) use self::attach::sockets;
pub use self::config::AfXdpConfig;
pub use self::probe::XdpLacking;
pub use self::umem::Umem;
pub use port::{AfXdpPort, SHORTEST_RINGS, XdpLosses};
