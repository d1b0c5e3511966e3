//! The same recording through one worker and through several: what one handler says of it without a run around it is
//! what all of them say, and what leaves of a connection leaves in its order.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dataplane::publish::Published;
use dataplane::{Arrival, Crossing, Leaves, Origin, Unresolved};
use live::config::{Cores, OnPanic, Order, Other, Workers};
use live::{BoxedPort, Reason, Run, Status, WireSpec, WorkerState};
use packet::craft::{Addresses, Craft, Fragment, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link, parse};
use pktio::{Burst, FrameMeta, LinkType, Port, PortError, Readiness, Stats, Taken, Timestamp};
use rules::eval::Nobody;
use rules::model::{Counters, Family, Ruleset};

use super::{config, filter, ruleset};

/// Nanoseconds since the Unix epoch of every frame.
const NOW: u64 = 1_000_000_000_000;
/// How long a run may take that has nothing left to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A capture in memory: frames come in bursts, and what is transmitted stays.
pub(super) struct Recording {
    pub(super) frames: Vec<Vec<u8>>,
    pub(super) at: usize,
    pub(super) left: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Port for Recording {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        for bytes in self.frames.iter().skip(self.at).take(48) {
            let wire_length = bytes.len() as u32;
            let timestamp = Some(Timestamp::from_nanos(NOW as i64));
            let link_type = LinkType::ETHERNET;
            burst
                .push(bytes, FrameMeta { link_type, wire_length, timestamp, ..Default::default() });
        }
        self.at += burst.len();
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let frames = burst.drain(usize::MAX).map(|taken| match taken {
            Taken::Lent { bytes, .. } => bytes.to_vec(),
            Taken::Moved(frame) => frame.bytes().to_vec(),
        });
        let mut left = self.left.lock().unwrap();
        let before = left.len();
        left.extend(frames);
        Ok(left.len() - before)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Always
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// The answer of several workers to a recording.
#[derive(Debug, PartialEq)]
struct Answer {
    /// The frames that left, in order within each flow.
    left: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    /// The counters of each rule.
    counters: Vec<Counters>,
    dropped: BTreeMap<&'static str, u64>,
}

/// The rules' counters, in their order.
pub(super) fn counters(published: &Published) -> Vec<Counters> {
    let snapshot = published.snapshot().unwrap();
    let ruleset = snapshot.program.revision(Family::Ipv4).unwrap().ruleset();
    let rules =
        ruleset.tables.iter().flat_map(|table| &table.chains).flat_map(|chain| &chain.rules);
    rules.map(|rule| snapshot.rule(rule)).collect()
}

/// The key of a frame's flow: its addresses and ports, in either order, and its protocol. In ICMP the identifier stands
/// for ports.
fn flow(bytes: &[u8], parts_of: &HashMap<[u8; 2], [u8; 4]>) -> Vec<u8> {
    let parts = match bytes[23] {
        1 => [bytes[38], bytes[39]].repeat(2),
        // Of a packet whose first fragment did not leave, nobody knows the ports.
        _ => parts_of.get(&[bytes[18], bytes[19]]).copied().unwrap_or_default().to_vec(),
    };
    let [one, other] =
        [(26, 0), (30, 2)].map(|(at, part)| [&bytes[at..at + 4], &parts[part..part + 2]].concat());
    [&one.clone().min(other.clone())[..], &one.max(other), &bytes[23..24]].concat()
}

/// Frames by flow. Later fragments have the ports of the first of their packet: no two packets have one number.
pub(super) fn by_flow(frames: Vec<Vec<u8>>) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let is_first = |bytes: &&Vec<u8>| u16::from_be_bytes([bytes[20], bytes[21]]) & 0x1fff == 0;
    let firsts = frames.iter().filter(is_first);
    let parts_of = firsts
        .map(|bytes| ([bytes[18], bytes[19]], [bytes[34], bytes[35], bytes[36], bytes[37]]))
        .collect();
    let mut flows: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for bytes in frames {
        flows.entry(flow(&bytes, &parts_of)).or_default().push(bytes);
    }
    flows
}

/// The answer of one handler to all frames, one after the other.
fn expected(rules: &Arc<Ruleset>, frames: &[Vec<u8>]) -> Answer {
    let published = Published::new([&**rules], config(Unresolved::Drop, Vec::new()));
    let mut worker = published.worker().sending();
    let (mut left, mut dropped) = (Vec::new(), BTreeMap::new());
    let crossing = Crossing::default();
    for frame in frames {
        let mut bytes = frame.clone();
        let len = bytes.len();
        let headers = parse(Link::Wire, &bytes, len, Checksums::Verify);
        let arrival = Arrival {
            time: Some(NOW),
            input: Some("left"),
            output: Some("right"),
            wire: Some(&crossing),
            origin: Origin::Wire,
            headers: Some(&headers),
            ..Arrival::new(0, Link::Wire, len)
        };
        let mut guard = worker.burst();
        let egress = guard.handle(&mut bytes, &arrival, &mut Nobody);
        let verdict = egress.outcome.end.verdict;
        match egress.leaves {
            Leaves::InPlace(len) => left.push(bytes[..len].to_vec()),
            Leaves::Others(others) => left.extend(others.iter().map(<[u8]>::to_vec)),
            Leaves::Nothing => {
                let reason = match verdict {
                    dataplane::FinalVerdict::Drop(dataplane::DropReason::Rule(_)) => Reason::Rule,
                    dataplane::FinalVerdict::Drop(dataplane::DropReason::Policy { .. }) => {
                        Reason::Policy
                    }
                    dataplane::FinalVerdict::Skip(_) => Reason::Fragment,
                    other => panic!("{other:?}"),
                };
                *dropped.entry(reason.name()).or_default() += 1;
            }
        }
    }
    // The last fragment of a packet that leaves in fragments counts as a frame that does not leave.
    Answer { left: by_flow(left), counters: counters(&published), dropped }
}

/// The answer of this number of workers, and how many frames moved from one worker to another.
fn through(workers: usize, rules: &Arc<Ruleset>, frames: &[Vec<u8>]) -> (Answer, u64) {
    let left = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let port = |frames: &[Vec<u8>], left| -> BoxedPort {
        Box::new(Recording { frames: frames.to_vec(), at: 0, left })
    };
    let ports = [
        ("left".to_owned(), port(frames, Arc::default())),
        ("right".to_owned(), port(&[], Arc::clone(&left))),
    ];
    let ends = vec![WireSpec {
        ports,
        crossings: Default::default(),
        other: Other::Pass,
        order: Order::Flow,
    }];
    let wanted = Workers { cores: Cores::Any, count: Some(workers) };
    let config = config(Unresolved::Drop, Vec::new());
    let run =
        Run::start_on(ends, (&[Arc::clone(rules)], config), OnPanic::Closed, &wanted).unwrap();
    while run.status().workers.iter().any(|worker| worker.state != WorkerState::Ended) {
        std::thread::yield_now();
    }
    let counters = counters(run.published());
    let (status, ended) = run.wait(&AtomicBool::new(false), |told| panic!("{told}"));
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(status.workers.len(), workers);
    let counted = status.directions[0].frames;
    assert!(counted.balances(), "{counted:?}");
    assert_eq!(counted.received, frames.len() as u64);
    let dropped = Reason::ALL.into_iter().map(|reason| (reason.name(), counted.of(reason)));
    let dropped = dropped.filter(|(_, count)| *count > 0).collect();
    let left = by_flow(std::mem::take(&mut *left.lock().unwrap()));
    (Answer { left, counters, dropped }, counted.taken_over)
}

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// Numbers that are the same in every run, and look like none.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// Conversations of hosts on one side with hosts on the other, all mixed up, each in its order. What answers is sent to
/// `seen_as`, if hosts are seen as one.
pub(super) fn conversations(seed: u64, seen_as: Option<[u8; 4]>) -> Vec<Vec<u8>> {
    let mut dice = Dice(seed);
    let mut frames = Vec::new();
    let mut steps: HashMap<u64, u64> = HashMap::new();
    for id in 1..=4000 {
        let host = dice.below(60);
        // Who comes from where, to whom, is the host's own.
        let (to, port) = (host % 7, 2000 + host as u16);
        let ours = [10, 0, 0, host as u8];
        let theirs = [10, 0, 1, to as u8];
        let back = seen_as.unwrap_or(ours);
        let there = Addresses::V4 { source: ours, destination: theirs };
        let answer = Addresses::V4 { source: theirs, destination: back };
        let step = steps.entry(host).or_default();
        *step += 1;
        let (addresses, message) = match (host % 3, *step) {
            (0, 1) => (there, Message::tcp(port, 80, Flags::SYN)),
            (0, 2) => (answer, Message::tcp(80, port, SYN_ACK)),
            (0, odd) if odd % 2 == 1 => (there, Message::tcp(port, 80, Flags::ACK)),
            (0, _) => (answer, Message::tcp(80, port, Flags::ACK)),
            (1, odd) if odd % 3 != 0 => (there, Message::udp(port, 53)),
            (1, _) => (answer, Message::udp(53, port)),
            _ => (there, Message::Icmp { kind: 8, code: 0, id: port, sequence: *step as u16 }),
        };
        let whole = Craft { id, payload_len: 64, ..Craft::new(addresses, message) };
        if host % 3 == 1 && host % 2 == 1 {
            frames.extend(pieces(&whole, &mut dice));
        } else {
            frames.push(whole.frame());
        }
    }
    frames
}

/// A datagram in three fragments, in some order.
fn pieces(whole: &Craft, dice: &mut Dice) -> Vec<Vec<u8>> {
    // The first carries the header of UDP.
    let cut = [(0, true, 24), (32, true, 24), (56, false, 16)];
    let mut pieces: Vec<Vec<u8>> = cut
        .into_iter()
        .map(|(offset, more, payload_len)| {
            let fragment = Some(Fragment { offset, more });
            Craft { fragment, payload_len, ..whole.clone() }.frame()
        })
        .collect();
    let at = dice.below(3) as usize;
    pieces.rotate_left(at);
    pieces
}

pub(super) const STATELESS: &str = "-A FORWARD -i left -o right -p tcp --dport 80 -j ACCEPT\n\
    -A FORWARD -p udp --sport 53 -j DROP\n-A FORWARD -p icmp -j ACCEPT\n\
    -A FORWARD -s 10.0.0.0/27 -j ACCEPT\n";
pub(super) const TRACKED: &str = "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT\n\
    -A FORWARD -m conntrack --ctstate INVALID -j DROP\n\
    -A FORWARD -s 10.0.0.0/26 -m conntrack --ctstate NEW -j ACCEPT\n";

/// Checks that one handler and up to four workers give the same answer.
#[track_caller]
fn agree(text: &str, frames: &[Vec<u8>]) {
    let rules = ruleset(Family::Ipv4, text);
    let expected = expected(&rules, frames);
    assert!(expected.left.len() > 5, "something passes: {}", expected.left.len());
    for workers in 1..=4 {
        let (mut answer, taken_over) = through(workers, &rules, frames);
        assert_eq!(taken_over > 0, workers > 1, "{taken_over}");
        // The frames of a run count one fragment more of each packet that leaves: others leave in its place.
        let fragments = |answer: &Answer| answer.dropped.get("fragment").copied().unwrap_or(0);
        assert!(fragments(&answer) >= fragments(&expected));
        answer.dropped.insert("fragment", fragments(&expected));
        answer.dropped.retain(|_, count| *count > 0);
        assert_eq!(answer.counters, expected.counters, "{workers} workers");
        assert_eq!(answer.dropped, expected.dropped, "{workers} workers");
        for (flow, frames) in &expected.left {
            let found = answer.left.get(flow).unwrap();
            let differs = found.iter().zip(frames).position(|(one, other)| one != other);
            assert_eq!((found.len(), differs), (frames.len(), None), "{workers} workers, {flow:?}");
        }
        assert_eq!(answer.left.len(), expected.left.len());
    }
}

#[test]
fn without_connections() {
    agree(&filter("DROP", STATELESS), &conversations(1, None));
}

#[test]
fn with_connections_and_fragments() {
    agree(&filter("DROP", TRACKED), &conversations(2, None));
}

#[test]
fn with_translated_sources() {
    const SEEN_AS: [u8; 4] = [192, 0, 2, 1];
    let nat = "*nat\n:POSTROUTING ACCEPT [0:0]\n\
        -A POSTROUTING -s 10.0.0.0/24 -j SNAT --to-source 192.0.2.1\nCOMMIT\n";
    let text = format!("{nat}{}", filter("DROP", TRACKED));
    agree(&text, &conversations(3, Some(SEEN_AS)));
}

#[test]
fn with_lists_of_recent_sources() {
    let rules = "-A FORWARD -m recent --name r --rcheck --hitcount 9 -j DROP\n\
        -A FORWARD -m recent --name r --set -j ACCEPT\n";
    // Each host speaks to one other: who it is counted by is its connection's worker.
    let mut frames = conversations(4, None);
    frames.retain(|bytes| bytes[28] == 0);
    agree(&filter("DROP", rules), &frames);
}

/// Which packets a bucket lets pass is a matter of order; how many, is not.
#[test]
fn with_one_bucket_for_all() {
    let rules = "-A FORWARD -m limit --limit 1/hour --limit-burst 100 -j ACCEPT\n";
    let rules = ruleset(Family::Ipv4, &filter("DROP", rules));
    let frames = conversations(5, None);
    let expected = expected(&rules, &frames);
    assert_eq!(expected.counters[0].packets, 100);
    for workers in 1..=4 {
        let (answer, _) = through(workers, &rules, &frames);
        assert_eq!(answer.counters[0].packets, 100, "{workers} workers");
        assert_eq!(answer.dropped, expected.dropped);
    }
}

/// A helper expects connections of other addresses, so one worker sees all.
#[test]
fn rules_that_need_one_worker_get_one_and_say_why() {
    let text = "*raw\n:PREROUTING ACCEPT [0:0]\n\
        -A PREROUTING -p tcp --dport 21 -j CT --helper ftp\nCOMMIT\n";
    let rules = [ruleset(Family::Ipv4, text)];
    let port =
        || -> BoxedPort { Box::new(Recording { frames: Vec::new(), at: 0, left: Arc::default() }) };
    let ports = [("left".to_owned(), port()), ("right".to_owned(), port())];
    let ends = vec![WireSpec {
        ports,
        crossings: Default::default(),
        other: Other::Pass,
        order: Order::Flow,
    }];
    let wanted = Workers { cores: Cores::Any, count: Some(3) };
    let config = config(Unresolved::Drop, Vec::new());
    let run = Run::start_on(ends, (&rules, config), OnPanic::Closed, &wanted).unwrap();
    let (status, ended) = run.wait(&AtomicBool::new(false), |_| {});
    assert!(ended.is_ok());
    assert_eq!(status.workers.len(), 1);
    let text = status.text();
    assert!(text.contains("one worker evaluates all packets: ip line 3: -j CT"), "{text}");
}

#[test]
fn rules_that_connections_would_have_to_move_for_do_not_suit() {
    let port =
        || -> BoxedPort { Box::new(Recording { frames: Vec::new(), at: 0, left: Arc::default() }) };
    let start = |text: &str, count| {
        let ports = [("left".to_owned(), port()), ("right".to_owned(), port())];
        let ends = vec![WireSpec {
            ports,
            crossings: Default::default(),
            other: Other::Pass,
            order: Order::Flow,
        }];
        let wanted = Workers { cores: Cores::Any, count: Some(count) };
        let rules = [ruleset(Family::Ipv4, text)];
        Run::start_on(
            ends,
            (&rules, config(Unresolved::Drop, Vec::new())),
            OnPanic::Closed,
            &wanted,
        )
        .unwrap()
    };
    let suits = |run: &Run, text: &str| run.suits(&[ruleset(Family::Ipv4, text)]);
    let [tracked, stateless] = [TRACKED, STATELESS].map(|rules| filter("DROP", rules));
    let nat = "*nat\n:POSTROUTING ACCEPT [0:0]\n\
        -A POSTROUTING -j SNAT --to-source 192.0.2.1\nCOMMIT\n";
    let helper = "*raw\n:PREROUTING ACCEPT [0:0]\n\
        -A PREROUTING -p tcp -j CT --helper ftp\nCOMMIT\n";
    let several = start(&tracked, 2);
    assert_eq!([&tracked, &stateless].map(|rules| suits(&several, rules)), [Ok(()), Ok(())]);
    assert!(suits(&several, nat).unwrap_err().contains("in another way"));
    assert!(suits(&several, helper).unwrap_err().contains("one worker: ip line 3: -j CT"));
    assert!(suits(&start(&stateless, 2), &tracked).is_err(), "nobody owned a connection");
    let one = start(&tracked, 1);
    assert_eq!([nat, helper].map(|rules| suits(&one, rules)), [Ok(()), Ok(())]);
}

/// What happens to the output port, once.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Trouble {
    Panic,
    Failure,
}

