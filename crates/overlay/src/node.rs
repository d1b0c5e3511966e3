//! [`Node`]: a node's side: it has its identity renewed, registers, asks the way to others when a program asks for their names, and expects those
//! that the directory announces.
//!
//! Contract: no sockets and no clock: what is to be done is taken from [`Node::take`], and time is passed in. A peer is
//! one whose identity the network's signer has signed, whichever host sends it: a directory that names another key is found out.
//! Identities are judged by the authority's clock, or by the directory's until the authority was heard, so a node need not know
//! what time it is. All state is bounded.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use tunnel::{Entropy, NoEntropy};

use crate::certificate::Certificate;
use crate::identity::{Claims, Identity, SignerKey};
use crate::limits;
use crate::lines::Lines;
use crate::message::{Body, Message, Refusal, Transaction};
use crate::name::Name;
use crate::no_way::NoWay;
use crate::permits::Permits;
use crate::reached::Reached;
use crate::recall::Recall;
use crate::router::{Ports, Router};
use crate::transactions::Transactions;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A message is sent to the directory.
    Send(Vec<u8>),
    /// A message is sent to the authority.
    Ask(Vec<u8>),
    /// From now on the tunnel lets this peer begin no more than that, and this host no more with it.
    Permit {
        /// What the peer is.
        claims: Claims,
        /// What may begin.
        permits: Permits,
    },
    /// The tunnel has this peer from now on, or reaches it elsewhere.
    Add {
        /// What the peer is.
        claims: Claims,
        /// Where it is reached: by each relay, that first which is to be used first.
        relays: Vec<SocketAddr>,
    },
    /// The tunnel no longer has this peer, nor lets it begin anything.
    Remove {
        /// The peer's name.
        name: Name,
    },
    /// The tunnel tries to reach this peer at these places after that many nanoseconds.
    Punch {
        /// The peer's name.
        name: Name,
        /// Where it may be.
        candidates: Vec<SocketAddr>,
        /// Nanoseconds until then.
        after: u64,
        /// What the directory knows of this node's router, and of the peer's.
        routers: Option<[Router; 2]>,
    },
    /// The tunnel sends a probe to each of these places, in this order, by its session with the directory.
    Probe {
        /// The places.
        to: Vec<SocketAddr>,
    },
    /// Who waits for a name gets this answer.
    Answer {
        /// The name.
        name: Name,
        /// What the node of the name is, or why there is no way to it.
        found: Result<Claims, NoWay>,
    },
    /// Keepalives go to all peers, the servers, too, after that many nanoseconds in which nothing passes, from now on.
    Keep(u64),
    /// A line for the log.
    Note(String),
}

/// A question for the way to a node.
#[derive(Clone, Debug)]
struct Ask {
    name: Name,
    again: u64,
    pause: u64,
    /// Somebody waits for the answer.
    is_awaited: bool,
}

/// A peer by the directory.
#[derive(Clone, Debug)]
struct Peer {
    claims: Claims,
    relays: Vec<SocketAddr>,
    permits: Permits,
    /// The number of the directory's start by which they came.
    told: u64,
    learned: u64,
    renew: u64,
    /// How often this node asked the way to it.
    asked: u32,
}

/// What the directory said last about itself.
#[derive(Clone, Copy, Debug)]
struct Registered {
    /// The number of the directory's start.
    started: u64,
    /// Seconds after 1970 by its word, and when that was on our clock.
    time: (u64, u64),
}

/// One node of a network.
pub struct Node {
    own: Name,
    signer: SignerKey,
    entropy: Box<dyn Entropy>,
    /// The number of this start.
    started: u64,
    locals: Vec<SocketAddr>,
    certificate: Certificate,
    /// The authority is another process than the directory.
    is_apart: bool,
    registered: Option<Registered>,
    registration: Transaction,
    register_at: u64,
    recall: Recall,
    asks: Transactions<Transaction, Ask>,
    asked: HashMap<Name, Transaction>,
    peers: BTreeMap<Name, Peer>,
    actions: VecDeque<Action>,
    noted: Lines,
}

