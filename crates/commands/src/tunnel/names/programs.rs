//! [`Programs`]: the sockets by which programs of this host ask for names: UDP, and TCP, where each message has its length
//! before it (RFC 7766).
//!
//! Contract: nobody but this host is heard. Nothing waits for a program: what one does not take at once it does not get.
//! Connections are few and short, so they hold no more than [`CONNECTIONS`] messages.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::BindToDevice;
use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use super::dns::LONGEST;

/// Datagrams of one socket that are taken in a turn.
const BURST: usize = 32;
/// Connections that are open at once; another one takes the place of the oldest.
const CONNECTIONS: usize = 32;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;
/// Nanoseconds for which a connection may stay: longer than any answer takes.
const PATIENCE: u64 = 10_000_000_000;
/// Bytes before a message by TCP.
const PREFIX: usize = 2;

/// The client that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    /// A program at an address, by the UDP socket of this number.
    Datagram(usize, SocketAddr),
    /// The program of a connection.
    Stream(u64),
}

/// A connection of a program.
struct Stream {
    number: u64,
    stream: TcpStream,
    /// What came and is no whole message yet.
    came: Vec<u8>,
    until: u64,
}

/// All that programs ask by.
pub(super) struct Programs {
    own: Vec<IpAddr>,
    datagrams: Vec<UdpSocket>,
    listeners: Vec<TcpListener>,
    streams: Vec<Stream>,
    /// Connections so far.
    count: u64,
}

impl Programs {
    /// Opens the sockets at a port of `first`, and of the other of this host's own addresses where the host has them.
    ///
    /// # Errors
    /// Somebody else has the port.
    pub(super) fn open(first: IpAddr, own: Vec<IpAddr>, port: u16) -> io::Result<Self> {
        let mut programs = Self {
            own: own.clone(),
            datagrams: Vec::new(),
            listeners: Vec::new(),
            streams: Vec::new(),
            count: 0,
        };
        programs.listen(SocketAddr::new(first, port))?;
        let second = own.into_iter().find(|address| address.is_ipv6() && *address != first);
        // A host without IPv6 asks by IPv4.
        second.map(|second| programs.listen(SocketAddr::new(second, port)).is_ok());
        Ok(programs)
    }

    fn listen(&mut self, at: SocketAddr) -> io::Result<()> {
        let listener = bound(at, SocketType::STREAM, None)?;
        rustix::net::listen(&listener, BACKLOG)?;
        self.datagrams.push(bound(at, SocketType::DGRAM, None)?.into());
        self.listeners.push(listener.into());
        Ok(())
    }

    /// What is to be waited for.
    pub(super) fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        let datagrams = self.datagrams.iter().map(|it| PollFd::new(it, PollFlags::IN));
        let listeners = self.listeners.iter().map(|it| PollFd::new(it, PollFlags::IN));
        let streams = self.streams.iter().map(|it| PollFd::new(&it.stream, PollFlags::IN));
        datagrams.chain(listeners).chain(streams)
    }

    /// What programs ask, as it came.
    pub(super) fn take(&mut self, now: u64) -> Vec<(Asker, Vec<u8>)> {
        let mut asked = Vec::new();
        let mut buffer = [0; LONGEST + 1];
        for (number, socket) in self.datagrams.iter().enumerate() {
            for _ in 0..BURST {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { break };
                // A peer may not ask for others by this node.
                if self.own.contains(&from.ip()) {
                    asked.push((Asker::Datagram(number, from), buffer[..length].to_vec()));
                }
            }
        }
        self.accept(now);
        self.streams.retain_mut(|stream| match stream.take() {
            Ok(query) => {
                asked.extend(query.map(|query| (Asker::Stream(stream.number), query)));
                now < stream.until
            }
            Err(_) => false,
        });
        asked
    }

    fn accept(&mut self, now: u64) {
        for listener in &self.listeners {
            while let Ok((stream, from)) = listener.accept() {
                if !self.own.contains(&from.ip()) || stream.set_nonblocking(true).is_err() {
                    continue;
                }
                if self.streams.len() == CONNECTIONS {
                    self.streams.remove(0);
                }
                self.count += 1;
                let until = now.saturating_add(PATIENCE);
                self.streams.push(Stream { number: self.count, stream, came: Vec::new(), until });
            }
        }
    }

    /// Sends an answer. Who does not get it asks again.
    pub(super) fn reply(&mut self, to: Asker, message: &[u8]) {
        match to {
            Asker::Datagram(number, to) => {
                if let Some(socket) = self.datagrams.get(number) {
                    let _ = socket.send_to(message, to);
                }
            }
            Asker::Stream(number) => {
                let found = self.streams.iter().position(|stream| stream.number == number);
                let Some(at) = found else { return };
                let mut framed = (message.len() as u16).to_be_bytes().to_vec();
                framed.extend(message);
                // A part of an answer is none.
                if !self.streams[at].stream.write(&framed).is_ok_and(|sent| sent == framed.len()) {
                    self.streams.remove(at);
                }
            }
        }
    }
}

