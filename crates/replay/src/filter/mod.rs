//! `--filter`: the pcap filter language, compiled by tcpdump (and so by the libpcap it has) and run here.
//!
//! Contract: one program for each link type that turns up, compiled when it does. Bytecode as
//! `tcpdump -ddd` prints it is taken as it stands, for whatever link type comes. What is filtered are the
//! captured bytes, as tcpdump does it.
//!
//! Source: pcap-filter(7), tcpdump(1): with `-r` of a capture that holds no packet, `-ddd` prints the
//! program for that capture's link type.

mod compiled;
mod program;

pub use compiled::Filter;
