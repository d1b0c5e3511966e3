//! [`XdpSockets`]: the part of an AF_XDP port that takes privileges to make, so that an unprivileged process can get
//! it.

use std::os::fd::OwnedFd;

use crate::xdp_mode::XdpMode;

/// A program on an interface, and the sockets that it hands frames to.
#[derive(Debug)]
pub struct XdpSockets {
    /// Keeps the program where it is.
    pub link: OwnedFd,
    /// By queue, from the first on.
    pub sockets: Vec<OwnedFd>,
    /// What runs the program; never [`XdpMode::Auto`].
    pub mode: XdpMode,
    /// Why the driver does not, where it was asked first: the kernel's word.
    pub refused: Option<String>,
}
