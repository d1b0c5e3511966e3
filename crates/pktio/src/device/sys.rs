//! The system calls about interfaces that no safe wrapper offers; everything around them is safe code.
//!
//! Contract: each function makes one call, with memory of its own that outlives it, and hands back what the kernel said.
//!
//! Source: `netdevice(7)`, `if_nameindex(3)`, `linux/ethtool.h`.
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

/// A word that `ethtool` reads (`ETHTOOL_G…` of a `struct ethtool_value`).
pub(super) fn ethtool(name: &str, what: u32) -> io::Result<u32> {
    let mut value = [what, 0];
    ethtool_words(name, &mut value)?;
    Ok(value[1])
}

/// The name of an interface's driver.
pub(super) fn driver(name: &str) -> io::Result<String> {
    const GET_DRIVER: u32 = 3;
    // `struct ethtool_drvinfo`: the command, the driver's name in 32 bytes, and 160 more.
    let mut words = [0; 49];
    words[0] = GET_DRIVER;
    ethtool_words(name, &mut words)?;
    let bytes = words[1..9].iter().flat_map(|word: &u32| word.to_ne_bytes());
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Has `ethtool` carry out a command, the first of these words, which are all that its structure has.
fn ethtool_words<const N: usize>(name: &str, words: &mut [u32; N]) -> io::Result<()> {
    let mut request = request(name)?;
    // The kernel reads and writes the command's structure, which is there until `ask` returns.
    let at = (words.as_mut_ptr() as usize).to_ne_bytes();
    request[libc::IFNAMSIZ..][..at.len()].copy_from_slice(&at);
    ask(libc::SIOCETHTOOL, &mut request)
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
    // the call. Where it holds an address, its maker says what is there.
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
