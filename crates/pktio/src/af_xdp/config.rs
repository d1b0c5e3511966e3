//! What a port is opened with, and what it needs for that.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

use super::sys;
use crate::xdp_mode::XdpMode;

/// Bytes of a link header before what the MTU counts: addresses, EtherType, and two tags.
pub(super) const LINK_HEADER: usize = ETHERNET + 2 * TAG;
/// Bytes of addresses and EtherType.
pub(super) const ETHERNET: usize = 14;
/// Bytes of a tag.
pub(super) const TAG: usize = 4;

/// How to open an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfXdpConfig {
    /// The interface's name in the calling thread's namespace.
    pub interface: String,
    /// Queues to receive from, at most.
    pub queues: u16,
    /// What runs the program.
    pub mode: XdpMode,
    /// Whether the device may read and write the frames' memory itself, where its driver can.
    pub zero_copy: bool,
    /// Whether to receive frames to other hosts, too.
    pub promiscuous: bool,
    /// Entries of each ring of each queue, a power of two.
    pub ring_frames: u32,
    /// Frames received at once, at most.
    pub burst_frames: usize,
    /// Frames of each queue that others keep meanwhile.
    pub kept_frames: usize,
}

impl AfXdpConfig {
    /// Returns the configuration for all that one queue of `interface` receives, in the fastest available mode.
    pub fn new(interface: &str) -> Self {
        Self {
            interface: interface.to_string(),
            queues: 1,
            mode: XdpMode::Auto,
            zero_copy: true,
            promiscuous: true,
            ring_frames: 2048,
            burst_frames: 64,
            kept_frames: 0,
        }
    }

    /// Returns the number of chunks that the rings and bursts of the queues use. For ports that share a UMEM, add them
    /// up.
    pub fn chunks(&self) -> usize {
        let Self { ring_frames, burst_frames, kept_frames, .. } = self;
        usize::from(self.queues) * (2 * *ring_frames as usize + 4 * burst_frames + kept_frames)
    }
}

/// The queues that a port receives by, of as many as it asks for, and the MTU of its interface.
pub(super) fn needs(config: &AfXdpConfig) -> io::Result<(u16, usize)> {
    // Asking needs no privileges, nor a socket that has them.
    let (socket, name) = (OwnedFd::from(UnixDatagram::unbound()?), &config.interface);
    let channels = sys::channels(&socket, name)?.unwrap_or(1);
    Ok((queues_of(config, channels), sys::mtu(&socket, name)?))
}

/// As many as are asked for and there are.
pub(super) fn queues_of(config: &AfXdpConfig, channels: u32) -> u16 {
    u32::from(config.queues).clamp(1, channels) as u16
}
