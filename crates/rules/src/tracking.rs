//! Whether a ruleset makes the kernel track connections, which also makes it reassemble fragments before
//! any hook sees them. One rule anywhere is enough (measured: docs/packet-path.md); which extensions do it they say.

use crate::ext::TargetUse;
use crate::family::TableKind;
use crate::model::{Action, Rule, Ruleset};

impl Ruleset {
    /// Whether some rule needs connection tracking.
    #[must_use]
    pub fn tracks(&self) -> bool {
        let rules = self.tables.iter().flat_map(|table| &table.chains).flat_map(|c| &c.rules);
        rules.into_iter().any(|rule| {
            target(rule).is_some_and(|target| target.body.tracks())
                || rule.matches.iter().any(|used| used.body.tracks())
        })
    }

    /// Whether some rule translates addresses.
    #[must_use]
    pub fn translates(&self) -> bool {
        let nat = self.table(TableKind::NAT).into_iter().flat_map(|table| &table.chains);
        let targets = nat.flat_map(|chain| &chain.rules).filter_map(|rule| target(rule));
        targets.into_iter().any(|target| target.body.translates())
    }
}

fn target(rule: &Rule) -> Option<&TargetUse> {
    match &rule.action {
        Action::Target(target) => Some(target),
        _ => None,
    }
}
