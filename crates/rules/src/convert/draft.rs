//! [`Draft`]: a rule on its way into another family's words.

use crate::family::Family;

/// A rule in the other family's words, in any order.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) tests: Vec<String>,
    pub(super) verdict: String,
    /// What it does not say any more, though it matches the same packets.
    pub(super) notes: Vec<String>,
}

impl Draft {
    pub(super) fn words(&self) -> String {
        format!("{} {}", self.tests.join(" "), self.verdict)
    }

    pub(super) fn test(&mut self, text: impl Into<String>) {
        self.tests.push(text.into());
    }
}

/// The EtherType of a family's packets, as bridge rules spell it.
pub(super) fn ethertype(family: Family) -> Option<&'static str> {
    match family {
        Family::Ipv4 => Some("IPv4"),
        Family::Ipv6 => Some("IPv6"),
        Family::Arp => Some("ARP"),
        Family::Bridge => None,
    }
}

/// The prefix of a bridge's options on packets of a family.
pub(super) fn prefix(family: Family) -> &'static str {
    if family == Family::Ipv6 { "ip6" } else { "ip" }
}
