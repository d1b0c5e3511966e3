//! The system calls of a TUN device that no safe wrapper offers; everything around them is safe code.
//!
//! Contract: each function makes one call, with memory of its own that outlives it, and hands back what the kernel
//! said. Reading, writing and closing are `std`'s.
//!
//! Source: `Documentation/networking/tuntap.rst`, `linux/if_tun.h`, `netdevice(7)`, `if_nametoindex(3)`.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use libc::{c_int, c_uint, c_ulong};

/// The device that TUN devices are made by.
pub(super) const CLONE_DEVICE: &str = "/dev/net/tun";

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A descriptor without a device, which neither blocks nor is inherited.
pub(super) fn open() -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(CLONE_DEVICE)
}

/// Makes the descriptor a queue of the device `name`, which is made if there is none; the name that it has.
pub(super) fn attach(queue: &File, name: &str, flags: c_int) -> io::Result<String> {
    let mut request = [0_u8; size_of::<libc::ifreq>()];
    let (name_room, rest) = request.split_at_mut(libc::IFNAMSIZ);
    // The last byte stays 0.
    let Some(room) = name_room[..libc::IFNAMSIZ - 1].get_mut(..name.len()) else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "longer than 15 bytes"));
    };
    room.copy_from_slice(name.as_bytes());
    rest[..2].copy_from_slice(&(flags as u16).to_ne_bytes());
    let at = request.as_mut_ptr();
    // SAFETY: TUNSETIFF reads and writes one `ifreq` at `at`; `request` has the size of one and outlives the call.
    // The kernel copies it byte by byte, so its alignment does not matter.
    checked(unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETIFF, at) })?;
    let given = request[..libc::IFNAMSIZ].split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(given).into_owned())
}

/// Sets how many bytes stand before each frame.
pub(super) fn set_header_length(queue: &File, bytes: usize) -> io::Result<()> {
    let bytes = bytes as c_int;
    let at = &raw const bytes;
    // SAFETY: TUNSETVNETHDRSZ reads one int at `at`, which lives until the call returns.
    checked(unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETVNETHDRSZ, at) })
}

/// Says what the reader of the device takes unfinished (`TUN_F_…`); the kernel finishes everything else before.
pub(super) fn set_offload(queue: &File, features: c_uint) -> io::Result<()> {
    let features = c_ulong::from(features);
    // SAFETY: TUNSETOFFLOAD takes a number, no pointer.
    checked(unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETOFFLOAD, features) })
}

/// Has the kernel ask a program for each frame which of the device's queues it goes to.
pub(super) fn set_steering(queue: &OwnedFd, program: &OwnedFd) -> io::Result<()> {
    let program = program.as_raw_fd();
    let at = &raw const program;
    // SAFETY: TUNSETSTEERINGEBPF reads one int at `at`, which lives until the call returns.
    checked(unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETSTEERINGEBPF, at) })
}

/// The index of a device in the calling thread's namespace.
pub(super) fn index_of(name: &str) -> Option<NonZeroU32> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` ends with a zero byte and lives until the call returns.
    NonZeroU32::new(unsafe { libc::if_nametoindex(name.as_ptr()) })
}
