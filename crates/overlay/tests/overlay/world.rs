//! A directory with its disk, nodes, and a network between them that loses, repeats and reorders what the test says.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use overlay::limits::SECOND;
use overlay::{
    Action, Body, Claims, Directory, Effect, Line, Message, Name, Network, NoWay, Node, Now,
    Outpost, Pair, Permits, Policy, Record, Signer,
};
use tunnel::{Entropy, NoEntropy, PrivateKey, PublicKey};

pub(crate) struct Seeded(pub(crate) fastrand::Rng);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        self.0.fill(bytes);
        Ok(())
    }
}

pub(crate) fn seeded(seed: u64) -> Seeded {
    Seeded(fastrand::Rng::with_seed(seed))
}

pub(crate) fn secret(number: u64) -> PrivateKey {
    PrivateKey::generate(&mut seeded(number)).unwrap()
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn network() -> Network {
    Network {
        domain: "home.example".to_owned(),
        v4: ([10, 99, 0, 0].into(), 24),
        v6: ("fd00::".parse().unwrap(), 64),
        relay: ([203, 0, 113, 1].into(), 52_000..=52_127),
    }
}

pub(crate) fn policy(pairs: &[[&str; 2]]) -> Policy {
    let line = |[one, other]: &[&str; 2]| Line {
        from: vec![(*one).to_owned()],
        to: vec![(*other).to_owned()],
        both: true,
        services: Vec::new(),
    };
    Policy { version: 1, groups: BTreeMap::new(), lines: pairs.iter().map(line).collect() }
}

pub(crate) fn signer() -> Signer {
    Signer::of_seed(&[9; 32]).unwrap()
}

/// The key of a relay on a host of its own.
pub(crate) fn relay_key() -> PublicKey {
    secret(2_000).public()
}

/// A message on its way.
#[derive(Clone)]
pub(crate) enum Flying {
    ToDirectory(PublicKey, Vec<u8>),
    ToPeer(PublicKey, Vec<u8>),
}

/// A punch that a node got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Punch {
    pub(crate) node: Name,
    pub(crate) at: u64,
    pub(crate) peer: Name,
    pub(crate) after: u64,
    pub(crate) candidates: Vec<SocketAddr>,
}

/// A node's address by its own word.
pub(crate) fn local(name: &Name) -> SocketAddr {
    ([10, 0, 0, name.as_str().as_bytes()[0]], 51_900).into()
}

pub(crate) struct World {
    pub(crate) directory: Directory,
    pub(crate) policy: Policy,
    /// What a restart of the directory finds.
    pub(crate) devices: BTreeMap<Name, Record>,
    pub(crate) invitations: BTreeMap<PublicKey, Record>,
    /// Peers of the directory's tunnel.
    pub(crate) admitted: BTreeSet<PublicKey>,
    pub(crate) paths: BTreeMap<Pair, u16>,
    pub(crate) notes: Vec<String>,
    pub(crate) nodes: BTreeMap<Name, (PublicKey, Node)>,
    /// The peers of each node's tunnel.
    pub(crate) peers: BTreeMap<Name, BTreeMap<Name, Claims>>,
    /// What each node's tunnel lets its peers begin, and its host with them.
    pub(crate) permits: BTreeMap<(Name, Name), Permits>,
    pub(crate) answers: Vec<(Name, Name, Result<Claims, NoWay>)>,
    /// Punches, in their order.
    pub(crate) punches: Vec<Punch>,
    pub(crate) flying: Vec<Flying>,
    /// The address from which each node's datagrams come.
    pub(crate) places: BTreeMap<PublicKey, SocketAddr>,
    /// The relay on a host of its own, if it is there.
    pub(crate) outpost: Option<Outpost>,
    /// Whether the relay is on a host of its own, and the pairs that it was heard to carry since they have a path.
    is_apart: bool,
    carried: BTreeSet<Pair>,
    pub(crate) now: u64,
    seed: u64,
}

impl World {
    /// One whose relay is on a host of its own.
    pub(crate) fn apart(policy: Policy, seed: u64) -> Self {
        let mut world = Self::new(policy, seed);
        world.is_apart = true;
        world.directory.relay_apart(relay_key());
        world.restart_outpost();
        world.carry_out();
        world
    }

