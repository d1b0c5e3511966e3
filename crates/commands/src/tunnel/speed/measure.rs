//! [`measure`]: the end that measures: round trips while nothing else goes, while blocks are sent, and while they come.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::blocks::{self, Rate};
use super::{BUSY, GO, HELLO, IS_ANSWER, PORT, PROBE, WORD};

/// Time between two datagrams.
const PACE: Duration = Duration::from_millis(20);
/// How long an answer is waited for after the last one was sent.
const LATE: Duration = Duration::from_secs(1);
/// How long the peer may take to answer, and to go on.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long blocks may take beyond their time: what was sent has to arrive.
const DRAIN: Duration = Duration::from_secs(30);

/// Idle, sending, receiving, and the end.
const PHASES: usize = 3;

/// What was measured.
#[derive(Debug)]
pub(super) struct Measured {
    /// While nothing else goes, while this end sends, and while it receives.
    pub(super) delays: [Delays; PHASES],
    pub(super) sent: Rate,
    pub(super) received: Rate,
}

/// Round trips of the datagrams that were sent in a time, in their order of length.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Delays {
    pub(super) sent: usize,
    pub(super) trips: Vec<Duration>,
}

impl Delays {
    pub(super) fn lost(&self) -> usize {
        self.sent - self.trips.len()
    }

    /// The round trip that this percentage of all does not exceed.
    pub(super) fn at(&self, percent: usize) -> Option<Duration> {
        let count = (self.trips.len() * percent).div_ceil(100);
        self.trips.get(count.saturating_sub(1)).copied()
    }
}

/// Why nothing was measured.
#[derive(Debug)]
pub(super) enum Unmeasured {
    /// The peer's host has no such port.
    Refused,
    /// Nothing came of it in time.
    Silent,
    /// Somebody else measures.
    Busy,
    /// It ended before its end.
    Ended(io::Error),
}

/// Measures the way to an address, `tenths` of a second each: idle, out and in.
pub(super) fn measure(address: IpAddr, tenths: u8) -> Result<Measured, Unmeasured> {
    let at = SocketAddr::new(address, PORT);
    measure_at([at, at], tenths)
}

/// Measures by other ports: of datagrams, and of connections.
pub(super) fn measure_at(
    [datagrams, connections]: [SocketAddr; 2],
    tenths: u8,
) -> Result<Measured, Unmeasured> {
    let mut stream = begin(connections, tenths)?;
    let time = Duration::from_millis(100) * u32::from(tenths);
    let phase = Arc::new(AtomicUsize::new(0));
    let prober = Prober::open(datagrams, Arc::clone(&phase)).map_err(Unmeasured::Ended)?;
    let prober = thread::Builder::new().spawn(move || prober.run()).map_err(Unmeasured::Ended)?;
    thread::sleep(time);
    let rates = both_ways(&mut stream, time, &phase);
    phase.store(PHASES, Ordering::Relaxed);
    let delays = prober.join().map_err(|_| Unmeasured::Ended(ErrorKind::Other.into()))?;
    let (sent, received) = rates.map_err(Unmeasured::Ended)?;
    Ok(Measured { delays, sent, received })
}

/// Sends blocks and takes blocks.
fn both_ways(
    stream: &mut TcpStream,
    time: Duration,
    phase: &AtomicUsize,
) -> io::Result<(Rate, Rate)> {
    phase.store(1, Ordering::Relaxed);
    blocks::send(stream, time)?;
    // What was sent may lie in the way for a while.
    stream.set_read_timeout(Some(DRAIN))?;
    let mut sent = [0; 16];
    stream.read_exact(&mut sent)?;
    phase.store(2, Ordering::Relaxed);
    let received = blocks::receive(stream, time, Instant::now() + time + DRAIN)?;
    Ok((Rate::from_bytes(sent), received))
}

fn begin(at: SocketAddr, tenths: u8) -> Result<TcpStream, Unmeasured> {
    let mut stream =
        TcpStream::connect_timeout(&at, PATIENCE).map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => Unmeasured::Refused,
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Unmeasured::Silent,
            _ => Unmeasured::Ended(error),
        })?;
    match greet(&mut stream, tenths).map_err(Unmeasured::Ended)? {
        GO => Ok(stream),
        BUSY => Err(Unmeasured::Busy),
        _ => Err(Unmeasured::Ended(ErrorKind::InvalidData.into())),
    }
}

/// Says what is to be measured, and returns the answer.
fn greet(stream: &mut TcpStream, tenths: u8) -> io::Result<u8> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut hello = [0; HELLO];
    hello[..WORD.len()].copy_from_slice(WORD);
    hello[HELLO - 1] = tenths;
    stream.write_all(&hello)?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    Ok(answer[0])
}

