//! A packet socket before it is a port's: what takes privileges to make.
//!
//! Source: `packet(7)`, `socket(7)` (`SO_SNDBUFFORCE`).

use std::io;
use std::os::fd::OwnedFd;

use libc::c_int;

use super::sys;

/// Bytes of frames that may wait to be sent, with what the kernel adds to each.
const SEND_BUFFER: c_int = 4 << 20;

/// A socket for a port, bound to nothing yet.
pub(crate) fn unbound() -> io::Result<OwnedFd> {
    let socket = sys::socket()?;
    // Without it a queue of the usual length would not fill; with less it is only shorter.
    let _ = sys::set_send_buffer(&socket, SEND_BUFFER);
    Ok(socket)
}
