//! [`reply`]: the answer to a refused packet, a TCP reset or an ICMP error.
//!
//! Contract: no allocation once the buffer has grown; nothing is sent where the kernel sends nothing, and the
//! reason has a name. Options of IPv4 headers are not echoed, as `icmp_send` would echo some.
//!
//! Source: kernel `net/ipv4/netfilter/nf_reject_ipv4.c`, `net/ipv6/netfilter/nf_reject_ipv6.c`, `net/ipv4/icmp.c`
//! (`icmp_send`), `net/ipv6/icmp.c` (`icmp6_send`); RFC 9293 section 3.5.2 (resets), RFC 1122 section 3.2.2 and
//! RFC 4443 section 2.4 (what is answered by no error).

mod answer;
mod framed;
#[cfg(test)]
mod tests;

pub use answer::{NoReply, Replier, Reply, Terms, reply};
pub use framed::framed;
