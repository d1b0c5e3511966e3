//! Two runs that a tunnel over the loopback device joins: what a wire promises of its frames holds to the other end, by
//! any number of workers.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use packet::craft::Craft;
use packet::{Joined, JoinedKind, checksum};
use pktio::{
    Burst, ChecksumState, Envelope, FaultPort, FaultRates, Frame, FrameBuf, LiveMeta, Lost,
    MemoryPort, Pool, Port, PortError, Readiness, SegmentKind, Segments, Stats,
};
use rules::model::Family;
use rules::save::{LoadOptions, load};

use super::super::{Site, Timers, TunnelPort};
use super::ends::{cut, peer, raw, settings};
use super::narrow::narrow_site;
use super::packets::{datagram, ping, superframe};
use crate::api::status::Status;
use crate::config::{Cores, OnPanic, Order, Other, Workers};
use crate::forward::account::Reason;
use crate::run::life::Run;
use crate::run::wire_spec::WireSpec;
use dataplane::Config;
use pktio::BoxedPort;

/// Packets that are on their way at once: fewer than the kernel's socket holds.
const WINDOW: u32 = 96;
/// Packets of one flow that follow each other.
const BLOCK: u32 = 8;
const FLOWS: u32 = 6;
/// Where a datagram says its number: at the beginning of its payload.
const NUMBER: usize = 28;
/// After that nothing comes any more.
const PATIENCE: Duration = Duration::from_secs(60);
/// After that what was lost on the way is not waited for.
const QUIET: Duration = Duration::from_millis(300);

const STATELESS: &str = "-A FORWARD -p udp --dport 2222 -j ACCEPT\n-A FORWARD -p icmp -j ACCEPT\n";
const TRACKED: &str = "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
    -A FORWARD -m conntrack --ctstate INVALID -j DROP\n\
    -A FORWARD -m conntrack --ctstate NEW -j ACCEPT\n";

/// The expectation about the packets of a direction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Promise {
    /// All come, in one order.
    All(Order),
    /// Some may be lost; the others come in one order.
    Some(Order),
    /// Each comes at most once.
    Once,
}

/// The packets of a direction.
struct Stream {
    way: (u8, u8),
    promise: Promise,
    templates: Vec<Vec<u8>>,
    sent: u32,
    came: u32,
    /// The successor of the highest number that came.
    next: u32,
    next_of: [u32; FLOWS as usize],
    seen: HashSet<u32>,
}

impl Stream {
    fn new(way: (u8, u8), promise: Promise) -> Self {
        let template = |flow| {
            let len = 40 + 230 * flow as usize;
            let mut bytes = datagram(way.0, way.1, false, len).frame();
            // Its flow; the sum of the checksum follows.
            bytes[20..22].copy_from_slice(&(1_000 + flow as u16).to_be_bytes());
            bytes[26..28].fill(0);
            let pseudo = checksum::pseudo_v4(
                bytes[12..16].try_into().unwrap(),
                bytes[16..20].try_into().unwrap(),
                17,
                (bytes.len() - 20) as u16,
            );
            let sum = !checksum::add(pseudo, checksum::sum(&bytes[20..]));
            bytes[26..28].copy_from_slice(&sum.to_be_bytes());
            bytes
        };
        Self {
            way,
            promise,
            templates: (0..FLOWS).map(template).collect(),
            sent: 0,
            came: 0,
            next: 0,
            next_of: [0; FLOWS as usize],
            seen: HashSet::new(),
        }
    }

    fn flow(number: u32) -> usize {
        (number / BLOCK % FLOWS) as usize
    }