/// A port that has trouble with the first burst that it is to transmit.
pub(super) struct Troubled(pub(super) Recording, pub(super) Option<Trouble>);

impl Port for Troubled {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.0.rx_burst(burst)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        match self.1.take() {
            Some(Trouble::Panic) => panic!("injected"),
            Some(Trouble::Failure) => Err(PortError::ReceiveOnly { name: "right".to_owned() }),
            None => self.0.tx_burst(burst),
        }
    }

    fn readiness(&self) -> Readiness<'_> {
        self.0.readiness()
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }
}

/// A port without frames that ends once it was asked this often how to wait for some.
struct Ending(AtomicUsize);

impl Port for Ending {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        Ok(0)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        Ok(0)
    }

    fn readiness(&self) -> Readiness<'_> {
        let left =
            self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        left.map_or(Readiness::Never, |_| Readiness::After(Duration::from_millis(1)))
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// A worker that looked before the last port ended, and sleeps after that, is woken by nobody.
#[test]
fn a_run_ends_whenever_its_ports_do() {
    for asked in 0..12 {
        let end = || Box::new(Ending(AtomicUsize::new(asked))) as BoxedPort;
        let ports = [("left".to_owned(), end()), ("right".to_owned(), end())];
        let crossings = Default::default();
        let ends = vec![WireSpec { ports, crossings, other: Other::Pass, order: Order::Flow }];
        let wanted = Workers { cores: Cores::Any, count: Some(1) };
        let rules = [ruleset(Family::Ipv4, &filter("DROP", TRACKED))];
        let config = config(Unresolved::Drop, Vec::new());
        let run = Run::start_on(ends, (&rules, config), OnPanic::Closed, &wanted).unwrap();
        let (has_ended, must_stop) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let start = Instant::now();
                while !has_ended.load(Ordering::Acquire) && start.elapsed() < PATIENCE {
                    std::thread::sleep(Duration::from_millis(5));
                }
                must_stop.store(!has_ended.load(Ordering::Acquire), Ordering::Release);
            });
            let (_, ended) = run.wait(&must_stop, |_| ());
            has_ended.store(true, Ordering::Release);
            assert!(ended.is_ok());
        });
        assert!(!must_stop.into_inner(), "it sleeps on, asked {asked} times");
    }
}

