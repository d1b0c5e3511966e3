//! [`Backend`]: which of the two implementations of iptables applies the rules.
//!
//! Legacy xtables reads a whole header or drops the packet on the spot (`hotdrop`). iptables-nft turns `-p`, the tests
//! of `-m tcp` and `-m udp` and a few more into nf_tables expressions that read single fields: a missing field is "no
//! match", and a present field decides, however short the header. Other matches, and `-m tcp` with `--tcp-option` or
//! without any test, stay xtables matches under both (`nft_compat`) and hot-drop under both.
//!
//! Source: kernel `nft_set_pktinfo_ipv6` in `include/net/netfilter/nf_tables_ipv6.h`,
//! `nft_payload_eval` in `net/netfilter/nft_payload.c`; `nft --debug=netlink` of rules loaded by
//! iptables-nft 1.8.9, and packets sent through both implementations on Linux 6.18. Before 1.8.8 the tool
//! left `-m tcp` and `-m udp` to xtables.

use crate::family::TableKind;

/// Names of tables, alone and with the names of both implementations.
const TITLES: [[&str; 3]; 6] = [
    [TableKind::FILTER, "legacy:filter", "nft:filter"],
    [TableKind::NAT, "legacy:nat", "nft:nat"],
    [TableKind::RAW, "legacy:raw", "nft:raw"],
    [TableKind::MANGLE, "legacy:mangle", "nft:mangle"],
    [TableKind::SECURITY, "legacy:security", "nft:security"],
    [TableKind::BROUTE, "legacy:broute", "nft:broute"],
];

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
    /// Returns the name that the command line uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Nft => "nft",
        }
    }

    /// Returns the name of a table with that of its implementation before it.
    pub(crate) fn title(self, table: &str) -> &str {
        let titles = TITLES.iter().find(|titles| titles[0] == table);
        titles.map_or(table, |titles| titles[1 + self as usize])
    }
}
