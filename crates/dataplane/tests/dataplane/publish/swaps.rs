//! Programs are swapped while workers take conversations through them: connections, translations, limits and lists.
//!
//! The plain model knows what becomes of each packet, and counts: rules that stay remember, rules that every swap
//! replaces start afresh under each program. Of what workers share it knows the sum.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use conntrack::Mode;
use dataplane::publish::{BurstGuard, MOST_PROGRAMS, Published};
use dataplane::{Arrival, Config, FinalVerdict, Path};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use rules::eval::By;
use rules::model::{Counters, Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};

use super::{Stops, rules};
use crate::Nobody;

const SWAPS: u64 = 10_000;
const WORKERS: u8 = 4;
const CONNECTIONS: u16 = 5;
/// Queries that a `limit` lets through, of all workers.
const LIMIT: u64 = 7;

/// Marks packets on their way in, and drops those on their way out that some other program marked.
fn start() -> Ruleset {
    let text = format!(
        "*mangle\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
         -A PREROUTING -j MARK --set-xmark 0x1\n\
         -A POSTROUTING -m mark ! --mark 0x1 -j DROP\nCOMMIT\n\
         *nat\n:POSTROUTING ACCEPT [0:0]\n\
         -A POSTROUTING -p tcp -j SNAT --to-source 192.0.2.1\nCOMMIT\n\
         *filter\n:FORWARD DROP [0:0]\n\
         -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
         -A FORWARD -p udp -m udp --dport 53 -m limit --limit 1/hour --limit-burst {LIMIT} -j ACCEPT\n\
         -A FORWARD -p udp -m udp --dport 54 -m recent --name SEEN --set -j ACCEPT\n\
         -A FORWARD -p udp -m udp --dport 55 -m recent --name SEEN --rcheck -j ACCEPT\n\
         {ONCE}-A FORWARD -p tcp -m tcp --dport 80 -j ACCEPT\nCOMMIT\n"
    );
    load(&text, &LoadOptions::default()).unwrap().ruleset
}

/// Lets one packet through.
const ONCE: &str =
    "-A FORWARD -p udp -m udp --dport 56 -m limit --limit 1/hour --limit-burst 1 -j ACCEPT\n";

fn next(number: u64) -> String {
    let once = ONCE.replace("-A FORWARD", "-R FORWARD 5");
    format!(
        "*mangle\n-R PREROUTING 1 -j MARK --set-xmark {number:#x}\n\
         -R POSTROUTING 1 -m mark ! --mark {number:#x} -j DROP\nCOMMIT\n*filter\n{once}COMMIT\n"
    )
}

/// What the model expects of a packet, by the rule of FORWARD that accepts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Expected {
    Rule(u32),
    Policy,
}

/// The packets of one worker, counted by verdict.
struct Traffic {
    own: [u8; 4],
    number: u64,
    /// Datagrams that began a connection, and the ports of datagrams that were let through.
    begun: u64,
    let_through: HashSet<u16>,
    is_listed: bool,
    /// The last program that a packet of [`ONCE`] was sent under, with the name of its rule.
    once: (u64, u64),
    /// Packets that it let through, by program.
    once_through: HashMap<u64, u64>,
    ids: HashSet<u64>,
    counts: HashMap<Expected, Counters>,
    /// The number of packets by the program that all of them went through.
    by_program: HashMap<u64, u64>,
}

const SERVER: [u8; 4] = [203, 0, 113, 9];
const PUBLIC: [u8; 4] = [192, 0, 2, 1];

impl Traffic {
    fn new(worker: u8) -> Self {
        Self {
            own: [10, worker, 0, 1],
            number: 0,
            begun: 0,
            let_through: HashSet::new(),
            is_listed: false,
            once: (0, 0),
            once_through: HashMap::new(),
            ids: HashSet::new(),
            counts: HashMap::new(),
            by_program: HashMap::new(),
        }
    }

