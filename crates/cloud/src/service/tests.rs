//! Service tests without sockets: nothing is acknowledged that could not be kept.

use anyhow::bail;
use overlay::{
    Action, Enrolment, GUESTS_DIRECTORY, Node, NotEnrolled, Pair, Refusal, SignerKey, Sources,
    guest_address,
};
use tunnel::{PeerConfig, Prefix, PrivateKey};

use super::*;
use crate::config;
use crate::control::NewPolicy;
use crate::etcd::Trouble;
use crate::store::KeptPolicy;

/// A store whose disk is full, or whose servers are away, once it is said to be.
#[derive(Default)]
struct Memory {
    records: Vec<Record>,
    places: Vec<Place>,
    sources: Vec<(Pair, Sources)>,
    policy: Option<KeptPolicy>,
    lines: Vec<String>,
    is_full: bool,
    /// The servers are away, and the store knows it.
    is_away: [bool; 2],
}

/// The places in `is_away`.
const AWAY: usize = 0;
const KNOWN: usize = 1;

impl Store for Memory {
    fn records(&self) -> Result<Vec<Record>> {
        Ok(self.records.clone())
    }

    fn policy(&self) -> Result<Option<KeptPolicy>> {
        Ok(self.policy.clone())
    }

    fn places(&self) -> Result<Vec<Place>> {
        Ok(self.places.clone())
    }

    fn sources(&self) -> Result<Vec<(Pair, Sources)>> {
        Ok(self.sources.clone())
    }

    fn commit(&mut self, changes: &Changes) -> Result<()> {
        if self.is_full {
            bail!("no space left");
        }
        let is_soon =
            |record: &Record| !matches!(record, Record::Device(_) | Record::Invitation(_));
        let waits = changes.policy.is_none() && changes.records.iter().all(is_soon);
        self.lines.extend_from_slice(&changes.lines);
        if self.is_away[AWAY] && !waits {
            self.is_away[KNOWN] = true;
            return Err(Trouble::Away("nobody".to_owned()).into());
        }
        self.records.extend_from_slice(&changes.records);
        self.places.extend_from_slice(&changes.places);
        self.sources.extend_from_slice(&changes.sources);
        self.policy = changes.policy.clone().or(self.policy.take());
        Ok(())
    }

    fn stand(&self) -> Result<Option<String>> {
        Ok(self.is_away[KNOWN].then(|| "etcd does not answer".to_owned()))
    }

    fn lines(&self, most: usize) -> Result<Vec<String>> {
        Ok(self.lines[self.lines.len().saturating_sub(most)..].to_vec())
    }
}

const NOW: Now = Now { nanos: SECOND, unix: 1_800_000_000 };

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn service(folder: &std::path::Path) -> (Settings, Service<Memory>) {
    let path = folder.join("cloud.toml");
    config::init(&path, at("192.0.2.1:51900"), "home.internal", true).unwrap();
    let settings = Settings::read(&path).unwrap();
    let service = Service::new(&settings, Memory::default(), NOW).unwrap();
    (settings, service)
}

fn node_key() -> PrivateKey {
    PrivateKey::new([7; 32])
}

/// An end of the tunnel whose peer is the cloud, at this address inside, and who signs identities.
fn carrier(settings: &Settings, secret: PrivateKey, inside: IpAddr) -> (Carrier, SignerKey) {
    let (key, signer) = (settings.key().unwrap(), settings.signer().unwrap());
    let mut tunnel = end(secret, NOW).unwrap();
    let bits = if inside.is_ipv4() { 32 } else { 128 };
    let directory = PeerConfig {
        endpoint: Some(settings.public),
        allowed: vec![Prefix::new(inside, bits).unwrap()],
        ..PeerConfig::new(key.public())
    };
    tunnel.add_peer(&directory).unwrap();
    (Carrier::new(tunnel), signer.key())
}

/// The node that the device is then, and its end of the tunnel.
struct Member {
    carrier: Carrier,
    node: Node,
    place: SocketAddr,
}

impl Member {
    fn new(settings: &Settings) -> Self {
        let inside = settings.network.directory().0.into();
        let (carrier, signer) = carrier(settings, node_key(), inside);
        let node = Node::new("nas".parse().unwrap(), signer, Box::new(SystemEntropy::new()));
        Self { carrier, node: node.unwrap(), place: at("198.51.100.1:1") }
    }

