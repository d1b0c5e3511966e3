//! Options of sockets of any family, for which packet and AF_XDP sockets have no safe wrapper.
//!
//! Contract: each function makes one call, with memory that outlives it, and hands back what the kernel said.
//!
//! Source: `setsockopt(2)`, `socket(7)`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use libc::{c_int, c_void, socklen_t};

/// What a call returned, or why it failed.
pub(crate) fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// `setsockopt(2)` of plain values: integers and structures of integers.
pub(crate) fn set<T: Copy>(
    socket: &OwnedFd,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    let len = size_of::<T>() as socklen_t;
    let at = ptr::from_ref(value).cast::<c_void>();
    // SAFETY: `at` points to `len` bytes that live until the call returns; the kernel only reads them.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, at, len) }).map(drop)
}

/// `getsockopt(2)` of integers and structures of integers: `value` as far as the kernel wrote it.
pub(crate) fn get<T: Copy>(
    socket: &OwnedFd,
    level: c_int,
    name: c_int,
    value: &mut T,
) -> io::Result<()> {
    let mut len = size_of::<T>() as socklen_t;
    let at = ptr::from_mut(value).cast::<c_void>();
    // SAFETY: `at` points to `len` writable bytes, of which any are a valid `T`; the kernel writes no more.
    checked(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, at, &raw mut len) })
        .map(drop)
}

/// What happened to the socket since this was last asked, if anything did.
pub(crate) fn take_error(socket: &OwnedFd) -> Option<io::Error> {
    let mut code: c_int = 0;
    match get(socket, libc::SOL_SOCKET, libc::SO_ERROR, &mut code) {
        Ok(()) if code == 0 => None,
        Ok(()) => Some(io::Error::from_raw_os_error(code)),
        Err(error) => Some(error),
    }
}