    /// The relay begins, or begins again, with no path.
    pub(crate) fn restart_outpost(&mut self) {
        let entropy = &mut seeded(self.seed ^ self.now ^ 5);
        self.outpost = Some(Outpost::new(network().relay.1, Vec::new(), entropy).unwrap());
    }

    /// What the relay has to say.
    fn act_outpost(&mut self) {
        let Some(outpost) = &mut self.outpost else { return };
        self.carried.extend(outpost.pairs().cloned());
        if let Some(message) = outpost.take(self.now) {
            self.flying.push(Flying::ToDirectory(relay_key(), message));
        }
    }

    /// Whether a message shows a node a way that no relay has carried.
    fn check_way(&self, to: &PublicKey, message: &[u8]) {
        let Ok(Message { body: Body::Direction { identity, .. }, .. }) = Message::parse(message)
        else {
            return;
        };
        let node = self.nodes.iter().find(|(_, (key, _))| key == to).unwrap().0;
        let pair = Pair::of(node, &identity.claims.name);
        assert!(!self.is_apart || self.carried.contains(&pair), "{pair:?}: nobody carries it");
    }

    pub(crate) fn new(policy: Policy, seed: u64) -> Self {
        let directory = started(&policy, Vec::new(), seed);
        let mut world = Self {
            directory,
            policy,
            devices: BTreeMap::new(),
            invitations: BTreeMap::new(),
            admitted: BTreeSet::new(),
            paths: BTreeMap::new(),
            notes: Vec::new(),
            nodes: BTreeMap::new(),
            peers: BTreeMap::new(),
            permits: BTreeMap::new(),
            answers: Vec::new(),
            punches: Vec::new(),
            flying: Vec::new(),
            places: BTreeMap::new(),
            outpost: None,
            is_apart: false,
            carried: BTreeSet::new(),
            now: SECOND,
            seed,
        };
        world.carry_out();
        world
    }

    /// What time it is: nodes' clocks are as wrong as they please, as nobody asks them.
    pub(crate) fn time(&self) -> Now {
        Now { nanos: self.now, unix: 1_800_000_000 + self.now / SECOND }
    }

    /// A node that is enrolled, and has not registered.
    pub(crate) fn enrolled(&mut self, text: &str, number: u64) {
        let (name, key) = (name(text), secret(number).public());
        let guest = self.directory.invite(name.clone(), self.time()).unwrap().public();
        self.carry_out();
        let question = overlay::Enrolment::new(number, key, signer().key()).question();
        self.directory.receive(&guest, &question, self.time());
        self.carry_out();
        self.flying.clear();
        assert!(self.admitted.contains(&key));
        self.places.insert(key, ([192, 0, 2, number as u8], 51_900).into());
        self.nodes.insert(name.clone(), (key, self.node(&name)));
        self.peers.insert(name, BTreeMap::new());
    }

    fn node(&self, name: &Name) -> Node {
        let seed = self.seed ^ self.now ^ u64::from(name.as_str().as_bytes()[0]) << 50;
        let mut node = Node::new(name.clone(), signer().key(), Box::new(seeded(seed))).unwrap();
        node.set_locals(vec![local(name)]);
        node
    }

    pub(crate) fn restart_directory(&mut self) {
        let kept = self.devices.values().chain(self.invitations.values());
        let paths = self.paths.iter().map(|(pair, port)| Record::Path(pair.clone(), *port));
        let kept = kept.cloned().chain(paths).collect();
        self.directory = started(&self.policy, kept, self.seed ^ self.now);
        if self.is_apart {
            self.directory.relay_apart(relay_key());
        }
        self.admitted.clear();
        self.paths.clear();
        self.carry_out();
    }