    fn packet(&self, number: u32) -> Vec<u8> {
        let mut bytes = self.templates[Self::flow(number)].clone();
        let put = |bytes: &mut [u8], at: usize, word: u16, field: usize| {
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            let sum = u16::from_be_bytes([bytes[field], bytes[field + 1]]);
            bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
            let sum = checksum::update(sum, old, word);
            bytes[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        };
        put(&mut bytes, 4, number as u16, 10);
        put(&mut bytes, NUMBER, (number >> 16) as u16, 26);
        put(&mut bytes, NUMBER + 2, number as u16, 26);
        if bytes[26..28] == [0, 0] {
            // 0 is none at all (RFC 768).
            bytes[26..28].fill(0xff);
        }
        bytes
    }

    /// The next packets, up to `most`: as one frame that stands for all of them, or one by one.
    fn frames(&mut self, most: u32, pool: &Pool, burst: &mut Burst) {
        let count = most.min(BLOCK - self.sent % BLOCK);
        let packets: Vec<_> =
            (self.sent..self.sent + count).map(|number| self.packet(number)).collect();
        self.sent += count;
        let chunk = if (self.sent / BLOCK).is_multiple_of(2) { pool.take() } else { None };
        match chunk {
            Some(chunk) => burst.push_frame(joined(&packets, chunk)),
            None => packets.iter().for_each(|packet| burst.push(packet, raw(packet.len()))),
        }
    }

    fn comes(&mut self, bytes: &[u8]) {
        let number = bytes[NUMBER..NUMBER + 4].try_into().unwrap();
        let number = u32::from_be_bytes(number);
        assert!(number < self.sent, "{number} of {}", self.sent);
        assert_eq!(bytes, self.packet(number), "{:?} {number}", self.way);
        let flow = Self::flow(number);
        match self.promise {
            Promise::All(Order::Wire) => assert_eq!(number, self.next, "{:?}", self.way),
            Promise::All(Order::Flow) => {
                let next = &mut self.next_of[flow];
                if *next == 0 {
                    *next = flow as u32 * BLOCK;
                }
                assert_eq!(number, *next, "{:?}", self.way);
            }
            Promise::Some(Order::Wire) => assert!(number >= self.next, "{number} is late"),
            Promise::Some(Order::Flow) => assert!(number >= self.next_of[flow], "{number} is late"),
            Promise::Once => assert!(self.seen.insert(number), "{number} came twice"),
        }
        let following = number + 1;
        let is_last = following % BLOCK == 0;
        self.next_of[flow] = if is_last { following + (FLOWS - 1) * BLOCK } else { following };
        self.next = self.next.max(following);
        self.came += 1;
    }
}

/// Packets of one flow as one frame, which has come empty.
fn joined(packets: &[Vec<u8>], mut frame: FrameBuf) -> FrameBuf {
    assert!(frame.extend(&packets[0]));
    let mut all = Joined::new(&packets[0]).expect("it can be joined");
    for packet in &packets[1..] {
        let payload = all.take(packet).expect("it follows");
        assert!(frame.extend(&packet[payload]));
    }
    frame.meta = raw(frame.bytes().len());
    if packets.len() > 1 {
        let offload = all.finish(frame.bytes_mut()).expect("a superframe");
        assert_eq!(offload.kind, JoinedKind::Udp);
        let kind = SegmentKind::UdpDatagrams;
        *frame.live_mut() = LiveMeta {
            segments: Some(Segments { size: offload.size, kind }),
            checksum: ChecksumState::Unfinished { start: offload.start, offset: offload.offset },
            ..LiveMeta::default()
        };
    }
    frame
}

/// A run with a tunnel, and the other end of its inner port.
struct Side {
    run: Run,
    far: MemoryPort,
    site: Arc<Site>,
    keeper: Timers,
    pool: Pool,
}

/// The settings of both sides.
#[derive(Clone, Copy)]
struct How {
    workers: usize,
    order: Order,
    rules: &'static str,
}

type Wrap<'w> = &'w dyn Fn(usize, TunnelPort) -> BoxedPort;

fn plain(_: usize, port: TunnelPort) -> BoxedPort {
    Box::new(port)
}

fn config() -> Config {
    let ct = conntrack::Config { mode: conntrack::Mode::Kernel, ..conntrack::Config::default() };
    Config { ct, pair: false, ..Config::default() }
}

fn start(how: How, on_panic: OnPanic, wrap: Wrap<'_>) -> [Side; 2] {
    let open = |of, peers| {
        let settings = settings(of, peers);
        Arc::new(Site::open(&settings.name, &settings).expect("a socket"))
    };
    let second = open(2, vec![peer(1, None)]);
    let place = std::net::SocketAddr::from(([127, 0, 0, 1], second.socket.port()));
    let first = open(1, vec![peer(2, Some(place))]);
    let text = format!("*filter\n:FORWARD DROP [0:0]\n{}COMMIT\n", how.rules);
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    let rules = [Arc::new(load(&text, &options).expect("rules").ruleset)];
    let mut number = 0;
    let sides = [first, second].map(|site| {
        let pool = Pool::new(512, 16 * 1024, 128);
        let [far, near] = MemoryPort::pair(&pool, 3_000, 32);
        let tunnel = wrap(number, TunnelPort::new(Arc::clone(&site)));
        number += 1;
        let ports =
            [("inside".to_owned(), Box::new(near) as BoxedPort), ("tunnel".to_owned(), tunnel)];
        let ends =
            WireSpec { ports, crossings: Default::default(), other: Other::Pass, order: how.order };
        let workers = Workers { cores: Cores::Any, count: Some(how.workers) };
        let run = Run::start_on(vec![ends], (&rules, config()), on_panic, &workers).expect("a run");
        assert_eq!(run.status().workers.len(), how.workers);
        Side { run, far, keeper: Timers::start(&site).expect("threads"), site, pool }
    });
    let [mut first, mut second] = sides;
    // What is on its way to a session waits apart.
    first.send(&[ping(1, 2, 0)]);
    second.hear(|packet| assert_eq!(packet, ping(1, 2, 0)));
    [first, second]
}

impl Side {
    fn send(&mut self, packets: &[Vec<u8>]) {
        let mut burst = Burst::new();
        packets.iter().for_each(|packet| burst.push(packet, raw(packet.len())));
        self.send_burst(&mut burst);
    }