    /// A packet from one end to another, and what it is after that; `Policy` drops it.
    fn pass(
        &mut self,
        burst: &mut BurstGuard<'_>,
        ends: ([u8; 4], [u8; 4]),
        message: Message,
        expected: Expected,
    ) -> Vec<u8> {
        let (came, bytes) = self.send(burst, ends, message);
        assert_eq!(came, expected, "packet {}", self.number);
        bytes
    }

    /// Sends a packet and compares its verdict.
    fn send(
        &mut self,
        burst: &mut BurstGuard<'_>,
        (source, destination): ([u8; 4], [u8; 4]),
        message: Message,
    ) -> (Expected, Vec<u8>) {
        self.number += 1;
        let addresses = Addresses::V4 { source, destination };
        let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, message) }.frame();
        let time = Some(1_000_000_000 + self.number * 1000);
        let arrival = Arrival { time, ..Arrival::new(self.number, Link::Raw, bytes.len()) };
        let program = burst.program().number();
        let came = match burst.handle(&mut bytes, &arrival, &mut Nobody).outcome.end.verdict {
            // The tables after FORWARD only accept: what let it through is the filter's.
            FinalVerdict::Accept(Some(By::Rule(at))) => Expected::Rule(at.rule),
            FinalVerdict::Drop(_) => Expected::Policy,
            other => panic!("{other:?} in program {program}, packet {}", self.number),
        };
        let count = self.counts.entry(came).or_default();
        count.packets += 1;
        count.bytes += bytes.len() as u64;
        *self.by_program.entry(program).or_default() += 1;
        (came, bytes)
    }

    /// Sends a datagram that a limit of all workers lets through, or not: whether it does.
    fn asks(&mut self, burst: &mut BurstGuard<'_>, port: u16, rule: u32) -> bool {
        let (came, _) = self.send(burst, (self.own, SERVER), Message::udp(5000, port));
        let passes = came == Expected::Rule(rule);
        assert!(passes || came == Expected::Policy, "{came:?}, packet {}", self.number);
        self.begun += u64::from(!self.let_through.contains(&port));
        if passes {
            self.let_through.insert(port);
        }
        passes
    }

    fn out(&mut self, burst: &mut BurstGuard<'_>, message: Message, expected: Expected) -> Vec<u8> {
        self.pass(burst, (self.own, SERVER), message, expected)
    }

    fn opens(&mut self, burst: &mut BurstGuard<'_>) {
        for port in 4000..4000 + CONNECTIONS {
            let sent = self.out(burst, Message::tcp(port, 80, Flags::SYN), Expected::Rule(5));
            assert_eq!(sent[12..16], PUBLIC);
            let answer = Message::tcp(80, port, Flags::SYN.union(Flags::ACK));
            let came = self.pass(burst, (SERVER, PUBLIC), answer, Expected::Rule(0));
            assert_eq!(came[16..20], self.own);
        }
    }

    /// Some of each kind.
    fn burst(&mut self, burst: &mut BurstGuard<'_>) {
        let port = 4000 + (self.number % u64::from(CONNECTIONS)) as u16;
        let sent = self.out(burst, Message::tcp(port, 80, Flags::ACK), Expected::Rule(0));
        assert_eq!(sent[12..16], PUBLIC, "it is still translated");
        self.asks(burst, 53, 1);
        let listed = if self.is_listed { Expected::Rule(3) } else { Expected::Policy };
        self.out(burst, Message::udp(5000, 55), listed);
        if !self.is_listed {
            self.out(burst, Message::udp(5000, 54), Expected::Rule(2));
            self.is_listed = true;
        }
        self.once(burst);
    }

    /// One packet of a program, whose rule was made with it, is within its limit, whatever worker evaluates it.
    fn once(&mut self, burst: &mut BurstGuard<'_>) {
        let program = burst.program().number();
        let is_first = self.once.0 != program;
        let rule = rules(burst.program()).rule("filter", "FORWARD", 4).unwrap().id;
        assert!(!is_first || self.ids.insert(rule), "{rule} was the name of another rule");
        assert!(is_first || self.once.1 == rule);
        self.once = (program, rule);
        let passes = self.asks(burst, 56, 4);
        *self.once_through.entry(program).or_default() += u64::from(passes);
    }
}