impl Stream {
    /// The next message, if all of it is there.
    ///
    /// # Errors
    /// The connection has ended, or what comes is longer than a query may be.
    fn take(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = [0; PREFIX + LONGEST];
        let room = buffer.len().saturating_sub(self.came.len());
        let is_over = match self.stream.read(&mut buffer[..room]) {
            Ok(0) => room > 0,
            Ok(read) => {
                self.came.extend(&buffer[..read]);
                false
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => return Err(error),
        };
        let Some((prefix, rest)) = self.came.split_first_chunk::<PREFIX>() else {
            return if is_over { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(None) };
        };
        let length = usize::from(u16::from_be_bytes(*prefix));
        if length > LONGEST {
            return Err(ErrorKind::InvalidData.into());
        }
        match rest.get(..length).map(<[u8]>::to_vec) {
            Some(message) => {
                self.came.drain(..PREFIX + length);
                Ok(Some(message))
            }
            None if is_over => Err(ErrorKind::UnexpectedEof.into()),
            None => Ok(None),
        }
    }
}

/// A socket at an address that the host may not have yet; of one device alone, if it is named.
pub(in super::super) fn bound(
    at: SocketAddr,
    kind: SocketType,
    device: Option<&str>,
) -> io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(family, kind, flags, None)?;
    match at {
        SocketAddr::V4(_) => sockopt::set_ip_freebind(&socket, true)?,
        SocketAddr::V6(_) => sockopt::set_ipv6_freebind(&socket, true)?,
    }
    if let Some(device) = device {
        setsockopt(&socket, BindToDevice, &OsString::from(device))?;
    }
    if kind == SocketType::STREAM {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    bind(&socket, &at)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn listening() -> (Programs, SocketAddr) {
        let programs = Programs::open(HERE, vec![HERE], 0).unwrap();
        let at = programs.listeners[0].local_addr().unwrap();
        (programs, at)
    }

    /// Takes until there is something, or there was time for it.
    fn taken(programs: &mut Programs) -> Vec<(Asker, Vec<u8>)> {
        for _ in 0..200 {
            let asked = programs.take(0);
            if !asked.is_empty() {
                return asked;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        Vec::new()
    }

    #[test]
    fn messages_of_a_connection_are_cut_at_their_lengths() {
        let (mut programs, at) = listening();
        let mut program = TcpStream::connect(at).unwrap();
        program.write_all(&[0, 3, 1, 2, 3, 0, 1, 9, 0]).unwrap();
        let first = taken(&mut programs);
        let second = taken(&mut programs);
        assert_eq!((&*first[0].1, &*second[0].1), (&[1, 2, 3][..], &[9][..]));
        // The rest of a message, after which the program says no more, and waits.
        program.write_all(&[2, 7, 7]).unwrap();
        program.shutdown(std::net::Shutdown::Write).unwrap();
        let third = taken(&mut programs);
        assert_eq!(third[0].1, [7, 7]);
        programs.reply(third[0].0, &[5, 6]);
        let mut answer = [0; 4];
        program.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [0, 2, 5, 6]);
    }

    #[test]
    fn who_says_too_much_or_stays_too_long_is_heard_no_more() {
        let (mut programs, at) = listening();
        let mut program = TcpStream::connect(at).unwrap();
        program.write_all(&[0xff, 0xff, 0]).unwrap();
        assert!(taken(&mut programs).is_empty() && programs.streams.is_empty());
        assert_eq!(program.read(&mut [0]).unwrap_or(0), 0, "it is closed");
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS + 5 {
            silent.push(TcpStream::connect(at).unwrap());
            programs.take(0);
        }
        assert_eq!(programs.streams.len(), CONNECTIONS);
        programs.take(PATIENCE + 1);
        assert!(programs.streams.is_empty());
        drop(silent);
    }

    #[test]
    fn other_hosts_are_not_heard() {
        let mut programs = Programs::open(HERE, vec![[10, 99, 0, 2].into()], 0).unwrap();
        let at = programs.datagrams[0].local_addr().unwrap();
        let program = UdpSocket::bind((HERE, 0)).unwrap();
        program.send_to(&[1], at).unwrap();
        let mut stream = TcpStream::connect(programs.listeners[0].local_addr().unwrap()).unwrap();
        stream.write_all(&[0, 1, 1]).unwrap();
        assert!(taken(&mut programs).is_empty());
    }
}
