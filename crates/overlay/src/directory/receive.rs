//! Messages: who may say what, and the part of the directory that answers it.

use tunnel::PublicKey;

use super::state::Directory;
use crate::effect::Now;
use crate::message::{Body, Message};

impl Directory {
    /// Takes a message from the peer that has this key.
    pub fn receive(&mut self, from: &PublicKey, bytes: &[u8], now: Now) {
        self.expire(now);
        let Message { transaction, body } = match Message::parse(bytes) {
            Ok(message) => message,
            Err(error) => return self.note(format!("a message of {from} is none: {error}")),
        };
        if let Some(relay) = self.relay_of(from) {
            return self.relay_says(relay, transaction, body, now);
        }
        if self.is_authority(from) {
            return self.authority_says(transaction, body, now);
        }
        let Some(name) = self.by_key.get(from).cloned() else { return };
        if !matches!(body, Body::Register { .. }) {
            self.heard_of(&name, now);
        }
        match body {
            Body::Register { started, locals, identity } => {
                self.register(&name, transaction, (started, locals, identity), now);
            }
            Body::Direct { name: to } => self.direct(&name, transaction, to, now),
            Body::Ready { name: other, started, version } => {
                let is_current = self.present.get(&name).is_some_and(|it| it.started == started);
                if is_current {
                    self.ready(&name, transaction, (other, version), now);
                }
            }
            Body::Reaches { peers } => self.reaches(&name, peers, now),
            Body::Withdrawn { name: forgotten } => self.withdrawn(&name, &forgotten),
            _ => self.note(format!("{name} sent a message that is not a node's")),
        }
    }
}
