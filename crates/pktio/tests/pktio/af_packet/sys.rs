//! A packet socket as simple as can be, to hold the port to.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Reads and writes whole frames of the interface, without waiting.
pub(super) fn packet_socket(ifindex: u32) -> io::Result<File> {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers.
    let fd = checked(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the kernel has just given this descriptor to us, and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol,
        sll_ifindex: ifindex as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let (at, len) = ((&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32);
    // SAFETY: `at` points to a `sockaddr_ll` of `len` bytes that lives until the call returns.
    checked(unsafe { libc::bind(fd.as_raw_fd(), at, len) })?;
    Ok(fd.into())
}