    /// Both sides do what time brings, for these milliseconds.
    fn lives(&mut self, service: &mut Service<Memory>, now: &mut Now, millis: u64) {
        for _ in 0..millis / 10 {
            now.nanos += SECOND / 100;
            self.node.tick(now.nanos);
            self.carrier.tick(now.nanos);
            while let Some(action) = self.node.take() {
                let (Action::Send(message) | Action::Ask(message)) = action else { continue };
                let [own, to] = ["10.99.0.2:4502", "10.99.0.1:4502"].map(at);
                self.carrier.send(own, to, &message, now.nanos);
            }
            while let Some((_, mut datagram)) = self.carrier.take() {
                service.arrived(&mut datagram, self.place, *now);
            }
            service.tick(*now);
            service.sweep(*now);
            service.settle(*now).unwrap();
            while let Some((_, mut datagram)) = service.take() {
                let from = at("192.0.2.1:51900");
                let carried = self.carrier.receive(&mut datagram, from, now.nanos).message();
                if let Some(it) = carried {
                    self.node.receive(&datagram[it.payload], now.nanos);
                }
            }
        }
    }
}

fn state(service: &mut Service<Memory>, now: Now) -> Value {
    service.answer(Request::Devices {}, now).unwrap()["devices"][0]["state"].take()
}

/// A device that has a one-time key, and its end of the tunnel.
struct Guest {
    carrier: Carrier,
    enrolment: Enrolment,
    key: PublicKey,
    /// Why it is none.
    refused: Option<NotEnrolled>,
}

impl Guest {
    fn new(settings: &Settings, secret: PrivateKey) -> Self {
        let guest = secret.public();
        let (carrier, signer) = carrier(settings, secret, GUESTS_DIRECTORY.into());
        let enrolment = Enrolment::new(3, node_key().public(), signer);
        Self { carrier, enrolment, key: guest, refused: None }
    }

    /// Asks, and takes what comes back; whether the device is enrolled.
    fn asks(&mut self, service: &mut Service<Memory>) -> Result<bool> {
        let own = SocketAddr::new(guest_address(&self.key).into(), PORT);
        let to = SocketAddr::new(GUESTS_DIRECTORY.into(), PORT);
        self.carrier.send(own, to, &self.enrolment.question(), NOW.nanos);
        for _ in 0..4 {
            self.carrier.tick(NOW.nanos);
            while let Some((_, mut datagram)) = self.carrier.take() {
                service.arrived(&mut datagram, at("198.51.100.1:1"), NOW);
            }
            service.tick(NOW);
            service.settle(NOW)?;
            while let Some((_, mut datagram)) = service.take() {
                let from = at("192.0.2.1:51900");
                let carried = self.carrier.receive(&mut datagram, from, NOW.nanos).message();
                let answer = carried.and_then(|it| self.enrolment.answered(&datagram[it.payload]));
                match answer {
                    Some(Ok(_)) => return Ok(true),
                    Some(Err(why)) => self.refused = Some(why),
                    None => {}
                }
            }
        }
        Ok(false)
    }
}

/// A cloud that was killed begins again with what it kept.
fn restarted(settings: &Settings, before: Service<Memory>, now: Now) -> Service<Memory> {
    let store = Memory { is_full: false, ..before.store };
    Service::new(settings, store, now).unwrap()
}

fn invited(service: &mut Service<Memory>) -> PrivateKey {
    let request = Request::Enrol { names: vec!["nas".to_owned()] };
    let answer = service.answer(request, NOW).unwrap();
    answer["keys"][0]["key"].as_str().unwrap().parse().unwrap()
}

#[test]
fn a_device_is_enrolled_by_the_tunnel() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, mut service) = service(folder.path());
    let secret = invited(&mut service);
    assert!(Guest::new(&settings, secret).asks(&mut service).unwrap());
    let devices = service.answer(Request::Devices {}, NOW).unwrap();
    assert_eq!(devices["devices"][0]["v4"], "10.99.0.2");
    assert_eq!(devices["devices"][0]["state"], "absent");
    // Somebody whose key nobody made gets no answer.
    let stranger = PrivateKey::new([5; 32]);
    assert!(!Guest::new(&settings, stranger).asks(&mut service).unwrap());
}

