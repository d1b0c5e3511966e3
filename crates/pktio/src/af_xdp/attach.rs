//! How frames of an interface come to sockets: the program's attachment, native if the driver can, and what a port
//! says of it.
//!
//! Contract: [`Attachment`] lasts as long as the last port of the interface; then the program is off the interface,
//! which the kernel also sees to when the process ends.

use std::fmt;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;

use super::bpf::{self, Program, SocketMap};
use crate::xdp_mode::XdpMode;

/// What a port is attached by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Who runs the program; never [`XdpMode::Auto`].
    pub mode: XdpMode,
    /// Why the driver does not, where it was asked first: the kernel's word.
    pub refused: Option<String>,
    /// Whether the device reads and writes the frames' memory itself, on all queues.
    pub is_zero_copy: bool,
    /// How many queues the port receives by.
    pub queues: u16,
    /// How many the interface receives by. What comes by others goes to the kernel's stack.
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

/// A program on an interface.
#[derive(Debug)]
pub(super) struct Attachment {
    /// Of the program, which it keeps, as that keeps the map.
    _link: OwnedFd,
    pub(super) map: SocketMap,
    pub(super) mode: XdpMode,
    pub(super) refused: Option<String>,
}

impl Attachment {
    /// Attaches the program; all frames go on to the stack until the map has sockets.
    pub(super) fn new(index: NonZeroU32, mode: XdpMode, queues: u32) -> io::Result<Self> {
        let map = SocketMap::new(queues)?;
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
        Ok(Self { _link: link.map_err(told)?, map, mode, refused })
    }
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
