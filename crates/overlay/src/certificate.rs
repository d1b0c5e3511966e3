//! [`Certificate`]: a node's own identity, as its authority signed it last; when it asks for another one, and what the
//! directory is known to have of it. By the authority's clock the node judges the identities of others.

use crate::identity::Identity;
use crate::limits::{self, SECOND};
use crate::message::Transaction;

/// What a node has of its authority.
#[derive(Debug, Default)]
pub(crate) struct Certificate {
    held: Option<Box<Identity>>,
    /// Until when the identity holds that the directory is known to have.
    told: u64,
    /// Whether the last registration had an identity with it.
    is_offered: bool,
    /// The transaction of the last question.
    question: Transaction,
    /// When the authority is asked again.
    pub(crate) ask_at: u64,
    /// Seconds after 1970 on the authority's clock, and when that was on ours.
    clock: Option<(u64, u64)>,
}

impl Certificate {
    /// Whether there is none.
    pub(crate) fn is_lacking(&self) -> bool {
        self.held.is_none()
    }

    /// Seconds after 1970 on the authority's clock, if it was ever heard.
    pub(crate) fn unix(&self, now: u64) -> Option<u64> {
        let (time, at) = self.clock?;
        Some(time.saturating_add(now.saturating_sub(at) / SECOND))
    }

    /// The authority is asked under this transaction.
    pub(crate) fn asked(&mut self, question: Transaction, now: u64) {
        self.question = question;
        let pause = match self.held {
            Some(_) => limits::RENEW_PATIENTLY,
            None => limits::RENEW_AGAIN,
        };
        self.ask_at = now.saturating_add(pause);
    }

    /// Whether this is the transaction of the last question, which has no answer yet.
    pub(crate) fn is_awaited(&self, transaction: Transaction) -> bool {
        transaction == self.question && transaction != 0
    }

    /// The answer to it: an identity that was found genuine at this time. Half of its life later the authority is asked again.
    pub(crate) fn renewed(&mut self, identity: Box<Identity>, time: u64, now: u64) {
        let half = identity.claims.expires.saturating_sub(time) / 2;
        self.ask_at = now.saturating_add(half.saturating_mul(SECOND));
        self.question = 0;
        self.clock = Some((time, now));
        self.held = Some(identity);
    }

    /// The identity to register with, unless the directory is known to have it.
    pub(crate) fn offer(&mut self) -> Option<Box<Identity>> {
        let told = self.told;
        let offer = self.held.clone().filter(|held| held.claims.expires > told);
        self.is_offered = offer.is_some();
        offer
    }

    /// Whether a registration offers what the directory is not known to have.
    pub(crate) fn is_news(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.claims.expires > self.told)
    }

    /// The directory has this genuine identity of the node. It may be a later one than that of before this start.
    pub(crate) fn is_told(&mut self, identity: &Identity) {
        self.told = identity.claims.expires;
        let is_later = |held: &Identity| held.claims.expires < identity.claims.expires;
        if self.held.as_deref().is_none_or(is_later) {
            self.held = Some(Box::new(identity.clone()));
        }
    }

    /// The directory has none; returns whether one is to be offered now.
    pub(crate) fn is_missed(&mut self) -> bool {
        self.told = 0;
        !self.is_offered && self.held.is_some()
    }
}
