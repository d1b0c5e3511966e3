//! [`Streams`]: TCP connections of nodes whose UDP is blocked, each of which carries datagrams for all ports of this host.
//!
//! Contract: a datagram by a connection has a source that no datagram by UDP has: the connection's own, with the connection's number as
//! its scope. Nobody is believed: a connection that has carried no answer yet, as nothing in it was genuine, is closed after
//! [`UNPROVEN`], or sooner, where others come. Connections, in all and from one address, and the memory of each are bounded; who
//! reads nothing loses datagrams, and then the connection.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream};

use anyhow::{Context, Result};
use overlay::{Framed, limits::SECOND};
use rustix::event::{PollFd, PollFlags};

/// Connections at once.
const MOST: usize = 4_096;
/// Connections of one address, or of one IPv6 network of 64 bits.
const MOST_OF_ONE: usize = 32;
/// Connections by which nothing was sent yet; with more, the oldest one is closed.
const MOST_UNPROVEN: usize = 256;
/// Nanoseconds after which such a connection is closed.
pub(crate) const UNPROVEN: u64 = 10 * SECOND;
/// Nanoseconds of silence after which a connection is closed: nodes send keepalives.
pub(crate) const SILENT: u64 = 120 * SECOND;
/// Nanoseconds for which what is to be sent may wait without a byte being taken.
pub(crate) const STUCK: u64 = 20 * SECOND;
/// Connections that are taken in a turn, and reads of a connection.
const BURST: usize = 16;

/// The connections of a host.
pub(crate) struct Streams {
    listener: TcpListener,
    all: BTreeMap<u32, Stream>,
    of_one: HashMap<IpAddr, usize>,
    unproven: usize,
    next: u32,
}

struct Stream {
    socket: TcpStream,
    at: SocketAddr,
    framed: Framed,
    /// The port of the tunnel, as the node calls it.
    port: u16,
    opened: u64,
    heard: u64,
    /// When a byte was taken last, or nothing waited.
    moved: u64,
    is_proven: bool,
}

/// Whether a source is that of a connection.
pub(crate) fn is_stream(at: SocketAddr) -> bool {
    number(at).is_some()
}

fn number(at: SocketAddr) -> Option<u32> {
    let SocketAddr::V6(at) = at else { return None };
    // By UDP only addresses of a link have a scope.
    let is_of_link = at.ip().is_unicast_link_local();
    (at.scope_id() != 0 && !is_of_link).then(|| at.scope_id())
}

/// What connections are counted by.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

impl Streams {
    /// Listens, with a first number that a start before did not have.
    pub(crate) fn listen(at: SocketAddr, first: u32) -> Result<Self> {
        let listener = TcpListener::bind(at).with_context(|| format!("TCP {at}"))?;
        listener.set_nonblocking(true)?;
        let (all, of_one) = (BTreeMap::new(), HashMap::new());
        Ok(Self { listener, all, of_one, unproven: 0, next: first })
    }

    /// What is to be waited for: the listener, and connections by their numbers.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (Option<u32>, PollFd<'_>)> {
        let streams = self.all.iter().map(|(number, stream)| {
            let is_waiting = !stream.framed.pending().is_empty();
            let flags = if is_waiting { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            (Some(*number), PollFd::new(&stream.socket, flags))
        });
        streams.chain([(None, PollFd::new(&self.listener, PollFlags::IN))])
    }

    /// Takes new connections, and datagrams of connections that are ready; `each` gets the source, the port and the datagram, and says whether it was for the tunnel.
    pub(crate) fn turn(
        &mut self,
        ready: &[Option<u32>],
        buffer: &mut [u8],
        now: u64,
        mut each: impl FnMut(SocketAddr, u16, &mut [u8]) -> bool,
    ) {
        for number in ready {
            let Some(number) = number else {
                self.accept(now);
                continue;
            };
            let Some(stream) = self.all.get_mut(number) else { continue };
            if !stream.receive(buffer, now, &mut each) || !stream.flush(now) {
                self.end(*number);
            }
        }
    }

    fn accept(&mut self, now: u64) {
        for _ in 0..BURST {
            match self.listener.accept() {
                Ok((socket, from)) => self.begin(socket, from, now),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => break,
            }
        }
    }

    fn begin(&mut self, socket: TcpStream, from: SocketAddr, now: u64) {
        let count = self.of_one.entry(counted(from.ip())).or_default();
        // What is not kept is closed.
        if *count >= MOST_OF_ONE || self.all.len() >= MOST || socket.set_nonblocking(true).is_err()
        {
            return;
        }
        let _ = socket.set_nodelay(true);
        *count += 1;
        if self.unproven >= MOST_UNPROVEN {
            let oldest =
                self.all.iter().filter(|(_, it)| !it.is_proven).min_by_key(|it| it.1.opened);
            let oldest = oldest.map(|(number, _)| *number);
            oldest.into_iter().for_each(|number| self.end(number));
        }
        while self.next == 0 || self.all.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let ip = match from.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let at = SocketAddrV6::new(ip, from.port(), 0, self.next).into();
        let framed = Framed::default();
        let (opened, heard, moved, is_proven, port) = (now, now, now, false, 0);
        let stream = Stream { socket, at, framed, port, opened, heard, moved, is_proven };
        self.all.insert(self.next, stream);
        self.next = self.next.wrapping_add(1);
        self.unproven += 1;
    }

