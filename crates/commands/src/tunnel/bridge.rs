//! [`Bridge`]: carries the tunnel's datagrams in TCP connections to its network's servers, where UDP is blocked.
//!
//! Contract: all sockets are opened at once, so that it may work where none may be opened any more. For each port of a server there
//! stands a UDP port on loopback: what the tunnel sends there goes to the server's, and what comes from that comes from
//! there. It reads no datagram. A datagram for which there is no room, or no connection yet, is lost, as by UDP; a connection
//! that failed is tried again, by the same socket; in use it is begun again without a word, as a server that began again knows
//! nodes by their connections, and a node that only receives would wait in vain.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};

use overlay::{Framed, limits::SECOND};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, connect_unspec, socket_with};

/// Ports of servers that may be stood for.
const STANDS: usize = 48;
/// Servers: the directory, the authority and the relay.
const SERVERS: usize = 3;
/// Datagrams of one port that are taken in a turn, and reads of a connection.
const BURST: usize = 64;
/// Bytes of the longest datagram.
const LONGEST: usize = 9_216;
/// Nanoseconds within which a connection has to be there.
const PATIENCE: u64 = 10 * SECOND;
/// Nanoseconds after which a connection that failed is tried again.
const AGAIN: u64 = SECOND;
/// Nanoseconds for which a connection is in use after a datagram: more than two keepalives, and less than servers keep a silent one.
const IN_USE: u64 = 60 * SECOND;

/// Connections to the servers of a network.
pub(super) struct Bridge {
    /// The servers' TCP port.
    port: u16,
    stands: Vec<Stand>,
    links: Vec<Link>,
    /// The tunnel's UDP port, once it is known.
    tunnel: u16,
    /// A server to which there is another connection than before.
    again: Option<IpAddr>,
    buffer: Vec<u8>,
}

/// A port on loopback, and the server's port that it stands for.
struct Stand {
    socket: UdpSocket,
    server: Option<SocketAddr>,
}

struct Link {
    socket: TcpStream,
    server: Option<IpAddr>,
    framed: Framed,
    is: Is,
    /// There was a connection to that server before.
    was: bool,
    /// When the tunnel sent something to it last.
    sent: u64,
}

/// What a connection is, and since when or until when.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    /// None before then.
    Off(u64),
    /// Begun, to be there by then.
    Begun(u64),
    There,
}

impl Bridge {
    /// Opens the sockets, for servers of this TCP port that are reached by IPv4, or by IPv6.
    pub(super) fn open(port: u16, is_ipv4: bool) -> io::Result<Self> {
        let stand = |_| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(true)?;
            Ok::<_, io::Error>(Stand { socket, server: None })
        };
        let family = if is_ipv4 { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let link = |_| {
            let socket = socket_with(family, SocketType::STREAM, flags, None)?;
            set_tcp_nodelay(&socket, true)?;
            let (framed, is) = (Framed::default(), Is::Off(0));
            let (server, was, sent) = (None, false, 0);
            Ok::<_, io::Error>(Link { socket: socket.into(), server, framed, is, was, sent })
        };
        Ok(Self {
            port,
            stands: (0..STANDS).map(stand).collect::<Result<_, _>>()?,
            links: (0..SERVERS).map(link).collect::<Result<_, _>>()?,
            tunnel: 0,
            again: None,
            buffer: vec![0; 4 * LONGEST],
        })
    }

    /// The tunnel sends from this UDP port.
    pub(super) fn set_tunnel(&mut self, port: u16) {
        self.tunnel = port;
    }

    /// A server to which there is another connection than before: it may have begun again, and knows this one by what comes next.
    pub(super) fn take_again(&mut self) -> Option<IpAddr> {
        self.again.take()
    }

    /// Where the tunnel sends what is for a server's port; nothing if too many ports or servers are stood for.
    pub(super) fn stand_for(&mut self, server: SocketAddr) -> Option<SocketAddr> {
        let ip = server.ip();
        let known = self.links.iter().position(|link| link.server == Some(ip));
        let link = known.or_else(|| self.links.iter().position(|link| link.server.is_none()))?;
        let known = self.stands.iter().position(|stand| stand.server == Some(server));
        let free = self.stands.iter().position(|stand| stand.server.is_none());
        let stand = self.stands.get_mut(known.or(free)?)?;
        stand.server = Some(server);
        self.links[link].server = Some(ip);
        stand.socket.local_addr().ok()
    }

    /// Ends all connections, and stands for nobody.
    pub(super) fn clear(&mut self) {
        self.stands.iter_mut().for_each(|stand| stand.server = None);
        for link in &mut self.links {
            link.end(0);
            (link.server, link.was) = (None, false);
        }
    }

