//! [`Workers`]: threads that forward datagrams between the nodes of paths, each with a socket of its own at each port of the relay.
//!
//! Contract: what a source sends to a port arrives at one worker, which sends it on in the order in which it arrived, and up to 64
//! datagrams of one flow as one message; each once, or not at all. What a worker cannot do alone it hands over to the main
//! thread, which sends it in order, too: the datagrams of an unknown source, whose path has to be looked for, and datagrams that go
//! to a TCP connection. While the main thread has any of a source, all of that source is handed over; what finds no room is
//! lost. A worker locks the paths while it looks up a batch, and waits for nothing but datagrams.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use overlay::{Forwarded, Forwarding, Now};
use pktio::datagram::{
    Arrived, DatagramConfig, DatagramSocket, Message, RecvBatch, SendBatch, Source,
};
use pktio::{FrameBuf, Pool};
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::clock::Clock;
use crate::streams::is_stream;

/// Messages that a worker receives at once.
const MESSAGES: usize = 32;
/// Times that it does so before it looks at its other sockets.
const TURNS: usize = 4;
/// Bytes of the longest message.
const LONGEST: usize = 65_536;
/// Bytes that may wait in a socket of the relay, where the system lets them.
const BUFFER: usize = 4 << 20;
/// Messages of a worker that wait for the main thread.
const HANDED: usize = 256;
/// Sources that a worker remembers to have handed over before it forgets the finished.
const REMEMBERED: usize = 1_024;
/// What the end of all workers is called among their sockets.
const STOP: u64 = u64::MAX;

/// A relay's ports, how many workers forward by them, and what they forward by.
pub(crate) struct Relaying {
    pub(crate) ports: RangeInclusive<u16>,
    pub(crate) workers: usize,
    pub(crate) forwarding: Arc<Forwarding>,
}

/// The workers of a relay.
pub(crate) struct Workers {
    forwarding: Arc<Forwarding>,
    /// The first worker's sockets, for what the main thread sends.
    sockets: Vec<(u16, Arc<DatagramSocket>)>,
    batch: SendBatch,
    handed: Receiver<io::Result<Handed>>,
    /// Rings once something is handed over.
    bell: Arc<OwnedFd>,
    stop: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
}

/// A message that a worker handed over.
struct Handed {
    port: u16,
    from: SocketAddr,
    next: Next,
    bytes: Vec<u8>,
    segment: usize,
    at: Option<Source>,
    tos: u8,
    /// Counts what the main thread is done with, of this worker.
    done: Arc<AtomicU64>,
}

/// What the main thread is to do with a message.
#[derive(Clone, Copy)]
enum Next {
    /// Look for the path of its source, and send it by that.
    Look,
    /// Send it by the path of its source, which is being looked for.
    Follow,
    /// Send it there.
    To(SocketAddr),
}

impl Workers {
    /// Opens all sockets, and starts the workers.
    pub(crate) fn start(relaying: &Relaying, listen: IpAddr, clock: Clock) -> Result<Self> {
        let (mut started, workers) = Self::open(relaying, listen, clock)?;
        for worker in workers {
            let thread = thread::Builder::new().name("relay".to_owned());
            started.threads.push(thread.spawn(move || worker.run()).context("a thread")?);
        }
        Ok(started)
    }

