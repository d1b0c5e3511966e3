//! The system calls of a packet socket that no safe wrapper offers; everything around them is safe code.
//!
//! Contract: each function makes one call, with memory that outlives it, and hands back what the kernel said.
//! Descriptors are owned, and closed by `std`.
//!
//! Source: `packet(7)`, `linux/if_packet.h`, `Documentation/networking/packet_mmap.rst`, `sendmmsg(2)`.
#![allow(unsafe_code)]

use super::config::{BATCH, FilterInstruction};
use crate::socket::{checked, get, set};
use libc::{c_int, c_uint, c_ushort, sockaddr_ll, socklen_t};
use std::ffi::CString;
use std::io::{self, ErrorKind, IoSlice};
use std::mem;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Pieces of memory that a frame is sent from.
pub(super) const PIECES: usize = 4;

/// Every protocol, in the byte order that `bind(2)` wants it in.
const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A packet socket that neither blocks nor is inherited, and receives nothing before it is bound.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers.
    let fd = checked(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the kernel has just given this descriptor to us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The index of an interface in the calling thread's namespace.
pub(crate) fn index_of(name: &str) -> io::Result<NonZeroU32> {
    let name = CString::new(name).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    // SAFETY: `name` ends with a zero byte and lives until the call returns.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    NonZeroU32::new(index).ok_or_else(io::Error::last_os_error)
}

/// An address that is all of an interface: without a protocol yet.
fn address(index: u32) -> sockaddr_ll {
    sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: 0,
        sll_ifindex: index as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

/// Binds the socket to the interface: it receives all that the interface does from now on, and sends through it.
pub(super) fn bind(socket: &OwnedFd, index: NonZeroU32) -> io::Result<()> {
    let address = sockaddr_ll { sll_protocol: ALL_PROTOCOLS, ..address(index.get()) };
    let len = size_of::<sockaddr_ll>() as socklen_t;
    let at = (&raw const address).cast();
    // SAFETY: `at` points to a `sockaddr_ll` of `len` bytes that lives until the call returns.
    checked(unsafe { libc::bind(socket.as_raw_fd(), at, len) }).map(drop)
}

/// Returns the index of the interface that the socket is bound to, negative once the interface has been removed, and
/// the interface's kind (`ARPHRD_…`).
pub(super) fn bound(socket: &OwnedFd) -> io::Result<(c_int, c_ushort)> {
    let mut address = address(0);
    let mut len = size_of::<sockaddr_ll>() as socklen_t;
    let at = (&raw mut address).cast();
    // SAFETY: `at` points to `len` writable bytes, of which any are a valid `sockaddr_ll`.
    checked(unsafe { libc::getsockname(socket.as_raw_fd(), at, &raw mut len) })?;
    Ok((address.sll_ifindex, address.sll_hatype))
}

/// Sets an option of packet sockets.
pub(super) fn set_packet_option(socket: &OwnedFd, name: c_int, value: c_int) -> io::Result<()> {
    set(socket, libc::SOL_PACKET, name, &value)
}

/// Has the group that the socket is in share frames out by this program.
pub(super) fn set_program(socket: &OwnedFd, program: &[FilterInstruction]) -> io::Result<()> {
    let sock_filter = |FilterInstruction { code, jumps: [jt, jf], operand }: &_| {
        libc::sock_filter { code: *code, jt: *jt, jf: *jf, k: *operand }
    };
    let mut instructions: Vec<libc::sock_filter> = program.iter().map(sock_filter).collect();
    let len = c_ushort::try_from(instructions.len())
        .map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    // What it points to is there until `set` returns.
    let program = libc::sock_fprog { len, filter: instructions.as_mut_ptr() };
    set(socket, libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &program)
}

/// Makes the socket's receive ring.
pub(super) fn set_ring(socket: &OwnedFd, request: &libc::tpacket_req3) -> io::Result<()> {
    set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, request)
}

/// Takes the interface into promiscuous mode (`PACKET_ADD_MEMBERSHIP`), or out of it again (`PACKET_DROP_MEMBERSHIP`),
/// which the kernel also does when the socket is closed.
pub(crate) fn set_promiscuous(
    socket: &OwnedFd,
    option: c_int,
    index: NonZeroU32,
) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index.get() as c_int,
        mr_type: libc::PACKET_MR_PROMISC as c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(socket, libc::SOL_PACKET, option, &request)
}

/// Lets frames of `bytes` in all wait to be sent: beyond the system's limit where the process may.
pub(super) fn set_send_buffer(socket: &OwnedFd, bytes: c_int) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes))
}

/// Frames that the ring had no room for since this was last asked.
pub(super) fn take_lost(socket: &OwnedFd) -> io::Result<u32> {
    let mut stats = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
    get(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
    Ok(stats.tp_drops)
}

/// The group that the socket is in, and how its frames are shared out, as `PACKET_FANOUT` is set.
pub(super) fn fanout(socket: &OwnedFd) -> io::Result<u32> {
    let mut bits: u32 = 0;
    get(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &mut bits)?;
    Ok(bits)
}

/// Sends frames, each from its pieces in order, [`BATCH`] of them at most; how many the kernel took.
///
/// # Errors
/// When it took none: the error is the first frame's.
pub(super) fn send(socket: BorrowedFd<'_>, frames: &[[IoSlice<'_>; PIECES]]) -> io::Result<usize> {
    // SAFETY: an `mmsghdr` that is all zero is valid: null pointers, and lengths of 0.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    for (message, pieces) in messages.iter_mut().zip(frames) {
        message.msg_hdr.msg_iov = pieces.as_ptr().cast_mut().cast();
        message.msg_hdr.msg_iovlen = PIECES as _;
    }
    let (at, count) = (messages.as_mut_ptr(), frames.len().min(BATCH) as c_uint);
    // SAFETY: `at` points to `count` headers, each with `PIECES` slices, which are laid out as `iovec` (so `IoSlice`
    // promises) and borrowed until the call returns. The kernel reads them, and writes only the headers' lengths.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), at, count, libc::MSG_DONTWAIT as _) };
    checked(sent).map(|sent| sent as usize)
}
