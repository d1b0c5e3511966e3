//! [`Answering`]: the end that answers who measures.
//!
//! Contract: the sockets are opened before the process gives up its privileges, and hear the tunnel alone. One thread answers
//! datagrams with as many bytes as came, [`RATE`] a second at most; one connection is measured at a time, by a second thread, for
//! [`LONGEST`] at most, and others hear that it is busy. So nobody makes this host send more than somebody asks for whom the
//! tunnel's rules let in, and nobody fills its memory.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use live::config::tunnel::TunnelSettings;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SocketType;

use super::super::names::bound;
use super::{BUSY, GO, HELLO, IS_ANSWER, MOST_TENTHS, PORT, PROBE, WORD, blocks};

/// Datagrams that are answered in a second.
const RATE: u32 = 500;
/// Datagrams of one socket that are taken in a turn.
const BURST: usize = 32;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 4;
/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may take.
const LONGEST: Duration = Duration::from_secs(75);
/// How long nothing is looked at while nothing comes.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// The sockets of the end that answers.
pub(in super::super) struct Answering {
    datagrams: Vec<UdpSocket>,
    listeners: Vec<TcpListener>,
    is_busy: Arc<AtomicBool>,
    /// Datagrams that may still be answered in the second that began then.
    left: u32,
    since: Instant,
}

impl Answering {
    /// Opens the sockets at the tunnel's own addresses, the first of each family, if it answers at all. The addresses need not be
    /// there yet.
    ///
    /// # Errors
    /// Somebody else has the port.
    pub(in super::super) fn open(tunnel: &TunnelSettings) -> io::Result<Option<Self>> {
        if !tunnel.answers_speed {
            return Ok(None);
        }
        let first = |is_v4: bool| {
            let mut own = tunnel.addresses.iter().map(|(address, _)| *address);
            own.find(|address| address.is_ipv4() == is_v4)
        };
        let mut answering = Self::new();
        for address in [first(true), first(false)].into_iter().flatten() {
            let opened = answering.listen(SocketAddr::new(address, PORT), Some(&tunnel.name));
            // A host without IPv6 answers by IPv4.
            if address.is_ipv4() {
                opened?;
            }
        }
        Ok(Some(answering).filter(|it| !it.listeners.is_empty()))
    }

    fn new() -> Self {
        let (datagrams, listeners, is_busy) = (Vec::new(), Vec::new(), Arc::default());
        Self { datagrams, listeners, is_busy, left: RATE, since: Instant::now() }
    }

    fn listen(&mut self, at: SocketAddr, device: Option<&str>) -> io::Result<()> {
        let listener = bound(at, SocketType::STREAM, device)?;
        rustix::net::listen(&listener, BACKLOG)?;
        self.datagrams.push(bound(at, SocketType::DGRAM, device)?.into());
        self.listeners.push(listener.into());
        Ok(())
    }

    /// Answers until `stop` is raised, in a thread of its own.
    ///
    /// # Errors
    /// There are no threads left.
    pub(in super::super) fn start(mut self, stop: Arc<AtomicBool>) -> io::Result<()> {
        let answer = move || {
            while !stop.load(Ordering::Relaxed) {
                self.turn();
            }
        };
        thread::Builder::new().name("speed".to_owned()).spawn(answer).map(drop)
    }

    fn turn(&mut self) {
        let datagrams = self.datagrams.iter().map(|it| PollFd::new(it, PollFlags::IN));
        let listeners = self.listeners.iter().map(|it| PollFd::new(it, PollFlags::IN));
        let mut sockets: Vec<PollFd<'_>> = datagrams.chain(listeners).collect();
        // After an error it is looked again, as after a signal.
        let _ = poll(&mut sockets, Some(&TICK));
        if self.since.elapsed() >= Duration::from_secs(1) {
            (self.left, self.since) = (RATE, Instant::now());
        }
        for socket in &self.datagrams {
            echo(socket, &mut self.left);
        }
        for listener in &self.listeners {
            if let Ok((stream, _)) = listener.accept() {
                begin(stream, &self.is_busy);
            }
        }
    }
}

/// Answers what came to a socket. What is not answered is lost to who measures, as on the way.
fn echo(socket: &UdpSocket, left: &mut u32) {
    let mut bytes = [0; PROBE + 1];
    for _ in 0..BURST {
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { return };
        let is_probe = length == PROBE && bytes.starts_with(WORD) && bytes[IS_ANSWER] == 0;
        if is_probe && *left > 0 {
            *left -= 1;
            bytes[IS_ANSWER] = 1;
            let _ = socket.send_to(&bytes[..PROBE], from);
        }
    }
}