#[test]
fn nothing_is_acknowledged_that_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, mut service) = service(folder.path());
    let secret = invited(&mut service);
    service.store.is_full = true;
    let asked = Guest::new(&settings, secret.clone()).asks(&mut service);
    assert!(asked.is_err() && service.take().is_none());
    // It begins again from what is there, and the device asks again.
    let mut again = restarted(&settings, service, NOW);
    assert!(Guest::new(&settings, secret).asks(&mut again).unwrap());
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut service) = service(folder.path());
    let revoke = Request::Revoke { name: "nobody".to_owned() };
    assert_eq!(service.answer(revoke, NOW).unwrap()["error"], "there is no node nobody");
    let enrol = Request::Enrol { names: vec!["a b".to_owned()] };
    assert!(service.answer(enrol, NOW).unwrap()["error"].is_string());
}

#[test]
fn a_node_is_back_at_once_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, mut service) = service(folder.path());
    let secret = invited(&mut service);
    assert!(Guest::new(&settings, secret).asks(&mut service).unwrap());
    let (mut member, mut now) = (Member::new(&settings), NOW);
    // Killed as soon as it has acknowledged: the node would register again in ten seconds.
    member.lives(&mut service, &mut now, 40);
    assert_eq!(state(&mut service, now), "present");
    let mut again = restarted(&settings, service, now);
    assert_eq!(state(&mut again, now), "absent");
    member.lives(&mut again, &mut now, 100);
    assert_eq!(state(&mut again, now), "present");
}

#[test]
fn a_node_that_moves_all_the_time_makes_the_disk_no_work() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, mut service) = service(folder.path());
    let secret = invited(&mut service);
    assert!(Guest::new(&settings, secret).asks(&mut service).unwrap());
    let (mut member, mut now) = (Member::new(&settings), NOW);
    member.lives(&mut service, &mut now, 30);
    assert_eq!(service.store.places, [(node_key().public(), member.place)]);
    for number in 0..300 {
        member.place.set_port(2 + number % 2);
        // It asks for what it may not reach, from another place each time.
        member.node.resolve(&format!("n{number}").parse().unwrap(), now.nanos);
        member.lives(&mut service, &mut now, 10);
    }
    let kept = service.store.places.len();
    assert!((3..=5).contains(&kept), "{kept} places within 3 s");
}

const POLICY: &str = "[[allow]]\nfrom = [\"phone\"]\nto = [\"nas\"]\nports = [\"tcp/22\"]\n\n[[test]]\n\
    from = \"phone\"\nto = \"nas\"\nport = \"tcp/22\"\nexpect = \"allow\"\n";

fn policy(service: &mut Service<Memory>, text: Option<&str>, version: Option<u64>) -> Value {
    let text = text.map(str::to_owned);
    let new = NewPolicy { text, name: "p.toml".to_owned(), version, uid: 7 };
    service.answer(Request::Policy(new), NOW).unwrap()
}

#[test]
fn a_policy_is_replaced_by_who_knows_the_version_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut service) = service(folder.path());
    assert_eq!(policy(&mut service, None, None)["version"], 1, "what the configuration allows");
    let put = policy(&mut service, Some(POLICY), Some(1));
    assert_eq!((&put["version"], &put["changed"]), (&2.into(), &"new phone -> nas tcp/22".into()));
    let stale = policy(&mut service, Some(POLICY), Some(1));
    let what = "expected version 1 to be in force, found 2: tamis-cloud policy prints it";
    assert_eq!(stale["error"], what);
    // What is printed may be given back.
    let printed = policy(&mut service, None, None);
    let text = format!("version = 2\n{}", printed["text"].as_str().unwrap());
    assert_eq!(Written::read(&text).unwrap().version, Some(2));
    // What fails its own test changes nothing.
    let denied = POLICY.replace("port = \"tcp/22\"", "port = \"tcp/23\"");
    let refused = policy(&mut service, Some(&denied), Some(2));
    assert!(refused["error"].as_str().unwrap().starts_with("p.toml:10:10: the test fails"));
    assert_eq!(policy(&mut service, None, None)["version"], 2);
    let log = service.answer(Request::Log {}, NOW).unwrap();
    let last = log["lines"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
    let said = "version 2 of the policy is in force, by user 7: new phone -> nas tcp/22";
    assert!(last.ends_with(said), "{last}");
}

