//! [`cut`]: a packet that is too long for its outgoing link, or that was reassembled, leaves as fragments.
//!
//! A reassembled packet is cut where it was before, wherever that still fits ([`Cut::pieces`]); any other packet into
//! pieces as long as the link allows, each but the last a multiple of 8 bytes.
//!
//! Contract: no allocation once the buffer has grown. The link header stands before each fragment as it stood before
//! the packet. Checksums of IPv4 headers are recomputed.
//!
//! Source: Linux 6.18 `ip_do_fragment`, `ip_frag_next` (`net/ipv4/ip_output.c`), `ip_options_fragment`
//! (`net/ipv4/ip_options.c`), `ip6_fragment` (`net/ipv6/ip6_output.c`), `ip6_find_1stfragopt`
//! (`net/ipv6/output_core.c`); RFC 791 section 3.2, RFC 8200 section 4.5.

mod cut;
mod frames;
mod sizes;
#[cfg(test)]
mod tests;
mod v4;
mod v6;

pub use cut::cut;
pub use frames::{Cut, Frames};
