//! The interface that a port's queues are of: what it is, and the program on it.
//!
//! Contract: shared by the ports of one interface; with the last of them the program is off it, and so is
//! promiscuous mode.

use std::io::{self, ErrorKind};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;

use super::attach::Attached;
use super::config::{AfXdpConfig, ETHERNET, LINK_HEADER, TAG, queues_of};
use super::queue::Queue;
use super::sys;
use super::umem::Umem;
use crate::af_packet::sys as packet_socket;
use crate::opener::Opener;
use crate::xdp_mode::XdpMode;
use crate::xdp_sockets::XdpSockets;

/// An interface with the program on it.
#[derive(Debug)]
pub(super) struct Device {
    /// Keeps the program there.
    _link: OwnedFd,
    /// Keeps it in promiscuous mode; receives nothing.
    _socket: OwnedFd,
    pub(super) name: String,
    pub(super) index: NonZeroU32,
    /// Bytes of the longest frame that it transmits.
    pub(super) most_bytes: usize,
}

impl Device {
    /// Puts the program on the interface and opens its queues, as many as are asked for and it has; what came of it.
    pub(super) fn open(
        opener: &dyn Opener,
        config: &AfXdpConfig,
        umem: &Umem,
    ) -> io::Result<(Self, Vec<Queue>, Attached)> {
        let name = config.interface.clone();
        let index = packet_socket::index_of(&name)?;
        let socket = opener.packet_socket()?;
        if !matches!(sys::kind(&socket, &name)?, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
            return Err(io::Error::new(ErrorKind::Unsupported, "not an Ethernet interface"));
        }
        let mtu = sys::mtu(&socket, &name)?;
        check_length(mtu, umem)?;
        let channels = sys::channels(&socket, &name)?.unwrap_or(1);
        let count = queues_of(config, channels);
        let XdpSockets { link, sockets, mode, refused } =
            opener.xdp_sockets(&name, config.mode, count, channels)?;
        let flags = match config.zero_copy && mode == XdpMode::Native {
            // The kernel copies where the driver cannot do without.
            true => 0,
            false => libc::XDP_COPY,
        };
        let open = |(number, socket)| {
            Queue::open(socket, (index, number), umem, config.ring_frames, flags)
        };
        let queues: Vec<Queue> = (0..count).zip(sockets).map(open).collect::<io::Result<_>>()?;
        let mut is_zero_copy = true;
        for queue in &queues {
            is_zero_copy &= sys::is_zero_copy(&queue.socket)?;
        }
        if config.promiscuous {
            packet_socket::set_promiscuous(&socket, libc::PACKET_ADD_MEMBERSHIP, index)?;
        }
        let most_bytes = umem.frame_bytes().min(mtu + ETHERNET + TAG);
        let attached = Attached { mode, refused, is_zero_copy, queues: count, channels };
        Ok((Self { _link: link, _socket: socket, name, index, most_bytes }, queues, attached))
    }
}

/// Whether chunks are as long as the frames that the MTU permits, tags included.
fn check_length(mtu: usize, umem: &Umem) -> io::Result<()> {
    let (longest, room) = (mtu + LINK_HEADER, umem.frame_bytes());
    if longest <= room {
        return Ok(());
    }
    let most = Umem::longest_frame().saturating_sub(LINK_HEADER);
    let what = format!(
        "frames of up to {longest} bytes, by its MTU, and chunks hold {room}: AF_XDP does an MTU of up to {most}"
    );
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}
