//! [`Opener`]: the part of opening devices that takes privileges, so that another process may do it. [`InProcess`] asks
//! the kernel itself.
//!
//! Contract: everything else about a port works with the descriptor, and takes no privileges. A descriptor neither
//! blocks nor is inherited by programs. Names are resolved in the opener's namespace.
//!
//! Source: `packet(7)`, `netdevice(7)`, `Documentation/networking/tuntap.rst`; what asks for which capability: Linux
//! `net/packet/af_packet.c`, `drivers/net/tun.c`, `net/xdp/xsk.c`, `kernel/bpf/syscall.c`.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use crate::xdp_mode::XdpMode;
use crate::xdp_sockets::XdpSockets;

/// The lanes of a port, and the program by which the kernel chooses a frame's.
///
/// A frame waits for frames of its own lane alone. The frames of a lane keep their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunLanes {
    /// How many there are.
    pub count: u16,
    /// Instructions of eBPF, each as `bpf_instruction` makes it: a program of the kind `BPF_PROG_TYPE_SOCKET_FILTER`, which
    /// is asked for each frame, and whose result, divided by the number of lanes, leaves the lane as remainder.
    pub program: Vec<u64>,
}

/// Makes descriptors of devices, and takes links up and down.
pub trait Opener: fmt::Debug + Send + Sync {
    /// A packet socket that is bound to nothing yet. Takes `CAP_NET_RAW`, and `CAP_NET_ADMIN` for a long send buffer.
    ///
    /// # Errors
    /// The kernel refuses, or there is nobody to ask.
    fn packet_socket(&self) -> io::Result<OwnedFd>;

    /// A queue of the TUN device `name`, which is made if there is none, and the name that it has; `is_only` if no other
    /// queue is to be opened. Takes `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// The kernel refuses, or there is nobody to ask.
    fn tun_queue(&self, name: &str, is_only: bool) -> io::Result<(OwnedFd, String)>;

    /// The lanes of the only queue of the TUN device `name`, which is made if there is none, and the name that it has: one
    /// where the kernel has no such program for us, or a device of one queue is there. Takes `CAP_NET_ADMIN`, and `CAP_BPF`
    /// for more than one.
    ///
    /// # Errors
    /// The kernel refuses, or there is nobody to ask.
    fn tun_lanes(&self, name: &str, _: &TunLanes) -> io::Result<(Vec<OwnedFd>, String)> {
        self.tun_queue(name, true).map(|(queue, name)| (vec![queue], name))
    }

    /// Attaches a program to the interface `name`, which has `channels` queues: it hands the frames of each of the
    /// first `queues` to a socket of its own. Takes `CAP_NET_RAW`, `CAP_NET_ADMIN` and `CAP_BPF`. The sockets have yet
    /// to get memory, rings and a queue, which takes no privileges; until then frames of those queues are lost.
    ///
    /// # Errors
    /// The kernel refuses, or there is nobody to ask; another program is there.
    fn xdp_sockets(
        &self,
        name: &str,
        mode: XdpMode,
        queues: u16,
        channels: u32,
    ) -> io::Result<XdpSockets>;

    /// Takes an interface up or down. Takes `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// The kernel refuses, or there is nobody to ask; there is no interface of this name.
    fn set_up(&self, name: &str, is_up: bool) -> io::Result<()>;

    /// Whether there is somebody to ask.
    fn is_there(&self) -> bool {
        true
    }
}

/// This process, with the privileges that it has.
#[derive(Clone, Copy, Debug, Default)]
pub struct InProcess;

#[cfg(target_os = "linux")]
impl Opener for InProcess {
    fn packet_socket(&self) -> io::Result<OwnedFd> {
        crate::af_packet::socket::unbound()
    }

    fn tun_queue(&self, name: &str, is_only: bool) -> io::Result<(OwnedFd, String)> {
        crate::tun::queue::open(name, is_only)
    }

    fn tun_lanes(&self, name: &str, lanes: &TunLanes) -> io::Result<(Vec<OwnedFd>, String)> {
        crate::tun::queue::open_lanes(name, lanes.count, &lanes.program)
    }

    fn xdp_sockets(
        &self,
        name: &str,
        mode: XdpMode,
        queues: u16,
        channels: u32,
    ) -> io::Result<XdpSockets> {
        crate::af_xdp::sockets(name, mode, queues, channels)
    }

    fn set_up(&self, name: &str, is_up: bool) -> io::Result<()> {
        crate::device::set_up(name, is_up)
    }
}

#[cfg(not(target_os = "linux"))]
impl Opener for InProcess {
    fn packet_socket(&self) -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn tun_queue(&self, _: &str, _: bool) -> io::Result<(OwnedFd, String)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn xdp_sockets(&self, _: &str, _: XdpMode, _: u16, _: u32) -> io::Result<XdpSockets> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_up(&self, _: &str, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