    fn send_burst(&mut self, burst: &mut Burst) {
        self.far.tx_burst(burst).expect("a port");
        assert!(burst.is_empty(), "there is room");
    }

    /// Receives what is there: whether anything is.
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> bool {
        let mut burst = Burst::with_capacity(0);
        let mut is_any = false;
        while self.far.rx_burst(&mut burst).expect("a port") > 0 {
            is_any = true;
            for at in 0..burst.len() {
                let live = burst.live(at).copied().unwrap_or_default();
                cut(burst.get(at).unwrap().bytes, Some(&live))
                    .iter()
                    .for_each(|packet| each(packet));
            }
        }
        is_any
    }

    /// Waits for something to receive.
    fn hear(&mut self, mut each: impl FnMut(&[u8])) {
        let start = Instant::now();
        while !self.receive(&mut each) {
            assert!(start.elapsed() < PATIENCE, "nothing comes: {}", self.run.status().text());
            std::thread::yield_now();
        }
    }

    /// Stops it: what was counted, which balances.
    fn stop(self) -> Status {
        let (status, ended) = self.run.wait(&AtomicBool::new(true), |_| {});
        assert!(ended.is_ok(), "{ended:?}");
        for direction in &status.directions {
            assert!(direction.frames.balances(), "{}: {:?}", direction.from, direction.frames);
        }
        drop(self.keeper);
        status
    }
}

/// Sends `count` packets each way, at once: returns the streams as they came.
fn exchange(sides: &mut [Side; 2], promise: Promise, count: u32) -> [Stream; 2] {
    let mut streams = [Stream::new((1, 2), promise), Stream::new((2, 1), promise)];
    // What a port has had no room for: a worker that prints a panic takes nothing for seconds.
    let mut bursts = [Burst::new(), Burst::new()];
    let mut last = Instant::now();
    // This many of each are no longer waited for.
    let mut written_off = [0; 2];
    loop {
        let mut is_quiet = true;
        for at in 0..2 {
            let stream = &mut streams[at];
            let waits = last.elapsed();
            if !matches!(promise, Promise::All(_)) && waits > QUIET {
                written_off[at] = stream.sent;
            }
            let ahead = stream.sent.saturating_sub(stream.next.max(written_off[at]));
            let most = WINDOW.saturating_sub(ahead).min(count - stream.sent);
            let burst = &mut bursts[at];
            if burst.is_empty() && most >= BLOCK.min(count - stream.sent) && most > 0 {
                stream.frames(most, &sides[at].pool, burst);
            }
            is_quiet &= sides[at].far.tx_burst(burst).expect("a port") == 0;
            is_quiet &= !sides[1 - at].receive(|packet| stream.comes(packet));
        }
        if !is_quiet {
            last = Instant::now();
            continue;
        }
        let are_sent =
            streams.iter().all(|stream| stream.sent == count) && bursts.iter().all(Burst::is_empty);
        let have_come = streams.iter().all(|stream| stream.came == count);
        let is_over = !matches!(promise, Promise::All(_)) && last.elapsed() > QUIET;
        if are_sent && (have_come || is_over) {
            return streams;
        }
        let counts = || streams.each_ref().map(|stream| (stream.sent, stream.came));
        assert!(
            last.elapsed() < PATIENCE,
            "{:?}; lost {:?}: {}",
            counts(),
            sides.each_ref().map(|side| side.site.socket.overruns()),
            sides.each_ref().map(|side| side.run.status().text()).join("\n")
        );
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// All comes, in order, and everything is counted.
fn all_comes(how: How, count: u32) {
    let mut sides = start(how, OnPanic::Closed, &plain);
    exchange(&mut sides, Promise::All(how.order), count);
    for (at, side) in sides.into_iter().enumerate() {
        let status = side.stop();
        let [inside, outside] = [0, 1].map(|at| status.directions[at].frames);
        let ping = 1 - at as u64;
        assert_eq!(inside.dropped() + outside.dropped(), 0, "{}", status.text());
        // A superframe that came in is several messages or packets as it leaves.
        assert!(inside.received >= u64::from(count) / u64::from(BLOCK) + ping);
        assert_eq!(inside.sent, inside.received + inside.made);
        assert_eq!(outside.sent, outside.received + outside.made);
    }
}

fn each_way(count: u32) {
    for order in [Order::Wire, Order::Flow] {
        for rules in [STATELESS, TRACKED] {
            for workers in [1, 2, 4] {
                all_comes(How { workers, order, rules }, count);
            }
        }
    }
}

#[test]
fn nothing_is_lost_repeated_or_out_of_order() {
    each_way(4_200);
}

/// `TAMIS_TUNNEL_PACKETS` of them in all.
#[test]
#[ignore = "takes hours; `make tunnel-order`"]
fn nothing_is_lost_repeated_or_out_of_order_of_very_many() {
    let asked = std::env::var("TAMIS_TUNNEL_PACKETS").ok().and_then(|text| text.parse().ok());
    each_way(asked.unwrap_or(100_000_000_u32) / 24);
}

fn faulty(how: How, rates: FaultRates, promise: Promise) -> [Status; 2] {
    let wrap = |at, port| Box::new(FaultPort::new(port, at as u64, rates)) as BoxedPort;
    let mut sides = start(how, OnPanic::Closed, &wrap);
    let streams = exchange(&mut sides, promise, 3_000);
    for stream in &streams {
        assert!(stream.came > 1_000, "{} of {}", stream.came, stream.sent);
        assert!(stream.came < stream.sent, "something is lost");
    }
    sides.map(Side::stop)
}

/// Sealed frames that are lost, repeated, cut short and damaged on their way.
#[test]
fn what_comes_of_a_bad_path_is_what_was_sent_in_order() {
    let often = 20_000;
    let rates = FaultRates {
        drop: often,
        duplicate: often,
        truncate: often,
        corrupt: often,
        ..FaultRates::default()
    };
    for order in [Order::Wire, Order::Flow] {
        for workers in [1, 3] {
            let how = How { workers, order, rules: STATELESS };
            let statuses = faulty(how, rates, Promise::Some(order));
            let of = |reason| {
                statuses.iter().map(|status| status.directions[1].frames.of(reason)).sum::<u64>()
            };
            assert!(of(Lost::Replayed.into()) > 0 && of(Lost::Forged.into()) > 0);
        }
    }
}

#[test]
fn what_comes_of_a_path_that_reorders_comes_once() {
    let often = 50_000;
    let rates = FaultRates {
        drop: 5_000,
        delay: often,
        reorder: often,
        duplicate: often,
        ..FaultRates::default()
    };
    for workers in [1, 3] {
        let how = How { workers, order: Order::Wire, rules: STATELESS };
        faulty(how, rates, Promise::Once);
    }
}

/// A tunnel's port at whose frames a worker panics, once: when it opens them, or seals them.
struct Panicking {
    port: TunnelPort,
    opens: bool,
    /// Bursts until then.
    left: Arc<AtomicUsize>,
    seen: Arc<AtomicU64>,
}

struct Fuse {
    inner: Box<dyn Envelope>,
    opens: bool,
    left: Arc<AtomicUsize>,
    /// Frames that were opened, lost in it, or panicked over.
    seen: Arc<AtomicU64>,
}

impl Fuse {
    fn burn(&mut self, is_open: bool, burst: &Burst) {
        let is_counted = self.opens == is_open && !burst.is_empty();
        if is_counted && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.seen.fetch_add(burst.len() as u64, Ordering::Relaxed);
            panic!("a panic that is wanted");
        }
    }
}

impl Envelope for Fuse {
    fn open(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>)) {
        self.burn(true, burst);
        let mut seen = 0;
        self.inner.open(burst, &mut |why, frame| {
            seen += 1;
            lose(why, frame);
        });
        self.seen.fetch_add(seen + burst.len() as u64, Ordering::Relaxed);
    }

    fn seal(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>)) -> usize {
        self.burn(false, burst);
        self.inner.seal(burst, lose)
    }
}