    /// Opens all sockets, and makes the workers.
    fn open(relaying: &Relaying, listen: IpAddr, clock: Clock) -> Result<(Self, Vec<Worker>)> {
        let Relaying { ports, workers, forwarding } = relaying;
        let workers = (*workers).max(1);
        allow_files(ports.len() * workers);
        let mut all: Vec<Vec<(u16, Arc<DatagramSocket>)>> = vec![Vec::new(); workers];
        for port in ports.clone() {
            let config = DatagramConfig { port, buffer: BUFFER, ..DatagramConfig::default() };
            let sockets = DatagramSocket::bind_each(&config, listen, workers);
            let sockets =
                sockets.with_context(|| format!("UDP {}", SocketAddr::new(listen, port)))?;
            all.iter_mut().zip(sockets).for_each(|(of, socket)| of.push((port, socket.into())));
        }
        let sockets = all.first().cloned().unwrap_or_default();
        let (to_main, handed) = sync_channel(HANDED * workers + 1);
        let bell = || eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map(Arc::new);
        let (bell, stop) = (bell()?, bell()?);
        let opened = Self {
            forwarding: Arc::clone(forwarding),
            sockets,
            batch: SendBatch::default(),
            handed,
            bell,
            stop,
            threads: Vec::new(),
        };
        let worker = |sockets| {
            let to_main = (to_main.clone(), Arc::clone(&opened.bell));
            Worker::new(sockets, (Arc::clone(forwarding), clock), to_main, &opened.stop)
        };
        let workers = all.into_iter().map(worker).collect::<Result<_>>()?;
        Ok((opened, workers))
    }

    /// Whether a port is the relay's.
    pub(crate) fn has(&self, port: u16) -> bool {
        self.sockets.iter().any(|(own, _)| *own == port)
    }

