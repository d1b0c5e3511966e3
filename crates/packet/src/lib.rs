//! Reads bytes. Zero-copy checked views of protocol headers, and [`parse`], which finds every header
//! of a frame once.
//!
//! Contract: no I/O, no threads, no `unsafe`, no allocation outside [`craft`], [`visible`] and the room that a packet
//! is lent to be spliced, and no panic whatever the bytes. Nothing here decides about a packet: a malformed header is
//! recorded in [`Headers`] as a fault and left to the rooms that decide (`rules`, `dataplane`).
#![forbid(unsafe_code)]

pub mod ah;
pub mod arp;
mod bytes;
pub mod checksum;
pub mod craft;
pub mod dccp;
mod display;
pub mod esp;
pub mod ethernet;
pub mod ethertype;
mod field;
mod flow;
pub mod fragment;
pub mod gre;
mod headers;
mod icmp;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipcomp;
pub mod ipv4;
pub mod ipv6;
pub mod ipv6_ext;
mod joined;
mod link;
mod mark;
pub mod nflog;
pub mod options;
mod parse;
pub mod pppoe;
pub mod reply;
mod rewrite;
pub mod sctp;
mod splice;
mod superframe;
pub mod tcp;
pub mod udp;
pub mod unfinished;
pub mod visible;
pub mod vlan;

pub use bytes::{Gaps, KnownBytes, Packet, Read, ReadAt, Snap, Snapshot};
pub use flow::FlowKey;
pub use headers::{Headers, L3, L3Fault, L4, Upper};
pub use joined::{Joined, JoinedKind, Offload};
pub use link::{Direction, Link, LinkHeader};
pub use mark::Mark;
pub use parse::{Checksums, parse, parse_frame, parse_into, plain_ethertype};
pub use superframe::{Superframe, Uncut};
