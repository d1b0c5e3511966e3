//! Runs of a tunnel's ends in memory, by so many workers.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dataplane::Config;
use live::config::tunnel::{PeerSettings, TunnelSettings};
use live::config::{At, Cores, Named, OnPanic, Order, Other, Workers};
use live::{BoxedPort, Run, TunnelEnd, WireSpec};
use pktio::{Burst, Envelope, FrameBuf, MemoryPort, Pool};
use rules::save::{LoadOptions, load};
use rustix::time::{ClockId, clock_gettime};
use tunnel::{Prefix, PrivateKey};

use super::packets::{Kind, Numbered};
use super::ports::{Carried, Feed, Left, Sink, Stored};

/// Packets on their way from end to end at most: fewer than the port between them holds, and an end has memory for.
const WINDOW: u64 = 2048;
/// After that nothing more comes.
const QUIET: Duration = Duration::from_secs(5);
const AT: At = At { line: 1, column: 1 };

/// The rules that packets meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    /// Rules whose packets depend on no others.
    Stateless,
    /// Rules that track connections.
    Tracked,
}

impl Rules {
    pub(super) const ALL: [(Self, &'static str); 2] =
        [(Self::Stateless, "stateless"), (Self::Tracked, "tracked")];

    fn text(self) -> &'static str {
        match self {
            Self::Stateless => {
                "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p udp --dport 2222 -j ACCEPT\nCOMMIT\n"
            }
            Self::Tracked => {
                "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
                 -A FORWARD -p udp --dport 2222 -j ACCEPT\nCOMMIT\n"
            }
        }
    }
}

/// The work of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) kind: Kind,
    pub(super) rules: Rules,
    pub(super) workers: usize,
    pub(super) packets: u64,
}

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Took {
    pub(super) packets: u64,
    pub(super) time: Duration,
    /// The processor time of all threads of this process.
    pub(super) processor: Duration,
}

impl Took {
    fn of(packets: u64, run: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        let spent = || {
            let now = clock_gettime(ClockId::ProcessCPUTime);
            Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
        };
        let (since, before) = (Instant::now(), spent());
        run()?;
        Ok(Self { packets, time: since.elapsed(), processor: spent() - before })
    }

    /// Packets in a second.
    pub(super) fn rate(self) -> f64 {
        self.packets as f64 / self.time.as_secs_f64()
    }

    /// Nanoseconds of processor time for each packet.
    pub(super) fn cost(self) -> f64 {
        self.processor.as_nanos() as f64 / self.packets as f64
    }
}

impl Load {
    /// Seals packets: their counters are looked at as they leave.
    pub(super) fn seal(self) -> io::Result<Took> {
        let ([end, _], left) = (ends()?, Arc::<Left>::default());
        let feed = Box::new(Feed::new(self.kind, self.packets, None));
        // The first counter was the handshake's.
        let sink = Box::new(Sink { left: Arc::clone(&left), next: 1, end: Some(end) });
        self.run(feed, sink, &left)
    }

    /// Opens what was sealed before: numbers of packets are looked at as they leave.
    pub(super) fn open(self) -> io::Result<Took> {
        let ([from, end], left) = (ends()?, Arc::<Left>::default());
        let frames = self.sealed(&mut *from.envelope());
        let stored = Box::new(Stored { frames, end });
        let sink = Box::new(Sink { left: Arc::clone(&left), next: 0, end: None });
        self.run(stored, sink, &left)
    }

