//! The system calls of a UDP socket that no safe wrapper offers; everything around them is safe code.
//!
//! Contract: each function makes one call, with memory that outlives it, and hands back what the kernel said.
//! Descriptors are owned, and closed by `std`. (`nix` sends the same control messages with all of a batch; these
//! differ.)
//!
//! Source: `sendmmsg(2)`, `recvmmsg(2)`, `udp(7)`.
#![allow(unsafe_code)]

use super::address::Address;
use super::arrived::Slot;
use super::message::BATCH;
use super::outgoing::Outgoing;
use crate::socket::checked;
use libc::{c_int, c_uint};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// The two system calls, for tests to stand in for.
pub(super) trait Calls {
    /// Receives messages into rooms, one into each, and tells each in its slot; how many came.
    fn receive(&self, rooms: &mut [IoSliceMut<'_>], slots: &mut [Slot]) -> io::Result<usize>;

    /// Sends messages, each from its pieces; how many were taken. An error is the first message's.
    fn send(&self, outgoing: &[Outgoing], pieces: &[IoSlice<'_>]) -> io::Result<usize>;
}

impl Calls for OwnedFd {
    fn receive(&self, rooms: &mut [IoSliceMut<'_>], slots: &mut [Slot]) -> io::Result<usize> {
        // SAFETY: an `mmsghdr` that is all zero is valid: null pointers, and lengths of 0.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let count = rooms.len().min(slots.len()).min(BATCH);
        for ((message, room), slot) in
            messages.iter_mut().zip(rooms.iter_mut()).zip(slots.iter_mut())
        {
            let header = &mut message.msg_hdr;
            header.msg_name = slot.address.bytes.as_mut_ptr().cast();
            header.msg_namelen = slot.address.bytes.len() as _;
            header.msg_iov = ptr::from_mut(room).cast();
            header.msg_iovlen = 1;
            header.msg_control = slot.control.bytes.as_mut_ptr().cast();
            header.msg_controllen = slot.control.bytes.len() as _;
        }
        let (fd, at, flags) = (self.as_raw_fd(), messages.as_mut_ptr(), libc::MSG_DONTWAIT as _);
        // SAFETY: `at` points to `count` headers. Each has a name and control messages in a slot of its own, and one room,
        // which is laid out as `iovec` (so `IoSliceMut` promises); all are borrowed mutably until the call returns, and the
        // kernel writes no more bytes than the given lengths. It is given no time.
        let came =
            checked(unsafe { libc::recvmmsg(fd, at, count as c_uint, flags, ptr::null_mut()) })?
                as usize;
        for (slot, message) in slots.iter_mut().zip(&messages[..came.min(count)]) {
            let header = &message.msg_hdr;
            slot.address.length = header.msg_namelen as usize;
            slot.control.length = header.msg_controllen as _;
            slot.length = message.msg_len as usize;
            slot.is_cut = header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
        }
        Ok(came.min(count))
    }

    fn send(&self, outgoing: &[Outgoing], pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        // SAFETY: an `mmsghdr` that is all zero is valid: null pointers, and lengths of 0.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let count = outgoing.len().min(BATCH);
        for (message, outgoing) in messages.iter_mut().zip(outgoing) {
            let pieces = pieces.get(outgoing.pieces.clone()).unwrap_or_default();
            let header = &mut message.msg_hdr;
            header.msg_name = outgoing.address.bytes.as_ptr().cast_mut().cast();
            header.msg_namelen = outgoing.address.length as _;
            header.msg_iov = pieces.as_ptr().cast_mut().cast();
            header.msg_iovlen = pieces.len() as _;
            header.msg_control = outgoing.control.bytes.as_ptr().cast_mut().cast();
            header.msg_controllen = outgoing.control.length as _;
        }
        let (fd, at, flags) = (self.as_raw_fd(), messages.as_mut_ptr(), libc::MSG_DONTWAIT as _);
        // SAFETY: `at` points to `count` headers, each with an address, control messages and slices, which are laid out
        // as `iovec` (so `IoSlice` promises), all borrowed until the call returns. The kernel reads them, and writes only
        // the headers' lengths.
        let sent = unsafe { libc::sendmmsg(fd, at, count as c_uint, flags) };
        checked(sent).map(|sent| sent as usize)
    }
}

/// A socket for datagrams that neither blocks nor is inherited.
pub(super) fn socket(family: c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers.
    let fd = checked(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: the kernel has just given this descriptor to us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Receives at this address from now on.
pub(super) fn bind(socket: &OwnedFd, address: &Address) -> io::Result<()> {
    let at = address.bytes.as_ptr().cast();
    // SAFETY: `at` points to `length` bytes that live until the call returns; the kernel copies them, whatever their
    // alignment.
    checked(unsafe { libc::bind(socket.as_raw_fd(), at, address.length as _) }).map(drop)
}

/// Receives from this address alone from now on.
pub(super) fn connect(socket: &OwnedFd, address: &Address) -> io::Result<()> {
    let at = address.bytes.as_ptr().cast();
    // SAFETY: `at` points to `length` bytes that live until the call returns; the kernel copies them, whatever their
    // alignment.
    checked(unsafe { libc::connect(socket.as_raw_fd(), at, address.length as _) }).map(drop)
}

/// The address that the socket is bound to.
pub(super) fn bound(socket: &OwnedFd) -> io::Result<Address> {
    let mut address = Address::EMPTY;
    let mut length = address.bytes.len() as libc::socklen_t;
    let at = address.bytes.as_mut_ptr().cast();
    // SAFETY: `at` points to `length` writable bytes; the kernel writes no more, byte by byte.
    checked(unsafe { libc::getsockname(socket.as_raw_fd(), at, &raw mut length) })?;
    address.length = length as usize;
    Ok(address)
}

/// `setsockopt(2)` of text.
pub(super) fn set_text(socket: &OwnedFd, name: c_int, text: &str) -> io::Result<()> {
    let (fd, at, length) = (socket.as_raw_fd(), text.as_ptr().cast(), text.len() as _);
    // SAFETY: `at` points to `length` bytes that live until the call returns; the kernel only reads them.
    checked(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, name, at, length) }).map(drop)
}
