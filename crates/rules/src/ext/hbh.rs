//! `-m hbh`: the IPv6 hop-by-hop options header.
//!
//! Source: iptables-extensions(8); kernel `net/ipv6/netfilter/ip6t_hbh.c`.

use packet::ipv6_ext;

use super::{MatchKind, Opt, Support, V6, option_header};

/// The kind.
pub(super) static KIND: MatchKind = MatchKind {
    name: "hbh",
    aliases: &[],
    families: V6,
    protocol: None,
    options: &[Opt::value("hbh-len").invertible(), Opt::value("hbh-opts")],
    support: Support::Evaluated,
    parse: |args| option_header::parse(args, ipv6_ext::HOP_BY_HOP, "hbh-len", "hbh-opts"),
};