/// Measures by a connection, in a thread of its own, unless another one is measured.
fn begin(mut stream: TcpStream, is_busy: &Arc<AtomicBool>) {
    if is_busy.swap(true, Ordering::Acquire) {
        // A word of one byte is taken without waiting.
        let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(&[BUSY]));
        return;
    }
    let busy = Arc::clone(is_busy);
    let serve = move || {
        // Who measures hears of what failed by the end of the connection.
        let _ = serve(&mut stream);
        drop(stream);
        busy.store(false, Ordering::Release);
    };
    if thread::Builder::new().name("measured".to_owned()).spawn(serve).is_err() {
        is_busy.store(false, Ordering::Release);
    }
}

fn serve(stream: &mut TcpStream) -> io::Result<()> {
    let until = Instant::now() + LONGEST;
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut hello = [0; HELLO];
    stream.read_exact(&mut hello)?;
    let tenths = hello[HELLO - 1];
    if !hello.starts_with(WORD) || !(1..=MOST_TENTHS).contains(&tenths) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    stream.write_all(&[GO])?;
    let time = Duration::from_millis(100) * u32::from(tenths);
    let rate = blocks::receive(stream, time, until)?;
    stream.write_all(&rate.to_bytes())?;
    blocks::send(stream, time)?;
    // The last bytes are not lost by a reset.
    let _ = stream.read(&mut [0]);
    Ok(())
}

#[cfg(test)]
impl Answering {
    /// An end that answers at a port of loopback: the sockets' addresses, of datagrams and of connections.
    pub(super) fn at(address: std::net::IpAddr) -> (Self, [SocketAddr; 2]) {
        let mut answering = Self::new();
        answering.listen(SocketAddr::new(address, 0), None).unwrap();
        let at = [
            answering.datagrams[0].local_addr().unwrap(),
            answering.listeners[0].local_addr().unwrap(),
        ];
        (answering, at)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn started() -> [SocketAddr; 2] {
        let (answering, at) = Answering::at(HERE);
        answering.start(Arc::default()).unwrap();
        at
    }

    fn client(at: SocketAddr, first: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(first).unwrap();
        stream
    }

    fn hello(tenths: u8) -> [u8; HELLO] {
        let mut hello = [0; HELLO];
        hello[..WORD.len()].copy_from_slice(WORD);
        hello[HELLO - 1] = tenths;
        hello
    }

    fn byte(mut stream: &TcpStream) -> Option<u8> {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok().map(|()| byte[0])
    }

    #[test]
    fn datagrams_are_answered_with_as_many_bytes_some_in_a_second_and_answers_are_not() {
        let (mut answering, [at, _]) = Answering::at(HERE);
        let socket = UdpSocket::bind((HERE, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut probe = [0; PROBE];
        probe[..WORD.len()].copy_from_slice(WORD);
        let mut ask = |bytes: &[u8]| {
            socket.send_to(bytes, at).unwrap();
            echo(&answering.datagrams[0], &mut answering.left);
            socket.recv(&mut [0; 64]).ok()
        };
        assert_eq!(ask(&probe), Some(PROBE));
        assert_eq!(ask(&probe[1..]), None);
        assert_eq!(ask(&[&probe[..], &[0]].concat()), None);
        for _ in 1..RATE {
            assert_eq!(ask(&probe), Some(PROBE));
        }
        assert_eq!(ask(&probe), None, "that is enough for a second");
        answering.left = RATE;
        probe[IS_ANSWER] = 1;
        socket.send_to(&probe, at).unwrap();
        echo(&answering.datagrams[0], &mut answering.left);
        assert!(socket.recv(&mut [0; 64]).is_err(), "two ends would answer each other for ever");
    }

    #[test]
    fn one_is_measured_at_a_time_and_who_says_something_else_is_left() {
        let [_, at] = started();
        let first = client(at, &hello(1));
        assert_eq!(byte(&first), Some(GO));
        let second = client(at, &hello(1));
        assert_eq!((byte(&second), byte(&second)), (Some(BUSY), None));
        drop(first);
        for wrong in [hello(0), hello(MOST_TENTHS + 1), [b'x'; HELLO]] {
            // The one before may not have ended yet.
            let answer = loop {
                match byte(&client(at, &wrong)) {
                    Some(BUSY) => thread::sleep(Duration::from_millis(5)),
                    answer => break answer,
                }
            };
            assert_eq!(answer, None, "{wrong:?}");
        }
    }
}