    /// Whether there is a connection to a server.
    pub(super) fn is_connected(&self, server: IpAddr) -> bool {
        self.links.iter().any(|link| link.server == Some(server) && link.is == Is::There)
    }

    /// What is to be waited for.
    pub(super) fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        let stands = self.stands.iter().filter(|stand| stand.server.is_some());
        let stands = stands.map(|stand| PollFd::new(&stand.socket, PollFlags::IN));
        let links = self.links.iter().filter_map(|link| {
            let flags = match link.is {
                Is::Off(_) => return None,
                Is::There if link.framed.pending().is_empty() => PollFlags::IN,
                Is::Begun(_) | Is::There => PollFlags::IN | PollFlags::OUT,
            };
            Some(PollFd::new(&link.socket, flags))
        });
        stands.chain(links)
    }

    /// Carries what there is.
    pub(super) fn turn(&mut self, now: u64) {
        let Self { port, stands, links, tunnel, again, buffer } = self;
        for Stand { socket, server } in stands.iter() {
            let Some(server) = server else { continue };
            let Some(link) = links.iter_mut().find(|it| it.server == Some(server.ip())) else {
                continue;
            };
            for _ in 0..BURST {
                match socket.recv_from(buffer) {
                    // Nobody else of this host speaks for the tunnel.
                    Ok((length, from)) if from.port() == *tunnel => {
                        link.begin(SocketAddr::new(server.ip(), *port), now);
                        link.sent = now;
                        link.framed.send(server.port(), &buffer[..length]);
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // That of a datagram that was sent before.
                    Err(_) => {}
                }
            }
        }
        let tunnel = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), *tunnel);
        for link in links {
            let Some(server) = link.server else { continue };
            if link.was && now.saturating_sub(link.sent) < IN_USE {
                link.begin(SocketAddr::new(server, *port), now);
            }
            let (was_there, was) = (link.is == Is::There, link.was);
            link.turn(buffer, now, |port, datagram| {
                let its = Some(SocketAddr::new(server, port));
                if let Some(stand) = stands.iter().find(|stand| stand.server == its) {
                    let _ = stand.socket.send_to(datagram, tunnel);
                }
            });
            if !was_there && link.is == Is::There {
                link.was = true;
                *again = if was { Some(server) } else { *again };
            }
        }
    }
}

impl Link {
    /// Begins a connection, if there is none and it is time.
    fn begin(&mut self, server: SocketAddr, now: u64) {
        if !matches!(self.is, Is::Off(until) if until <= now) {
            return;
        }
        match connect(&self.socket, &server) {
            Ok(()) => self.is = Is::There,
            Err(Errno::INPROGRESS) => self.is = Is::Begun(now.saturating_add(PATIENCE)),
            Err(_) => self.end(now.saturating_add(AGAIN)),
        }
    }

    /// Ends a connection; before then there is no other. The socket stays.
    fn end(&mut self, until: u64) {
        if self.is != Is::Off(0) {
            let _ = connect_unspec(&self.socket);
        }
        self.framed = Framed::default();
        self.is = Is::Off(until);
    }

    fn turn(&mut self, buffer: &mut [u8], now: u64, each: impl FnMut(u16, &mut [u8])) {
        let is_well = match self.is {
            Is::Off(_) => return,
            Is::Begun(until) => {
                let is_well = now < until && matches!(socket_error(&self.socket), Ok(Ok(())));
                if is_well && self.is_writable() {
                    self.is = Is::There;
                }
                is_well
            }
            Is::There => true,
        };
        let is_well = is_well && (self.is != Is::There || self.carry(buffer, each));
        if !is_well {
            self.end(now.saturating_add(AGAIN));
        }
    }

