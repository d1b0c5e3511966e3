//! [`XdpSockets`]: what of an AF_XDP port takes privileges to make. Whoever has them hands it to whoever has none.

use std::os::fd::OwnedFd;

use crate::xdp_mode::XdpMode;

/// A program on an interface, and the sockets that it hands frames to.
#[derive(Debug)]
pub struct XdpSockets {
    /// Keeps the program where it is.
    pub link: OwnedFd,
    /// By queue, from the first on.
    pub sockets: Vec<OwnedFd>,
    /// Who runs the program; never [`XdpMode::Auto`].
    pub mode: XdpMode,
    /// Why the driver does not, where it was asked first: the kernel's word.
    pub refused: Option<String>,
}
