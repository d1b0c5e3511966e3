//! An authority and a directory with their disks, nodes, and a network between them that loses, repeats and reorders what the test says.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use overlay::limits::{RELAYS, SECOND};
use overlay::{
    Action, Authority, Body, Claims, Device, Directory, Effect, Line, Message, Name, Network,
    NoWay, Node, Now, Outpost, Pair, Permits, Policy, Record, Router, Signer,
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
        is_apart: false,
    }
}

/// Where the relay is.
pub(crate) fn relay() -> (IpAddr, RangeInclusive<u16>) {
    ([203, 0, 113, 1].into(), 52_000..=52_127)
}

/// The key of the directory.
pub(crate) fn directory_key() -> PublicKey {
    secret(1_000).public()
}

/// The key of an authority that is another process.
pub(crate) fn authority_key() -> PublicKey {
    secret(3_000).public()
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
    relay_of(0).1
}

/// Where a relay on a host of its own is, and its key.
pub(crate) fn relay_of(number: usize) -> (IpAddr, PublicKey) {
    ([203, 0, 114, number as u8 + 1].into(), secret(2_000 + number as u64).public())
}

/// A message on its way.
#[derive(Clone)]
pub(crate) enum Flying {
    ToDirectory(PublicKey, Vec<u8>),
    ToAuthority(PublicKey, Vec<u8>),
    /// From an authority that is another process, to a node or a device.
    OfAuthority(PublicKey, Vec<u8>),
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
    pub(crate) routers: Option<[Router; 2]>,
}

/// A node's address by its own word.
pub(crate) fn local(name: &Name) -> SocketAddr {
    ([10, 0, 0, name.as_str().as_bytes()[0]], 51_900).into()
}

/// What an authority keeps, and a directory of the same process or another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) devices: BTreeMap<Name, Device>,
    pub(crate) invitations: BTreeMap<PublicKey, Record>,
    pub(crate) identities: BTreeMap<Name, Record>,
}

impl Disk {
    fn keep(&mut self, record: Record) {
        match &record {
            Record::Device(it) => drop(self.devices.insert(it.name.clone(), it.clone())),
            Record::Invitation(it) => drop(self.invitations.insert(it.key, record)),
            Record::Identity(it) => {
                drop(self.identities.insert(it.claims.name.clone(), record));
            }
            Record::Expired(key) => drop(self.invitations.remove(key)),
            Record::Path(..) | Record::Parted(_) => unreachable!("{record:?}"),
        }
    }

    fn records(&self) -> Vec<Record> {
        let devices = self.devices.values().cloned().map(Record::Device);
        let others = self.invitations.values().chain(self.identities.values()).cloned();
        devices.chain(others).collect()
    }
}

pub(crate) struct World {
    pub(crate) authority: Authority,
    pub(crate) directory: Directory,
    pub(crate) policy: Policy,
    /// What a restart finds: of the directory, which has the authority's disk unless they are two processes.
    pub(crate) disk: Disk,
    pub(crate) authority_disk: Disk,
    /// Peers of the directory's tunnel, and of the authority's.
    pub(crate) admitted: BTreeSet<PublicKey>,
    pub(crate) known: BTreeSet<PublicKey>,
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
    /// Ports that each node was asked to probe last.
    pub(crate) probed: BTreeMap<Name, Vec<u16>>,
    pub(crate) flying: Vec<Flying>,
    /// The address from which each node's datagrams come.
    pub(crate) places: BTreeMap<PublicKey, SocketAddr>,
    /// The relays on hosts of their own, as far as they are there.
    pub(crate) outposts: Vec<Option<Outpost>>,
    /// Whether the authority is another process, and whether it and the directory are there.
    pub(crate) is_split: bool,
    pub(crate) has_authority: bool,
    pub(crate) has_directory: bool,
    /// Seconds by which the authority's clock is ahead of the directory's.
    pub(crate) ahead: i64,
    /// The pairs that a relay apart was heard to carry since they have a path.
    carried: BTreeSet<Pair>,
    pub(crate) now: u64,
    seed: u64,
    /// Starts so far: each draws other numbers, also at one time.
    starts: Cell<u64>,
}

