//! What 10,000 nodes cost a cloud, by the real protocol and without sockets: measurements, in a release build
//! (`cargo test --release -p tamis-cloud figures -- --ignored --nocapture --test-threads 1`).

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::time::Instant;

use overlay::limits::IDENTITY;
use overlay::{Action, Body, Claims, Device, Message, Name, Node, Pair, Signer, Sources};
use rustix::time::{ClockId, clock_gettime};
use tunnel::{PeerConfig, Prefix, PrivateKey};

use super::*;
use crate::store::{KeptPolicy, Redb};

const NODES: u32 = 10_000;
/// Directions a second.
const RATE: u64 = 10_000;
const SECONDS: u64 = 5;
/// Datagrams that are taken in a turn, as by `serve`.
const BURST: usize = 64;
const UNIX: u64 = 1_800_000_000;

/// A store without a disk.
struct Nowhere(Vec<Record>);

impl Store for Nowhere {
    fn records(&self) -> Result<Vec<Record>> {
        Ok(self.0.clone())
    }

    fn policy(&self) -> Result<Option<KeptPolicy>> {
        Ok(None)
    }

    fn places(&self) -> Result<Vec<Place>> {
        Ok(Vec::new())
    }

    fn sources(&self) -> Result<Vec<(Pair, Sources)>> {
        Ok(Vec::new())
    }

    fn commit(&mut self, _: &Changes) -> Result<()> {
        Ok(())
    }

    fn lines(&self, _: usize) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

fn secret(number: u32) -> PrivateKey {
    let mut bytes = [1; 32];
    bytes[8..12].copy_from_slice(&number.to_le_bytes());
    PrivateKey::new(bytes)
}

fn name(number: u32) -> Name {
    format!("n{number}").parse().unwrap()
}

fn devices() -> Vec<Record> {
    let device = |number| {
        let key = secret(number).public();
        Record::Device(Device { name: name(number), key, number: number + 2, revoked: false })
    };
    (0..NODES).map(device).collect()
}

fn settings(folder: &std::path::Path) -> Settings {
    let path = folder.join("cloud.toml");
    crate::config::init(&path, "192.0.2.1:51900".parse().unwrap(), "home.internal", true).unwrap();
    let text = fs::read_to_string(&path).unwrap().replace("52000-52031", "52000-52127");
    fs::write(&path, text + "[[allow]]\nbetween = [\"*\", \"*\"]\n").unwrap();
    Settings::read(&path).unwrap()
}

fn at(nanos: u64) -> Now {
    Now { nanos, unix: UNIX + nanos / SECOND }
}

/// Processor time: what others do on this machine does not count.
fn processor() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

thread_local! {
    /// Nanoseconds for which this thread has waited for the disk.
    static WAITED: Cell<u64> = const { Cell::new(0) };
}

/// A database, and how long it is waited for.
struct Waited(Redb);

impl Store for Waited {
    fn records(&self) -> Result<Vec<Record>> {
        self.0.records()
    }

    fn policy(&self) -> Result<Option<KeptPolicy>> {
        self.0.policy()
    }

    fn places(&self) -> Result<Vec<Place>> {
        self.0.places()
    }

    fn sources(&self) -> Result<Vec<(Pair, Sources)>> {
        self.0.sources()
    }

    fn commit_soon(&mut self, changes: Changes) -> Result<()> {
        self.0.commit_soon(changes)
    }

    fn commit(&mut self, changes: &Changes) -> Result<()> {
        let (start, worked) = (Instant::now(), processor());
        self.0.commit(changes)?;
        let worked = processor() - worked;
        let waited = (start.elapsed().as_nanos() as u64).saturating_sub(worked);
        WAITED.set(WAITED.get() + waited);
        Ok(())
    }

