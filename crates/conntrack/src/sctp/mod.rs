//! SCTP: the state machine over the chunks of a packet, and the verification tags.
//!
//! Source: Linux 6.18 `nf_conntrack_proto_sctp.c`, its table measured transition by transition; RFC 9260
//! sections 8.4 and 8.5.

mod message;
mod record;
mod track;

pub(crate) use message::Message;
pub use record::{Sctp, State};
pub(crate) use track::track;
