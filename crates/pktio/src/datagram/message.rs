//! What is sent ([`Message`]), where from ([`Source`]), and what became of it ([`Sent`]).

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

/// Messages that one system call sends or receives, at most.
pub(super) const BATCH: usize = 32;

/// An address of this host that datagrams come to or are sent from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The address.
    pub address: IpAddr,
    /// The kernel's index of the interface; `None`: whichever the routes say.
    pub interface: Option<NonZeroU32>,
}

/// What is to be sent: one datagram or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Their bytes, one after the other.
    pub bytes: &'a [u8],
    /// Bytes of each but the last, which may be shorter; 0: it is one datagram.
    pub segment: u16,
    /// Where they go.
    pub to: SocketAddr,
    /// Where they are sent from; `None`, or of another family than `to`: as the routes say.
    pub from: Option<Source>,
    /// DSCP (6 bits) and ECN (2 bits) of their IP headers.
    pub tos: u8,
}

/// What one call of [`DatagramSocket::send`](super::DatagramSocket::send) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Messages that are done with, sent or lost: the first ones. For the others there was no room; of the first of
    /// those, some datagrams may have been sent.
    pub taken: usize,
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// Bytes of these, without headers.
    pub bytes: u64,
    /// Datagrams lost: longer than the device takes.
    pub too_long: u64,
    /// Datagrams lost: refused for another reason.
    pub refused: u64,
}
