//! A queue of a TUN device before it is a port's: what takes privileges to make.
//!
//! Source: Linux `Documentation/networking/tuntap.rst`, `drivers/net/tun.c` (`tun_set_iff`).

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;

use libc::c_int;
use rustix::thread::{CapabilitySet, capabilities};

use super::sys;
use crate::bpf;

/// IP packets, without the four bytes of protocol that TUN devices put before them by default.
const FLAGS: c_int = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
/// A program that is asked for each frame, and needs not be attached.
const SOCKET_FILTER: bpf::Kind = bpf::Kind { program: 1, attached: 0 };

/// A queue of the device `name`, which is made if there is none, and the name that it has.
pub(crate) fn open(name: &str, is_only: bool) -> io::Result<(OwnedFd, String)> {
    let queue = sys::open()
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", sys::CLONE_DEVICE)))?;
    let name = attach(&queue, name, is_only)?;
    Ok((queue.into(), name))
}

/// Up to `count` lanes of the only queue of the device `name`, of which the kernel chooses by a program, and the name that it has; one
/// lane where there cannot be more.
pub(crate) fn open_lanes(
    name: &str,
    count: u16,
    program: &[u64],
) -> io::Result<(Vec<OwnedFd>, String)> {
    let (first, name) = open(name, true)?;
    let mut all = vec![first];
    let load = || bpf::load(SOCKET_FILTER, program);
    let loaded = may_load().then(load).and_then(Result::ok);
    if loaded.is_some_and(|program| sys::set_steering(&all[0], &program).is_ok()) {
        let more = (1..count).map_while(|_| open(&name, false).ok());
        all.extend(more.map(|(lane, _)| lane));
    }
    Ok((all, name))
}

/// Whether the kernel lets this thread load programs. A service that may not load any may be killed for the system call, too.
fn may_load() -> bool {
    let may = CapabilitySet::BPF | CapabilitySet::SYS_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.intersects(may))
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