    /// Puts another policy in force, which a restart of the directory finds, too.
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy.clone();
        self.directory.set_policy(policy);
        self.carry_out();
    }

    /// The node starts again, with a tunnel without peers.
    pub(crate) fn restart_node(&mut self, name: &Name) {
        let node = self.node(name);
        self.nodes.get_mut(name).unwrap().1 = node;
        self.permits.retain(|(own, _), _| own != name);
        self.peers.insert(name.clone(), BTreeMap::new());
    }

    pub(crate) fn resolve(&mut self, from: &Name, to: &Name) {
        let now = self.now;
        self.nodes.get_mut(from).unwrap().1.resolve(to, now);
        self.act(from);
    }

    pub(crate) fn wait(&mut self, nanos: u64) {
        self.now += nanos;
        let (now, names) = (self.now, self.names());
        for name in names {
            self.nodes.get_mut(&name).unwrap().1.tick(now);
            self.act(&name);
        }
        self.act_outpost();
        self.directory.sweep(self.time());
        self.directory.expire(self.time());
        self.carry_out();
    }

    pub(crate) fn names(&self) -> Vec<Name> {
        self.nodes.keys().cloned().collect()
    }

    pub(crate) fn deliver(&mut self, message: Flying) {
        match message {
            Flying::ToDirectory(from, bytes) => {
                if self.admitted.contains(&from) {
                    self.directory.receive(&from, &bytes, self.time());
                    if let Some(at) = self.places.get(&from).copied() {
                        self.directory.heard(&from, at, self.time());
                    }
                    self.carry_out();
                }
            }
            Flying::ToPeer(to, bytes) if to == relay_key() => {
                let now = self.now;
                self.outpost.iter_mut().for_each(|outpost| outpost.receive(&bytes, now));
                self.act_outpost();
            }
            Flying::ToPeer(to, bytes) => {
                let found = self.nodes.iter().find(|(_, (key, _))| *key == to);
                let Some(name) = found.map(|(name, _)| name.clone()) else { return };
                let now = self.now;
                self.nodes.get_mut(&name).unwrap().1.receive(&bytes, now);
                self.act(&name);
            }
        }
    }

    /// Delivers everything, and what follows from it, in order, for so long.
    pub(crate) fn settle(&mut self, seconds: u64) {
        for _ in 0..seconds * 5 {
            while !self.flying.is_empty() {
                let message = self.flying.remove(0);
                self.deliver(message);
            }
            self.wait(SECOND / 5);
        }
    }

    pub(crate) fn carry_out(&mut self) {
        while let Some(effect) = self.directory.take() {
            match effect {
                Effect::Keep(record) => match &record {
                    Record::Device(it) => drop(self.devices.insert(it.name.clone(), record)),
                    Record::Invitation(it) => drop(self.invitations.insert(it.key, record)),
                    Record::Expired(key) => drop(self.invitations.remove(key)),
                    Record::Path(..) | Record::Parted(_) => unreachable!("{record:?}"),
                },
                Effect::Admit { key, .. } => drop(self.admitted.insert(key)),
                Effect::Dismiss { key } => drop(self.admitted.remove(&key)),
                Effect::Send { to, message, .. } => {
                    self.check_way(&to, &message);
                    self.flying.push(Flying::ToPeer(to, message));
                }
                Effect::Join { pair, port, .. } => drop(self.paths.insert(pair, port)),
                Effect::Part { pair } => {
                    self.carried.remove(&pair);
                    self.paths.remove(&pair);
                }
                Effect::Note(line) => self.notes.push(line),
            }
        }
    }

    fn act(&mut self, name: &Name) {
        let (key, node) = self.nodes.get_mut(name).unwrap();
        let key = *key;
        while let Some(action) = node.take() {
            match action {
                Action::Send(bytes) => self.flying.push(Flying::ToDirectory(key, bytes)),
                Action::Permit { claims, permits } => {
                    self.permits.insert((name.clone(), claims.name), permits);
                }
                Action::Add { claims, .. } => {
                    let pair = (name.clone(), claims.name.clone());
                    assert!(self.permits.contains_key(&pair), "{pair:?}: a peer before its rules");
                    let peers = self.peers.get_mut(name).unwrap();
                    peers.insert(claims.name.clone(), claims);
                }
                Action::Remove { name: peer } => {
                    assert!(self.peers.get_mut(name).unwrap().remove(&peer).is_some());
                    assert!(self.permits.remove(&(name.clone(), peer)).is_some());
                }
                Action::Punch { name: peer, candidates, after } => {
                    assert!(self.peers[name].contains_key(&peer), "{name} has no peer {peer}");
                    let (node, at) = (name.clone(), self.now);
                    self.punches.push(Punch { node, at, peer, after, candidates });
                }
                Action::Answer { name: asked, found } => {
                    self.answers.push((name.clone(), asked, found));
                }
                Action::Note(line) => self.notes.push(line),
            }
        }
    }
}

fn started(policy: &Policy, kept: Vec<Record>, seed: u64) -> Directory {
    let own = secret(1_000).public();
    let entropy = Box::new(seeded(seed));
    Directory::new(network(), policy.clone(), (signer(), own), kept, entropy).unwrap()
}