    fn lines(&self, most: usize) -> Result<Vec<String>> {
        self.0.lines(most)
    }
}

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// A node, and its end of the tunnel.
struct Member {
    carrier: Carrier,
    node: Node,
    place: SocketAddr,
}

impl Member {
    fn new(settings: &Settings, number: u32) -> Self {
        let (key, signer) = (settings.key().unwrap(), settings.signer().unwrap());
        let mut tunnel = end(secret(number), at(1)).unwrap();
        let inside = settings.network.directory().0.into();
        let directory = PeerConfig {
            endpoint: Some(settings.public),
            allowed: vec![Prefix::new(inside, 32).unwrap()],
            ..PeerConfig::new(key.public())
        };
        tunnel.add_peer(&directory).unwrap();
        let entropy = Box::new(SystemEntropy::new());
        let node = Node::new(name(number), signer.key(), entropy).unwrap();
        let place = SocketAddr::new((0xC612_0000 + number).to_be_bytes().into(), 51_900);
        Self { carrier: Carrier::new(tunnel), node, place }
    }

    /// What the node says; returns the names that it has an answer for.
    fn speak(&mut self, settings: &Settings, number: u32, now: u64) -> Vec<Name> {
        let mut answered = Vec::new();
        let own = settings.network.addresses(number + 2).0;
        let to = settings.network.directory().0;
        while let Some(action) = self.node.take() {
            match action {
                Action::Send(message) | Action::Ask(message) => {
                    let [own, to] = [own, to].map(|at| SocketAddr::new(at.into(), PORT));
                    self.carrier.send(own, to, &message, now);
                }
                Action::Answer { name, found } => {
                    found.unwrap();
                    answered.push(name);
                }
                Action::Note(line) => panic!("{line}"),
                _ => {}
            }
        }
        self.carrier.tick(now);
        answered
    }
}

/// A datagram: when it arrives, its number, whose it is, and what it holds.
type Arriving = Reverse<(u64, u64, u32, Vec<u8>)>;

/// A cloud on one core and its nodes. Time is that of the cloud: it goes on by what the cloud takes, and not by what nodes do.
struct Fleet<S> {
    settings: Settings,
    service: Service<S>,
    members: Vec<Member>,
    /// Datagrams on their way to the cloud.
    arriving: BinaryHeap<Arriving>,
    sent: u64,
    /// When the cloud has nothing to do, and how long it had.
    free: u64,
    busy: u64,
    ticked: u64,
    swept: u64,
}

impl<S: Store> Fleet<S> {
    fn new(settings: Settings, store: S) -> Self {
        let service = Service::new(&settings, store, at(1)).unwrap();
        let members = (0..NODES).map(|number| Member::new(&settings, number)).collect();
        let (arriving, sent) = (BinaryHeap::new(), 0);
        let (free, busy, ticked, swept) = (1, 0, 0, 0);
        Self { settings, service, members, arriving, sent, free, busy, ticked, swept }
    }

    /// Sends what a node has to send; returns the names that it has an answer for.
    fn speak(&mut self, number: u32, now: u64) -> Vec<Name> {
        let member = &mut self.members[number as usize];
        let answered = member.speak(&self.settings, number, now);
        while let Some((_, datagram)) = member.carrier.take() {
            self.sent += 1;
            self.arriving.push(Reverse((now, self.sent, number, datagram)));
        }
        answered
    }

