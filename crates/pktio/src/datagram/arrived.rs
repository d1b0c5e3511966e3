//! What came with a message: as the kernel wrote it ([`Slot`]), and what that says ([`Arrived`]).

use std::net::SocketAddr;

use super::address::Address;
use super::control::Control;
use super::message::Source;

/// What is known of a message that came: one datagram or several of the same flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The sender.
    pub from: SocketAddr,
    /// Where it came to: what an answer is sent from.
    pub at: Option<Source>,
    /// DSCP (6 bits) and ECN (2 bits) of its IP header.
    pub tos: u8,
    /// Bytes of each datagram but the last, which may be shorter. At least 1, even of a datagram without bytes.
    pub segment: usize,
}

/// What came with a message, as the kernel wrote it.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) address: Address,
    pub(super) control: Control,
    /// Bytes of the message that there was room for.
    pub(super) length: usize,
    /// Whether there was no room for all bytes, or for what came with them.
    pub(super) is_cut: bool,
}

impl Slot {
    pub(super) const EMPTY: Self =
        Self { address: Address::EMPTY, control: Control::EMPTY, length: 0, is_cut: false };

    /// What it says of a message that came whole.
    pub(super) fn read(&self) -> Option<Arrived> {
        let from: SocketAddr = self.address.read().filter(|_| !self.is_cut)?;
        let with = self.control.read();
        let segment = with.segment.unwrap_or(self.length).min(self.length).max(1);
        Some(Arrived { from, at: with.at, tos: with.tos, segment })
    }
}
