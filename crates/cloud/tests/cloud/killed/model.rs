//! What the cloud has acknowledged, and those who ask it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use overlay::{
    Action, Body, Claims, Enrolment, GUESTS_DIRECTORY, JoinUrl, Membership, Message, Name, Node,
    NotEnrolled, Pair, Refusal, guest_address,
};
use serde_json::{Value, json};
use tunnel::{PrivateKey, SystemEntropy};

use super::device::Device;
use super::process::Cloud;

const NODES: usize = 16;
/// Time after which a device asks again.
const AGAIN: Duration = Duration::from_millis(100);

pub(crate) struct Model {
    pub(crate) cloud: Cloud,
    clock: Instant,
    random: fastrand::Rng,
    parts: Vec<Part>,
    /// Second uses of one-time keys.
    thieves: Vec<(Name, Guest)>,
    ways: BTreeMap<Pair, Way>,
    counts: Counts,
}

/// Where a node was shown the way to another one, since when, and whether a killed cloud has kept that.
#[derive(Clone, Copy)]
struct Way {
    at: SocketAddr,
    since: Instant,
    is_kept: bool,
}

/// Within what time the cloud keeps a way.
const SOON: Duration = Duration::from_millis(100);

/// What was acknowledged.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) enrolled: u64,
    registered: u64,
    revoked: u64,
    refused: u64,
    directed: u64,
}

/// A name, its address once it has one, and what its node is.
struct Part {
    name: Name,
    address: Option<Ipv4Addr>,
    is: Is,
}

enum Is {
    /// No node: never, or it was revoked.
    None,
    /// A one-time key was given.
    Invited(Box<Guest>),
    Member(Box<Member>),
    /// Somebody asked for its revocation, which was not acknowledged.
    Leaving(Box<Member>),
}

/// A device with a one-time key.
struct Guest {
    url: JoinUrl,
    one_time: PrivateKey,
    own: PrivateKey,
    device: Device,
    enrolment: Enrolment,
    again: Instant,
}

struct Member {
    device: Device,
    node: Node,
    key: PrivateKey,
    /// The one-time key that it used.
    used: (JoinUrl, PrivateKey),
    /// Whether it has been registered, and is since the cloud's last start.
    was_there: bool,
    is_back: bool,
}

impl Guest {
    fn new(url: JoinUrl, one_time: PrivateKey, clock: Instant) -> Self {
        let own = PrivateKey::generate(&mut SystemEntropy::new()).unwrap();
        let ends = (guest_address(&one_time.public()).into(), GUESTS_DIRECTORY.into());
        let device = Device::new(&url, one_time.clone(), ends, clock);
        let enrolment = Enrolment::new(clock.elapsed().as_nanos() as u64, own.public(), url.signer);
        Self { url, one_time, own, device, enrolment, again: Instant::now() }
    }

    fn turn(&mut self) -> Option<Result<Membership, NotEnrolled>> {
        if self.again <= Instant::now() {
            self.again = Instant::now() + AGAIN;
            self.device.send(&self.enrolment.question());
        }
        self.device.turn().iter().find_map(|message| self.enrolment.answered(message))
    }
}

impl Member {
    fn new(guest: &Guest, membership: &Membership, clock: Instant) -> Self {
        let claims = &membership.identity.claims;
        let ends = (claims.v4.into(), IpAddr::from(membership.directory.0));
        let device = Device::new(&guest.url, guest.own.clone(), ends, clock);
        let entropy = Box::new(SystemEntropy::new());
        let node = Node::new(claims.name.clone(), guest.url.signer, entropy).unwrap();
        let used = (guest.url.clone(), guest.one_time.clone());
        Self { device, node, key: guest.own.clone(), used, was_there: false, is_back: false }
    }

    /// Does what is due, and returns the ways that the node was shown.
    fn turn(&mut self, counts: &mut Counts) -> Vec<(Claims, SocketAddr)> {
        let mut ways = Vec::new();
        for message in self.device.turn() {
            let parsed = Message::parse(&message).unwrap();
            if let Body::Registered { .. } = parsed.body {
                (self.was_there, self.is_back) = (true, true);
                counts.registered += 1;
            }
            self.node.receive(&message, self.device.now());
        }
        self.node.tick(self.device.now());
        while let Some(action) = self.node.take() {
            match action {
                Action::Send(message) | Action::Ask(message) => self.device.send(&message),
                Action::Add { claims, relays } => ways.push((claims, relays[0])),
                Action::Note(line) => panic!("{line}"),
                _ => {}
            }
        }
        ways
    }
}