impl Port for Panicking {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.port.rx_burst(burst)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.port.tx_burst(burst)
    }

    fn readiness(&self) -> Readiness<'_> {
        self.port.readiness()
    }

    fn stats(&self) -> Stats {
        self.port.stats()
    }

    fn envelope(&self) -> Option<Box<dyn Envelope>> {
        let inner = self.port.envelope()?;
        let (left, seen) = (Arc::clone(&self.left), Arc::clone(&self.seen));
        Some(Box::new(Fuse { inner, opens: self.opens, left, seen }))
    }
}

#[test]
fn after_a_panic_everything_is_accounted_for() {
    for opens in [false, true] {
        let how = How { workers: 3, order: Order::Wire, rules: STATELESS };
        let seen = Arc::<AtomicU64>::default();
        let wrap = |at, port| match at {
            0 => plain(at, port),
            _ => {
                let left = Arc::new(AtomicUsize::new(20));
                Box::new(Panicking { port, opens, left, seen: Arc::clone(&seen) })
            }
        };
        let mut sides = start(how, OnPanic::Closed, &wrap);
        exchange(&mut sides, Promise::Some(Order::Wire), 2_000);
        let [_, panicked] = sides.map(Side::stop);
        assert!(panicked.panicked);
        if opens {
            assert_eq!(panicked.directions[1].frames.received, seen.load(Ordering::Relaxed));
        }
        let dropped = |at: usize| panicked.directions[at].frames.of(Reason::Panic);
        assert!(dropped(0) + dropped(1) > 0, "{}", panicked.text());
    }
}

