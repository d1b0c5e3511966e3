//! Whether a ruleset makes the kernel track connections, which also makes it reassemble fragments before
//! any hook sees them. One rule anywhere is enough (measured: docs/packet-path.md); which extensions do it they say.
//! And what else a single rule asks of the path of all packets.

use std::net::IpAddr;

use crate::ext::TargetUse;
use crate::model::{Action, Hook, Rule, Ruleset};
use crate::parallel::reached;

impl Ruleset {
    /// Whether some rule needs connection tracking.
    #[must_use]
    pub fn tracks(&self) -> bool {
        self.rules().any(Rule::tracks)
    }

    /// Whether some rule has the host open connections in the place of clients.
    #[must_use]
    pub fn proxies(&self) -> bool {
        self.rules().any(Rule::proxies)
    }

    /// Whether a rule that packets may reach which the host passes on hands them to a program.
    #[must_use]
    pub fn queues(&self) -> bool {
        const HOOKS: [Hook; 3] = [Hook::Prerouting, Hook::Forward, Hook::Postrouting];
        let mut rules = self.tables.iter().flat_map(|table| reached(table, 0, &HOOKS));
        rules.any(|(_, rule)| rule.target().is_some_and(|target| target.body.queues()))
    }

    /// The next hops that rules send copies of packets to, and the interfaces where they name them.
    pub fn copies_to(&self) -> impl Iterator<Item = (IpAddr, &str)> {
        self.rules().filter_map(|rule| rule.target()?.body.copies_to())
    }

    /// Whether some rule translates addresses.
    #[must_use]
    pub fn translates(&self) -> bool {
        self.rules().any(Rule::translates)
    }

    /// Whether some rule asks by which ports of a bridge packets come and go.
    #[must_use]
    pub fn asks_for_ports(&self) -> bool {
        self.rules().any(Rule::asks_for_ports)
    }

    /// All rules, in the order of the file.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        let chains = self.tables.iter().flat_map(|table| &table.chains);
        chains.flat_map(|chain| &chain.rules).map(AsRef::as_ref)
    }
}

impl Rule {
    /// Whether it needs connection tracking.
    pub(crate) fn tracks(&self) -> bool {
        self.target().is_some_and(|target| target.body.tracks())
            || self.matches.iter().any(|used| used.body.tracks())
    }

    /// Whether it translates addresses.
    pub(crate) fn translates(&self) -> bool {
        self.target().is_some_and(|target| target.body.translates())
    }

    /// Whether it has the host open connections in the place of clients.
    pub(crate) fn proxies(&self) -> bool {
        self.target().is_some_and(|target| target.body.proxies())
    }

    /// Whether it remembers earlier packets.
    pub(crate) fn remembers(&self) -> bool {
        self.matches.iter().any(|used| used.memory.is_some())
    }

    /// Whether it asks for ports of a bridge.
    pub(crate) fn asks_for_ports(&self) -> bool {
        self.matches.iter().any(|used| used.body.asks_for_ports())
    }

    pub(crate) fn target(&self) -> Option<&TargetUse> {
        match &self.action {
            Action::Target(target) => Some(target),
            _ => None,
        }
    }
}