/// Runs three workers, one of which has trouble: returns the messages, the status, and whether the run ended well.
fn through_trouble(trouble: Trouble) -> (Vec<String>, Status, bool) {
    let frames = conversations(6, None);
    let recording = |frames| Recording { frames, at: 0, left: Arc::default() };
    let right = Troubled(recording(Vec::new()), Some(trouble));
    let ports: [(String, BoxedPort); 2] =
        [("left".to_owned(), Box::new(recording(frames))), ("right".to_owned(), Box::new(right))];
    let ends = vec![WireSpec {
        ports,
        crossings: Default::default(),
        other: Other::Pass,
        order: Order::Flow,
    }];
    let wanted = Workers { cores: Cores::Any, count: Some(3) };
    let rules = [ruleset(Family::Ipv4, &filter("DROP", TRACKED))];
    let config = config(Unresolved::Drop, Vec::new());
    let run = Run::start_on(ends, (&rules, config), OnPanic::Closed, &wanted).unwrap();
    let mut told = Vec::new();
    let (status, ended) = run.wait(&AtomicBool::new(false), |what| told.push(what.to_owned()));
    for direction in &status.directions {
        assert!(direction.frames.balances(), "{:?}", direction.frames);
    }
    (told, status, ended.is_ok())
}

#[test]
fn after_the_panic_of_one_worker_none_evaluates() {
    let (told, status, is_well) = through_trouble(Trouble::Panic);
    let all = status.workers.iter().enumerate();
    let panicked = all.filter(|(_, worker)| worker.panicked).map(|(number, _)| number);
    let panicked: Vec<usize> = panicked.collect();
    let [number] = &*panicked else { panic!("one of them: {panicked:?}") };
    assert_eq!(told, [format!("worker {number} panicked: no rule sees a frame any more")]);
    assert!(is_well && status.panicked);
    let counted = status.directions[0].frames;
    assert!(counted.of(Reason::Panic) > 0, "{counted:?}");
}

#[test]
fn a_port_that_fails_one_worker_ends_all() {
    let (told, status, is_well) = through_trouble(Trouble::Failure);
    assert_eq!((told.len(), is_well, status.panicked), (0, false, false));
    let counted = status.directions[0].frames;
    assert!(counted.of(Reason::Device) > 0, "{counted:?}");
    assert!(status.workers.iter().all(|worker| worker.state == WorkerState::Ended));
}
