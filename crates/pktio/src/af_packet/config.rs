//! [`AfPacketConfig`]: how an interface is opened, and how its frames are shared among ports.

use libc::c_int;

/// Frames sent with one call, at most.
pub(super) const BATCH: usize = 32;

/// In `PACKET_FANOUT`: no frames that the host sends. A group does not ask the sockets in it.
const FANOUT_IGNORE_OUTGOING: u32 = 0x4000;

/// How to open an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfPacketConfig {
    /// The interface's name in the calling thread's namespace.
    pub interface: String,
    /// Whether to receive frames to other hosts, too.
    pub promiscuous: bool,
    /// Blocks of the ring, at least 2.
    pub blocks: u32,
    /// Bytes of each: a multiple of the page size, more than the longest frame. Longer ones are lost, and counted.
    pub block_bytes: u32,
    /// How long a block may wait to be full, in microseconds; rounded up to milliseconds, at least 1.
    pub drain_us: u32,
    /// Frames received at once, at most.
    pub burst_frames: usize,
    /// Frames sent with one call, at most; no more than 32.
    pub send_frames: usize,
    /// The number of this port among the ports that share the interface, from 0.
    pub queue: u16,
    /// How they share it; `None` if each receives all.
    pub fanout: Option<Fanout>,
    /// The program that distributes frames over ports that are opened together: its result modulo the number of ports.
    /// An empty program distributes flow by flow, as the kernel hashes flows.
    pub program: Vec<FilterInstruction>,
}

impl AfPacketConfig {
    /// Returns the usual configuration: one port for all frames of `interface`, and a ring of 16 MiB that takes
    /// superframes.
    pub fn new(interface: &str) -> Self {
        Self {
            interface: interface.to_string(),
            promiscuous: true,
            blocks: 64,
            block_bytes: 256 * 1024,
            drain_us: 1000,
            burst_frames: 64,
            send_frames: BATCH,
            queue: 0,
            fanout: None,
            program: Vec::new(),
        }
    }

    pub(super) fn timeout_ms(&self) -> u32 {
        self.drain_us.div_ceil(1000).max(1)
    }
}

/// An instruction of classic BPF (`struct sock_filter`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterInstruction {
    /// What it does.
    pub code: u16,
    /// Instructions skipped if a test holds, and if not.
    pub jumps: [u8; 2],
    /// The operand (`k`).
    pub operand: u32,
}

/// Which of the ports of one interface receives a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fanout {
    /// The number of the group, equal for all ports of the interface and used by nobody else in the namespace. `None`
    /// for the first port, where the kernel is to find a free number.
    pub group: Option<u16>,
    /// How frames are distributed, equal for all ports of the group.
    pub kind: FanoutKind,
}

/// What a frame is steered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanoutKind {
    /// Addresses and ports, the same in both directions of a flow; of fragments, addresses.
    Flow,
    /// The processor that received it.
    Processor,
    /// The queue of the device that received it.
    Queue,
    /// What a program says: nothing comes but to the first port until the group has one.
    Program,
}

impl Fanout {
    /// As `PACKET_FANOUT` takes it.
    pub(super) fn bits(self) -> c_int {
        let kind = match self.kind {
            FanoutKind::Flow => libc::PACKET_FANOUT_HASH,
            FanoutKind::Processor => libc::PACKET_FANOUT_CPU,
            FanoutKind::Queue => libc::PACKET_FANOUT_QM,
            FanoutKind::Program => libc::PACKET_FANOUT_CBPF,
        };
        let (group, unique) = match self.group {
            Some(group) => (group, 0),
            None => (0, libc::PACKET_FANOUT_FLAG_UNIQUEID),
        };
        (u32::from(group) | (kind | unique | FANOUT_IGNORE_OUTGOING) << 16) as c_int
    }
}