#[test]
fn a_policy_outlasts_the_cloud_and_goes_before_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (mut settings, mut service) = service(folder.path());
    let kept = |service: &mut Service<Memory>| service.store.policy.clone();
    let again = |settings: &Settings, policy| {
        Service::new(settings, Memory { policy, ..Memory::default() }, NOW).unwrap()
    };
    // The same configuration is the same version, another one the next.
    let mut same = again(&settings, kept(&mut service));
    assert_eq!(policy(&mut same, None, None)["version"], 1);
    settings.policy = Written::read(&POLICY.replace("tcp/22", "tcp/80")).unwrap();
    let mut other = again(&settings, kept(&mut service));
    assert_eq!(policy(&mut other, None, None)["version"], 2);
    policy(&mut other, Some(POLICY), None);
    let mut last = again(&settings, kept(&mut other));
    let in_force = policy(&mut last, None, None);
    assert_eq!((&in_force["version"], &in_force["text"]), (&3.into(), &POLICY.into()));
}

#[test]
fn a_policy_that_could_not_be_kept_is_not_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut service) = service(folder.path());
    service.store.is_full = true;
    let text = Some(POLICY.to_owned());
    let new = NewPolicy { text, ..NewPolicy::default() };
    assert!(service.answer(Request::Policy(new), NOW).is_err());
    let [phone, nas] = ["phone", "nas"].map(|name| name.parse().unwrap());
    assert!(!service.policy.policy().allows(&phone, &nas));
}

/// What the store says once it is away, and once it is back.
fn set_away(service: &mut Service<Memory>, is_away: bool) {
    service.store.is_away = [is_away; 2];
}

fn devices(service: &Service<Memory>) -> usize {
    service.store.records.iter().filter(|it| matches!(it, Record::Device(_))).count()
}

#[test]
fn what_cannot_be_kept_is_refused_and_all_else_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, mut service) = service(folder.path());
    let secret = invited(&mut service);
    assert!(Guest::new(&settings, secret).asks(&mut service).unwrap());
    let secret = invited(&mut service);
    let kept = service.store.records.len();
    set_away(&mut service, true);
    // A node registers, and has no part in it.
    let (mut member, mut now) = (Member::new(&settings), NOW);
    member.lives(&mut service, &mut now, 40);
    assert_eq!(state(&mut service, now), "present");
    // Who joins is refused, and who asks for a change hears why.
    let mut guest = Guest::new(&settings, secret.clone());
    assert!(!guest.asks(&mut service).unwrap() && service.held.is_none());
    assert_eq!(guest.refused, Some(NotEnrolled::Refused(Refusal::Unkept)));
    let why = "etcd does not answer: nothing is changed";
    let names = vec!["tv".to_owned()];
    for request in [Request::Enrol { names }, Request::Revoke { name: "nas".to_owned() }] {
        assert_eq!(service.answer(request, NOW).unwrap()["error"], why);
    }
    assert_eq!(policy(&mut service, Some(POLICY), None)["error"], why);
    let new = service.store.records[kept..].iter().filter(|it| !matches!(it, Record::Identity(_)));
    assert_eq!(new.count(), 0);
    set_away(&mut service, false);
    assert!(Guest::new(&settings, secret).asks(&mut service).unwrap());
    assert_eq!(policy(&mut service, Some(POLICY), None)["version"], 2);
}

#[test]
fn what_was_being_kept_when_the_store_went_away_is_kept_once_and_then_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, mut service) = service(folder.path());
    let secret = invited(&mut service);
    let (kept, lines) = (devices(&service), service.store.lines.len());
    service.store.is_away[AWAY] = true;
    let mut guest = Guest::new(&settings, secret);
    assert!(!guest.asks(&mut service).unwrap(), "it is not kept");
    assert!(!guest.asks(&mut service).unwrap(), "nor by asking again, as if the answer was lost");
    assert_eq!(devices(&service), kept);
    set_away(&mut service, false);
    service.settle(NOW).unwrap();
    assert!(devices(&service) > kept && service.held.is_none());
    assert_eq!(service.store.lines.len(), lines + 1, "its line is there once");
    assert!(guest.asks(&mut service).unwrap());

    // A policy is in force once it is kept, and not before.
    service.store.is_away[AWAY] = true;
    let answer = policy(&mut service, Some(POLICY), Some(1));
    let why =
        "etcd does not answer: it is done once it can be kept, unless this directory ends before";
    assert_eq!(answer["error"], why);
    assert_eq!(policy(&mut service, None, None)["version"], 1);
    set_away(&mut service, false);
    service.settle(NOW).unwrap();
    assert_eq!(policy(&mut service, None, None)["version"], 2);
    assert_eq!(service.store.policy.as_ref().unwrap().version, 2);
}