#[test]
fn a_run_that_is_stopped_in_the_middle_has_counted_everything() {
    for order in [Order::Wire, Order::Flow] {
        let how = How { workers: 3, order, rules: TRACKED };
        let mut sides = start(how, OnPanic::Closed, &plain);
        let mut stream = Stream::new((1, 2), Promise::Some(order));
        for _ in 0..40 {
            let mut burst = Burst::new();
            stream.frames(BLOCK, &sides[0].pool, &mut burst);
            sides[0].send_burst(&mut burst);
        }
        let [first, second] = sides.map(Side::stop);
        assert!(first.directions[0].frames.received > 0);
        assert_eq!(second.directions[1].frames.dropped(), 0);
    }
}

/// The sender of a packet that the path does not take learns how long packets may be.
#[test]
fn a_packet_that_is_too_long_is_answered() {
    for (workers, order) in [(1, Order::Flow), (3, Order::Wire), (3, Order::Flow)] {
        let how = How { workers, order, rules: STATELESS };
        let mut sides = start(how, OnPanic::Closed, &plain);
        let [first, _] = &mut sides;
        let most = narrow_site(&first.site);
        let long = Craft { dont_fragment: true, ..datagram(1, 2, false, 1_300) }.frame();
        first.send(std::slice::from_ref(&long));
        first.hear(|answer| {
            assert_eq!(answer[16..20], long[12..16], "to the sender");
            assert_eq!(answer[20..22], [3, 4], "fragmentation needed");
            assert_eq!(answer[26..28], most.to_be_bytes());
            assert_eq!(answer[28..56], long[..28]);
        });
        let [first, _] = sides.map(Side::stop);
        assert_eq!(first.directions[0].frames.of(Lost::TooLong { most }.into()), 1);
    }
}

/// A frame that leaves as several messages, or fragments, and a frame that comes as several packets.
#[test]
fn what_one_frame_becomes_is_counted() {
    // Later fragments have no ports.
    let how = How { workers: 2, order: Order::Wire, rules: "-A FORWARD -j ACCEPT\n" };
    let mut sides = start(how, OnPanic::Closed, &plain);
    let (bytes, live) = superframe(&datagram(1, 2, false, 2_000), 20);
    let mut frame = sides[0].pool.take().expect("a chunk");
    assert!(frame.extend(&bytes));
    frame.meta = raw(bytes.len());
    *frame.live_mut() = live;
    let mut burst = Burst::new();
    burst.push_frame(frame);
    sides[0].send_burst(&mut burst);
    let mut came = 0;
    while came < 100 {
        sides[1].hear(|_| came += 1);
    }
    narrow_site(&sides[0].site);
    sides[0].send(&[datagram(1, 2, false, 1_300).frame()]);
    while came < 102 {
        sides[1].hear(|_| came += 1);
    }
    let [first, _] = sides.map(Side::stop);
    assert_eq!(first.directions[0].frames.made, 2);
}
