//! [`Trial`]: one ruleset in the kernel and in tamis, fed the same packets at the same times.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dataplane::{Arrival, Config, Counters, Handler, Origin, Program};
use fastrand::Rng;
use host::routes::Routes;
use host::{Host, Links, Policy};
use lab::oracle::counters::Reader;
use lab::oracle::load::restore;
use lab::oracle::netns::ip;
use lab::oracle::tun::Tun;
use lab::scene::{Placement, Scene, Wire};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use rules::eval::RuleRef;
use rules::model::{Family, Ruleset};
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::rulesets::{GROUP, draw};
use super::{Share, Shares};
use crate::restored::{Hits, read};

/// Packets between two readings of the counters.
const BATCH: u64 = 50;
/// A packet that took longer was seen by the kernel nobody knows when.
const LATE: Duration = Duration::from_millis(2);
/// The kernel's clock that is older than this has missed a tick: its processor was away, or its machine was.
const TICK: Duration = Duration::from_millis(10);
const POLICY: &str =
    "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n";

/// How old the kernel's idea of the time is, which it takes with every tick (`timekeeping_update`).
fn since_tick() -> Duration {
    let [ticked, now] = [ClockId::MonotonicCoarse, ClockId::Monotonic].map(clock_gettime);
    let nanos = |time: Timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    Duration::from_nanos(u64::try_from(nanos(now) - nanos(ticked)).unwrap_or(0))
}

/// What a trial came to.
pub(super) enum Told {
    Agrees(Shares),
    Late,
    Differs(String),
}

/// A ruleset and who walks it.
pub(super) struct Trial {
    tun: Tun,
    family: Family,
    text: String,
    ruleset: Arc<Ruleset>,
    program: Program,
    hits: Hits,
    reader: Reader,
    tracks: bool,
    pace: u64,
}

impl Trial {
    pub(super) fn new(rng: &mut Rng, family: Family, number: u64) -> io::Result<Self> {
        let tun = Tun::new(&Scene::new(Family::Ipv4, Wire::Tun, Placement::Forward))?;
        ip(&format!(
            "route add 10.1.0.0/16 dev t0\nroute add a01::/16 dev t0\nlink set t0 group {GROUP}\n"
        ))?;
        let tracks = number % 2 == 1;
        let text = draw(rng, family, tracks);
        restore(family, &text)?;
        let ruleset = Arc::new(read(&text, family)?);
        let program = Program::new([Arc::clone(&ruleset)], config());
        let hits = Hits(Counters::of(&ruleset));
        let reader = Reader::open(family)?;
        // Nanoseconds between packets: thick and fast, or by and by.
        let pace = [20_000, 200_000, 1_000_000, 4_000_000][rng.usize(..4)];
        Ok(Self { tun, family, text, ruleset, program, hits, reader, tracks, pace })
    }

    /// Sends packets until the kernel says otherwise.
    pub(super) fn run(mut self, rng: &mut Rng, packets: u64) -> io::Result<Told> {
        let mut handler = Handler::new(&self.program);
        let mut late = 0;
        for number in 1..=packets {
            self.pause(rng);
            let mut bytes = packet(rng, self.family, self.tracks);
            let (begun, age) = (Instant::now(), since_tick());
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.tun.send(&bytes)?;
            late += u64::from(begun.elapsed() > LATE || age.max(since_tick()) > TICK);
            let arrival = Arrival {
                time: Some(now.as_nanos() as u64),
                origin: Origin::Wire,
                interface: Some("t0"),
                ..Arrival::new(number, Link::Raw, bytes.len())
            };
            handler.handle(&self.program, &mut bytes, &arrival, &mut self.hits);
            if number % BATCH == 0
                && let Some(what) = self.differs()?
            {
                return Ok(match late {
                    0 => Told::Differs(format!("{}after packet {number}: {what}", self.text)),
                    _ => Told::Late,
                });
            }
        }
        Ok(Told::Agrees(self.shares(packets)))
    }

    fn pause(&self, rng: &mut Rng) {
        let nanos = match rng.u16(..1000) {
            0 => 1_200_000_000,
            1..10 => rng.u64(..60_000_000),
            10..500 => rng.u64(..2 * self.pace),
            _ => 0,
        };
        if nanos > 0 {
            thread::sleep(Duration::from_nanos(nanos));
        }
    }

