//! [`Semantics`]: which of the two implementations of iptables carries out the rules, and the one place
//! that says what each makes of an upper layer that is cut, hidden or absent.
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

use packet::ipv6_ext::{self, AUTH, Find};
use packet::{L4, Upper};

use crate::model::Family;
use crate::transit::Transit;

/// Which implementation carries out the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Semantics {
    /// xtables: iptables-legacy.
    #[default]
    Legacy,
    /// nf_tables: iptables-nft 1.8.8 and newer.
    Nft,
}

impl Semantics {
    /// Its name, as the command line spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Nft => "nft",
        }
    }
}

impl Transit<'_, '_> {
    /// The upper layer as the implementation finds it. Both skip extension headers of IPv6, but nf_tables
    /// stops at an authentication header: to it, AH is the protocol of the packet.
    #[inline]
    #[must_use]
    pub fn upper_layer(&self) -> L4 {
        match (self.semantics, self.family) {
            (Semantics::Nft, Family::Ipv6) => self.stopped_at_auth(),
            _ => self.packet.headers().l4,
        }
    }

    fn stopped_at_auth(&self) -> L4 {
        let network = self.packet.network_offset();
        match ipv6_ext::find(&*self.packet, network, Some(AUTH)) {
            Find::Found { offset, fragment_offset: 0, .. } => {
                L4::Upper(Upper { protocol: AUTH, offset })
            }
            _ => self.packet.headers().l4,
        }
    }
}
