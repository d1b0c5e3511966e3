//! `-m dst`: the IPv6 destination options header.
//!
//! Source: iptables-extensions(8); kernel `net/ipv6/netfilter/ip6t_hbh.c`.

use packet::ipv6_ext;

use super::{MatchKind, Opt, Support, V6, option_header};

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "dst",
    aliases: &[],
    families: V6,
    protocol: None,
    options: &[Opt::value("dst-len").invertible(), Opt::value("dst-opts")],
    support: Support::Evaluated,
    parse: |args| option_header::parse(args, ipv6_ext::DESTINATION_OPTIONS, "dst-len", "dst-opts"),
};
