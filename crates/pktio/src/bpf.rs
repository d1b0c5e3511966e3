//! eBPF programs, by `bpf(2)`: assembled here, since programs of a few dozen instructions need neither a compiler nor a
//! loader.
//!
//! Source: `bpf(2)`, `linux/bpf.h`, `Documentation/bpf/standardization/instruction-set.rst`.
#![allow(unsafe_code)]

use std::ffi::c_long;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

const PROG_LOAD: c_long = 5;

/// What a program is asked for: its kind, and where it is to be attached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) program: u32,
    /// 0 where the kind says it all.
    pub(crate) attached: u32,
}

/// An instruction as the kernel has it, `struct bpf_insn`: the destination is the first of two bit fields of four bits.
#[must_use]
pub fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> u64 {
    let registers = match cfg!(target_endian = "little") {
        true => destination | source << 4,
        false => source | destination << 4,
    };
    let [c, d] = offset.to_ne_bytes();
    let [e, f, g, h] = immediate.to_ne_bytes();
    u64::from_ne_bytes([code, registers, c, d, e, f, g, h])
}

/// Makes the call with the attributes in these words; attributes beyond them are 0.
///
/// # Safety
/// Where the command takes an address in them, what it reads there has to live until the call returns.
pub(crate) unsafe fn bpf<const N: usize>(command: c_long, words: &[u32; N]) -> io::Result<i32> {
    let (at, length) = (words.as_ptr(), size_of_val(words));
    // SAFETY: the kernel reads `length` bytes at `at`, and what they point to, which the caller vouches for.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, at, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// The descriptor that a command has just made.
pub(crate) fn owned(fd: i32) -> OwnedFd {
    // SAFETY: `bpf` made it for us, close-on-exec as all of its descriptors are, and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// The two words of an address, at an even word of the attributes.
fn halves(address: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = address.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

pub(crate) fn address_of<T: ?Sized>(value: &T) -> [u32; 2] {
    halves(std::ptr::from_ref(value).cast::<u8>() as u64)
}

/// Loads a program. Takes `CAP_BPF`, and what its kind takes besides.
///
/// # Errors
/// The kernel refuses it.
pub(crate) fn load(kind: Kind, instructions: &[u64]) -> io::Result<OwnedFd> {
    let licence = c"Apache-2.0 OR MIT";
    let ([a, b], [c, d]) = (address_of(instructions), address_of(licence));
    let count = instructions.len() as u32;
    let mut words = [0; 18];
    words[..6].copy_from_slice(&[kind.program, count, a, b, c, d]);
    words[12..16].copy_from_slice(&NAME);
    words[17] = kind.attached;
    // SAFETY: instructions and licence live until the call returns; the latter ends with a zero byte.
    unsafe { bpf(PROG_LOAD, &words) }.map(owned)
}

/// As `bpftool` and `ip link` show it.
const NAME: [u32; 4] = {
    let name = *b"tamis\0\0\0\0\0\0\0\0\0\0\0";
    let mut words = [0; 4];
    let mut at = 0;
    while at < 4 {
        let from = 4 * at;
        words[at] =
            u32::from_ne_bytes([name[from], name[from + 1], name[from + 2], name[from + 3]]);
        at += 1;
    }
    words
};
