//! Whether a ruleset makes the kernel track connections, which also makes it reassemble fragments before
//! any hook sees them. One rule anywhere is enough (measured: docs/packet-path.md).

use crate::model::{Action, Rule, Ruleset};

/// Matches that register connection tracking when a rule with them is loaded.
const MATCHES: &[&str] =
    &["cluster", "connbytes", "connlabel", "connlimit", "connmark", "conntrack", "helper", "state"];

/// Targets that translate addresses, in the nat table.
const TRANSLATORS: &[&str] = &["DNAT", "MASQUERADE", "NETMAP", "REDIRECT", "SNAT"];

/// Targets that do.
const TARGETS: &[&str] = &[
    "CONNMARK",
    "CONNSECMARK",
    "CT",
    "DNAT",
    "MASQUERADE",
    "NETMAP",
    "NOTRACK",
    "REDIRECT",
    "SNAT",
    "SYNPROXY",
];

impl Ruleset {
    /// Whether some rule needs connection tracking.
    #[must_use]
    pub fn tracks(&self) -> bool {
        let rules = self.tables.iter().flat_map(|table| &table.chains).flat_map(|c| &c.rules);
        rules.into_iter().any(|rule| tracks(rule))
    }

    /// Whether some rule translates addresses.
    #[must_use]
    pub fn translates(&self) -> bool {
        let nat = self.table("nat").into_iter().flat_map(|table| &table.chains);
        nat.flat_map(|chain| &chain.rules).any(|rule| match &rule.action {
            Action::Target(target) => TRANSLATORS.contains(&&*target.name),
            _ => false,
        })
    }
}

fn tracks(rule: &Rule) -> bool {
    let by_target = match &rule.action {
        Action::Target(target) => TARGETS.contains(&&*target.name),
        _ => false,
    };
    by_target || rule.matches.iter().any(|used| MATCHES.contains(&&*used.name))
}