impl World {
    /// One whose relays are on hosts of their own.
    pub(crate) fn apart(policy: Policy, seed: u64, relays: usize) -> Self {
        let mut world = Self::new(policy, seed);
        world.outposts.resize_with(relays, || None);
        world.name_relays();
        (0..relays).for_each(|relay| world.restart_outpost(relay));
        world.carry_out();
        world
    }

    /// Tells the directory of its relays apart.
    fn name_relays(&mut self) {
        for (at, key) in (0..self.outposts.len()).map(relay_of) {
            self.directory.relay_apart(at, key);
        }
    }

    /// What the next start draws from.
    fn start(&self) -> u64 {
        self.starts.set(self.starts.get() + 1);
        self.seed ^ self.now ^ self.starts.get() << 40
    }

    /// A relay begins, or begins again, with no path.
    pub(crate) fn restart_outpost(&mut self, number: usize) {
        let entropy = &mut seeded(self.start() ^ number as u64);
        let outpost = Outpost::new(relay().1, Vec::new(), entropy).unwrap();
        self.outposts[number] = Some(outpost);
    }

    /// What the relays have to say.
    fn act_outposts(&mut self) {
        for (number, outpost) in self.outposts.iter_mut().enumerate() {
            let Some(outpost) = outpost else { continue };
            self.carried.extend(outpost.pairs());
            if let Some(message) = outpost.take(self.now) {
                self.flying.push(Flying::ToDirectory(relay_of(number).1, message));
            }
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
        assert!(
            self.outposts.is_empty() || self.carried.contains(&pair),
            "{pair:?}: nobody carries it"
        );
    }

    /// One whose authority is another process, and whose directory has not heard of it.
    pub(crate) fn split(policy: Policy, seed: u64) -> Self {
        let mut world = Self::new(policy, seed);
        world.is_split = true;
        world.restart_directory();
        world.restart_authority();
        world
    }

    pub(crate) fn new(policy: Policy, seed: u64) -> Self {
        let directory = started(&policy, Vec::new(), seed);
        let mut world = Self {
            authority: authority(Vec::new(), false, seed),
            directory,
            policy,
            disk: Disk::default(),
            authority_disk: Disk::default(),
            admitted: BTreeSet::new(),
            known: BTreeSet::new(),
            paths: BTreeMap::new(),
            notes: Vec::new(),
            nodes: BTreeMap::new(),
            peers: BTreeMap::new(),
            permits: BTreeMap::new(),
            answers: Vec::new(),
            punches: Vec::new(),
            probed: BTreeMap::new(),
            flying: Vec::new(),
            places: BTreeMap::new(),
            outposts: Vec::new(),
            is_split: false,
            has_authority: true,
            has_directory: true,
            ahead: 0,
            carried: BTreeSet::new(),
            now: SECOND,
            seed,
            starts: Cell::new(0),
        };
        world.carry_out();
        world
    }

    /// What time it is: nodes' clocks are as wrong as they please, as nobody asks them.
    pub(crate) fn time(&self) -> Now {
        Now { nanos: self.now, unix: 1_800_000_000 + self.now / SECOND }
    }

    /// What time it is by the authority's clock.
    pub(crate) fn authority_time(&self) -> Now {
        let now = self.time();
        Now { unix: now.unix.checked_add_signed(self.ahead).unwrap(), ..now }
    }

    /// A node is enrolled again, perhaps under the key that it has; returns whether it was not refused.
    pub(crate) fn enrols(&mut self, name: &Name, number: u64) -> bool {
        let (key, time) = (secret(number).public(), self.authority_time());
        let guest = self.authority.invite(name.clone(), time).unwrap().public();
        let question = overlay::Enrolment::new(number, key, signer().key()).question();
        assert!(self.authority.receive(&guest, &question, time));
        self.carry_out();
        let is_node = |it: &Device| it.key == key && !it.revoked;
        let is_done = self.authority_disk.devices.get(name).is_some_and(is_node);
        if is_done {
            // A revoked node may have had the key.
            for (number, before) in (100..).zip(self.nodes.values_mut()) {
                if before.0 == key {
                    before.0 = secret(number).public();
                }
            }
            self.nodes.get_mut(name).unwrap().0 = key;
            self.places.insert(key, ([192, 0, 2, number as u8], 51_900).into());
            self.restart_node(name);
        }
        is_done
    }

    /// A node that is enrolled, and has not registered.
    pub(crate) fn enrolled(&mut self, text: &str, number: u64) {
        let (name, key) = (name(text), secret(number).public());
        let guest = self.authority.invite(name.clone(), self.time()).unwrap().public();
        self.carry_out();
        let question = overlay::Enrolment::new(number, key, signer().key()).question();
        assert!(self.authority.receive(&guest, &question, self.time()));
        self.carry_out();
        match self.is_split {
            true => assert!(self.known.contains(&key)),
            false => assert!(self.admitted.contains(&key)),
        }
        let is_order =
            |it: &Flying| matches!(it, Flying::ToDirectory(key, _) if *key == authority_key());
        self.flying.retain(is_order);
        self.places.insert(key, ([192, 0, 2, number as u8], 51_900).into());
        self.nodes.insert(name.clone(), (key, self.node(&name)));
        self.peers.insert(name, BTreeMap::new());
    }

    fn node(&self, name: &Name) -> Node {
        let seed = self.start() ^ u64::from(name.as_str().as_bytes()[0]) << 50;
        let mut node = Node::new(name.clone(), signer().key(), Box::new(seeded(seed))).unwrap();
        node.set_locals(vec![local(name)]);
        if self.is_split {
            node.authority_apart();
        }
        node
    }

    /// Revokes a node at the authority, which tells the directory.
    pub(crate) fn revoke(&mut self, name: &Name) -> bool {
        let is_revoked = self.authority.revoke(name);
        self.carry_out();
        is_revoked
    }

    pub(crate) fn restart_authority(&mut self) {
        let kept = if self.is_split { &self.authority_disk } else { &self.disk }.records();
        self.authority = authority(kept, self.is_split, self.start());
        self.has_authority = true;
        self.known.clear();
        self.carry_out();
    }

    pub(crate) fn restart_directory(&mut self) {
        let paths = self.paths.iter().map(|(pair, port)| Record::Path(pair.clone(), *port));
        let kept = self.disk.records().into_iter().chain(paths).collect();
        self.directory = started(&self.policy, kept, self.start());
        self.has_directory = true;
        self.admitted.clear();
        self.paths.clear();
        if self.is_split {
            self.directory.authority_apart(authority_key());
        }
        self.name_relays();
        match self.is_split {
            true => self.carry_out(),
            false => self.restart_authority(),
        }
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
        self.act_outposts();
        let time = self.time();
        if self.has_directory {
            self.directory.sweep(time);
            self.directory.expire(time);
        }
        if self.has_authority {
            let time = self.authority_time();
            self.authority.sweep(time);
            self.authority.expire(time);
        }
        self.carry_out();
    }

    pub(crate) fn names(&self) -> Vec<Name> {
        self.nodes.keys().cloned().collect()
    }

    pub(crate) fn deliver(&mut self, message: Flying) {
        match message {
            Flying::ToAuthority(from, bytes) => {
                let is_peer = self.known.contains(&from) || from == directory_key();
                if self.has_authority && is_peer {
                    self.authority.receive(&from, &bytes, self.authority_time());
                    self.carry_out();
                }
            }
            Flying::OfAuthority(to, bytes) => {
                let found = self.nodes.iter().find(|(_, (key, _))| *key == to);
                let Some(name) = found.map(|(name, _)| name.clone()) else { return };
                let now = self.now;
                self.nodes.get_mut(&name).unwrap().1.receive_of_authority(&bytes, now);
                self.act(&name);
            }
            Flying::ToDirectory(from, bytes) => {
                if self.has_directory && self.admitted.contains(&from) {
                    self.directory.receive(&from, &bytes, self.time());
                    if let Some(at) = self.places.get(&from).copied() {
                        self.directory.heard(&from, at, self.time());
                    }
                    self.carry_out();
                }
            }
            Flying::ToPeer(to, bytes) if (0..RELAYS).any(|it| relay_of(it).1 == to) => {
                let (now, number) = (self.now, (0..RELAYS).position(|it| relay_of(it).1 == to));
                let outpost = number.and_then(|number| self.outposts.get_mut(number));
                outpost.into_iter().flatten().for_each(|outpost| outpost.receive(&bytes, now));
                self.act_outposts();
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
        self.carry_out_authority();
        while let Some(effect) = self.directory.take() {
            match effect {
                Effect::Keep(record) => self.disk.keep(record),
                Effect::Admit { key, .. } => drop(self.admitted.insert(key)),
                Effect::Dismiss { key } => drop(self.admitted.remove(&key)),
                Effect::Send { to, message, .. } if to == authority_key() => {
                    self.flying.push(Flying::ToAuthority(directory_key(), message));
                }
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
                // Nodes of this world probe nothing.
                Effect::Stray { .. } => {}
                Effect::Tell(device) => unreachable!("{device:?}"),
            }
        }
    }

    fn carry_out_authority(&mut self) {
        while let Some(effect) = self.authority.take() {
            match effect {
                Effect::Keep(record) => match self.is_split {
                    true => self.authority_disk.keep(record),
                    false => self.disk.keep(record),
                },
                Effect::Admit { key, .. } => {
                    self.known.insert(key);
                    if !self.is_split {
                        self.admitted.insert(key);
                    }
                }
                Effect::Dismiss { key } => {
                    self.known.remove(&key);
                    if !self.is_split {
                        self.admitted.remove(&key);
                    }
                }
                Effect::Send { to, message, .. } => self.flying.push(match self.is_split {
                    true if to == directory_key() => Flying::ToDirectory(authority_key(), message),
                    true => Flying::OfAuthority(to, message),
                    false => Flying::ToPeer(to, message),
                }),
                Effect::Tell(device) if !self.is_split => self.directory.learn(device),
                Effect::Tell(_) => {}
                Effect::Note(line) => self.notes.push(line),
                Effect::Join { .. } | Effect::Part { .. } | Effect::Stray { .. } => {
                    unreachable!("{effect:?}")
                }
            }
        }
    }

    fn act(&mut self, name: &Name) {
        let (key, node) = self.nodes.get_mut(name).unwrap();
        let key = *key;
        while let Some(action) = node.take() {
            match action {
                Action::Send(bytes) => self.flying.push(Flying::ToDirectory(key, bytes)),
                Action::Ask(bytes) => self.flying.push(Flying::ToAuthority(key, bytes)),
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
                Action::Probe { to } => {
                    let ports = to.iter().map(SocketAddr::port).collect();
                    self.probed.insert(name.clone(), ports);
                }
                Action::Punch { name: peer, candidates, after, routers } => {
                    assert!(self.peers[name].contains_key(&peer), "{name} has no peer {peer}");
                    let (node, at) = (name.clone(), self.now);
                    self.punches.push(Punch { node, at, peer, after, candidates, routers });
                }
                Action::Answer { name: asked, found } => {
                    self.answers.push((name.clone(), asked, found));
                }
                Action::Keep(_) => {}
                Action::Note(line) => self.notes.push(line),
            }
        }
    }
}

fn started(policy: &Policy, kept: Vec<Record>, seed: u64) -> Directory {
    let keys = (signer().key(), directory_key());
    Directory::new(network(), relay(), policy.clone(), keys, kept, &mut seeded(seed)).unwrap()
}

fn authority(kept: Vec<Record>, is_split: bool, seed: u64) -> Authority {
    let own = if is_split { authority_key() } else { directory_key() };
    let entropy = Box::new(seeded(seed ^ 99));
    let mut authority = Authority::new(network(), (signer(), own), kept, entropy).unwrap();
    match is_split {
        true => authority.directory_apart(vec![([203, 0, 113, 1], 51_900).into()], directory_key()),
        false => authority.reserve(relay_key()),
    }
    authority
}
