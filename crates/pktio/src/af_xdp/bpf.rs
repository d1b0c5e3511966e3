//! The program that hands an interface's frames to sockets, and its link: `bpf(2)`.
//!
//! Contract: the program looks up a frame's receive queue in a map of sockets, and leaves frames of queues without a
//! socket to the kernel's stack. A link keeps it attached: once the link's descriptor is closed, by `drop` or by the end
//! of the process, however it came, nothing of it is left on the interface.
//!
//! Source: `bpf(2)`, `linux/bpf.h`, `Documentation/bpf/standardization/instruction-set.rst`; links of XDP are of Linux
//! 5.9 and later, `bpf_redirect_map` with an action for what it does not find of 5.3.
#![allow(unsafe_code)]

use std::ffi::c_long;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::bpf::{Kind, address_of, bpf, instruction, load, owned};

// Commands.
const MAP_CREATE: c_long = 0;
const MAP_UPDATE_ELEM: c_long = 2;
const LINK_CREATE: c_long = 28;

const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
/// Kind of attachment.
const XDP: u32 = 37;

/// By the interface's driver, as it receives.
pub(super) const NATIVE: u32 = 4;
/// By the kernel's stack, on any interface, before anyone else there.
pub(super) const GENERIC: u32 = 2;

/// Offset in `struct xdp_md`.
const RX_QUEUE_INDEX: i16 = 16;
const XDP_PASS: i32 = 2;
const REDIRECT_MAP: i32 = 51;
const PSEUDO_MAP_FD: u8 = 1;

/// `r2 = queue; r1 = map; r3 = XDP_PASS; return bpf_redirect_map(r1, r2, r3)`.
fn redirect(map: &OwnedFd) -> [u64; 6] {
    const LOAD_WORD: u8 = 0x61;
    const LOAD_LONG: u8 = 0x18;
    const MOVE: u8 = 0xb7;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    [
        instruction(LOAD_WORD, 2, 1, RX_QUEUE_INDEX, 0),
        instruction(LOAD_LONG, 1, PSEUDO_MAP_FD, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        instruction(MOVE, 3, 0, 0, XDP_PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

/// Sockets by queue.
#[derive(Debug)]
pub(super) struct SocketMap(OwnedFd);

impl SocketMap {
    /// Without any, for queues up to `queues`.
    pub(super) fn new(queues: u32) -> io::Result<Self> {
        let (key_bytes, value_bytes) = (4, 4);
        // SAFETY: no addresses.
        let fd =
            unsafe { bpf(MAP_CREATE, &[MAP_TYPE_XSKMAP, key_bytes, value_bytes, queues, 0, 0]) };
        fd.map(|fd| Self(owned(fd)))
    }

    /// Frames of this queue go to this socket from now on.
    pub(super) fn set(&self, queue: u16, socket: &OwnedFd) -> io::Result<()> {
        let (key, value) = (u32::from(queue), socket.as_raw_fd());
        let ([a, b], [c, d]) = (address_of(&key), address_of(&value));
        let map = self.0.as_raw_fd() as u32;
        // SAFETY: key and value, of the bytes that `new` says, live until the call returns.
        unsafe { bpf(MAP_UPDATE_ELEM, &[map, 0, a, b, c, d, 0, 0]) }.map(drop)
    }
}

/// The program, loaded.
#[derive(Debug)]
pub(super) struct Program(OwnedFd);

impl Program {
    /// Loads the program that hands frames to these sockets.
    pub(super) fn load(map: &SocketMap) -> io::Result<Self> {
        load(Kind { program: PROG_TYPE_XDP, attached: XDP }, &redirect(&map.0)).map(Self)
    }

    /// Attaches it to an interface, [`NATIVE`] or [`GENERIC`], for as long as the descriptor is open.
    pub(super) fn attach(&self, index: NonZeroU32, mode: u32) -> io::Result<OwnedFd> {
        let program = self.0.as_raw_fd() as u32;
        // SAFETY: no addresses.
        let fd = unsafe { bpf(LINK_CREATE, &[program, index.get(), XDP, mode]) };
        fd.map(owned)
    }
}
