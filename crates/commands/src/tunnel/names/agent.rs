//! [`Names`]: the thread that answers programs, speaks to the directory and the authority, and gives the tunnel its peers.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context, Result};
use live::config::tunnel::{CloudSettings, PeerSettings, TunnelSettings};
use live::{Peers, Running};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use overlay::{Action, Claims, LONGEST, MOST_REACHED, Name, NoWay, Node, PORT, Reached, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SocketType;
use tunnel::{Prefix, SystemEntropy};

use super::super::bridge::Bridge;
use super::super::settings::AT;
use super::dns::{self, Answer, Asked, Wanted};
use super::forward::Forward;
use super::mapped::Mapped;
use super::places::Places;
use super::policy::Policed;
use super::programs::{Asker, Programs, bound};
use super::way::{Change, Way};
use crate::log::Log;

/// Questions of programs that wait for the directory, at most.
const WAITING: usize = 512;
/// Datagrams of one socket that are taken in a turn.
const BURST: usize = 32;
/// How long the thread sleeps at most.
const LONGEST_SLEEP: u64 = 200_000_000;
/// Seconds of silence after which a peer gets a keepalive, so that routers between it and us remember us.
const KEEPALIVE: u16 = 25;
/// Nanoseconds between two looks for this host's addresses.
const LOOK: u64 = 10_000_000_000;

/// The sockets of a node, and what it answers.
pub(in super::super) struct Names {
    cloud: CloudSettings,
    /// The node's own addresses, and the networks they are in.
    own: Vec<(IpAddr, u8)>,
    /// To the directory, and to an authority that is another process.
    signaling: UdpSocket,
    programs: Programs,
    forward: Forward,
    node: Node,
    policed: Policed,
    start: Instant,
    /// Nanoseconds of silence after which peers get keepalives, where the router forgets in seconds.
    keep: Option<u64>,
    /// When this host's addresses are looked for again.
    look: u64,
    /// The number of peers of which the directory has heard in this round how they are reached.
    said: usize,
    /// Peers that are reached directly.
    direct: BTreeSet<Name>,
    /// The client of this host's router, which may map a port to the tunnel.
    mapped: Option<Mapped>,
    /// To the servers by TCP, if the network has a port for that.
    tcp: Option<(Bridge, Way)>,
    /// At which of its places the directory is spoken to.
    places: Places,
    /// The servers, as the configuration has them, and the other peers, as the directory showed them.
    servers: Vec<(PeerSettings, SocketAddr)>,
    shown: HashMap<Name, (Claims, Vec<SocketAddr>)>,
    /// Questions that wait for the way to a node: who asks, and the query.
    waiting: HashMap<Name, Vec<(Asker, Vec<u8>)>>,
}

impl Names {
    /// Opens the sockets, if the tunnel is a node of a network. The addresses need not be there yet.
    ///
    /// # Errors
    /// Somebody else has the port, or there is no randomness.
    pub(in super::super) fn open(tunnel: &TunnelSettings) -> Result<Option<Self>> {
        let Some(cloud) = tunnel.cloud.clone() else { return Ok(None) };
        let own = tunnel.addresses.clone();
        let v4 = own.iter().find(|(address, _)| address.is_ipv4());
        let v4 = v4.map_or(Ipv4Addr::UNSPECIFIED.into(), |(address, _)| *address);
        let addresses: Vec<IpAddr> = own.iter().map(|(address, _)| *address).collect();
        let forward = Forward::open(&addresses, Box::new(SystemEntropy::new()));
        let programs = Programs::open(v4, addresses, dns::PORT)
            .with_context(|| format!("port {} of {v4}, to answer for names", dns::PORT))?;
        let own_at = SocketAddr::new(v4, PORT);
        let signaling = bound(own_at, SocketType::DGRAM, Some(&tunnel.name));
        let entropy = Box::new(SystemEntropy::new());
        let mut node = Node::new(cloud.name.clone(), cloud.signer, entropy)?;
        if cloud.authority.is_some() {
            node.authority_apart();
        }
        let policed = Policed::new(cloud.name.clone(), &own);
        let servers = servers(tunnel, &cloud);
        let first = servers.first().map(|(_, at)| *at);
        let is_ipv4 = first.is_none_or(|at| at.is_ipv4());
        let places = Places::new(first.into_iter().chain(cloud.also.iter().copied()).collect());
        let bridge = cloud.tcp.map(|port| Bridge::open(port, is_ipv4)).transpose();
        let bridge = bridge.context("sockets to reach servers by TCP")?;
        let tcp = bridge.map(|bridge| (bridge, Way::new(0)));
        Ok(Some(Self {
            cloud,
            own,
            policed,
            // The directory speaks by the tunnel alone, whatever source others write.
            signaling: signaling.with_context(|| format!("UDP {own_at}, to the directory"))?.into(),
            programs,
            forward,
            node,
            start: Instant::now(),
            keep: None,
            look: 0,
            said: 0,
            direct: BTreeSet::new(),
            // Without it the node is reached as well as its router lets it be.
            mapped: Mapped::open().ok(),
            tcp,
            places,
            servers,
            shown: HashMap::new(),
            waiting: HashMap::new(),
        }))
    }

    /// Answers until `stop` is raised, in a thread of its own; then the router ends its mapping.
    ///
    /// # Errors
    /// There are no threads left.
    pub(in super::super) fn start(
        mut self,
        (run, peers): (Running, Peers),
        log: Log,
        stop: Arc<AtomicBool>,
    ) -> io::Result<JoinHandle<()>> {
        let answer = move || {
            while !stop.load(Ordering::Relaxed) {
                self.turn((&run, &peers), log);
            }
        };
        thread::Builder::new().name("names".to_owned()).spawn(answer)
    }

    fn turn(&mut self, (run, peers): (&Running, &Peers), log: Log) {
        let now = self.now();
        self.wait(self.node.next_due().saturating_sub(now).min(LONGEST_SLEEP));
        let now = self.now();
        self.answer_programs(now);
        self.hear_servers(now);
        self.choose_way(now, peers, log);
        self.choose_place(now, peers, log);
        if self.look <= now {
            self.look = now.saturating_add(LOOK);
            self.mapped.iter_mut().for_each(|mapped| mapped.look(peers.port(), now));
            self.node.set_locals(self.locals(peers.port(), now));
            self.say_ways(now, peers);
        }
        self.ask_router(peers.port(), now, log);
        self.node.tick(now);
        while let Some(action) = self.node.take() {
            self.act(action, (run, peers), log);
        }
    }

    /// Has the router map a port to the tunnel. A new port is registered at once.
    fn ask_router(&mut self, port: u16, now: u64, log: Log) {
        let Some(mapped) = &mut self.mapped else { return };
        let before = mapped.outer(now);
        mapped.turn(now);
        let Some(outer) = mapped.outer(now).filter(|outer| Some(*outer) != before) else { return };
        log.tell(&format!("the router maps {outer} to this node"));
        self.node.set_locals(self.locals(port, now));
        self.node.register_now(now);
    }

    /// Tells the directory how this node reaches its peers, some of them at a time: a lost message is as good as a late one. A
    /// direct path that was given up is asked for again.
    fn say_ways(&mut self, now: u64, peers: &Peers) {
        if !self.node.is_registered() {
            return;
        }
        let all: Vec<Reached> = peers.reached(&format!(".{}", self.cloud.domain));
        let direct = all.iter().filter(|it| it.is_direct).map(|it| it.name.clone()).collect();
        let before = std::mem::replace(&mut self.direct, direct);
        before.difference(&self.direct).for_each(|name| self.node.fell_back(name, now));
        let (some, next) = part(&all, self.said);
        self.said = next;
        if !some.is_empty() {
            self.node.reaches(some.to_vec());
        }
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn wait(&self, nanos: u64) {
        let directory = PollFd::new(&self.signaling, PollFlags::IN);
        let mut sockets: Vec<PollFd<'_>> =
            self.programs.sources().chain(self.forward.sources()).chain([directory]).collect();
        sockets.extend(self.tcp.iter().flat_map(|(bridge, _)| bridge.sources()));
        sockets.extend(self.mapped.iter().map(Mapped::source));
        let pause = Timespec { tv_sec: 0, tv_nsec: nanos as i64 };
        // After an error it is looked again, as after a signal.
        let _ = poll(&mut sockets, Some(&pause));
    }

    fn hear_servers(&mut self, now: u64) {
        let mut buffer = [0; LONGEST + 1];
        for _ in 0..BURST {
            let Ok((length, from)) = self.signaling.recv_from(&mut buffer) else { break };
            let message = &buffer[..length];
            if from == at(self.cloud.directory) {
                self.tcp.iter_mut().for_each(|(_, way)| way.heard(now));
                self.places.heard();
                self.node.receive(message, now);
            } else if self.cloud.authority.is_some_and(|authority| from == at(authority)) {
                self.node.receive_of_authority(message, now);
            }
        }
    }

    /// Moves datagrams of TCP connections, and turns to TCP, or back to UDP.
    fn choose_way(&mut self, now: u64, peers: &Peers, log: Log) {
        let Some((bridge, way)) = &mut self.tcp else { return };
        bridge.set_tunnel(peers.port());
        bridge.turn(now);
        let Some((_, directory)) = self.servers.first() else { return };
        let is_connected = bridge.is_connected(directory.ip());
        let change = way.turn(now, is_connected);
        // Who knows this node by another connection gets a handshake by this one; of an authority nothing is waited for.
        let is_other = bridge.take_again().is_some_and(|server| {
            let is_authority = self.servers.get(1).is_some_and(|(_, at)| at.ip() == server);
            server == directory.ip() || !is_authority
        });
        let (is_tcp, is_all) = match change {
            Some(Change::All { is_tcp }) => (is_tcp, true),
            Some(Change::Servers { is_tcp }) => (is_tcp, false),
            None if is_other && way.is_tcp() => (true, true),
            None => return,
        };
        if is_all && change.is_some() {
            bridge.clear();
            log.tell(match is_tcp {
                true => "warning: the directory does not answer by UDP: TCP is tried",
                false => "the directory is reached by UDP again, or tried",
            });
        }
        self.reach_servers((is_tcp, is_all), now, peers, log);
    }

    /// Speaks to the directory at its next place, where it does not answer at this one.
    fn choose_place(&mut self, now: u64, peers: &Peers, log: Log) {
        let Some(place) = self.places.turn(now) else { return };
        let Some((_, at)) = self.servers.first_mut() else { return };
        *at = place;
        if !std::mem::replace(&mut self.places.is_said, true) {
            log.tell(&format!("warning: the directory does not answer: {place} is tried"));
        }
        let mut is_tcp = false;
        if let Some((bridge, _)) = self.tcp.as_mut().filter(|(_, way)| way.is_tcp()) {
            bridge.clear();
            is_tcp = true;
        }
        self.reach_servers((is_tcp, is_tcp), now, peers, log);
    }

    /// Makes the servers peers again, where they are now; and all other peers, if so.
    fn reach_servers(&mut self, (is_tcp, is_all): (bool, bool), now: u64, peers: &Peers, log: Log) {
        for (server, at) in &self.servers {
            let bridge = self.tcp.as_mut().filter(|_| is_tcp);
            let stand = bridge.and_then(|(bridge, _)| bridge.stand_for(*at));
            let endpoint = Some(stand.unwrap_or(*at).into());
            if let Err(error) = peers.set(&PeerSettings { endpoint, ..server.clone() }) {
                log.tell(&format!("warning: {} is no peer: {error}", server.name));
            }
            self.keep.into_iter().for_each(|after| peers.keep(&server.name, after));
        }
        self.node.register_now(now);
        if is_all {
            for (claims, relays) in self.shown.clone().into_values() {
                self.add(&claims, relays, peers, log);
            }
        }
    }

    /// Answers what programs ask, or asks the directory.
    fn answer_programs(&mut self, now: u64) {
        for (asker, answer) in self.forward.take(now) {
            self.programs.reply(asker, &answer);
        }
        for (asker, query) in self.programs.take(now) {
            let Some(asked) = dns::read(&query, &self.cloud.domain) else { continue };
            match self.known(&asked) {
                Some(Reply::Is(Answer::Refused)) if self.forward.ask(asker, query.clone(), now) => {
                }
                Some(Reply::Name(name)) => self.reply(asker, &query, Answer::Pointer(&name)),
                Some(Reply::Is(answer)) => self.reply(asker, &query, answer),
                None => self.ask(asked, (asker, query), now),
            }
        }
    }

    /// The answer that needs no directory.
    fn known(&self, asked: &Asked) -> Option<Reply> {
        Some(Reply::Is(match asked {
            Asked::Node(name, _) if *name == self.cloud.name => {
                let (v4, v6) = self.own_addresses();
                match asked {
                    Asked::Node(_, Wanted::V6) if v6.is_unspecified() => Answer::Nothing,
                    _ => Answer::Addresses(v4, v6),
                }
            }
            Asked::Node(..) => return None,
            Asked::Pointer(address) => match self.name_of(*address) {
                Some(name) => return Some(Reply::Name(format!("{name}.{}", self.cloud.domain))),
                None if self.is_in_network(*address) => Answer::NoSuchName,
                None => Answer::Refused,
            },
            Asked::Nobody => Answer::NoSuchName,
            Asked::Domain => Answer::Nothing,
            Asked::Foreign => Answer::Refused,
            Asked::NotImplemented => Answer::NotImplemented,
        }))
    }

    fn own_addresses(&self) -> (Ipv4Addr, Ipv6Addr) {
        let (mut v4, mut v6) = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
        for (address, _) in self.own.iter().rev() {
            match address {
                IpAddr::V4(address) => v4 = *address,
                IpAddr::V6(address) => v6 = *address,
            }
        }
        (v4, v6)
    }

    /// The node that has an address, as far as this node knows the way to it.
    fn name_of(&self, address: IpAddr) -> Option<&Name> {
        if self.own.iter().any(|(own, _)| *own == address) {
            return Some(&self.cloud.name);
        }
        let has_it = |peer: &&Claims| address == peer.v4 || address == peer.v6;
        self.node.peers().find(has_it).map(|peer| &peer.name)
    }

    fn is_in_network(&self, address: IpAddr) -> bool {
        self.own.iter().any(|own| is_near(address, *own))
    }

    /// Asks for the way to a node, and keeps the question until it is known.
    fn ask(&mut self, asked: Asked, question: (Asker, Vec<u8>), now: u64) {
        let Asked::Node(name, _) = asked else { return };
        if self.waiting.values().map(Vec::len).sum::<usize>() >= WAITING {
            let (asker, query) = question;
            let why = "too many programs wait for answers";
            return self.reply(asker, &query, Answer::Failure(why));
        }
        self.waiting.entry(name.clone()).or_default().push(question);
        self.node.resolve(&name, now);
    }

    fn act(&mut self, action: Action, (run, peers): (&Running, &Peers), log: Log) {
        match action {
            // What is lost is said again.
            Action::Send(message) => {
                self.places.said(&message, self.now());
                let _ = self.signaling.send_to(&message, at(self.cloud.directory));
            }
            Action::Ask(message) => {
                let authority = self.cloud.authority.unwrap_or(self.cloud.directory);
                let _ = self.signaling.send_to(&message, at(authority));
            }
            Action::Permit { claims, permits } => {
                if let Err(what) = self.policed.hold(&claims, &permits, run) {
                    let name = self.full(&claims.name);
                    log.tell(&format!("warning: {name} may begin nothing: {what}"));
                }
            }
            Action::Add { claims, relays } => {
                self.shown.insert(claims.name.clone(), (claims.clone(), relays.clone()));
                self.add(&claims, relays, peers, log);
            }
            Action::Remove { name } => {
                self.shown.remove(&name);
                peers.remove(&self.full(&name));
                self.policed.forget(&name, run);
            }
            Action::Punch { name, mut candidates, after, routers } => {
                // Not through the tunnel itself.
                candidates.retain(|candidate| !self.is_in_network(candidate.ip()));
                peers.attempt(&self.full(&name), &candidates, after, routers);
            }
            Action::Probe { mut to } => {
                to.retain(|place| !self.is_in_network(place.ip()));
                if let Some((directory, _)) = self.servers.first() {
                    peers.probe_aside(&directory.name, &to);
                }
            }
            Action::Keep(after) => {
                self.keep = Some(after);
                self.servers.iter().for_each(|(server, _)| peers.keep(&server.name, after));
                self.shown.keys().for_each(|name| peers.keep(&self.full(name), after));
            }
            Action::Answer { name, found } => self.answer(&name, found),
            Action::Note(line) => log.tell(&format!("warning: {line}")),
        }
    }

    /// Makes the tunnel have a peer, in place of the peer that had the name or the key.
    fn add(&mut self, claims: &Claims, mut relays: Vec<SocketAddr>, peers: &Peers, log: Log) {
        if let Some((bridge, _)) = self.tcp.as_mut().filter(|(_, way)| way.is_tcp()) {
            let stand = |at: &mut SocketAddr| *at = bridge.stand_for(*at).unwrap_or(*at);
            relays.iter_mut().for_each(stand);
        }
        let whole =
            |address: IpAddr| Prefix::new(address, if address.is_ipv4() { 32 } else { 128 });
        let allowed = [claims.v4.into(), claims.v6.into()];
        let peer = PeerSettings {
            endpoint: relays.first().copied().map(Into::into),
            relays,
            allowed: allowed.into_iter().filter_map(|address| whole(address).ok()).collect(),
            keepalive: Some(KEEPALIVE),
            ..PeerSettings::new(self.full(&claims.name), claims.key, AT)
        };
        if let Err(error) = peers.set(&peer) {
            log.tell(&format!("warning: {} is no peer: {error}", peer.name));
        }
        self.keep.into_iter().for_each(|after| peers.keep(&peer.name, after));
    }

    /// Where the tunnel may be reached: the port that the router maps to it, and, for those near it, addresses of this host, of each family
    /// the first two, or of IPv4 the first where a port is mapped.
    fn locals(&self, port: u16, now: u64) -> Vec<SocketAddr> {
        let outer = self.mapped.as_ref().and_then(|mapped| mapped.outer(now));
        let Ok(all) = getifaddrs() else { return Vec::new() };
        let up = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
        let used = all
            .filter(|it| it.flags.contains(up) && !it.flags.contains(InterfaceFlags::IFF_LOOPBACK));
        let addresses: Vec<IpAddr> = used
            .filter_map(|it| {
                let address = it.address?;
                let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
                v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
            })
            .filter(|address| !is_of_link(*address) && !self.is_in_network(*address))
            .collect();
        let of = |is_v4, most| addresses.iter().filter(move |it| it.is_ipv4() == is_v4).take(most);
        let own = of(true, if outer.is_some() { 1 } else { 2 }).chain(of(false, 2));
        outer.into_iter().chain(own.map(|address| SocketAddr::new(*address, port))).collect()
    }

    fn answer(&mut self, name: &Name, found: std::result::Result<Claims, NoWay>) {
        let why = found.as_ref().err().map(|why| match why {
            NoWay::Silent if self.node.lacks_identity() => {
                "this node has no identity: its authority has not answered yet".to_owned()
            }
            NoWay::Silent if !self.node.is_registered() => {
                "this node has not registered: its directory has not answered yet".to_owned()
            }
            why => why.to_string(),
        });
        let answer = match (&found, &why) {
            (Ok(claims), _) => Answer::Addresses(claims.v4, claims.v6),
            (Err(NoWay::Refused(Refusal::NoSuchName)), _) => Answer::NoSuchName,
            (Err(_), why) => Answer::Failure(why.as_deref().unwrap_or_default()),
        };
        for (asker, query) in self.waiting.remove(name).unwrap_or_default() {
            self.reply(asker, &query, answer);
        }
    }

    fn reply(&mut self, to: Asker, query: &[u8], answer: Answer<'_>) {
        if let Some(reply) = dns::write(query, answer) {
            self.programs.reply(to, &reply);
        }
    }

    /// A node's name with the domain.
    fn full(&self, name: &Name) -> String {
        format!("{name}.{}", self.cloud.domain)
    }
}

/// Those of all peers that a message takes, from a place on, and the place of the next message's.
fn part(all: &[Reached], from: usize) -> (&[Reached], usize) {
    let rest = all.get(from..).unwrap_or_default();
    let (some, left) = rest.split_at(rest.len().min(MOST_REACHED));
    (some, if left.is_empty() { 0 } else { from + some.len() })
}

/// The servers that a tunnel has as peers, the directory first, and where they are.
fn servers(tunnel: &TunnelSettings, cloud: &CloudSettings) -> Vec<(PeerSettings, SocketAddr)> {
    let of = |address: Ipv4Addr| {
        let has_it = |peer: &&PeerSettings| {
            peer.allowed.iter().any(|prefix| prefix.address() == IpAddr::V4(address))
        };
        let peer = tunnel.peers.iter().find(has_it)?;
        Some((peer.clone(), peer.endpoint.as_ref()?.address()?))
    };
    [Some(cloud.directory), cloud.authority].into_iter().flatten().filter_map(of).collect()
}

/// Whether an address is in the network of another one, whose prefix has that many bits.
fn is_near(address: IpAddr, (other, bits): (IpAddr, u8)) -> bool {
    let prefix = |address| Prefix::new(address, bits).ok();
    prefix(address).is_some_and(|own| Some(own) == prefix(other))
}

/// Where a server of this address speaks.
fn at(server: Ipv4Addr) -> SocketAddr {
    SocketAddr::new(server.into(), PORT)
}

/// An answer that is known at once.
enum Reply {
    Is(Answer<'static>),
    Name(String),
}

/// Whether an address means something on one link alone.
fn is_of_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_hears_of_all_peers_in_turn() {
        let peer = |number: usize| Reached {
            name: format!("n{number}").parse().unwrap(),
            is_direct: false,
            micros: None,
        };
        let all: Vec<Reached> = (0..2 * MOST_REACHED + 1).map(peer).collect();
        let (mut said, mut next) = (Vec::new(), 0);
        for expected in [MOST_REACHED, 2 * MOST_REACHED, 0] {
            let (some, then) = part(&all, next);
            said.extend_from_slice(some);
            next = then;
            assert_eq!(next, expected);
        }
        assert_eq!(said, all);
        // There are fewer than before: the next message begins with the first.
        assert_eq!(part(&all[..3], 2 * MOST_REACHED), (&[][..], 0));
        assert_eq!(part(&all[..3], 0), (&all[..3], 0));
    }

    #[test]
    fn addresses_of_the_network_are_near_the_nodes_own() {
        let near = |address: &str, own: &str, bits| {
            is_near(address.parse().unwrap(), (own.parse().unwrap(), bits))
        };
        assert!(near("10.99.7.2", "10.99.0.3", 16) && near("fd51::2", "fd51::3", 64));
        assert!(!near("10.98.0.3", "10.99.0.3", 16) && !near("fd51:0:0:1::2", "fd51::3", 64));
        assert!(!near("10.99.0.3", "fd51::3", 64) && !near("fd51::3", "10.99.0.3", 16));
    }
}