    fn end(&mut self, number: u32) {
        let Some(stream) = self.all.remove(&number) else { return };
        self.unproven -= usize::from(!stream.is_proven);
        let address = counted(stream.at.ip());
        if let Some(count) = self.of_one.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.of_one.remove(&address);
            }
        }
    }

    /// Sends a datagram by the connection that has this source, from a port of the relay, or from the tunnel's.
    pub(crate) fn send(&mut self, to: SocketAddr, port: Option<u16>, datagram: &[u8], now: u64) {
        let Some(number) = number(to) else { return };
        // One of a number that was another connection's before is another one's.
        let Some(stream) = self.all.get_mut(&number).filter(|it| it.at == to) else { return };
        if !stream.is_proven {
            stream.is_proven = true;
            self.unproven -= 1;
        }
        stream.framed.send(port.unwrap_or(stream.port), datagram);
        if !stream.flush(now) {
            self.end(number);
        }
    }

    /// Closes what is silent, stuck, or came to nothing: to be called each second.
    pub(crate) fn sweep(&mut self, now: u64) {
        let is_over = |stream: &Stream| {
            let since = |then: u64| now.saturating_sub(then);
            (!stream.is_proven && since(stream.opened) >= UNPROVEN)
                || since(stream.heard) >= SILENT
                || (!stream.framed.pending().is_empty() && since(stream.moved) >= STUCK)
        };
        let over = self.all.iter().filter(|(_, stream)| is_over(stream));
        let over: Vec<u32> = over.map(|(number, _)| *number).collect();
        over.into_iter().for_each(|number| self.end(number));
        self.of_one.retain(|_, count| *count > 0);
    }
}