fn work(published: &Published, worker: u8, stop: &AtomicBool) -> Traffic {
    let _stops = Stops(stop);
    let (mut traffic, mut worker) = (Traffic::new(worker), published.worker());
    traffic.opens(&mut worker.burst());
    for round in 1.. {
        traffic.burst(&mut worker.burst());
        if round % 512 == 0 {
            // As if it slept in poll.
            thread::sleep(Duration::from_millis(2));
        }
        if stop.load(Relaxed) {
            break;
        }
    }
    // Those of datagrams to ports 54 and 55 are made once, too; but the one to port 55 was dropped first.
    let connections = u64::from(CONNECTIONS) + 3 + traffic.begun;
    assert_eq!(worker.state().footprint().connections, connections);
    // Two limits, two that name the list, and what has not been reclaimed.
    let memories = worker.state().memories();
    assert!(memories <= 4 + MOST_PROGRAMS + 1, "{memories} states");
    traffic
}

#[test]
fn programs_are_swapped_under_conversations() {
    let ct = conntrack::Config { mode: Mode::Kernel, loose: false, ..conntrack::Config::default() };
    let config = Config { ct, path: Some(Path::Forward), ..Config::default() };
    let published = Published::new([&start()], config);
    let stop = AtomicBool::new(false);
    let traffic: Vec<Traffic> = thread::scope(|scope| {
        let (published, stop) = (&published, &stop);
        let work = |worker| scope.spawn(move || work(published, worker, stop));
        let stops = Stops(stop);
        let workers: Vec<_> = (0..WORKERS).map(work).collect();
        for number in (1..SWAPS).take_while(|_| !stop.load(Relaxed)) {
            published.commit_text(number, Family::Ipv4, &next(number + 1)).unwrap();
            let held = published.held();
            assert!(
                held.programs <= MOST_PROGRAMS && held.arrays <= 4 * usize::from(WORKERS),
                "{held:?}"
            );
            assert!(held.places <= 9 + 3 * (MOST_PROGRAMS + 1), "{held:?}");
        }
        drop(stops);
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let snapshot = published.snapshot().unwrap();
    let rule =
        |table, chain, at| snapshot.rule(rules(&snapshot.program).rule(table, chain, at).unwrap());
    let sum = |expected| {
        let counts = traffic.iter().filter_map(|traffic| traffic.counts.get(&expected));
        counts.fold(Counters::default(), |sum, count| Counters {
            packets: sum.packets + count.packets,
            bytes: sum.bytes + count.bytes,
        })
    };
    for at in [0, 1, 2, 3, 5] {
        assert_eq!(rule("filter", "FORWARD", at), sum(Expected::Rule(at as u32)), "rule {at}");
    }
    assert_eq!(snapshot.policy(Family::Ipv4, "filter", Hook::Forward), sum(Expected::Policy));
    let opened = u64::from(WORKERS) * u64::from(CONNECTIONS);
    assert_eq!(rule("nat", "POSTROUTING", 0).packets, opened);
    let of_last = |traffic: &Traffic| traffic.by_program.get(&SWAPS).copied().unwrap_or(0);
    let of_last: u64 = traffic.iter().map(of_last).sum();
    assert_eq!(rule("mangle", "PREROUTING", 0).packets, of_last);
    assert_eq!(rule("filter", "FORWARD", 1).packets, LIMIT);
    let mut once: HashMap<u64, u64> = HashMap::new();
    for (program, through) in traffic.iter().flat_map(|traffic| &traffic.once_through) {
        *once.entry(*program).or_default() += through;
    }
    assert!(once.values().all(|through| *through == 1), "{once:?}");
    let of_last = once.get(&SWAPS).copied().unwrap_or(0);
    assert_eq!(rule("filter", "FORWARD", 4).packets, of_last);
    let seen: HashSet<u64> = traffic.iter().flat_map(|t| t.by_program.keys().copied()).collect();
    assert!(seen.len() > 20, "workers saw {} programs", seen.len());
}
