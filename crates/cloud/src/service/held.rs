//! [`Held`]: what is to be kept, and cannot be kept now: nothing follows from it until it is.
//!
//! Contract: while something is held, or the store says that it cannot keep anything, nothing else is taken that is to be kept before
//! it is acknowledged: it is refused by name, or repeated by who orders it. All else goes on from memory. A service that ends before has
//! acknowledged nothing of it.

use anyhow::{Context, Result};
use overlay::{Authority, Effect, Now};
use serde_json::{Value, json};
use tunnel::PublicKey;

use super::Service;
use super::policy::InForce;
use crate::etcd::Trouble;
use crate::store::{Changes, Store};

/// What is to be kept, and what follows from that.
#[derive(Debug)]
pub(super) struct Held {
    changes: Changes,
    effects: Vec<Effect>,
    policy: Option<InForce>,
}

impl<S: Store> Service<S> {
    /// Why nothing can be kept now, if so.
    pub(super) fn unkept(&self) -> Option<String> {
        let held = || "what was asked for before is not kept yet".to_owned();
        let stand = self.store.stand().unwrap_or_default();
        stand.or_else(|| self.held.is_some().then(held))
    }

    /// Refuses a message from which something would be to be kept, while nothing can be; returns whether it is such a one.
    pub(super) fn declines(&mut self, from: &PublicKey, payload: &[u8]) -> bool {
        if self.unkept().is_none() {
            return false;
        }
        // What an authority apart orders it orders again.
        let is_order = self.authority_apart == Some(*from);
        let authority = self.authority.as_mut();
        is_order || authority.is_some_and(|it: &mut Authority| it.declines(from, payload))
    }

    /// Keeps changes; returns whether they are kept, so that what follows from them may be done. Where the store is away, that
    /// waits.
    pub(super) fn keep(
        &mut self,
        mut changes: Changes,
        effects: &mut Vec<Effect>,
        policy: Option<&InForce>,
    ) -> Result<bool> {
        match self.store.commit(&changes) {
            Ok(()) => Ok(true),
            Err(error) if is_away(&error) && self.held.is_none() => {
                // The store has the lines. What was to be said is asked for again, or said again.
                changes.lines.clear();
                effects.retain(|effect| !matches!(effect, Effect::Send { .. }));
                let (effects, policy) = (std::mem::take(effects), policy.cloned());
                self.held = Some(Held { changes, effects, policy });
                Ok(false)
            }
            Err(error) => Err(error).context("the database"),
        }
    }

    /// Keeps what is held, if that can be done by now, and does what follows.
    pub(super) fn keep_held(&mut self, now: Now) -> Result<()> {
        if self.store.stand().context("the database")?.is_some() {
            return Ok(());
        }
        let Some(Held { changes, mut effects, policy }) = self.held.take() else { return Ok(()) };
        if self.keep(changes, &mut effects, policy.as_ref())? {
            eprintln!("what was held is kept");
            effects.into_iter().for_each(|effect| self.carry_out(effect, now));
            if let Some(policy) = policy {
                self.enforce(policy);
            }
        }
        Ok(())
    }

    /// The answer to a request whose changes are held.
    pub(super) fn held_answer(&self) -> Option<Value> {
        self.held.as_ref()?;
        let why = self.store.stand().ok().flatten().unwrap_or_default();
        let what = "it is done once it can be kept, unless this directory ends before";
        Some(json!({ "error": format!("{why}: {what}") }))
    }
}

/// Whether a store could not be reached.
pub(super) fn is_away(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Trouble::Away(_)))
}