    /// A rule of which the kernel counted packets that tamis excludes.
    fn differs(&mut self) -> io::Result<Option<String>> {
        let chains = self.reader.read("filter")?;
        let kernel = chains.iter().find(|chain| chain.chain == "FORWARD");
        let Some(kernel) = kernel else { return Err(io::Error::other("no chain FORWARD")) };
        let rules = (0..).zip(&kernel.entries[..kernel.entries.len() - 1]);
        Ok(rules.into_iter().find_map(|(rule, counted)| {
            let hits = self.hits.0.rule(at(&self.ruleset, rule));
            let agrees = (hits.packets..=hits.packets + hits.maybe).contains(&counted.packets);
            (!agrees).then(|| format!("rule {}: kernel {counted:?}, tamis {hits:?}", rule + 1))
        }))
    }

    fn shares(&self, packets: u64) -> Shares {
        let mut shares = Shares::new();
        let chain = at(&self.ruleset, 0).chain as usize;
        for (number, rule) in (0..).zip(&self.ruleset.tables[0].chains[chain].rules) {
            let hits = self.hits.0.rule(at(&self.ruleset, number));
            let Some(name) = rule.matches.last().map(|used| used.name.to_string()) else {
                continue;
            };
            super::add(&mut shares, name, Share { packets, hits: hits.packets, open: hits.maybe });
        }
        shares
    }
}

fn at(ruleset: &Ruleset, rule: u32) -> RuleRef {
    let chains = &ruleset.tables[0].chains;
    let chain = chains.iter().position(|chain| &*chain.name == "FORWARD").unwrap_or(0);
    RuleRef { table: 0, chain: chain as u32, rule }
}

/// The usual host, with what these matches ask of it.
fn config() -> Config {
    let config = crate::two_devices();
    let links = format!(
        "1: lo: <LOOPBACK,UP> mtu 65536 group default\n2: t0: <POINTOPOINT,UP> mtu 65535 group {GROUP}\n\
         3: t1: <POINTOPOINT,UP> mtu 65535 group default\n"
    );
    let routes = "default dev t1\n10.1.0.0/16 dev t0\n\
                  a01::/16 dev t0 metric 1024 pref medium\ndefault dev t1 metric 1024 pref medium\n";
    Config {
        host: Host {
            links: Links::parse(&links).unwrap_or_default(),
            routes: Routes::parse(routes).ok(),
            policy: Policy::parse(POLICY).ok(),
            ..config.host
        },
        ..config
    }
}

/// A packet of one of a few hosts to one of two that goes through.
fn packet(rng: &mut Rng, family: Family, tracks: bool) -> Vec<u8> {
    let address = |start: [u8; 4]| {
        let mut address = [0; 16];
        address[..4].copy_from_slice(&start);
        address
    };
    let (source, destination) = ([10, 1, 0, rng.u8(..6)], [10, 2, 0, rng.u8(1..3)]);
    let addresses = match family {
        Family::Ipv6 => {
            Addresses::V6 { source: address(source), destination: address(destination) }
        }
        _ => Addresses::V4 { source, destination },
    };
    let (own, port) = (rng.u16(4000..4003), rng.u16(53..55));
    let message = match rng.u8(..20) {
        0 => Message::Icmp {
            kind: if family == Family::Ipv6 { 128 } else { 8 },
            code: 0,
            id: 7,
            sequence: 1,
        },
        1 => Message::tcp(own, port, Flags::SYN),
        2 => Message::Other { protocol: 47, header: vec![0; 8] },
        3 => Message::Other { protocol: 50, header: vec![0, 0, 0, rng.u8(..3), 0, 0, 0, 1] },
        4 => Message::Other {
            protocol: 51,
            header: vec![59, 4, 0, 0, 0, 0, 0, rng.u8(..3), 0, 0, 0, 1],
        },
        // Cut off before its ports.
        5 if !tracks => Message::Other { protocol: 17, header: vec![0; 3] },
        _ => Message::udp(own, port),
    };
    let payload_len = if rng.bool() { 0 } else { rng.usize(..1200) };
    Craft { ethernet: None, payload_len, ..Craft::new(addresses, message) }.frame()
}