    /// A turn of the cloud, if something has arrived by `until`; returns who has an answer, for which name and when.
    fn turn(&mut self, until: u64) -> Option<Vec<(u32, Name, u64)>> {
        let first = self.arriving.peek().map(|Reverse((at, ..))| *at).filter(|at| *at < until)?;
        let start = self.free.max(first);
        let mut arrived = Vec::new();
        while arrived.len() < BURST && self.arriving.peek().is_some_and(|it| it.0.0 <= start) {
            arrived.extend(self.arriving.pop());
        }
        let (clock, now) = (processor() + WAITED.get(), at(start));
        for Reverse((_, _, number, datagram)) in &mut arrived {
            let place = self.members[*number as usize].place;
            self.service.arrived(datagram, place, now);
        }
        if start - self.ticked >= SECOND / 100 {
            self.ticked = start;
            self.service.tick(now);
        }
        if start - self.swept >= SECOND {
            self.swept = start;
            self.service.sweep(now);
        }
        self.service.settle(now).unwrap();
        let answers: Vec<_> = std::iter::from_fn(|| self.service.take()).collect();
        let took = processor() + WAITED.get() - clock;
        self.busy += took;
        self.free = start + took;
        let mut all = Vec::new();
        for (to, mut datagram) in answers {
            let SocketAddr::V4(to) = to else { unreachable!() };
            let number = u32::from(*to.ip()) - 0xC612_0000;
            let member = &mut self.members[number as usize];
            let public = self.settings.public;
            let came = member.carrier.receive(&mut datagram, public, self.free).message();
            if let Some(it) = came {
                member.node.receive(&datagram[it.payload], self.free);
            }
            let names = self.speak(number, self.free).into_iter();
            all.extend(names.map(|name| (number, name, self.free)));
        }
        Some(all)
    }

    fn register(&mut self) {
        for number in 0..NODES {
            self.members[number as usize].node.tick(1);
            self.speak(number, 1);
        }
        while self.turn(u64::MAX).is_some() {}
        let listed = self.service.directory.list(self.free);
        assert_eq!(listed.filter(|it| it.present).count(), NODES as usize);
    }

    /// Nodes ask for [`RATE`] ways a second, each to a node that it has not asked for, and register each 10 s. Returns how
    /// long each waited, in order.
    fn directions(&mut self) -> Vec<u64> {
        let begin = self.free.max(overlay::limits::REGISTER + SECOND);
        let (mut asked, mut waited) = (HashMap::new(), Vec::new());
        self.busy = 0;
        for question in 0..RATE * SECONDS {
            let now = begin + question * SECOND / RATE;
            let number = (question % u64::from(NODES)) as u32;
            let other = (number + 1 + (question / u64::from(NODES)) as u32) % NODES;
            while let Some(answers) = self.turn(now) {
                waited.extend(
                    answers.into_iter().map(|(number, name, at)| at - asked[&(number, name)]),
                );
            }
            let member = &mut self.members[number as usize];
            member.node.resolve(&name(other), now);
            if question % (RATE / 1_000) == 0 {
                let due = (question / (RATE / 1_000) % u64::from(NODES)) as u32;
                self.members[due as usize].node.tick(now);
                self.speak(due, now);
            }
            asked.insert((number, name(other)), now);
            self.speak(number, now);
        }
        while let Some(answers) = self.turn(u64::MAX) {
            waited
                .extend(answers.into_iter().map(|(number, name, at)| at - asked[&(number, name)]));
        }
        waited.sort_unstable();
        waited
    }
}

fn directions(what: &str, settings: Settings, store: impl Store) {
    let mut fleet = Fleet::new(settings, store);
    let start = Instant::now();
    fleet.register();
    let registered = fleet.busy / u64::from(NODES) / 1_000;
    println!(
        "{what}: {NODES} handshakes and registrations: {registered} us each ({:?} with the nodes')",
        start.elapsed()
    );
    let waited = fleet.directions();
    assert_eq!(waited.len() as u64, RATE * SECONDS);
    let of = |part: usize| waited[(waited.len() - 1) * part / 1_000] as f64 / 1e6;
    let busy = fleet.busy as f64 / (SECONDS * SECOND) as f64 * 100.0;
    println!(
        "{what}: {RATE} directions a second: {busy:.0} % of a core; median {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        of(500),
        of(990),
        of(1_000)
    );
    println!("p99 at most 20 ms: {}", if of(990) <= 20.0 { "held" } else { "not held" });
}

#[test]
#[ignore = "a measurement"]
fn ten_thousand_directions_a_second() {
    let folder = tempfile::tempdir().unwrap();
    directions("without a disk", settings(folder.path()), Nowhere(devices()));
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let mut store = Redb::open(&settings.database()).unwrap();
    store.commit(&Changes { records: devices(), ..Changes::default() }).unwrap();
    directions("with its database", settings, Waited(store));
}

#[test]
#[ignore = "a measurement"]
fn a_node_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let (key, signer) = (settings.key().unwrap(), settings.signer().unwrap());
    let devices = devices();
    let before = resident();
    let directory = filled(&settings, (signer, key.public()), devices);
    let of_directory = (resident() - before) / NODES as usize;
    let before = resident();
    let carrier = connected(&settings, key);
    let of_tunnel = (resident() - before) / NODES as usize;
    println!("a node that has registered and has two paths: {of_directory} bytes in the directory");
    println!("its peer in the tunnel, with a session: {of_tunnel} bytes");
    println!("{directory:?}, {carrier:?}");
    assert!(of_directory + of_tunnel <= 10_000);
}

