//! [`Directory`]: what it knows, and what each part of it makes of that.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use tunnel::{Entropy, NoEntropy, PublicKey};

use super::apart::{Apart, Remote};
use super::recall::Recall;
use super::sounding::Sounding;
use crate::effect::{Effect, Now};
use crate::identity::{Identity, SignerKey};
use crate::limits;
use crate::lines::Lines;
use crate::message::{Body, Message, Refusal, Transaction};
use crate::name::Name;
use crate::network::Network;
use crate::paths::{Pair, Paths};
use crate::policy::Policy;
use crate::record::{Device, Record};
use crate::router::Router;
use crate::transactions::Transactions;

/// A node as the directory sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<'d> {
    /// What is kept of it.
    pub device: &'d Device,
    /// The node's virtual addresses.
    pub addresses: (std::net::Ipv4Addr, std::net::Ipv6Addr),
    /// Whether it is there.
    pub present: bool,
    /// Where it is, outside the tunnel, as far as the directory has seen it since it began.
    pub at: Option<SocketAddr>,
    /// What the router in front of it does, as far as the directory has seen it.
    pub router: Router,
}

/// A node that registered.
#[derive(Debug)]
pub(super) struct Presence {
    /// Until when it counts as being there.
    pub(super) until: u64,
    /// The number of its start.
    pub(super) started: u64,
    /// Where it is, outside the tunnel, and since when.
    pub(super) at: Option<SocketAddr>,
    pub(super) at_since: u64,
    /// What is found out of the router in front of it, and whether that forgets it in seconds.
    pub(super) sounding: Sounding,
    pub(super) recall: Recall,
    /// Addresses of its own, which those near it may reach.
    pub(super) locals: Vec<SocketAddr>,
    /// The questions of it whose state is kept.
    pub(super) questions: u32,
    /// Nodes that it is to forget, and did not say that it has.
    pub(super) withdrawals: BTreeSet<Name>,
    /// Nodes that it has a path to, and did not say that it expects.
    pub(super) unknown: BTreeSet<Name>,
    /// Names that it was refused, so that each is noted once.
    pub(super) refused: BTreeSet<Name>,
}

/// A question for a way, by its initiator and transaction.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) responder: Name,
    /// The relay's port.
    pub(super) port: u16,
    /// The responder expects the initiator.
    pub(super) is_ready: bool,
}

/// The directory of one network.
pub struct Directory {
    pub(super) network: Network,
    pub(super) policy: Policy,
    /// Where the relay of this process receives: its address, and its ports, which relays apart have, too.
    pub(super) relay: (IpAddr, RangeInclusive<u16>),
    /// Where nodes of the other family reach that relay, if they do.
    pub(super) other: Option<IpAddr>,
    /// Who signs identities.
    pub(super) signer: SignerKey,
    /// The directory's own key in the tunnel.
    pub(super) own: PublicKey,
    /// The number of this start.
    pub(super) started: u64,
    pub(super) devices: BTreeMap<Name, Device>,
    pub(super) by_key: HashMap<PublicKey, Name>,
    /// Of the identities that a node has shown, the last to expire.
    pub(super) identities: HashMap<Name, Identity>,
    /// An authority that is another process.
    pub(super) authority: Option<Apart>,
    pub(super) present: HashMap<Name, Presence>,
    pub(super) questions: Transactions<(Name, Transaction), Question>,
    pub(super) paths: Paths,
    /// Relays apart; none where the relay is of this process.
    pub(super) relays: Vec<Remote>,
    /// Nodes are said something after their silence.
    pub(super) recalls: bool,
    pub(super) effects: VecDeque<Effect>,
    pub(super) noted: Lines,
}

impl Directory {
    /// A directory that continues from what was kept.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn new(
        network: Network,
        relay: (IpAddr, RangeInclusive<u16>),
        policy: Policy,
        (signer, own): (SignerKey, PublicKey),
        kept: Vec<Record>,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, NoEntropy> {
        let mut started = [0; 8];
        entropy.fill(&mut started)?;
        let paths = Paths::new(relay.1.clone());
        let mut directory = Self {
            network,
            relay,
            other: None,
            policy,
            signer,
            own,
            started: u64::from_le_bytes(started),
            devices: BTreeMap::new(),
            by_key: HashMap::new(),
            identities: HashMap::new(),
            authority: None,
            present: HashMap::new(),
            questions: Transactions::new(limits::QUESTIONS, limits::QUESTION),
            paths,
            relays: Vec::new(),
            recalls: false,
            effects: VecDeque::new(),
            noted: Lines::default(),
        };
        // A path is between two devices, and an identity is of one, wherever it stands among them.
        let (devices, others): (Vec<_>, Vec<_>) =
            kept.into_iter().partition(|record| matches!(record, Record::Device(_)));
        devices.into_iter().chain(others).for_each(|record| directory.restore(record));
        Ok(directory)
    }

