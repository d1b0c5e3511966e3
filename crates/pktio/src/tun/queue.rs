//! A queue of a TUN device before it is a port's: what takes privileges to make.
//!
//! Source: Linux `Documentation/networking/tuntap.rst`, `drivers/net/tun.c` (`tun_set_iff`).

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;

use libc::c_int;

use super::sys;

/// IP packets, without the four bytes of protocol that TUN devices put before them by default.
const FLAGS: c_int = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;

/// A queue of the device `name`, which is made if there is none, and the name that it has.
pub(crate) fn open(name: &str, is_only: bool) -> io::Result<(OwnedFd, String)> {
    let queue = sys::open()
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", sys::CLONE_DEVICE)))?;
    let name = attach(&queue, name, is_only)?;
    Ok((queue.into(), name))
}

/// One queue among several needs a device that can have several; a device that was made for one has to do for one.
fn attach(queue: &File, name: &str, is_only: bool) -> io::Result<String> {
    match sys::attach(queue, name, FLAGS | libc::IFF_MULTI_QUEUE) {
        Err(error) if is_only && error.kind() == ErrorKind::InvalidInput => {
            sys::attach(queue, name, FLAGS)
        }
        attached => attached,
    }
}
