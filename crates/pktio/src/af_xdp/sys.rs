//! The system calls of an AF_XDP socket that no safe wrapper offers; everything around them is safe code, but for
//! `bpf.rs` and `umem.rs`.
//!
//! Contract: each function makes one call, with memory that outlives it, and hands back what the kernel said.
//! Descriptors are owned, and closed by `std`.
//!
//! Source: `Documentation/networking/af_xdp.rst`, `linux/if_xdp.h`, `netdevice(7)`, `linux/ethtool.h`, `epoll(7)`.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io::{self, ErrorKind};
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::{mem, ptr};

use libc::{c_int, c_ulong, socklen_t};

use crate::mapping::Mapping;
use crate::socket::{checked, get, set};

/// `ETHTOOL_GCHANNELS`.
const GET_CHANNELS: u32 = 0x3c;

/// An AF_XDP socket that is not inherited and has neither memory nor rings yet.
pub(super) fn socket() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = checked(unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) });
    // SAFETY: the kernel has just given this descriptor to us, and nobody else knows it.
    fd.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds the socket, which has memory and rings, to a queue of an interface (`XDP_COPY`, …).
pub(super) fn bind(socket: &OwnedFd, index: NonZeroU32, queue: u16, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: index.get(),
        sxdp_queue_id: queue.into(),
        sxdp_shared_umem_fd: 0,
    };
    let (at, len) = ((&raw const address).cast(), size_of_val(&address) as socklen_t);
    // SAFETY: `at` points to a `sockaddr_xdp` of `len` bytes that lives until the call returns.
    checked(unsafe { libc::bind(socket.as_raw_fd(), at, len) }).map(drop)
}

/// Makes all of `memory` the socket's UMEM, in chunks of `chunk_bytes`.
pub(super) fn register(socket: &OwnedFd, memory: &Mapping, chunk_bytes: usize) -> io::Result<()> {
    let request = libc::xdp_umem_reg {
        addr: memory.address(),
        len: memory.len() as u64,
        chunk_size: chunk_bytes as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &request)
}

/// Makes a ring of the socket (`XDP_RX_RING`, …) of as many entries, a power of two.
pub(super) fn set_ring(socket: &OwnedFd, name: c_int, entries: u32) -> io::Result<()> {
    set(socket, libc::SOL_XDP, name, &entries)
}

/// Where the parts of each ring lie in its mapping.
pub(super) fn offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: a structure of integers, for which all bits zero are valid.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { mem::zeroed() };
    get(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}

/// What the kernel counted since the socket was made.
pub(super) fn statistics(socket: &OwnedFd) -> io::Result<libc::xdp_statistics> {
    // SAFETY: a structure of integers, for which all bits zero are valid.
    let mut counts: libc::xdp_statistics = unsafe { mem::zeroed() };
    get(socket, libc::SOL_XDP, libc::XDP_STATISTICS, &mut counts)?;
    Ok(counts)
}

/// Whether the device reads and writes the UMEM itself.
pub(super) fn is_zero_copy(socket: &OwnedFd) -> io::Result<bool> {
    let mut options = libc::xdp_options { flags: 0 };
    get(socket, libc::SOL_XDP, libc::XDP_OPTIONS, &mut options)?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// Has the kernel look at the transmit ring.
pub(super) fn wake_tx(socket: &OwnedFd) -> io::Result<()> {
    let (fd, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT);
    // SAFETY: a message of no bytes, and no address: nothing is read by these pointers.
    let sent = unsafe { libc::sendto(fd, ptr::null(), 0, flags, ptr::null(), 0) };
    checked(sent as c_int).map(drop)
}

/// Has the kernel look at the fill ring.
pub(super) fn wake_rx(socket: &OwnedFd) -> io::Result<()> {
    let (fd, nothing) = (socket.as_raw_fd(), ptr::null_mut());
    // SAFETY: room of no bytes, and none for an address: nothing is written by these pointers.
    let received = unsafe {
        libc::recvfrom(fd, nothing, 0, libc::MSG_DONTWAIT, ptr::null_mut(), ptr::null_mut())
    };
    checked(received as c_int).map(drop)
}

/// Asks something of an interface; `socket` may be of any family whose kind passes such requests on.
fn ask(socket: &OwnedFd, request: c_ulong, asked: &mut libc::ifreq) -> io::Result<()> {
    let at = ptr::from_mut(asked);
    // SAFETY: `at` points to an `ifreq` that lives until the call returns; where it holds a pointer, its maker says
    // what that points to.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), request as _, at) }).map(drop)
}

fn request_of(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: a structure of integers and pointers, for which all bits zero are valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let name = CString::new(name).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    let bytes = name.as_bytes_with_nul();
    let Some(room) = request.ifr_name.get_mut(..bytes.len()) else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "longer than 15 bytes"));
    };
    room.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte as _);
    Ok(request)
}

/// The interface's MTU in bytes.
pub(super) fn mtu(socket: &OwnedFd, name: &str) -> io::Result<usize> {
    let mut request = request_of(name)?;
    ask(socket, libc::SIOCGIFMTU as c_ulong, &mut request)?;
    // SAFETY: the kernel has just written this field of the union, an int.
    Ok(usize::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
}

/// The interface's kind (`ARPHRD_…`).
pub(super) fn kind(socket: &OwnedFd, name: &str) -> io::Result<u16> {
    let mut request = request_of(name)?;
    ask(socket, libc::SIOCGIFHWADDR as c_ulong, &mut request)?;
    // SAFETY: the kernel has just written this field of the union, a `sockaddr`.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr }.sa_family)
}

/// How many queues the interface receives by; `None` where its driver does not say.
pub(super) fn channels(socket: &OwnedFd, name: &str) -> io::Result<Option<u32>> {
    // `struct ethtool_channels`: the command, four limits, then numbers of receiving, sending, other and combined ones.
    let mut channels = [GET_CHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut request = request_of(name)?;
    // The kernel writes as many words as the command has, which are there until `ask` returns.
    request.ifr_ifru.ifru_data = channels.as_mut_ptr().cast();
    match ask(socket, libc::SIOCETHTOOL as c_ulong, &mut request) {
        Ok(()) => Ok(Some(channels[5] + channels[8]).filter(|count| *count > 0)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A descriptor that can be read from while any of these can.
pub(super) fn any_of<'s>(sockets: impl Iterator<Item = &'s OwnedFd>) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the kernel has just given this descriptor to us, and nobody else knows it.
    let all = unsafe { OwnedFd::from_raw_fd(fd) };
    for socket in sockets {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let (all, one) = (all.as_raw_fd(), socket.as_raw_fd());
        // SAFETY: the event lives until the call returns.
        checked(unsafe { libc::epoll_ctl(all, libc::EPOLL_CTL_ADD, one, &raw mut event) })?;
    }
    Ok(all)
}
