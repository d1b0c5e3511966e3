//! The system calls about interfaces that no safe wrapper offers; everything around them is safe code.
//!
//! Contract: each function makes one call, with memory of its own that outlives it, and hands back what the kernel said.
//!
//! Source: `netdevice(7)`, `if_nameindex(3)`.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::c_ulong;

/// An `ifreq`: a name, and then flags.
type Request = [u8; size_of::<libc::ifreq>()];

/// Names of all interfaces.
pub(super) fn names() -> io::Result<Vec<String>> {
    // SAFETY: takes no arguments.
    let first = unsafe { libc::if_nameindex() };
    if first.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut names = Vec::new();
    let mut at = first;
    loop {
        // SAFETY: `at` is within the array, which ends with an entry of index 0.
        let entry = unsafe { at.read() };
        if entry.if_index == 0 || entry.if_name.is_null() {
            break;
        }
        // SAFETY: an entry with an index has a name that ends with a zero byte.
        let name = unsafe { CStr::from_ptr(entry.if_name) };
        names.push(name.to_string_lossy().into_owned());
        // SAFETY: this was not the last entry.
        at = unsafe { at.add(1) };
    }
    // SAFETY: this is what `if_nameindex` gave, and nothing of it is used any more.
    unsafe { libc::if_freenameindex(first) };
    Ok(names)
}

/// Flags of an interface (`IFF_…`), the lower half: all that can be asked for in this way.
pub(super) fn flags(name: &str) -> io::Result<i16> {
    let mut request = request(name)?;
    ask(libc::SIOCGIFFLAGS, &mut request)?;
    let at = libc::IFNAMSIZ;
    Ok(i16::from_ne_bytes([request[at], request[at + 1]]))
}

/// Sets them.
pub(super) fn set_flags(name: &str, flags: i16) -> io::Result<()> {
    let mut request = request(name)?;
    request[libc::IFNAMSIZ..libc::IFNAMSIZ + 2].copy_from_slice(&flags.to_ne_bytes());
    ask(libc::SIOCSIFFLAGS, &mut request)
}

fn request(name: &str) -> io::Result<Request> {
    let mut request = [0; size_of::<libc::ifreq>()];
    // The last byte stays 0.
    match request[..libc::IFNAMSIZ - 1].get_mut(..name.len()) {
        Some(room) => room.copy_from_slice(name.as_bytes()),
        None => return Err(io::Error::new(ErrorKind::InvalidInput, "longer than 15 bytes")),
    }
    Ok(request)
}

fn ask(what: c_ulong, request: &mut Request) -> io::Result<()> {
    let socket = socket()?;
    let at = request.as_mut_ptr();
    // SAFETY: the kernel reads and writes one `ifreq` at `at`, byte by byte; `request` has the size of one and outlives
    // the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), what as _, at) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Any socket will do to ask about interfaces.
fn socket() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
