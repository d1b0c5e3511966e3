//! [`Backend`]: which of the two implementations of iptables applies the rules.
//!
//! Legacy xtables reads a whole header or drops the packet on the spot (`hotdrop`). iptables-nft turns
//! `-p`, the tests of `-m tcp` and `-m udp` and a few more into nf_tables expressions that read single
//! fields: a field that is not there is "no match", and one that is there decides, however short the
//! header. Other matches, and `-m tcp` with `--tcp-option` or without any test, stay xtables matches
//! under both (`nft_compat`) and hot-drop under both.
//!
//! Source: kernel `nft_set_pktinfo_ipv6` in `include/net/netfilter/nf_tables_ipv6.h`,
//! `nft_payload_eval` in `net/netfilter/nft_payload.c`; `nft --debug=netlink` of rules loaded by
//! iptables-nft 1.8.9, and packets sent through both implementations on Linux 6.18. Before 1.8.8 the tool
//! left `-m tcp` and `-m udp` to xtables.

/// The implementation of iptables that applies the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// xtables: iptables-legacy.
    #[default]
    Legacy,
    /// nf_tables: iptables-nft 1.8.8 and newer.
    Nft,
}

impl Backend {
    /// Its name, as the command line spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Nft => "nft",
        }
    }
}
