//! The system calls that these tests need and `std` does not have.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, BorrowedFd};

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Moves the calling thread into a network namespace of its own, which ends with the last thread in it.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: takes no pointers; only the calling thread's namespace changes.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// What the socket sends from now on is cut to datagrams of `bytes`.
pub(crate) fn set_udp_segment(socket: &UdpSocket, bytes: c_int) -> io::Result<()> {
    let at = (&raw const bytes).cast::<c_void>();
    let (level, name, len) = (libc::SOL_UDP, libc::UDP_SEGMENT, size_of::<c_int>() as u32);
    // SAFETY: `at` points to an int of `len` bytes that lives until the call returns.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, at, len) }).map(drop)
}

/// Waits until one of these can be read, or failed, no longer than `milliseconds`; whether one can.
pub(crate) fn wait(fds: &[BorrowedFd<'_>], milliseconds: c_int) -> io::Result<bool> {
    let entry =
        |fd: &BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<_> = fds.iter().map(entry).collect();
    let count = entries.len() as libc::nfds_t;
    // SAFETY: `entries` holds `count` entries and lives until the call returns.
    checked(unsafe { libc::poll(entries.as_mut_ptr(), count, milliseconds) }).map(|ready| ready > 0)
}
