//! Runs between ports in memory: what leaves, what is answered, and that every frame is accounted for.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod addressed;
mod aging;
mod bad;
mod below;
mod disk;
mod hostile;
mod java_settings;
mod journal;
mod lists;
mod middlebox;
mod ordered;
mod own_tables;
mod passing;
mod refusing;
mod requests;
mod settings;
mod shadow;
mod turns;
mod watched;
mod workers;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dataplane::{Config, Crossing, Unresolved};
use host::Host;
use live::config::{OnPanic, Order, Other};
use live::{BoxedPort, Direction, Run, RunError, Status, WireSpec};
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use pktio::{Burst, FrameMeta, LinkType, LiveMeta, MemoryPort, Pool, Port};
use rules::Entropy;
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load};

const NAMES: [&str; 2] = ["left", "right"];

/// A wire to be, the ends that are not the run's, and what it is to do.
struct Rig {
    far: [MemoryPort; 2],
    near: [BoxedPort; 2],
    rules: Vec<Arc<Ruleset>>,
    crossings: [Crossing; 2],
    other: Other,
    on_panic: OnPanic,
    unknown: Unresolved,
    /// The addresses of its ports.
    addresses: Vec<(String, IpAddr)>,
}

/// The frames that left through each port, in order, and the counters.
struct Left {
    frames: [Vec<Vec<u8>>; 2],
    status: Status,
    ended: Result<(), RunError>,
}

fn ruleset(family: Family, text: &str) -> Arc<Ruleset> {
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    Arc::new(load(text, &options).expect("rules").ruleset)
}

/// A filter table with this policy in FORWARD.
fn filter(policy: &str, rules: &str) -> String {
    format!("*filter\n:FORWARD {policy} [0:0]\n{rules}COMMIT\n")
}

fn config(unknown: Unresolved, addresses: Vec<(String, IpAddr)>) -> Config {
    let ct = conntrack::Config { mode: conntrack::Mode::Kernel, ..conntrack::Config::default() };
    let host = Host { addresses, ..Host::default() };
    Config { ct, unknown, entropy: Entropy::Seed(1), pair: false, host, ..Config::default() }
}

impl Rig {
    fn new(text: &str) -> Self {
        Self::of([ruleset(Family::Ipv4, text)])
    }

    fn of(rules: impl Into<Vec<Arc<Ruleset>>>) -> Self {
        let pool = Pool::new(8192, 2048, 0);
        let [[far, near], [far_right, near_right]] =
            [0, 1].map(|_| MemoryPort::pair(&pool, 3000, 32));
        Self {
            far: [far, far_right],
            near: [Box::new(near), Box::new(near_right)],
            rules: rules.into(),
            crossings: [Crossing::default(); 2],
            other: Other::Pass,
            on_panic: OnPanic::Closed,
            unknown: Unresolved::Drop,
            addresses: Vec::new(),
        }
    }

    /// Gives its ports addresses.
    fn addressed(self, addresses: [(usize, &str); 2]) -> Self {
        let of = |(side, text): (usize, &str)| (NAMES[side].to_owned(), text.parse().unwrap());
        Self { addresses: addresses.map(of).to_vec(), ..self }
    }

    /// Makes a port receive these frames.
    fn sends(mut self, side: usize, frames: &[Vec<u8>]) -> Self {
        send(&mut self.far[side], frames);
        self
    }

    /// Starts, with what it gave away.
    fn start(self) -> (Run, [MemoryPort; 2]) {
        let [left, right] = self.near;
        let ports = [(NAMES[0].to_owned(), left), (NAMES[1].to_owned(), right)];
        let ends = vec![WireSpec {
            ports,
            crossings: self.crossings,
            other: self.other,
            order: Order::Flow,
        }];
        let run =
            Run::start(ends, (&self.rules, config(self.unknown, self.addresses)), self.on_panic);
        (run.expect("a run"), self.far)
    }

    /// Takes all that has come on its way.
    fn run(self) -> Left {
        let (run, far) = self.start();
        finish(run, far)
    }
}

fn finish(run: Run, far: [MemoryPort; 2]) -> Left {
    let mut told = 0;
    // On a busy machine a worker may also be said to be stuck for a while.
    let count = |what: &str| told += usize::from(what.contains("panicked"));
    let (status, ended) = run.wait(&AtomicBool::new(true), count);
    assert_eq!(told, usize::from(status.panicked));
    for Direction { frames, from, .. } in &status.directions {
        assert!(frames.balances(), "{from}: {frames:?}");
    }
    Left { frames: far.map(|mut port| received(&mut port)), status, ended }
}

impl Left {
    fn direction(&self, from: usize) -> &live::Accounted {
        &self.status.directions[from].frames
    }
}

fn send(port: &mut MemoryPort, frames: &[Vec<u8>]) {
    let mut burst = Burst::new();
    for bytes in frames {
        let wire_length = bytes.len() as u32;
        let meta = FrameMeta { link_type: LinkType::ETHERNET, wire_length, ..Default::default() };
        burst.push(bytes, meta);
    }
    assert_eq!(port.tx_burst(&mut burst).unwrap(), frames.len());
}

/// Sends a frame of which its port knows this besides.
fn send_live(port: &mut MemoryPort, bytes: &[u8], live: LiveMeta) {
    let mut frame = Pool::new(1, 4096, 64).take().expect("a chunk");
    assert!(frame.extend(bytes));
    frame.meta.link_type = LinkType::ETHERNET;
    frame.meta.wire_length = bytes.len() as u32;
    *frame.live_mut() = live;
    let mut burst = Burst::new();
    burst.push_frame(frame);
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 1);
}

fn received(port: &mut MemoryPort) -> Vec<Vec<u8>> {
    let (mut all, mut burst) = (Vec::new(), Burst::new());
    while port.rx_burst(&mut burst).unwrap() > 0 {
        all.extend(burst.iter().map(|frame| frame.bytes.to_vec()));
    }
    all
}

fn craft(ends: [&str; 2], message: Message) -> Craft {
    let [from, to] = ends.map(|text| text.parse().expect("an address"));
    Craft::new(Addresses::new(from, to).expect("one family"), message)
}

/// A frame with a TCP segment to a port.
fn syn(port: u16) -> Vec<u8> {
    craft(["10.0.0.7", "10.0.0.9"], Message::tcp(40000, port, Flags::SYN)).frame()
}

fn datagram(ends: [&str; 2], port: u16) -> Vec<u8> {
    Craft { payload_len: 9, ..craft(ends, Message::udp(4000, port)) }.frame()
}

/// A frame with this header between the addresses and the EtherType, whose place it takes.
fn inside(frame: &[u8], header: &[u8]) -> Vec<u8> {
    [&frame[..12], header, &frame[14..]].concat()
}

/// A frame in a PPPoE session, with PPP's protocol as written.
fn in_session(frame: &[u8], protocol: &[u8]) -> Vec<u8> {
    let len = (frame.len() - 14 + protocol.len()) as u16;
    let header = [&[0x88, 0x64, 0x11, 0, 0, 7][..], &len.to_be_bytes(), protocol].concat();
    inside(frame, &header)
}