impl Stream {
    /// Takes what came; whether the connection stays.
    fn receive(
        &mut self,
        buffer: &mut [u8],
        now: u64,
        each: &mut impl FnMut(SocketAddr, u16, &mut [u8]) -> bool,
    ) -> bool {
        for _ in 0..BURST {
            match self.socket.read(buffer) {
                Ok(0) => return false,
                Ok(length) => {
                    let (at, heard, last) = (self.at, &mut self.heard, &mut self.port);
                    let taken = self.framed.receive(&buffer[..length], |port, datagram| {
                        // A byte now and then is no frame.
                        *heard = now;
                        if each(at, port, datagram) {
                            *last = port;
                        }
                    });
                    if taken.is_err() {
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Sends what waits, as far as it is taken; whether the connection stays.
    fn flush(&mut self, now: u64) -> bool {
        loop {
            let pending = self.framed.pending();
            if pending.is_empty() {
                self.moved = now;
                return true;
            }
            match self.socket.write(pending) {
                Ok(0) => return false,
                Ok(length) => {
                    self.framed.sent(length);
                    self.moved = now;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    const FRAME: [u8; 7] = [5, 0, 7, 0, b'a', b'b', b'c'];

    fn streams() -> (Streams, SocketAddr) {
        let streams = Streams::listen("127.0.0.1:0".parse().unwrap(), u32::MAX - 1).unwrap();
        let at = streams.listener.local_addr().unwrap();
        (streams, at)
    }

    /// Takes what there is at this time, and what comes soon.
    fn turns(streams: &mut Streams, now: u64) -> Vec<(SocketAddr, u16, Vec<u8>)> {
        let mut came = Vec::new();
        for _ in 0..20 {
            let ready: Vec<_> = streams.all.keys().copied().map(Some).chain([None]).collect();
            streams.turn(&ready, &mut [0; 65_536], now, |from, port, datagram| {
                came.push((from, port, datagram.to_vec()));
                true
            });
            sleep(Duration::from_millis(1));
        }
        came
    }

    /// Whether a client is still connected, as far as it can see.
    fn is_open(mut client: &TcpStream) -> bool {
        client.set_nonblocking(true).unwrap();
        match client.read(&mut [0; 1 << 16]) {
            Ok(length) => length > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }

    #[test]
    fn datagrams_come_and_go_by_a_source_of_their_own() {
        let (mut streams, at) = streams();
        let mut clients = [0; 4].map(|_| TcpStream::connect(at).unwrap());
        for (number, client) in clients.iter_mut().enumerate() {
            client.write_all(&FRAME).unwrap();
            let came = turns(&mut streams, SECOND);
            let [(from, 7, datagram)] = &*came else { panic!("{came:?}") };
            assert_eq!(datagram, b"abc");
            assert_eq!(from.port(), client.local_addr().unwrap().port());
            assert_eq!(from.ip().to_canonical(), client.local_addr().unwrap().ip());
            assert!(is_stream(*from) && !is_stream(client.local_addr().unwrap()));
            // From the port that it was for, or from one of the relay's.
            streams.send(*from, None, b"abc", SECOND);
            streams.send(*from, Some(0x102), b"abc", SECOND);
            let mut answer = [0; 14];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(
                answer,
                [5, 0, 7, 0, b'a', b'b', b'c', 5, 0, 2, 1, b'a', b'b', b'c'],
                "{number}"
            );
        }
        assert_eq!(streams.unproven, 0);
        // Nobody is sent what was for another connection.
        for stream in streams.all.values().map(|it| it.at).collect::<Vec<_>>() {
            streams.send(SocketAddr::new(stream.ip(), 1), None, b"abc", SECOND);
            let SocketAddr::V6(mut before) = stream else { panic!("{stream}") };
            before.set_port(1);
            streams.send(before.into(), None, b"abc", SECOND);
        }
        for client in &mut clients {
            client.set_nonblocking(true).unwrap();
            assert!(client.read(&mut [0; 9]).is_err());
        }
        drop(clients);
        turns(&mut streams, SECOND);
        assert!(streams.all.is_empty() && streams.of_one.is_empty());
    }

    #[test]
    fn lengths_that_lie_end_a_connection_and_no_other() {
        let (mut streams, at) = streams();
        let (mut liar, mut other) =
            (TcpStream::connect(at).unwrap(), TcpStream::connect(at).unwrap());
        liar.write_all(&[0xff, 0xff]).unwrap();
        other.write_all(&FRAME[..6]).unwrap();
        assert!(turns(&mut streams, SECOND).is_empty());
        assert!(!is_open(&liar) && is_open(&other));
        other.set_nonblocking(false).unwrap();
        other.write_all(&FRAME[6..]).unwrap();
        assert_eq!(turns(&mut streams, SECOND).len(), 1);
    }

    #[test]
    fn who_sends_a_byte_a_minute_is_closed_whether_it_was_answered_or_not() {
        for is_answered in [false, true] {
            let (mut streams, at) = streams();
            let mut client = TcpStream::connect(at).unwrap();
            client.write_all(&FRAME).unwrap();
            let from = turns(&mut streams, SECOND)[0].0;
            if is_answered {
                streams.send(from, None, b"abc", SECOND);
            }
            let mut now = SECOND;
            let limit = if is_answered { SILENT } else { UNPROVEN };
            client.write_all(&[200, 0]).unwrap();
            while now < SECOND + limit {
                assert_eq!(streams.all.len(), 1, "{} s", now / SECOND);
                let _ = client.write_all(&[7]);
                turns(&mut streams, now);
                now += limit / 4;
                streams.sweep(now);
            }
            assert!(streams.all.is_empty() && streams.unproven == 0);
        }
    }

    #[test]
    fn thousands_of_connections_of_one_address_keep_no_other_address_out() {
        let (mut streams, at) = streams();
        let mut clients = Vec::new();
        for _ in 0..1_000 {
            clients.push(TcpStream::connect(at).unwrap());
            if clients.len() % BURST == 0 {
                streams.accept(SECOND);
            }
        }
        turns(&mut streams, SECOND);
        assert_eq!(streams.all.len(), MOST_OF_ONE);
        // As if from another address.
        let (socket, from) = (TcpStream::connect(at).unwrap(), "192.0.2.7:9".parse().unwrap());
        streams.begin(socket, from, SECOND);
        assert_eq!(streams.all.len(), MOST_OF_ONE + 1);
    }

    #[test]
    fn connections_that_come_to_nothing_make_room_for_others_and_are_bounded() {
        let (mut streams, at) = streams();
        let client = TcpStream::connect(at).unwrap();
        let mut first = None;
        for number in 0..2_000_u32 {
            let from = SocketAddr::new((0xC633_0000 + number).to_be_bytes().into(), 9);
            streams.begin(client.try_clone().unwrap(), from, u64::from(number));
            if number == 0 {
                first = streams.all.values().next().map(|it| it.at);
                // It was answered, so it stays.
                first.iter().for_each(|at| streams.send(*at, None, b"x", 0));
            }
        }
        assert_eq!((streams.all.len(), streams.unproven), (MOST_UNPROVEN + 1, MOST_UNPROVEN));
        assert!(streams.all.values().any(|it| Some(it.at) == first));
        streams.sweep(UNPROVEN + 2_000);
        assert_eq!(streams.all.len(), 1);
    }

    #[test]
    fn who_reads_nothing_loses_datagrams_and_then_the_connection() {
        let (mut streams, at) = streams();
        let mut client = TcpStream::connect(at).unwrap();
        client.write_all(&FRAME).unwrap();
        let from = turns(&mut streams, SECOND)[0].0;
        // The system takes some megabytes, and then nothing.
        let (start, mut waits) = (Instant::now(), 0);
        while waits < 200_000 {
            assert!(start.elapsed() < Duration::from_secs(20), "{waits}");
            (0..1_000).for_each(|_| streams.send(from, None, &[7; 1_400], SECOND));
            waits = streams.all.values().next().unwrap().framed.pending().len();
            assert!(waits < 300_000, "{waits}");
        }
        streams.sweep(SECOND + STUCK - 1);
        assert_eq!(streams.all.len(), 1);
        streams.sweep(SECOND + STUCK);
        assert!(streams.all.is_empty());
    }
}