    fn restore(&mut self, record: Record) {
        match record {
            Record::Device(device) => {
                if !device.revoked {
                    self.by_key.insert(device.key, device.name.clone());
                    self.admit(&device);
                }
                self.devices.insert(device.name.clone(), device);
            }
            Record::Identity(identity) => self.restore_identity(*identity),
            Record::Path(pair, port) => self.restore_path(pair, port),
            // The rest is an authority's.
            Record::Invitation(_) | Record::Expired(_) | Record::Parted(_) => {}
        }
    }

    /// Takes a path up, unless the policy or the ports of the relay have changed.
    fn restore_path(&mut self, pair: Pair, port: u16) {
        let is_device = |name| self.devices.get(name).is_some_and(|device| !device.revoked);
        let is_path = is_device(&pair.0)
            && is_device(&pair.1)
            && self.policy.allows(&pair.0, &pair.1)
            && self.paths.restore(&pair, port, self.policy.version);
        match is_path {
            true => self.join(&pair, port),
            false => self.effects.push_back(Effect::Part { pair }),
        }
    }

    /// Makes the relay forward between two nodes.
    pub(super) fn join(&mut self, pair: &Pair, port: u16) {
        let key = |name| self.devices.get(name).map(|device| device.key);
        if let (Some(first), Some(second)) = (key(&pair.0), key(&pair.1)) {
            let (pair, keys) = (pair.clone(), [first, second]);
            self.effects.push_back(Effect::Join { pair, keys, port });
        }
        self.order(pair, true);
    }

    /// The next thing to be done.
    pub fn take(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// All nodes, by name.
    pub fn list(&self, now: u64) -> impl Iterator<Item = Listed<'_>> {
        self.devices.values().map(move |device| Listed {
            device,
            addresses: self.network.addresses(device.number),
            present: self.is_present(&device.name, now),
            at: self.present.get(&device.name).and_then(|it| it.at),
            router: self.router(&device.name),
        })
    }

    /// Forgets what is too old. Every message does this, too.
    pub fn expire(&mut self, now: Now) {
        self.noted.expire(now.nanos);
        self.repeat_orders(now.nanos);
        while let Some(((name, _), _)) = self.questions.expire(now.nanos) {
            if let Some(presence) = self.present.get_mut(&name) {
                presence.questions = presence.questions.saturating_sub(1);
            }
        }
    }

    /// Forgets paths that nobody asked for, and repeats what nodes are to forget: to be called each second.
    pub fn sweep(&mut self, now: Now) {
        while let Some(pair) = self.paths.next_idle(now.nanos.saturating_sub(limits::PATH)) {
            self.part(&pair);
        }
        self.present.retain(|_, presence| presence.until > now.nanos);
        self.miss_relays(now.nanos);
        self.miss_authority(now.nanos);
        self.begin_waiting(now);
        let forgetful = self.present.iter().filter(|(_, it)| !it.withdrawals.is_empty());
        let forgetful: Vec<Name> = forgetful.map(|(name, _)| name.clone()).collect();
        forgetful.iter().for_each(|name| self.repeat_withdrawals(name));
    }

    pub(super) fn is_present(&self, name: &Name, now: u64) -> bool {
        self.present.get(name).is_some_and(|presence| presence.until > now)
    }

    pub(super) fn part(&mut self, pair: &Pair) {
        self.paths.end(pair);
        self.effects.push_back(Effect::Part { pair: pair.clone() });
        self.order(pair, false);
    }

    pub(super) fn admit(&mut self, device: &Device) {
        let (v4, v6) = self.network.addresses(device.number);
        let addresses = vec![v4.into(), v6.into()];
        self.effects.push_back(Effect::Admit { key: device.key, addresses });
    }

    /// Sends a message to a node.
    pub(super) fn send(&mut self, to: &Name, transaction: Transaction, body: Body) {
        let Some(device) = self.devices.get(to) else { return };
        let at = self.network.addresses(device.number).0.into();
        let message = Message { transaction, body }.to_bytes();
        self.effects.push_back(Effect::Send { to: device.key, at, message });
    }

    pub(super) fn refuse(&mut self, to: &Name, transaction: Transaction, why: Refusal) {
        self.send(to, transaction, Body::Refused(why));
    }

    /// Logs a line, unless others make too many.
    pub(super) fn note(&mut self, line: String) {
        self.effects.extend(self.noted.admit(line).map(Effect::Note));
    }

    /// The port of a path, if the relay carries it or the nodes know it.
    pub(super) fn way(&self, pair: &Pair) -> Option<u16> {
        let is_way = self.is_carried(pair) || self.paths.is_shown(pair);
        self.paths.port(pair).filter(|_| is_way)
    }
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (devices, present) = (self.devices.len(), self.present.len());
        write!(f, "Directory({devices} devices, {present} present)")
    }
}
