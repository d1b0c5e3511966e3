//! One end of the overlay: its key, its peers, and what each datagram, packet and deadline has to do with them.
//!
//! The owner calls one function at a time ([`crate`] has the table of them). Where what is said of a packet depends
//! on others before it, the order of calls is the order; workers change nothing here.

mod aside;
mod end;
mod handshake;
mod inbound;
mod outbound;
mod schedule;
#[cfg(test)]
mod tests;

pub use end::{AddPeerError, Config, Outgoing, Tunnel};
pub use inbound::{Content, Delivered, Received};
pub use outbound::{Staged, Unstaged};
pub use schedule::Due;