    /// Whether a connection that was begun is there.
    fn is_writable(&self) -> bool {
        let mut socket = [PollFd::new(&self.socket, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut socket, Some(&now)).is_ok() && socket[0].revents() == PollFlags::OUT
    }

    /// Takes what came, and sends what waits; whether the connection stays.
    fn carry(&mut self, buffer: &mut [u8], mut each: impl FnMut(u16, &mut [u8])) -> bool {
        for _ in 0..BURST {
            match self.socket.read(buffer) {
                Ok(0) => return false,
                Ok(length) => {
                    if self.framed.receive(&buffer[..length], &mut each).is_err() {
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        while !self.framed.pending().is_empty() {
            match self.socket.write(self.framed.pending()) {
                Ok(0) => return false,
                Ok(length) => self.framed.sent(length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use super::*;

    /// A server, the tunnel's socket, and a bridge between them.
    fn scene() -> (TcpListener, UdpSocket, Bridge) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let tunnel = UdpSocket::bind("127.0.0.1:0").unwrap();
        tunnel.set_nonblocking(true).unwrap();
        let mut bridge = Bridge::open(server.local_addr().unwrap().port(), true).unwrap();
        bridge.set_tunnel(tunnel.local_addr().unwrap().port());
        (server, tunnel, bridge)
    }

    /// Turns until something is there.
    fn until<T>(bridge: &mut Bridge, mut found: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            bridge.turn(start.elapsed().as_nanos() as u64);
            if let Some(found) = found() {
                return found;
            }
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn frame(port: u16, datagram: &[u8]) -> Vec<u8> {
        let mut framed = Framed::default();
        assert!(framed.send(port, datagram));
        framed.pending().to_vec()
    }

    #[test]
    fn datagrams_go_both_ways_also_after_the_connection_was_lost() {
        let (server, tunnel, mut bridge) = scene();
        let stand = bridge.stand_for("127.0.0.1:51900".parse().unwrap()).unwrap();
        let relay = bridge.stand_for("127.0.0.1:52000".parse().unwrap()).unwrap();
        assert_ne!(stand, relay);
        server.set_nonblocking(true).unwrap();
        for _ in 0..3 {
            let mut accepted = until(&mut bridge, || {
                tunnel.send_to(b"there", relay).unwrap();
                server.accept().ok()
            });
            let stream = &mut accepted.0;
            stream.set_nonblocking(true).unwrap();
            let mut bytes = [0; 9];
            until(&mut bridge, || {
                tunnel.send_to(b"there", relay).unwrap();
                stream.read(&mut bytes).ok().filter(|length| *length == 9)
            });
            assert_eq!(bytes[..], frame(52_000, b"there"));
            stream.write_all(&frame(51_900, b"back")).unwrap();
            let (length, from) = until(&mut bridge, || tunnel.recv_from(&mut [0; 9]).ok());
            assert_eq!((length, from), (4, stand));
            assert!(bridge.is_connected([127, 0, 0, 1].into()));
        }
        assert_eq!(bridge.take_again(), Some([127, 0, 0, 1].into()));
        assert_eq!(bridge.take_again(), None);
    }

    #[test]
    fn a_connection_in_use_is_begun_again_without_a_word() {
        let (server, tunnel, mut bridge) = scene();
        let stand = bridge.stand_for("127.0.0.1:51900".parse().unwrap()).unwrap();
        server.set_nonblocking(true).unwrap();
        for _ in 0..20 {
            bridge.turn(1);
        }
        assert!(server.accept().is_err(), "nobody has sent anything");
        tunnel.send_to(b"x", stand).unwrap();
        let accepted = until(&mut bridge, || server.accept().ok());
        until(&mut bridge, || Some(()));
        drop(accepted);
        drop(until(&mut bridge, || server.accept().ok()));
        // Nothing was sent for a while.
        for _ in 0..20 {
            bridge.turn(IN_USE + 20 * SECOND);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(server.accept().is_err());
    }

    #[test]
    fn nobody_else_of_the_host_speaks_for_the_tunnel() {
        let (server, tunnel, mut bridge) = scene();
        let stand = bridge.stand_for("127.0.0.1:51900".parse().unwrap()).unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to(b"mine", stand).unwrap();
        server.set_nonblocking(true).unwrap();
        for _ in 0..20 {
            bridge.turn(1);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(server.accept().is_err());
        tunnel.send_to(b"mine", stand).unwrap();
        until(&mut bridge, || server.accept().ok());
    }

    #[test]
    fn a_server_that_sends_nonsense_is_left() {
        let (server, tunnel, mut bridge) = scene();
        let stand = bridge.stand_for("127.0.0.1:51900".parse().unwrap()).unwrap();
        tunnel.send_to(b"x", stand).unwrap();
        server.set_nonblocking(true).unwrap();
        let mut stream = until(&mut bridge, || server.accept().ok()).0;
        stream.write_all(&[0xff; 64]).unwrap();
        stream.set_nonblocking(true).unwrap();
        until(&mut bridge, || match stream.read(&mut [0; 64]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Ok(length) if length > 0 => None,
            _ => Some(()),
        });
    }

    #[test]
    fn there_are_as_many_servers_and_ports_as_there_are() {
        let (_, _, mut bridge) = scene();
        let stand = |bridge: &mut Bridge, text: &str| bridge.stand_for(text.parse().unwrap());
        for server in ["192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"] {
            let first = stand(&mut bridge, server);
            assert!(first.is_some() && first == stand(&mut bridge, server));
        }
        assert_eq!(stand(&mut bridge, "192.0.2.4:1"), None);
        let more = (2..200).filter_map(|port| bridge.stand_for(([192, 0, 2, 1], port).into()));
        assert_eq!(more.count(), STANDS - 3);
        bridge.clear();
        assert!(stand(&mut bridge, "192.0.2.4:1").is_some());
    }
}