/// A directory whose nodes have all registered, and asked the way to the next one.
fn filled(settings: &Settings, keys: (Signer, PublicKey), devices: Vec<Record>) -> Directory {
    let (network, policy) = (settings.network.clone(), settings.policy.policy.clone());
    let (entropy, relay) = (&mut SystemEntropy::new(), settings.relay.clone());
    let (signer, own) = keys;
    let keys = (signer.key(), own);
    let mut directory = Directory::new(network, relay, policy, keys, devices, entropy).unwrap();
    let mut says = |number, body| {
        let message = Message { transaction: 7, body }.to_bytes();
        directory.receive(&secret(number).public(), &message, at(SECOND));
        while directory.take().is_some() {}
    };
    let locals = vec![([192, 168, 0, 2], 51_900).into(), ([10, 0, 0, 2], 51_900).into()];
    for number in 0..NODES {
        let (v4, v6) = settings.network.addresses(number + 2);
        let (key, expires) = (secret(number).public(), at(SECOND).unix + IDENTITY);
        let claims = Claims { key, name: name(number), v4, v6, expires };
        let (locals, identity) = (locals.clone(), Some(Box::new(signer.sign(claims))));
        says(number, Body::Register { started: 1, locals, identity });
    }
    for number in 0..NODES {
        let other = (number + 1) % NODES;
        says(number, Body::Direct { name: name(other) });
        says(other, Body::Ready { name: name(number), started: 1, version: 0 });
    }
    directory
}

/// The cloud's end of the tunnel, with a session with every node.
fn connected(settings: &Settings, key: PrivateKey) -> Carrier {
    let mut carrier = Carrier::new(end(key, at(1)).unwrap());
    for number in 0..NODES {
        let (v4, v6) = settings.network.addresses(number + 2);
        let allowed =
            vec![Prefix::new(v4.into(), 32).unwrap(), Prefix::new(v6.into(), 128).unwrap()];
        let peer = PeerConfig { allowed, ..PeerConfig::new(secret(number).public()) };
        carrier.tunnel_mut().add_peer(&peer).unwrap();
    }
    for number in 0..NODES {
        let mut member = Member::new(settings, number);
        let now = SECOND * u64::from(number);
        member.node.tick(now);
        for _ in 0..2 {
            member.speak(settings, number, now);
            while let Some((_, mut datagram)) = member.carrier.take() {
                carrier.receive(&mut datagram, member.place, now);
            }
            while let Some((_, mut datagram)) = carrier.take() {
                member.carrier.receive(&mut datagram, settings.public, now);
            }
        }
        while let Some((_, mut datagram)) = member.carrier.take() {
            carrier.receive(&mut datagram, member.place, now);
        }
    }
    let tunnel = carrier.tunnel();
    let sessions = tunnel.peers().filter(|peer| tunnel.status(*peer).unwrap().session.is_some());
    assert_eq!(sessions.count(), NODES as usize);
    carrier
}
