//! The system calls of the oracle, wrapped so that everything around them is safe code.
//!
//! This is the only file of the crate that opens `unsafe`: legacy xtables hands out its counters by
//! getsockopt(2) at its own levels, TUN devices are made by ioctl(2), and no safe wrapper offers either.
//! Contract: file descriptors are owned by the returned value; buffers are passed with their own length.
//!
//! Source: unshare(2), packet(7), netlink(7), `Documentation/networking/tuntap.rst`,
//! `linux/netfilter_ipv4/ip_tables.h`.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use libc::{c_int, c_void, sockaddr, sockaddr_ll, socklen_t};

/// Every protocol, in the byte order that socket(2) and bind(2) want it in.
const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();
/// Bytes before a buffer that hold its length.
#[cfg(target_arch = "x86_64")]
const LEN_ROOM: usize = 8;
/// Bytes that a reading socket may hold before it loses packets.
const RECEIVE_BUFFER: c_int = 64 << 20;

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Moves the calling thread into a network namespace of its own.
pub(super) fn unshare_network() -> io::Result<()> {
    // SAFETY: takes no pointers; only the calling thread's namespace changes.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Makes the TUN device `name` in the caller's namespace and opens it, non-blocking, for bare packets; a TAP device, for
/// frames, if it has Ethernet.
pub(super) fn open_tun(name: &str, ethernet: bool) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    let mut request = [0_u8; size_of::<libc::ifreq>()];
    let room = &mut request[..libc::IFNAMSIZ - 1];
    let len = name.len().min(room.len());
    room[..len].copy_from_slice(&name.as_bytes()[..len]);
    let kind = if ethernet { libc::IFF_TAP } else { libc::IFF_TUN };
    let flags = (kind | libc::IFF_NO_PI) as u16;
    request[libc::IFNAMSIZ..libc::IFNAMSIZ + 2].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, and `request` has the size of one.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, request.as_mut_ptr()) })?;
    Ok(file)
}

fn socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = checked(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the kernel has just given this descriptor to us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set_option(fd: &OwnedFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let len = size_of::<c_int>() as socklen_t;
    let value = (&raw const value).cast::<c_void>();
    // SAFETY: `value` points to an int of `len` bytes that lives until the call returns.
    checked(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value, len) }).map(drop)
}

/// A raw IPv4 or IPv6 socket: the handle by which xtables answers [`get_option`].
pub(super) fn raw_socket(ipv6: bool) -> io::Result<OwnedFd> {
    let family = if ipv6 { libc::AF_INET6 } else { libc::AF_INET };
    socket(family, libc::SOCK_RAW, libc::IPPROTO_RAW)
}

/// getsockopt(2) into `buffer`; the number of bytes the kernel says it wrote.
pub(super) fn get_option(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut len = buffer.len() as socklen_t;
    let at = buffer.as_mut_ptr().cast::<c_void>();
    // SAFETY: `at` points to `len` writable bytes, and the kernel writes no more than `len`.
    checked(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, at, &raw mut len) })?;
    Ok(len as usize)
}

/// [`get_option`] as a program of 32 bits asks, by the kernel's other gate: it answers in the form that such programs have
/// (`compat`), out of and into memory that 32 bits can address.
#[cfg(target_arch = "x86_64")]
pub(super) fn get_option_32(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    buffer: &mut [u8],
) -> io::Result<()> {
    /// getsockopt(2) among the system calls of i386.
    const GETSOCKOPT: i64 = 365;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
    let (protection, room) = (libc::PROT_READ | libc::PROT_WRITE, buffer.len() + LEN_ROOM);
    // SAFETY: asks for fresh memory, wherever the kernel has it.
    let low = unsafe { libc::mmap(std::ptr::null_mut(), room, protection, flags, -1, 0) };
    if low == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has `room` bytes, which only this function knows; the length stands in front of the buffer.
    let memory = unsafe { std::slice::from_raw_parts_mut(low.cast::<u8>(), room) };
    let (len, low_buffer) = memory.split_at_mut(LEN_ROOM);
    len[..4].copy_from_slice(&(buffer.len() as u32).to_ne_bytes());
    low_buffer.copy_from_slice(buffer);
    let mut result = GETSOCKOPT;
    // SAFETY: the kernel reads and writes the length and as many bytes as it says, which are this mapping's; rbx, which
    // holds the first argument, is as it was afterwards.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {first}",
            "int 0x80",
            "xchg rbx, {first}",
            first = inout(reg) i64::from(fd.as_raw_fd()) => _,
            inout("rax") result,
            in("rcx") i64::from(level),
            in("rdx") i64::from(name),
            in("rsi") low_buffer.as_mut_ptr(),
            in("rdi") len.as_mut_ptr(),
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    buffer.copy_from_slice(low_buffer);
    // SAFETY: the mapping is that of above, and nothing of it is used any more.
    checked(unsafe { libc::munmap(low, room) })?;
    // Of errors the low half is the number; the gate returns 32 bits.
    match result as i32 {
        0.. => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

/// A non-blocking packet socket on the interface: write(2) sends a frame past the queueing discipline,
/// read(2) takes one that came or went.
pub(super) fn packet_socket(ifindex: u32) -> io::Result<File> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
    let fd = socket(libc::AF_PACKET, kind, 0)?;
    set_option(&fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    set_option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)?;
    let address = sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ALL_PROTOCOLS,
        sll_ifindex: ifindex as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<sockaddr_ll>() as socklen_t;
    let at = (&raw const address).cast::<sockaddr>();
    // SAFETY: `at` points to a `sockaddr_ll` of `len` bytes that lives until the call returns.
    checked(unsafe { libc::bind(fd.as_raw_fd(), at, len) })?;
    Ok(File::from(fd))
}

/// A non-blocking netlink socket to netfilter's subsystems; the kernel names its port on first use.
pub(super) fn netfilter_socket() -> io::Result<File> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
    let fd = socket(libc::AF_NETLINK, kind, libc::NETLINK_NETFILTER)?;
    set_option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)?;
    Ok(File::from(fd))
}
