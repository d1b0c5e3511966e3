//! Registration: which nodes are there, their identities, and what each has to learn again or to forget.

use std::net::SocketAddr;

use tunnel::PublicKey;

use super::state::{Directory, Presence};
use crate::effect::Now;
use crate::identity::Identity;
use crate::limits;
use crate::message::{Body, Refusal, Transaction};
use crate::name::Name;
use crate::paths::Pair;
use crate::policy::Policy;

impl Directory {
    /// A node says that it is there.
    pub(super) fn register(
        &mut self,
        name: &Name,
        transaction: Transaction,
        (started, locals, offered): (u64, Vec<SocketAddr>, Option<Box<Identity>>),
        now: Now,
    ) {
        let Some(identity) = self.certified(name, offered, now) else {
            self.present.remove(name);
            return self.refuse(name, transaction, Refusal::Uncertified);
        };
        let presence = self.present.entry(name.clone()).or_insert_with(|| Presence {
            until: 0,
            // Another start, after which it knows no peers.
            started: !started,
            at: None,
            at_since: 0,
            sounding: Default::default(),
            recall: Default::default(),
            locals: Vec::new(),
            questions: 0,
            withdrawals: Default::default(),
            unknown: Default::default(),
            refused: Default::default(),
        });
        if presence.started != started {
            let pairs = self.paths.of(name);
            presence.unknown = pairs.iter().filter_map(|pair| pair.other(name).cloned()).collect();
            pairs.iter().for_each(|pair| self.paths.restarted(pair));
            presence.recall = Default::default();
            // It has another socket, perhaps, whose place counts at once.
            if now.nanos >= presence.at_since.saturating_add(limits::SECOND) {
                presence.at = None;
            }
        }
        let lost_since = presence.recall.lost_since(now.nanos);
        let recall = if self.recalls { presence.recall.registered(now.nanos) } else { 0 };
        presence.started = started;
        presence.locals = locals;
        presence.until = now.nanos.saturating_add(limits::PRESENT);
        let (identity, time, directory) = (Box::new(identity), self.unix(now), self.started);
        let answer = Body::Registered { identity, time, started: directory, recall };
        self.send(name, transaction, answer);
        self.remind(name);
        self.sound_on(name, now);
        lost_since.into_iter().for_each(|since| self.punch_lost(name, since, now));
    }

    /// A session with the peer of this key is there. A node that has not registered since this directory began knows nothing of
    /// its restart, and is asked to.
    pub fn met(&mut self, key: &PublicKey, now: Now) {
        let name = self.by_key.get(key).filter(|name| !self.is_present(name, now.nanos));
        if let Some(name) = name.cloned() {
            self.refuse(&name, 0, Refusal::NotRegistered);
        }
    }

    /// A node says something else than that it is there.
    pub(super) fn heard_of(&mut self, name: &Name, now: Now) {
        if let Some(presence) = self.present.get_mut(name) {
            presence.recall.heard_of(now.nanos);
        }
    }

    /// Says something, twice, to nodes that were silent for long enough, and may be behind a router that forgets in seconds: to be
    /// called each second, or never.
    pub fn recall(&mut self, now: Now) {
        self.recalls = true;
        let due = self.present.iter_mut().filter(|(_, it)| it.recall.is_due(now.nanos));
        let due: Vec<Name> = due
            .map(|(name, presence)| {
                presence.recall.told = Some(now.nanos);
                name.clone()
            })
            .collect();
        for name in due.iter().chain(&due) {
            self.refuse(name, 0, Refusal::NotRegistered);
        }
    }

    /// Tells a node again what it did not say that it has learned.
    pub(super) fn remind(&mut self, name: &Name) {
        self.repeat_withdrawals(name);
        let unknown = self.present.get(name).map(|presence| presence.unknown.clone());
        for other in unknown.into_iter().flatten() {
            if let Some(port) = self.way(&Pair::of(name, &other)) {
                self.show(name, 0, &other, port);
            }
        }
    }

    /// Tells a node again what it did not say that it has forgotten.
    pub(super) fn repeat_withdrawals(&mut self, name: &Name) {
        let forgotten = self.present.get(name).map(|presence| presence.withdrawals.clone());
        for other in forgotten.into_iter().flatten() {
            self.send(name, 0, Body::Withdraw { name: other });
        }
    }

    /// Tells a node to forget another one, until it says that it has.
    pub(super) fn withdraw(&mut self, node: &Name, forgotten: &Name) {
        if let Some(presence) = self.present.get_mut(node) {
            presence.unknown.remove(forgotten);
            presence.withdrawals.insert(forgotten.clone());
            self.send(node, 0, Body::Withdraw { name: forgotten.clone() });
        }
    }

    /// A node has forgotten another one.
    pub(super) fn withdrawn(&mut self, node: &Name, forgotten: &Name) {
        if let Some(presence) = self.present.get_mut(node) {
            presence.withdrawals.remove(forgotten);
        }
    }

    /// Replaces the policy. Nodes that may no longer reach each other forget each other; pairs that may begin something else
    /// hear of it, and no others.
    pub fn set_policy(&mut self, policy: Policy) {
        let before = std::mem::replace(&mut self.policy, policy);
        let (gone, new) = (before.without(&self.policy), self.policy.without(&before));
        let is_concerned =
            |pair: &Pair| [&gone, &new].iter().any(|lines| lines.allows(&pair.0, &pair.1));
        let pairs = self.paths.pairs().filter(|pair| is_concerned(pair));
        let pairs: Vec<Pair> = pairs.cloned().collect();
        for pair in pairs {
            match self.policy.allows(&pair.0, &pair.1) {
                true => self.tell_anew(&pair),
                false => {
                    self.withdraw(&pair.0, &pair.1);
                    self.withdraw(&pair.1, &pair.0);
                    self.part(&pair);
                }
            }
        }
    }

    /// Tells both nodes of a pair what they may begin now, until each says that it holds the other to it.
    fn tell_anew(&mut self, pair: &Pair) {
        self.paths.changed(pair, self.policy.version);
        let Some(port) = self.way(pair) else { return };
        for (node, other) in [(&pair.0, &pair.1), (&pair.1, &pair.0)] {
            if let Some(presence) = self.present.get_mut(node) {
                presence.unknown.insert(other.clone());
            }
            self.show(node, 0, other, port);
        }
    }
}
