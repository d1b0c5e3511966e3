//! The observer of a replay: counts hits, verdicts and what unknown verdicts depend on.
//!
//! Contract: what several recorders counted adds up to what one would have counted of all packets. A packet is
//! observed by a value of its own ([`OnePacket`]), which nothing of the packet before reaches.

mod calls;
mod maybes;
mod merge;
mod observer;
mod runs;

pub(crate) use maybes::Maybes;
pub(crate) use observer::{OnePacket, Recorder};