impl Model {
    pub(crate) fn new(random: fastrand::Rng, cloud: Cloud) -> Self {
        let part = |number| {
            let name = format!("n{number}").parse().unwrap();
            Part { name, address: None, is: Is::None }
        };
        Self {
            cloud,
            clock: Instant::now(),
            random,
            parts: (0..NODES).map(part).collect(),
            thieves: Vec::new(),
            ways: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// Starts the cloud, which has to know all that it acknowledged.
    pub(crate) fn start(&mut self) {
        // What the killed one sent last.
        self.turn();
        for part in &mut self.parts {
            if let Is::Member(member) = &mut part.is {
                member.is_back = false;
            }
        }
        self.cloud.start();
        let listed = self.cloud.ask(&json!({ "command": "devices" })).unwrap();
        for part in &self.parts {
            let found = listed["devices"].as_array().unwrap();
            let found = found.iter().find(|it| it["name"] == part.name.as_str());
            assert!(found.is_some() || part.address.is_none(), "{} is lost", part.name);
            let found = found.unwrap_or(&Value::Null);
            let is_revoked = found["state"] == "revoked";
            let name = &part.name;
            if let (Some(address), Some(found)) = (part.address, found["v4"].as_str()) {
                assert_eq!(found.parse(), Ok(address), "{name}");
            }
            match &part.is {
                Is::None => assert!(found.is_null() || is_revoked, "{name}: {found}"),
                Is::Invited(guest) => {
                    let is_its = found["key"] == guest.own.public().to_string();
                    assert!(found.is_null() || is_revoked || is_its, "{name}: {found}");
                }
                Is::Member(member) | Is::Leaving(member) => {
                    assert_eq!(found["key"], member.key.public().to_string(), "{name}");
                    let may_be = matches!(part.is, Is::Leaving(_));
                    assert!(!is_revoked || may_be, "{name}: {found}");
                }
            }
        }
    }

    /// The nodes that were registered, and are not since the start.
    pub(crate) fn missing(&self) -> Vec<&Name> {
        let is_missing = |part: &&Part| match &part.is {
            Is::Member(member) => member.was_there && !member.is_back,
            _ => false,
        };
        self.parts.iter().filter(is_missing).map(|part| &part.name).collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Somebody asks for something.
    pub(crate) fn act(&mut self) {
        let (chosen, other) = (self.random.usize(0..NODES), self.random.usize(0..NODES));
        let other = self.parts[other].name.clone();
        let dice = self.random.u32(0..200);
        let part = &mut self.parts[chosen];
        match &mut part.is {
            Is::None if dice < 20 => {
                let request = json!({ "command": "enrol", "names": [part.name.as_str()] });
                let Some(answer) = self.cloud.ask(&request) else { return };
                let [url, key] =
                    [&answer["url"], &answer["keys"][0]["key"]].map(|it| it.as_str().unwrap());
                let guest = Guest::new(url.parse().unwrap(), key.parse().unwrap(), self.clock);
                part.is = Is::Invited(Box::new(guest));
            }
            Is::Member(_) if dice == 0 => {
                let before = std::mem::replace(&mut part.is, Is::None);
                let Is::Member(member) = before else { unreachable!() };
                self.ways.retain(|pair, _| pair.other(&part.name).is_none());
                part.is = Is::Leaving(member);
            }
            Is::Member(member) if dice == 1 => {
                let (url, one_time) = member.used.clone();
                self.thieves.push((part.name.clone(), Guest::new(url, one_time, self.clock)));
            }
            Is::Member(_) if dice == 2 => drop(self.cloud.ask(&json!({ "command": "devices" }))),
            Is::Member(member) if dice < 20 => member.node.resolve(&other, member.device.now()),
            Is::Leaving(_) => {
                let request = json!({ "command": "revoke", "name": part.name.as_str() });
                let Some(answer) = self.cloud.ask(&request) else { return };
                // That it was revoked before the kill was not acknowledged.
                let is_done = answer["revoked"] == part.name.as_str();
                assert!(
                    is_done || answer["error"].as_str().unwrap().starts_with("there is no node")
                );
                self.counts.revoked += 1;
                part.is = Is::None;
            }
            _ => {}
        }
    }

    /// A node was shown the way to another one, which stays the way as long as both are nodes.
    fn shown(&mut self, node: &Name, other: &Claims, way: SocketAddr) {
        let is_other = |part: &Part| match &part.is {
            Is::Member(member) => member.key.public() == other.key,
            _ => false,
        };
        if self.parts.iter().any(is_other) {
            self.counts.directed += 1;
            let pair = Pair::of(node, &other.name);
            let new = Way { at: way, since: Instant::now(), is_kept: false };
            let before = self.ways.entry(pair).or_insert(new);
            assert_eq!(before.at, way, "{node} and {}", other.name);
        }
    }

    /// The cloud may have forgotten a way that it made just before it was killed.
    pub(crate) fn forget_new_ways(&mut self) {
        self.turn();
        let steady = self.cloud.steady();
        self.ways.retain(|_, way| {
            way.is_kept |= steady.is_some_and(|steady| steady > way.since + SOON);
            way.is_kept
        });
    }

    /// All do what is due.
    pub(crate) fn turn(&mut self) {
        let mut ways = Vec::new();
        for part in &mut self.parts {
            match &mut part.is {
                Is::Invited(guest) => {
                    let Some(answer) = guest.turn().filter(is_final) else { continue };
                    let membership = answer.unwrap_or_else(|why| panic!("{}: {why}", part.name));
                    self.counts.enrolled += 1;
                    let address = membership.identity.claims.v4;
                    assert_eq!(*part.address.get_or_insert(address), address, "{}", part.name);
                    part.is = Is::Member(Box::new(Member::new(guest, &membership, self.clock)));
                }
                Is::Member(member) => {
                    let shown = member.turn(&mut self.counts).into_iter();
                    ways.extend(shown.map(|(other, way)| (part.name.clone(), other, way)));
                }
                Is::None | Is::Leaving(_) => {}
            }
        }
        ways.into_iter().for_each(|(node, other, way)| self.shown(&node, &other, way));
        self.thieves.retain_mut(|(name, guest)| {
            let Some(answer) = guest.turn().filter(is_final) else { return true };
            let refused = Err(NotEnrolled::Refused(Refusal::Used));
            assert_eq!(answer.map(drop), refused, "a second use of the key of {name}");
            self.counts.refused += 1;
            false
        });
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether an answer is not that to ask later.
fn is_final(answer: &Result<Membership, NotEnrolled>) -> bool {
    *answer != Err(NotEnrolled::Refused(Refusal::Unkept))
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { enrolled, registered, revoked, refused, directed } = self;
        write!(
            f,
            "acknowledged {enrolled} enrolments, {registered} registrations, {directed} ways, "
        )?;
        write!(f, "{revoked} revocations, {refused} refusals of a second use")
    }
}
