//! Directions: a node asks the way to another one, which is made ready for it first.
//!
//! The initiator asks, and asks again under the same transaction until there is an answer: each time, the directory shows the
//! responder the way to the initiator if it has not said that it is ready, and otherwise the initiator the way to it. So a
//! lost message costs a repetition, and a repeated one changes nothing.

use super::state::{Directory, Question};
use crate::effect::Now;
use crate::limits;
use crate::message::{Body, Refusal, Transaction};
use crate::name::Name;
use crate::paths::Pair;

/// Names that a node was refused and that are noted, at most.
const NOTED: usize = 64;

impl Directory {
    /// A node asks the way to another one.
    pub(super) fn direct(&mut self, from: &Name, transaction: Transaction, to: Name, now: Now) {
        match self.question(from, transaction, &to, now) {
            Err(why) => self.refuse(from, transaction, why),
            // The initiator asks again until the relay carries the path.
            Ok(None) => {}
            Ok(Some(Question { port, is_ready: true, .. })) => {
                self.show(from, transaction, &to, port);
            }
            Ok(Some(Question { port, .. })) => self.show(&to, transaction, from, port),
        }
    }

    /// The question of a transaction, which begins if there is none; nothing as long as the relay does not carry the path.
    fn question(
        &mut self,
        from: &Name,
        transaction: Transaction,
        to: &Name,
        now: Now,
    ) -> Result<Option<Question>, Refusal> {
        if !self.is_present(from, now.nanos) {
            return Err(Refusal::NotRegistered);
        }
        let is_known = self.devices.get(to).is_some_and(|device| !device.revoked);
        if !is_known || from == to || !self.policy.allows(from, to) {
            self.note_refused(from, to);
            return Err(Refusal::NoSuchName);
        }
        if !self.is_present(to, now.nanos) || !self.has_relay(now.nanos) {
            return Err(Refusal::Offline);
        }
        let pair = Pair::of(from, to);
        let before = self.paths.port(&pair);
        let port = self.paths.touch(&pair, now.nanos, self.policy.version).ok_or(Refusal::Full)?;
        if before.is_none() {
            self.join(&pair, port);
        }
        if !self.is_carried(&pair) {
            return Ok(None);
        }
        let key = (from.clone(), transaction);
        if let Some(question) = self.questions.get_mut(&key).filter(|it| it.responder == *to) {
            question.is_ready &= question.port == port;
            question.port = port;
            return Ok(Some(question.clone()));
        }
        let presence = self.present.get_mut(from).ok_or(Refusal::NotRegistered)?;
        if presence.questions >= limits::QUESTIONS_OF_NODE || self.questions.get(&key).is_some() {
            return Err(Refusal::Busy);
        }
        let question = Question { responder: to.clone(), port, is_ready: false };
        self.questions.begin(key, question.clone(), now.nanos).map_err(|_| Refusal::Busy)?;
        presence.questions += 1;
        // Either is reminded of the other until it says that it expects it, also if nobody asks again.
        presence.unknown.insert(to.clone());
        if let Some(presence) = self.present.get_mut(to) {
            presence.unknown.insert(from.clone());
        }
        Ok(Some(question))
    }

    /// Shows a node the way to another one, and what the two may begin.
    pub(super) fn show(&mut self, node: &Name, transaction: Transaction, other: &Name, port: u16) {
        let is_seen = self.present.get(node).is_some_and(|presence| presence.at.is_some());
        if !self.present.contains_key(other) || (self.has_both() && !is_seen) {
            // By which family it is reached is known in a moment.
            return;
        }
        let Some(identity) = self.identities.get(other).cloned().map(Box::new) else { return };
        if let Some(presence) = self.present.get_mut(node) {
            // What it is shown now is another node of that name.
            presence.withdrawals.remove(other);
        }
        let pair = Pair::of(node, other);
        if !self.relays.is_empty() {
            self.paths.set_shown(&pair);
        }
        let (relays, permits) =
            (self.relays_of(node, &pair, port), self.policy.permits(node, other));
        self.send(node, transaction, Body::Direction { identity, relays, permits });
    }

    /// A node expects another one: if it is the responder of a question, its initiator is shown the way. What it holds the
    /// other one to may be of a policy that has changed since for the two: then it is shown the way again.
    pub(super) fn ready(
        &mut self,
        responder: &Name,
        transaction: Transaction,
        (initiator, version): (Name, u64),
        now: Now,
    ) {
        let since = self.paths.since(&Pair::of(responder, &initiator));
        if since.is_none() && !self.policy.allows(responder, &initiator) {
            // The way came late, after the order to forget the other one. Nothing is kept of it, as any name may be said here.
            return self.send(responder, 0, Body::Withdraw { name: initiator });
        }
        if since.is_none_or(|since| version < since) {
            return;
        }
        if let Some(presence) = self.present.get_mut(responder) {
            presence.unknown.remove(&initiator);
        }
        self.punch(&Pair::of(responder, &initiator), limits::PUNCH_PAUSE, now);
        let key = (initiator, transaction);
        let question = self.questions.get_mut(&key).filter(|it| it.responder == *responder);
        let Some(question) = question else { return };
        question.is_ready = true;
        let port = question.port;
        if self.is_present(&key.0, now.nanos) {
            self.show(&key.0, transaction, responder, port);
        }
    }

    fn note_refused(&mut self, from: &Name, to: &Name) {
        let Some(presence) = self.present.get_mut(from) else { return };
        if presence.refused.len() < NOTED && presence.refused.insert(to.clone()) {
            self.note(format!("{from} asked for {to}, which is no node that it may reach"));
        }
    }
}
