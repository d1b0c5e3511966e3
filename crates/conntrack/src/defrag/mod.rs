//! [`Defrag`]: fragments are held back and put together: before the first hook where connections are tracked, else
//! where IPv4 gives them to the host.
//!
//! [`Defrag::push`] takes every packet; what is no fragment costs one comparison. The fragment that
//! completes a packet releases it; the others end here.
//!
//! Contract: no clock (times are passed in and never run backwards), no panic, memory bounded by
//! [`Limits::memory`] for each family. A fragment of which not all bytes were captured leaves a gap in the packet:
//! [`Whole::unknown`] lists it, and nothing is guessed.
//!
//! Source: Linux 6.18 `net/ipv4/ip_fragment.c`, `net/ipv4/inet_fragment.c`,
//! `net/ipv6/netfilter/nf_conntrack_reasm.c`; RFC 791, RFC 5722, RFC 8200 section 4.5, RFC 3168 section 5.3.

mod families;
mod outcome;
mod queue;
mod v4;
mod v6;

pub use families::Defrag;
pub use outcome::{Carried, Defragged, Limits, Refusal, Whole};