    /// What becomes readable once something is handed over.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Sends what was handed over: `look` looks for the path of an unknown source and says whether the datagram
    /// is to be relayed, `by_stream` sends to a TCP connection.
    ///
    /// # Errors
    /// A worker has failed.
    pub(crate) fn turn(
        &mut self,
        mut look: impl FnMut(u16, SocketAddr, &[u8]) -> bool,
        mut by_stream: impl FnMut(SocketAddr, u16, &[u8]),
        now: Now,
    ) -> io::Result<()> {
        // Before they are taken: what is handed over later rings again.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        while let Ok(handed) = self.handed.try_recv() {
            let Handed { port, from, next, bytes, segment, at, tos, done } = handed?;
            let datagrams = bytes.chunks(segment).chain(bytes.is_empty().then_some(&*bytes));
            let mut first = datagrams.clone();
            let is_relayed = match next {
                Next::Look => look(port, from, first.next().unwrap_or_default()),
                Next::Follow | Next::To(_) => true,
            };
            let to = match next {
                Next::To(to) => Some(to),
                _ if is_relayed => self.forward(port, from, (&bytes, segment), now),
                _ => None,
            };
            match to {
                Some(to) if is_stream(to) => datagrams.for_each(|it| by_stream(to, port, it)),
                Some(to) => {
                    let message = message((&bytes, segment, at, tos), to);
                    send(&self.sockets, &mut self.batch, port, message);
                }
                None => {}
            }
            // What was sent is in the socket by now.
            done.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// Where a message goes whose source was looked for.
    fn forward(
        &self,
        port: u16,
        from: SocketAddr,
        (bytes, segment): (&[u8], usize),
        now: Now,
    ) -> Option<SocketAddr> {
        let counts = (count(bytes, segment), bytes.len() as u64);
        let forwarded = self.forwarding.read().forward(port, from, counts, now.nanos);
        if forwarded == Forwarded::Unknown {
            self.forwarding.count_dropped(counts.0);
        }
        forwarded.to()
    }

    /// Sends datagrams from a port of the relay. What is lost is sent again by who waits for it.
    pub(crate) fn send(&mut self, port: u16, to: SocketAddr, bytes: &[u8]) {
        let message = Message { bytes, segment: 0, to, from: None, tos: 0 };
        send(&self.sockets, &mut self.batch, port, message);
    }
}

fn send(
    sockets: &[(u16, Arc<DatagramSocket>)],
    batch: &mut SendBatch,
    port: u16,
    message: Message<'_>,
) {
    if let Some((_, socket)) = sockets.iter().find(|(own, _)| *own == port) {
        socket.send(batch, [message]);
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // A worker that has failed, and finds no room to say so, does not wait.
        self.handed = sync_channel(0).1;
        ring(&self.stop);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// A message as it goes on: from the address that it came to, with its DSCP and ECN.
fn message(
    (bytes, segment, at, tos): (&[u8], usize, Option<Source>, u8),
    to: SocketAddr,
) -> Message<'_> {
    // To a node of the other family it goes on from another address of this host.
    let is_its = |at: &Source| at.address.is_ipv4() == to.is_ipv4();
    let from = at.filter(is_its).map(|at| Source { interface: None, ..at });
    let segment = if bytes.len() > segment { segment as u16 } else { 0 };
    Message { bytes, segment, to, from, tos }
}

fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

/// Lets the process have these sockets besides what it has, as far as it may.
fn allow_files(sockets: usize) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = (sockets as u64).saturating_add(limit.current.unwrap_or(u64::MAX));
    let current = Some(limit.maximum.map_or(wanted, |most| wanted.min(most)));
    let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
}

struct Worker {
    sockets: Vec<(u16, Arc<DatagramSocket>)>,
    epoll: OwnedFd,
    forwarding: Arc<Forwarding>,
    clock: Clock,
    to_main: (SyncSender<io::Result<Handed>>, Arc<OwnedFd>),
    /// How many messages were handed over, and how many of them the main thread is done with.
    handed: u64,
    done: Arc<AtomicU64>,
    /// The number of the last message of each source that was handed over.
    pending: HashMap<(u16, SocketAddr), u64>,
    pool: Pool,
    spare: Vec<FrameBuf>,
    receive: RecvBatch,
    /// Messages that came; of those that go on, where, and which they are; and messages for which that is not all.
    came: Vec<(FrameBuf, Arrived)>,
    leaving: Vec<(SocketAddr, usize)>,
    others: Vec<(Option<SocketAddr>, usize)>,
    send: SendBatch,
}

impl Worker {
    fn new(
        sockets: Vec<(u16, Arc<DatagramSocket>)>,
        (forwarding, clock): (Arc<Forwarding>, Clock),
        to_main: (SyncSender<io::Result<Handed>>, Arc<OwnedFd>),
        stop: &OwnedFd,
    ) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("epoll")?;
        let watch = |source: BorrowedFd<'_>, number| {
            epoll::add(&epoll, source, epoll::EventData::new_u64(number), epoll::EventFlags::IN)
        };
        for (number, (_, socket)) in (0..).zip(&sockets) {
            watch(socket.as_fd(), number).context("epoll")?;
        }
        watch(stop.as_fd(), STOP).context("epoll")?;
        Ok(Self {
            sockets,
            epoll,
            forwarding,
            clock,
            to_main,
            handed: 0,
            done: Arc::default(),
            pending: HashMap::new(),
            pool: Pool::new(MESSAGES, LONGEST, 0),
            spare: Vec::new(),
            receive: RecvBatch::new(MESSAGES),
            came: Vec::new(),
            leaving: Vec::new(),
            others: Vec::new(),
            send: SendBatch::default(),
        })
    }

    fn run(mut self) {
        if let Err(error) = self.forward() {
            let _ = self.to_main.0.send(Err(error));
            ring(&self.to_main.1);
        }
    }

    /// Forwards until all workers are to stop.
    fn forward(&mut self) -> io::Result<()> {
        let mut ready = Vec::with_capacity(MESSAGES);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut ready), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in ready.drain(..) {
                match event.data.u64() {
                    STOP => return Ok(()),
                    number => self.turn(number as usize)?,
                }
            }
        }
    }

    /// Forwards what waits at a socket, up to a bound.
    fn turn(&mut self, number: usize) -> io::Result<()> {
        let Some((port, socket)) = self.sockets.get(number) else { return Ok(()) };
        let (port, socket) = (*port, Arc::clone(socket));
        for _ in 0..TURNS {
            self.pool.fill(&mut self.spare, MESSAGES);
            let came = &mut self.came;
            let count = socket.recv(&mut self.receive, &mut self.spare, |frame, arrived| {
                came.push((frame, arrived));
            })?;
            self.look_up(port);
            self.send_on(&socket);
            if count < MESSAGES {
                break;
            }
        }
        Ok(())
    }

    /// Finds where each message goes that came, and hands over what the main thread has to send.
    fn look_up(&mut self, port: u16) {
        let now = self.clock.nanos();
        let mut reading = self.forwarding.read();
        for (number, (frame, arrived)) in self.came.iter().enumerate() {
            let bytes = frame.bytes();
            let counts = (count(bytes, arrived.segment), bytes.len() as u64);
            match reading.forward(port, arrived.from, counts, now) {
                Forwarded::To(to) if self.pending.is_empty() && !is_stream(to) => {
                    self.leaving.push((to, number));
                }
                Forwarded::Dropped => {}
                other => self.others.push((other.to(), number)),
            }
        }
        drop(reading);
        let (came, mut others) = (std::mem::take(&mut self.came), std::mem::take(&mut self.others));
        for (to, number) in others.drain(..) {
            let (frame, arrived) = &came[number];
            let is_pending = self.is_pending(port, arrived.from);
            // Half of the room is for looks, so that what follows them takes no look's place.
            let waiting = self.handed.saturating_sub(self.done.load(Ordering::Acquire));
            let (has_room, may_follow) = (waiting < HANDED as u64, waiting < HANDED as u64 / 2);
            let next = match to {
                Some(to) if !is_pending && !is_stream(to) => {
                    self.leaving.push((to, number));
                    continue;
                }
                Some(to) if may_follow => Next::To(to),
                None if is_pending && may_follow => Next::Follow,
                None if !is_pending
                    && has_room
                    && self.forwarding.may_look(arrived.from.ip(), now) =>
                {
                    Next::Look
                }
                _ => {
                    self.forwarding.count_dropped(count(frame.bytes(), arrived.segment));
                    continue;
                }
            };
            self.hand_over(port, frame, arrived, next);
        }
        (self.came, self.others) = (came, others);
    }

    /// Sends what goes on, in the order in which it came to each destination.
    fn send_on(&mut self, socket: &DatagramSocket) {
        if !self.leaving.is_empty() {
            // Messages to one destination can be one message.
            self.leaving.sort_unstable();
            let mut wanted = 0;
            let messages = self.leaving.drain(..).filter_map(|(to, number)| {
                let (frame, Arrived { at, tos, segment, .. }) = self.came.get(number)?;
                wanted += count(frame.bytes(), *segment);
                Some(message((frame.bytes(), *segment, *at, *tos), to))
            });
            let sent = socket.send(&mut self.send, messages).datagrams;
            if sent < wanted {
                self.forwarding.count_unsent(wanted - sent);
            }
        }
        self.came.clear();
    }

    /// Whether the main thread has something of a source.
    fn is_pending(&mut self, port: u16, from: SocketAddr) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let done = self.done.load(Ordering::Acquire);
        if done == self.handed {
            self.pending.clear();
        }
        self.pending.get(&(port, from)).is_some_and(|last| *last > done)
    }

    /// Hands a message over, unless too many wait.
    fn hand_over(&mut self, port: u16, frame: &FrameBuf, arrived: &Arrived, next: Next) {
        let Arrived { from, at, tos, segment } = *arrived;
        let (bytes, done) = (frame.bytes().to_vec(), Arc::clone(&self.done));
        let handed = Handed { port, from, next, bytes, segment, at, tos, done };
        match self.to_main.0.try_send(Ok(handed)) {
            Ok(()) => {
                self.handed += 1;
                if self.pending.len() >= REMEMBERED {
                    let done = self.done.load(Ordering::Acquire);
                    self.pending.retain(|_, last| *last > done);
                }
                self.pending.insert((port, from), self.handed);
                ring(&self.to_main.1);
            }
            Err(_) => self.forwarding.count_dropped(count(frame.bytes(), segment)),
        }
    }
}

/// Datagrams of a message; one without bytes is one, too.
fn count(bytes: &[u8], segment: usize) -> u64 {
    bytes.len().div_ceil(segment).max(1) as u64
}

#[cfg(test)]
mod figures;
#[cfg(test)]
mod order;
#[cfg(test)]
mod tests;