/// Sends datagrams at a pace, and notes when their answers come.
struct Prober {
    socket: UdpSocket,
    phase: Arc<AtomicUsize>,
    /// When each was sent, in which phase, and how long its round trip took.
    all: Vec<(Instant, usize, Option<Duration>)>,
}

impl Prober {
    fn open(at: SocketAddr, phase: Arc<AtomicUsize>) -> io::Result<Self> {
        let any: IpAddr = match at {
            SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(at)?;
        Ok(Self { socket, phase, all: Vec::new() })
    }

    fn run(mut self) -> [Delays; PHASES] {
        let mut next = Instant::now();
        loop {
            let phase = self.phase.load(Ordering::Relaxed);
            if phase >= PHASES {
                break;
            }
            let mut probe = [0; PROBE];
            probe[..WORD.len()].copy_from_slice(WORD);
            probe[16..24].copy_from_slice(&(self.all.len() as u64).to_le_bytes());
            self.all.push((Instant::now(), phase, None));
            // What is not sent is lost, like what is lost on the way.
            let _ = self.socket.send(&probe);
            next += PACE;
            self.hear(next);
        }
        let last = Instant::now() + LATE;
        while self.all.iter().any(|it| it.2.is_none()) && Instant::now() < last {
            self.hear(last.min(Instant::now() + PACE));
        }
        let mut delays: [Delays; PHASES] = Default::default();
        for (_, phase, trip) in self.all {
            delays[phase].sent += 1;
            delays[phase].trips.extend(trip);
        }
        delays.iter_mut().for_each(|delays| delays.trips.sort_unstable());
        delays
    }

    /// Takes answers until then.
    fn hear(&mut self, until: Instant) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // No time at all would be for ever.
            if left.is_zero() || self.socket.set_read_timeout(Some(left)).is_err() {
                return;
            }
            let mut answer = [0; PROBE];
            let length = match self.socket.recv(&mut answer) {
                Ok(length) => length,
                // A host that has no such port says so again and again.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(_) => return,
            };
            let now = Instant::now();
            let number = answer.get(16..24).and_then(|bytes| bytes.try_into().ok());
            let number = usize::try_from(u64::from_le_bytes(number.unwrap_or_default()));
            let is_answer = length == PROBE && answer.starts_with(WORD) && answer[IS_ANSWER] == 1;
            let probe = number.ok().filter(|_| is_answer).and_then(|it| self.all.get_mut(it));
            if let Some((sent, _, trip)) = probe {
                trip.get_or_insert(now - *sent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Answering;
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn both_ways_are_measured_between_two_ends() {
        let (answering, at) = Answering::at(HERE);
        let stop = Arc::<std::sync::atomic::AtomicBool>::default();
        answering.start(Arc::clone(&stop)).unwrap();
        for _ in 0..2 {
            let measured = loop {
                match measure_at(at, 2) {
                    Err(Unmeasured::Busy) => thread::sleep(Duration::from_millis(5)),
                    other => break other.unwrap(),
                }
            };
            assert!(measured.sent.mbit_s() > 0.0 && measured.received.mbit_s() > 0.0);
            let [idle, ..] = &measured.delays;
            assert!(idle.sent > 0 && idle.at(0) <= idle.at(50) && idle.at(50) <= idle.at(99));
        }
        stop.store(true, Ordering::Relaxed);
    }

    #[test]
    fn who_does_not_answer_is_told_apart() {
        let closed = std::net::TcpListener::bind((HERE, 0)).unwrap().local_addr().unwrap();
        assert!(matches!(measure_at([closed; 2], 1), Err(Unmeasured::Refused)));
        let other = std::net::TcpListener::bind((HERE, 0)).unwrap();
        let at = other.local_addr().unwrap();
        let odd = thread::spawn(move || {
            let (mut stream, _) = other.accept().unwrap();
            stream.write_all(&[7]).unwrap();
            stream.read_to_end(&mut Vec::new()).ok();
        });
        assert!(matches!(measure_at([at; 2], 1), Err(Unmeasured::Ended(_))));
        odd.join().unwrap();
    }

    #[test]
    fn delays_are_ranked() {
        let trips: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        let delays = Delays { sent: 103, trips };
        let millis = |percent| delays.at(percent).unwrap().as_millis();
        assert_eq!((millis(0), millis(50), millis(99), millis(100)), (1, 50, 99, 100));
        assert_eq!((delays.lost(), Delays::default().at(50)), (3, None));
    }
}
