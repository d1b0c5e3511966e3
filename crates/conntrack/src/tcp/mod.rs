//! TCP: the state machine, its timeouts, and what makes a segment INVALID.
//!
//! `segment` reads a segment, `states` is the table of transitions, `window` tells whether a segment
//! fits what was seen of both sides; this file puts them together.
//!
//! Contract: no clock, no panic; sequence numbers compare modulo 2^32.
//!
//! Source: Linux 6.18 `nf_conntrack_proto_tcp.c`; RFC 9293, RFC 5961 (challenge acknowledgements).

mod record;
mod segment;
mod states;
mod track;
mod window;

pub use record::Tcp;
pub(super) use segment::{Kind, Segment, after, before};
pub use states::State;
pub(super) use track::{close, is_closing, pick_up, track, waits_for_answer};