impl Node {
    /// The node of this name, in the network of this signer.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn new(
        own: Name,
        signer: SignerKey,
        mut entropy: Box<dyn Entropy>,
    ) -> Result<Self, NoEntropy> {
        let started = number(&mut *entropy)?;
        Ok(Self {
            own,
            signer,
            entropy,
            started,
            locals: Vec::new(),
            certificate: Certificate::default(),
            is_apart: false,
            registered: None,
            registration: 0,
            register_at: 0,
            recall: Recall::default(),
            asks: Transactions::new(limits::ASKED, limits::PATIENCE),
            asked: HashMap::new(),
            peers: BTreeMap::new(),
            actions: VecDeque::new(),
            noted: Lines::default(),
        })
    }

    /// The next thing to be done.
    pub fn take(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The authority is another process than the directory, which then says nothing in its place.
    pub fn authority_apart(&mut self) {
        self.is_apart = true;
    }

    /// The directory is reached by another way: it hears of this node at once.
    pub fn register_now(&mut self, now: u64) {
        self.register_at = now;
    }

    /// Whether this node has never had an identity since it began, from its authority or its directory.
    #[must_use]
    pub fn lacks_identity(&self) -> bool {
        self.certificate.is_lacking()
    }

    /// Where this node is by its own addresses; the directory hears of it at the next registration.
    pub fn set_locals(&mut self, mut locals: Vec<SocketAddr>) {
        locals.truncate(limits::LOCALS);
        self.locals = locals;
    }

    /// Says how this node reaches some of its peers, at most [`crate::MOST_REACHED`]. Nothing answers it: a lost message is as good as a late one.
    pub fn reaches(&mut self, peers: Vec<Reached>) {
        self.send(0, Body::Reaches { peers });
    }

    /// Whether the directory has ever said that it has noted this node.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.registered.is_some()
    }

    /// The peers by the directory.
    pub fn peers(&self) -> impl Iterator<Item = &Claims> {
        self.peers.values().map(|peer| &peer.claims)
    }

    /// Finds the node of a name, for somebody who waits: an [`Action::Answer`] follows, at once where the way is known.
    pub fn resolve(&mut self, name: &Name, now: u64) {
        let known = self.peers.get(name);
        let fresh = known.filter(|peer| now.saturating_sub(peer.learned) < limits::FRESH_WAY);
        if let Some(claims) = fresh.map(|peer| peer.claims.clone()) {
            return self.answer(name.clone(), Ok(claims));
        }
        self.ask(name, true, now);
    }

    /// The direct path to a peer is given up: the directory is asked for an attempt as soon as there may be one, and for others after
    /// it, as after the first question. It alone knows who is to send first.
    pub fn fell_back(&mut self, name: &Name, now: u64) {
        if let Some(peer) = self.peers.get_mut(name) {
            peer.asked = 0;
            peer.renew = peer.renew.min(now.saturating_add(limits::PUNCH_PAUSE));
        }
    }

    fn ask(&mut self, name: &Name, is_awaited: bool, now: u64) {
        let running = self.asked.get(name).and_then(|transaction| self.asks.get_mut(transaction));
        if let Some(ask) = running {
            ask.is_awaited |= is_awaited;
            return;
        }
        let pause = limits::ASK_AGAIN;
        let ask = Ask { name: name.clone(), again: now.saturating_add(pause), pause, is_awaited };
        let begun = number(&mut *self.entropy).ok().and_then(|transaction| {
            self.asks.begin(transaction, ask, now).ok().map(|()| transaction)
        });
        match begun {
            Some(transaction) => {
                self.asked.insert(name.clone(), transaction);
                self.send(transaction, Body::Direct { name: name.clone() });
            }
            None if is_awaited => self.answer(name.clone(), Err(NoWay::Full)),
            None => {}
        }
    }

    /// Does what time brings.
    pub fn tick(&mut self, now: u64) {
        while let Some((_, ask)) = self.asks.expire(now) {
            self.asked.remove(&ask.name);
            if ask.is_awaited {
                self.answer(ask.name, Err(NoWay::Silent));
            }
        }
        let mut again = Vec::new();
        for (transaction, ask) in self.asks.iter_mut().filter(|(_, ask)| ask.again <= now) {
            ask.pause = ask.pause.saturating_mul(2);
            ask.again = now.saturating_add(ask.pause);
            again.push((*transaction, ask.name.clone()));
        }
        for (transaction, name) in again {
            self.send(transaction, Body::Direct { name });
        }
        self.renew(now);
        if self.certificate.ask_at <= now {
            self.ask_authority(now);
        }
        if let Some(keep) = self.recall.miss(now) {
            self.actions.push_back(Action::Keep(keep));
            self.register_at = now;
        }
        if self.register_at <= now {
            self.register(now);
        }
    }

    /// When something is due, unless a message comes or a program asks.
    #[must_use]
    pub fn next_due(&self) -> u64 {
        let asks = self.asked.values().filter_map(|it| self.asks.get(it)).map(|ask| ask.again);
        let renewals = self.peers.values().map(|peer| peer.renew);
        let own = self.register_at.min(self.certificate.ask_at);
        asks.chain(renewals).chain(self.recall.due()).min().map_or(own, |due| due.min(own))
    }

    /// Asks for an identity that holds for longer.
    fn ask_authority(&mut self, now: u64) {
        let transaction = number(&mut *self.entropy).unwrap_or(0);
        self.certificate.asked(transaction, now);
        if transaction != 0 {
            let message = Message { transaction, body: Body::Renew }.to_bytes();
            self.actions.push_back(Action::Ask(message));
        }
    }

    fn register(&mut self, now: u64) {
        if let Ok(transaction) = number(&mut *self.entropy) {
            self.registration = transaction;
            let (started, locals) = (self.started, self.locals.clone());
            let identity = self.certificate.offer();
            self.send(transaction, Body::Register { started, locals, identity });
        }
        self.register_at = now.saturating_add(limits::REGISTER_AGAIN);
    }

    /// Asks again for ways that are old, and forgets peers whose identities have expired.
    fn renew(&mut self, now: u64) {
        let unix = self.unix(now);
        let is_over = |peer: &Peer| unix.is_some_and(|unix| peer.claims.expires <= unix);
        let over = self.peers.iter().filter(|(_, peer)| is_over(peer));
        let over: Vec<Name> = over.map(|(name, _)| name.clone()).collect();
        over.iter().for_each(|name| self.forget(name));
        let due = self.peers.values_mut().filter(|peer| peer.renew <= now);
        let due: Vec<Name> = due
            .map(|peer| {
                peer.renew = now.saturating_add(limits::REGISTER);
                peer.claims.name.clone()
            })
            .collect();
        due.iter().for_each(|name| self.ask(name, false, now));
    }

    /// Seconds after 1970 on the authority's clock, or by the directory's word until the authority was heard.
    fn unix(&self, now: u64) -> Option<u64> {
        self.certificate.unix(now).or_else(|| {
            let (time, at) = self.registered?.time;
            Some(time.saturating_add(now.saturating_sub(at) / limits::SECOND))
        })
    }

    /// Takes a message from an authority that is another process than the directory.
    pub fn receive_of_authority(&mut self, bytes: &[u8], now: u64) {
        self.noted.expire(now);
        match Message::parse(bytes) {
            Ok(Message { transaction, body: Body::Renewed { identity, time } }) => {
                self.renewed(transaction, identity, time, now);
            }
            Ok(_) => {}
            Err(error) => self.note(format!("a message of the authority is none: {error}")),
        }
    }

    fn renewed(&mut self, transaction: Transaction, identity: Box<Identity>, time: u64, now: u64) {
        if !self.certificate.is_awaited(transaction) {
            return;
        }
        match identity.verify(&self.signer, time).map(|claims| claims.name == self.own) {
            Ok(true) => {}
            Ok(false) => return self.note("the authority takes this node for another".to_owned()),
            Err(why) => {
                return self
                    .note(format!("alarm: the authority's word is not to be relied on: {why}"));
            }
        }
        self.certificate.renewed(identity, time, now);
        if self.certificate.is_news() {
            self.register(now);
        }
    }

    /// Takes a message from the directory.
    pub fn receive(&mut self, bytes: &[u8], now: u64) {
        self.noted.expire(now);
        let Message { transaction, body } = match Message::parse(bytes) {
            Ok(message) => message,
            Err(error) => return self.note(format!("a message of the directory is none: {error}")),
        };
        match body {
            Body::Registered { identity, time, started, recall }
                if transaction == self.registration =>
            {
                self.recall.expect(recall, now);
                self.registered(&identity, Registered { started, time: (time, now) }, now);
            }
            Body::Direction { identity, relays, permits } => {
                self.directed(transaction, &identity, (relays, permits), now);
            }
            Body::Renewed { identity, time } if !self.is_apart => {
                self.renewed(transaction, identity, time, now);
            }
            Body::Refused(why) => self.refused(transaction, why, now),
            Body::Withdraw { name } => {
                self.forget(&name);
                self.send(transaction, Body::Withdrawn { name });
            }
            Body::Punch { name, after, candidates, routers } => {
                self.punch(name, after, candidates, routers);
            }
            Body::Probe { mut to } => {
                to.retain(|place| is_a_place(*place));
                self.actions.push_back(Action::Probe { to });
            }
            _ => {}
        }
    }

    fn registered(&mut self, identity: &Identity, registered: Registered, now: u64) {
        let unix = self.certificate.unix(now).unwrap_or(registered.time.0);
        let verified = identity.verify(&self.signer, unix);
        match verified.map(|claims| claims.name == self.own) {
            Ok(true) => {}
            Ok(false) => return self.note("the directory takes this node for another".to_owned()),
            Err(why) => {
                return self
                    .note(format!("alarm: the directory's word is not to be relied on: {why}"));
            }
        }
        self.certificate.is_told(identity);
        let before = self.registered.replace(registered);
        self.register_at = now.saturating_add(limits::REGISTER);
        let is_known = before.is_some_and(|before| {
            before.started == registered.started
                && now.saturating_sub(before.time.1) < limits::PRESENT / 2
        });
        if !is_known {
            // A directory that began again, or took this node for absent, does not know what it is to forget.
            self.peers.values_mut().for_each(|peer| peer.renew = now);
            self.renew(now);
        }
    }

    /// The way to a node, which was asked for, or asked for us.
    fn directed(
        &mut self,
        transaction: Transaction,
        identity: &Identity,
        (relays, permits): (Vec<SocketAddr>, Permits),
        now: u64,
    ) {
        let name = identity.claims.name.clone();
        let ask = self.asks.get(&transaction).filter(|ask| ask.name == name).cloned();
        let Some(unix) = self.unix(now) else { return };
        let found = match identity.verify(&self.signer, unix) {
            Err(why) => {
                let what = "alarm: the directory names a key for";
                self.note(format!("{what} {name} that is not to be relied on: {why}"));
                Err(NoWay::NotGenuine(why))
            }
            Ok(claims) if claims.name == self.own => return,
            Ok(claims) => self.add(claims, (relays, permits), ask.is_some(), now),
        };
        if let (Ok(_), Some(peer)) = (&found, self.peers.get(&name)) {
            let (started, version) = (self.started, peer.permits.version);
            self.send(transaction, Body::Ready { name: name.clone(), started, version });
        }
        if let Some(ask) = ask {
            self.end(transaction);
            if ask.is_awaited {
                self.answer(name, found);
            }
        }
    }

    fn add(
        &mut self,
        claims: &Claims,
        (relays, permits): (Vec<SocketAddr>, Permits),
        is_asked: bool,
        now: u64,
    ) -> Result<Claims, NoWay> {
        let (name, told) = (&claims.name, self.registered.map_or(0, |it| it.started));
        let known = self.peers.get(name);
        if known.is_none() && self.peers.len() >= limits::PEERS {
            return Err(NoWay::Full);
        }
        let is_same = |peer: &Peer| {
            let (old, new) = (&peer.claims, claims);
            let is_one = (old.key, old.v4, old.v6) == (new.key, new.v4, new.v6);
            is_one && peer.relays == relays
        };
        // A message that was overtaken by another one of the same start of the directory takes nothing back.
        let newer = known.filter(|it| it.told == told && it.permits.version > permits.version);
        let permits = newer.map_or(permits, |peer| peer.permits.clone());
        let has_same = |peer: &Peer| peer.permits == permits && is_same(peer);
        if !known.is_some_and(has_same) {
            let (claims, permits) = (claims.clone(), permits.clone());
            self.actions.push_back(Action::Permit { claims, permits });
        }
        if !known.is_some_and(is_same) {
            self.actions.push_back(Action::Add { claims: claims.clone(), relays: relays.clone() });
        }
        // A node that asks makes the directory begin an attempt to reach the other one without the relay.
        let asked = known.map_or(0, |peer| peer.asked).saturating_add(u32::from(is_asked));
        let renew = match known {
            // A message that ends what this one begins may have overtaken it.
            None if !is_asked => limits::CONFIRM,
            Some(peer) if !is_asked => peer.renew.saturating_sub(now).min(limits::RENEW_WAY),
            _ if asked >= limits::PUNCHES => limits::RENEW_WAY,
            _ => limits::PUNCH_AGAIN,
        };
        let asked = if known.is_none() && !is_asked { limits::PUNCHES } else { asked };
        let (learned, renew) = (now, now.saturating_add(renew));
        let peer = Peer { claims: claims.clone(), relays, permits, told, learned, renew, asked };
        self.peers.insert(name.clone(), peer);
        Ok(claims.clone())
    }

    /// A peer may be reached at some places without the relay; where its router counts on and ours does not, at the next ports,
    /// too.
    fn punch(
        &mut self,
        name: Name,
        after: u64,
        mut candidates: Vec<SocketAddr>,
        routers: Option<[Router; 2]>,
    ) {
        if !self.peers.contains_key(&name) {
            return;
        }
        candidates.retain(|candidate| is_a_place(*candidate));
        let peers = routers.filter(|[own, _]| !matches!(own.ports, Ports::Step(_) | Ports::Each));
        let last = candidates.iter().find(|candidate| candidate.is_ipv4()).copied();
        if let (Some([_, peer]), Some(last)) = (peers, last) {
            let next = peer.ports.after(last.port()).take(limits::GUESSES);
            candidates.extend(next.map(|port| SocketAddr::new(last.ip(), port)));
        }
        self.actions.push_back(Action::Punch { name, candidates, after, routers });
    }

    fn refused(&mut self, transaction: Transaction, why: Refusal, now: u64) {
        if why == Refusal::NotRegistered {
            // The question is asked again in a moment.
            self.recall.heard();
            return self.register(now);
        }
        if why == Refusal::Uncertified && transaction == self.registration {
            if self.certificate.is_missed() {
                self.register(now);
            }
            return;
        }
        let Some(ask) = self.end(transaction) else { return };
        if why == Refusal::NoSuchName {
            self.forget(&ask.name);
        }
        if ask.is_awaited {
            self.answer(ask.name, Err(NoWay::Refused(why)));
        }
    }

    fn end(&mut self, transaction: Transaction) -> Option<Ask> {
        let ask = self.asks.end(&transaction)?;
        self.asked.remove(&ask.name);
        Some(ask)
    }

    fn forget(&mut self, name: &Name) {
        if self.peers.remove(name).is_some() {
            self.actions.push_back(Action::Remove { name: name.clone() });
        }
    }

    fn answer(&mut self, name: Name, found: Result<Claims, NoWay>) {
        self.actions.push_back(Action::Answer { name, found });
    }

    fn send(&mut self, transaction: Transaction, body: Body) {
        self.recall.said();
        self.actions.push_back(Action::Send(Message { transaction, body }.to_bytes()));
    }

    /// Logs a line, unless the directory makes too many.
    fn note(&mut self, line: String) {
        self.actions.extend(self.noted.admit(line).map(Action::Note));
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({}, {} peers)", self.own, self.peers.len())
    }
}

/// Whether a host may be reached there from elsewhere.
fn is_a_place(candidate: SocketAddr) -> bool {
    let is_near = match candidate.ip() {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let ip = candidate.ip();
    let is_none = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast();
    candidate.port() != 0 && !is_near && !is_none
}

/// A number that nobody can predict, and that is not 0: messages without a question have that.
fn number(entropy: &mut dyn Entropy) -> Result<u64, NoEntropy> {
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes).max(1))
}
