//! [`InForce`]: the policy in force, and how another one follows it.
//!
//! Contract: versions rise by one and are kept before they are in force: whatever a node hears of is on disk. A configuration says
//! what is allowed until somebody puts a policy in force himself: from then on it says nothing any more.

use anyhow::{Result, anyhow};
use overlay::Policy;
use serde_json::{Value, json};

use crate::control::NewPolicy;
use crate::policy::{Written, difference};
use crate::store::{KeptPolicy, Store};

/// The policy in force, as it is kept. Version 0 comes before all of them, and allows nothing.
#[derive(Clone, Debug)]
pub(super) struct InForce {
    kept: KeptPolicy,
    policy: Policy,
}

impl InForce {
    /// What a store has.
    pub(super) fn kept(store: &impl Store) -> Result<Self> {
        let nothing = || KeptPolicy { version: 0, text: String::new(), configured: true };
        let kept = store.policy()?.unwrap_or_else(nothing);
        let name = format!("policy {} of the database", kept.version);
        let read = Written::read(&kept.text);
        let read = read.map_err(|wrong| anyhow!(wrong.placed(&name, &kept.text)))?;
        let policy = Policy { version: kept.version, ..read.policy };
        Ok(Self { kept, policy })
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether what a configuration allows is to follow: it differs from what is kept, and nobody has put a policy in force himself.
    pub(super) fn is_followed_by(&self, written: &Written) -> bool {
        let Self { kept, policy } = self;
        if !kept.configured && !written.policy.lines.is_empty() {
            let what =
                "was put in force by tamis-cloud policy, and not what the configuration allows";
            if written.policy.lines != policy.lines {
                eprintln!("warning: version {} {what}", kept.version);
            }
        }
        kept.configured && (kept.version == 0 || kept.text != written.text)
    }

    /// The next version, by a user or by the configuration, and what differs.
    pub(super) fn next(&self, written: &Written, is_by_user: bool) -> (Self, String) {
        let version = self.kept.version + 1;
        let policy = Policy { version, ..written.policy.clone() };
        let changed = difference(&self.policy, &policy);
        let kept = KeptPolicy { version, text: written.text.clone(), configured: !is_by_user };
        (Self { kept, policy }, changed)
    }

    /// What a store is to keep.
    pub(super) fn to_keep(&self) -> KeptPolicy {
        self.kept.clone()
    }

    /// The policy that a request wants to follow.
    ///
    /// # Errors
    /// The answer, where none does: what is in force, or why it is refused.
    pub(super) fn asked(&self, new: &NewPolicy) -> std::result::Result<Written, Value> {
        let KeptPolicy { version, text: in_force, .. } = &self.kept;
        let Some(text) = &new.text else {
            return Err(json!({ "version": version, "text": in_force }));
        };
        if let Some(expected) = new.version.filter(|expected| expected != version) {
            let what = format!(
                "expected version {expected} to be in force, found {version}: tamis-cloud policy prints it"
            );
            return Err(json!({ "error": what }));
        }
        Written::read(text).map_err(|wrong| json!({ "error": wrong.placed(&new.name, text) }))
    }
}