    /// Seals packets and opens them at another end: how many came, and how many of them out of their order. Ports between
    /// the ends are live, so what comes while all workers wait for a processor may be dropped.
    pub(super) fn through(self) -> io::Result<[u64; 2]> {
        let ([first, second], left) = (ends()?, Arc::<Left>::default());
        let pool = Pool::new(16, 2048, 128);
        let [near, far] = MemoryPort::pair(&pool, 2 * WINDOW as usize, 16);
        let feed = Feed::new(self.kind, self.packets, Some((WINDOW, Arc::clone(&left))));
        let sink = Sink { left: Arc::clone(&left), next: 0, end: None };
        let runs = [
            self.start(Box::new(feed), Box::new(Carried { port: near, end: first }))?,
            self.start(Box::new(Carried { port: far, end: second }), Box::new(sink))?,
        ];
        let (mut last, mut since) = (0, Instant::now());
        while last < self.packets && since.elapsed() < QUIET {
            std::thread::sleep(Duration::from_millis(1));
            let now = left.next.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        for run in runs {
            ended(run, true)?;
        }
        Ok([&left.packets, &left.reordered].map(|count| count.load(Ordering::Relaxed)))
    }

    fn run(self, from: BoxedPort, to: BoxedPort, left: &Left) -> io::Result<Took> {
        let mut dropped = 0;
        let took = Took::of(self.packets, || {
            dropped = ended(self.start(from, to)?, false)?;
            Ok(())
        })?;
        let left = [&left.packets, &left.reordered].map(|count| count.load(Ordering::Relaxed));
        match (left, dropped) {
            ([packets, 0], 0) if packets == self.packets => Ok(took),
            ([packets, reordered], dropped) => Err(io::Error::other(format!(
                "{packets} of {} packets left, {reordered} out of their order; {dropped} frames dropped",
                self.packets
            ))),
        }
    }

    fn start(self, from: BoxedPort, to: BoxedPort) -> io::Result<Run> {
        let rules = load(self.rules.text(), &LoadOptions::default()).map_err(io::Error::other)?;
        let ports = [("from".to_owned(), from), ("to".to_owned(), to)];
        let crossings = Default::default();
        let wire = WireSpec { ports, crossings, other: Other::Drop, order: Order::Wire };
        let workers = Workers { cores: Cores::Any, count: Some(self.workers) };
        let rules = [Arc::new(rules.ruleset)];
        let run = Run::start_on(vec![wire], (&rules, config()), OnPanic::Closed, &workers);
        run.map_err(io::Error::other)
    }

    /// Sealed frames, in their order, and how many packets are in them: whole frames.
    fn sealed(self, envelope: &mut dyn Envelope) -> VecDeque<FrameBuf> {
        let Kind { bytes, joined } = self.kind;
        let pool = Pool::new(2, bytes * joined + 256, 128);
        let (mut packets, mut sealed) = (Numbered::new(self.kind), VecDeque::new());
        let mut burst = Burst::new();
        while packets.made() < self.packets {
            let Some(mut frame) = pool.take() else { break };
            packets.fill(&mut frame);
            burst.push_frame(frame);
            envelope.seal(&mut burst, &mut |_, _| {});
            for taken in burst.drain(usize::MAX) {
                // What a superframe is cut into lies in memory of the envelope's, of which there is little.
                sealed.push_back(taken.into_buf().copied());
            }
        }
        sealed
    }
}

/// Waits for a run's end: how many frames were dropped. Everything has a fate.
fn ended(run: Run, stop: bool) -> io::Result<u64> {
    let (status, ended) = run.wait(&AtomicBool::new(stop), |_| {});
    ended.map_err(io::Error::other)?;
    let counted = status.directions[0].frames;
    match counted.balances() {
        true => Ok(counted.dropped()),
        false => Err(io::Error::other(status.text())),
    }
}

fn config() -> Config {
    let ct = conntrack::Config { mode: conntrack::Mode::Kernel, ..conntrack::Config::default() };
    Config { ct, pair: false, ..Config::default() }
}

/// Two ends that have a session.
fn ends() -> io::Result<[TunnelEnd; 2]> {
    let [first, second] = [[1, 2], [2, 1]].map(|[own, other]: [u8; 2]| {
        let key = |of: u8| PrivateKey::new([of; 32]);
        let file = Named { path: "none".into(), at: AT };
        let allowed = Prefix::new([10, other, 0, 0].into(), 16).into_iter().collect();
        let peer = PeerSettings::new(format!("end {other}"), key(other).public(), AT);
        let name = format!("end {own}");
        TunnelSettings {
            peers: vec![PeerSettings { allowed, ..peer }],
            ..TunnelSettings::usual(&name, (key(own), file))
        }
    });
    TunnelEnd::pair([&first, &second])
}
