//! [`DatagramSocket`]: a UDP socket that sends and receives in batches, several datagrams of one flow as one message.
//!
//! Contract: one system call for a batch, and no copy of ours. A message is up to 64 datagrams, equally long but the
//! last: the kernel, or the device, cuts what is sent (`UDP_SEGMENT`), and puts together what is received
//! (`UDP_GRO`). Where the kernel does not, everything is the same, one by one. One socket speaks IPv4 and IPv6, or IPv4
//! alone on a host without IPv6; addresses are taken and returned unmapped. Several threads may send and receive at
//! once: each brings a batch of its own, and frames of a pool. Nothing blocks.
//!
//! A socket may have others at its port, each for one sender ([`DatagramSocket::receive_from`]): the kernel gives a
//! datagram to the socket that is connected to its sender, so a flood of the port fills the queue of the first socket
//! alone.
//!
//! Datagrams are never fragmented, here or on their way, and what the kernel believes of a path does not matter:
//! anybody may send it an ICMP error. Datagrams that the device does not take, or that are not sent for another reason,
//! are reported ([`SendBatch::unsent`]). A failed datagram, there or here, does not end the socket.
//!
//! Source: `udp(7)`, `ip(7)`, `ipv6(7)`, `sendmmsg(2)`, `recvmmsg(2)`; Linux `net/ipv4/udp.c`, `net/ipv6/udp.c`.

mod address;
mod arrived;
mod control;
mod message;
mod outgoing;
mod receive;
mod socket;
mod sys;
#[cfg(test)]
mod tests;
mod transmit;

pub use arrived::Arrived;
pub use message::{Message, Sent, Source};
pub use outgoing::MOST_BYTES;
pub use receive::RecvBatch;
pub use socket::{DatagramConfig, DatagramSocket};
pub use transmit::{Refusal, SendBatch, Unsent};
