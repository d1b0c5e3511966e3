//! How frames of an interface come to sockets: the program's attachment, native if the driver can, and what a port
//! says of it.
//!
//! Contract: the program is on the interface as long as the link is open, which the kernel also sees to when a process
//! ends. Sockets are in its map before they receive anything; a closed socket is out of it.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use super::bpf::{self, Program, SocketMap};
use super::sys;
use crate::af_packet::sys as packet_socket;
use crate::xdp_mode::XdpMode;
use crate::xdp_sockets::XdpSockets;

/// What a port is attached by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// What runs the program; never [`XdpMode::Auto`].
    pub mode: XdpMode,
    /// Why the driver does not, where it was asked first: the kernel's word.
    pub refused: Option<String>,
    /// Whether the device reads and writes the frames' memory itself, on all queues.
    pub is_zero_copy: bool,
    /// How many queues the port receives by.
    pub queues: u16,
    /// Number of the interface's receive queues. Frames of the others go to the kernel's stack.
    pub channels: u32,
}

impl fmt::Display for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.mode == XdpMode::Generic { "generic XDP" } else { "native XDP" })?;
        if let Some(refused) = &self.refused {
            write!(f, " (native: {refused})")?;
        }
        f.write_str(if self.is_zero_copy { ", zero-copy" } else { ", copied" })?;
        write!(f, ", {} of {} queues", self.queues, self.channels)
    }
}

/// Attaches a program, with a socket for each of the first `queues` queues.
pub(crate) fn sockets(
    name: &str,
    mode: XdpMode,
    queues: u16,
    channels: u32,
) -> io::Result<XdpSockets> {
    let index = packet_socket::index_of(name)?;
    // A process without the right fails here: the calls that follow may end a process whose system calls are
    // restricted.
    let sockets: Vec<OwnedFd> = (0..queues).map(|_| sys::socket()).collect::<io::Result<_>>()?;
    let map = SocketMap::new(channels)?;
    for (queue, socket) in (0..queues).zip(&sockets) {
        map.set(queue, socket)?;
    }
    // It keeps the map, and the link keeps it.
    let program = Program::load(&map)?;
    let native = || program.attach(index, bpf::NATIVE);
    let generic = || program.attach(index, bpf::GENERIC);
    let (link, mode, refused) = match mode {
        XdpMode::Native => (native(), XdpMode::Native, None),
        XdpMode::Generic => (generic(), XdpMode::Generic, None),
        XdpMode::Auto => match native() {
            Err(error) if is_for_generic(&error) => {
                (generic(), XdpMode::Generic, Some(error.to_string()))
            }
            native => (native, XdpMode::Native, None),
        },
    };
    Ok(XdpSockets { link: link.map_err(told)?, sockets, mode, refused })
}

/// Whether the driver refused what the stack may do: not where the process may not, or another program is there.
fn is_for_generic(error: &io::Error) -> bool {
    !matches!(error.raw_os_error(), Some(libc::EPERM | libc::EBUSY | libc::EEXIST | libc::ENODEV))
}

/// What the kernel's word means here, where that does not say it.
fn told(error: io::Error) -> io::Error {
    let what = match error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => "another XDP program is attached (ip link show)",
        Some(libc::ERANGE) => "the MTU, or that of its peer, is too large for native XDP",
        Some(libc::EOPNOTSUPP) => "the driver has no native XDP",
        Some(libc::EINVAL) => "no links of XDP programs: Linux 5.9 or later has them",
        _ => return error,
    };
    io::Error::new(error.kind(), what)
}
