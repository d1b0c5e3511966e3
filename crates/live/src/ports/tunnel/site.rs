//! [`Site`]: one end of a tunnel, as all of its users share it: its socket, and its protocol under a lock.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pktio::datagram::{
    Arrived, DatagramConfig, DatagramSocket, Message, Refusal, SendBatch, Source,
};
use tunnel::{Config, Due, Inner, Outgoing, PeerId, Received, SystemEntropy, Tunnel};

use super::outer::{self, OUTER, Outer};
use super::own::{self, OwnSockets, Whereabouts};
use super::path_mtu::PathMtu;
use super::waiting::Waiting;
use crate::config::tunnel::{Dscp, Endpoint, TunnelSettings};

/// Bytes of room in the kernel for received messages that were not read yet: a few milliseconds' worth. More would only
/// make what waits older.
const BUFFER: usize = 4 << 20;

/// One end of a tunnel.
pub(crate) struct Site {
    pub(super) name: Arc<str>,
    /// The main socket: sends everything, and receives peers without a socket of their own, and everybody else.
    pub(super) socket: DatagramSocket,
    pub(super) own: OwnSockets,
    pub(super) dscp: Dscp,
    /// Bytes of the longest inner packet.
    pub(super) mtu: u16,
    start: Instant,
    state: Mutex<State>,
    /// Datagrams that hold no data and came to nothing.
    pub(super) refused: AtomicU64,
    pub(super) is_narrow: AtomicBool,
    /// Whether names of peers are looked up.
    asks_for_names: bool,
}

/// What the lock protects.
pub(super) struct State {
    pub(super) tunnel: Tunnel,
    pub(super) peers: HashMap<PeerId, Peer>,
}

/// The state of a peer besides the protocol.
pub(super) struct Peer {
    pub(super) name: Arc<str>,
    /// The peer's endpoint, as configured.
    pub(super) endpoint: Option<Endpoint>,
    /// Prefixes that the peer was given.
    pub(super) allowed: Vec<tunnel::Prefix>,
    /// Our address that it sent to last: answers come from there.
    pub(super) own: Option<Source>,
    pub(super) waiting: Waiting,
    /// How often there was a new session through which to send what waits.
    pub(super) reached: u64,
    pub(super) path: PathMtu,
    /// This host's router and the peer's, as a directory saw them.
    pub(super) routers: Option<[overlay::Router; 2]>,
    /// Datagrams that the system did not send, in the order of [`Refusal::ALL`].
    pub(super) unsent: [u64; Refusal::ALL.len()],
}

impl Site {
    /// Opens the socket of a tunnel; nothing is sent yet.
    ///
    /// # Errors
    /// The system has no such port, or no randomness.
    pub(crate) fn open(name: &str, settings: &TunnelSettings) -> io::Result<Self> {
        let config = DatagramConfig {
            port: settings.listen,
            mark: settings.mark,
            device: settings.device.clone(),
            buffer: BUFFER,
        };
        let (socket, others) =
            DatagramSocket::bind_with(&config, settings.peers.len().min(own::MOST))?;
        let own = OwnSockets::new(&socket, others)?;
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let config = Config {
            key: settings.key.clone(),
            offer: settings.ciphers.offer(),
            started: 0,
            started_unix: unix.as_nanos() as u64,
            mtu: usize::from(settings.mtu),
        };
        let tunnel = Tunnel::new(config, Box::new(SystemEntropy::new()))
            .map_err(|_| io::Error::other("the system has no randomness"))?;
        let site = Self {
            name: name.into(),
            socket,
            own,
            dscp: settings.dscp,
            mtu: settings.mtu,
            start: Instant::now(),
            state: Mutex::new(State { tunnel, peers: HashMap::new() }),
            refused: AtomicU64::new(0),
            is_narrow: AtomicBool::new(false),
            asks_for_names: settings.has_names(),
        };
        for peer in &settings.peers {
            site.add_peer(peer).map_err(io::Error::other)?;
        }
        Ok(site)
    }

    /// Whether names of peers are looked up: some peer of the file has one.
    pub(crate) fn asks_for_names(&self) -> bool {
        self.asks_for_names
    }

    /// The tunnel's name for rules.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the longest inner packet.
    pub(crate) fn mtu(&self) -> u32 {
        self.mtu.into()
    }

    /// Nanoseconds since the tunnel was opened.
    pub(super) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic may leave two peers in disagreement: a session that does not work is replaced.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the path to any peer takes less than what is configured.
    pub(super) fn is_narrow(&self) -> bool {
        self.is_narrow.load(Ordering::Relaxed)
    }

    /// Bytes of the longest packet that the path of each packet takes; `None` where no peer has the destination.
    pub(super) fn usable<'p>(&self, packets: impl Iterator<Item = &'p [u8]>) -> Vec<Option<u16>> {
        let state = self.lock();
        let usable = |bytes| {
            let peer = state.tunnel.peer_of(Inner::parse(bytes)?.destination)?;
            state.peers.get(&peer).map(|peer| peer.path.usable())
        };
        packets.map(usable).collect()
    }

    /// Takes a handshake message: returns the answer, and the peer that can be reached now.
    pub(super) fn handshake(
        &self,
        datagram: &[u8],
        arrived: &Arrived,
    ) -> (Option<Outgoing>, Option<PeerId>) {
        let mut state = self.lock();
        match state.tunnel.receive(datagram, arrived.from, self.now()) {
            // The answered sender is where it was until it shows the session's keys.
            Received::Reply(reply) | Received::Answered { reply, .. } => (Some(reply), None),
            Received::Established { peer, reply } => {
                state.heard(peer, arrived.at);
                state.reached(peer);
                (Some(reply), Some(peer))
            }
            // The timers send the next initiation.
            Received::Told(_) => (None, None),
            Received::Opening(_) | Received::Dropped(_) => {
                self.refuse(1);
                (None, None)
            }
        }
    }

    /// Counts datagrams that hold no data and come to nothing.
    pub(super) fn refuse(&self, count: u64) {
        if count > 0 {
            self.refused.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Messages that the kernel lost for lack of room.
    pub(super) fn overruns(&self) -> u64 {
        let sockets = self.own.iter().chain([&self.socket]);
        sockets.map(|socket| u64::from(socket.overruns().unwrap_or(0))).sum()
    }

    /// Gives active peers sockets of their own.
    pub(super) fn follow_peers(&self) {
        let state = self.lock();
        let spoken_to = |(id, peer): (&PeerId, &Peer)| {
            let status = state.tunnel.status(*id)?;
            let is_spoken_to = status.session.is_some() || status.handshaking;
            let endpoint = status.endpoint.filter(|_| is_spoken_to)?;
            Some((*id, endpoint, peer.own.map(|own| own.address)))
        };
        let spoken_to: Vec<Whereabouts> = state.peers.iter().filter_map(spoken_to).collect();
        drop(state);
        self.own.follow(&spoken_to);
    }

    /// Sends what is due: handshakes, keepalives.
    pub(super) fn send_due(&self, sending: &mut SendBatch) {
        loop {
            let mut state = self.lock();
            let due = match state.tunnel.due(self.now()) {
                None => break,
                Some(Due::Send(due)) => due,
                Some(Due::GaveUp(peer)) => {
                    if let Some(peer) = state.peers.get_mut(&peer) {
                        peer.waiting.clear();
                    }
                    continue;
                }
                Some(Due::Failed(..)) => continue,
            };
            // An initiation takes the routes of now: its answer shows the address from which the peer is reached.
            let from = outer::is_data(due.bytes()).then(|| state.own_towards(&due)).flatten();
            drop(state);
            self.send_own(&[(due, from)], sending);
        }
    }

    /// Sends datagrams of the tunnel's own, which are sent again if they are lost.
    pub(super) fn send_own(&self, own: &[(Outgoing, Option<Source>)], sending: &mut SendBatch) {
        let messages = own.iter().map(|(own, from)| Message {
            bytes: own.bytes(),
            segment: 0,
            to: own.to(),
            from: *from,
            tos: 0,
        });
        self.socket.send(sending, messages);
        self.learn(sending);
    }

    /// Sends sealed frames in their order; returns the number that the socket took.
    pub(super) fn send<'f>(
        &self,
        frames: impl Iterator<Item = &'f [u8]>,
        sending: &mut SendBatch,
    ) -> usize {
        let messages = frames.filter_map(|bytes| {
            let Outer { peer, own, tos, segment } = Outer::read(bytes)?;
            Some(Message { bytes: bytes.get(OUTER..)?, segment, to: peer, from: own, tos })
        });
        let taken = self.socket.send(sending, messages).taken;
        self.learn(sending);
        taken
    }

    /// Takes note of what the system did not send, or not from the given address.
    pub(super) fn learn(&self, sending: &SendBatch) {
        if !sending.unsent().is_empty() || !sending.astray().is_empty() {
            self.lock().learn(sending);
        }
    }
}

impl State {
    #[cold]
    fn learn(&mut self, sending: &SendBatch) {
        let Self { tunnel, peers } = self;
        for (id, peer) in peers {
            let endpoint = tunnel.status(*id).and_then(|status| status.endpoint);
            let Some(endpoint) = endpoint else { continue };
            for told in sending.unsent().iter().filter(|told| told.to == endpoint) {
                peer.unsent[told.why as usize] += told.datagrams;
            }
            if sending.astray().contains(&endpoint) {
                peer.own = None;
            }
        }
    }

    /// Our address from which the peer is reached that a datagram is for.
    fn own_towards(&self, own: &Outgoing) -> Option<Source> {
        let mut peers = self.peers.iter();
        let endpoint = |id| self.tunnel.status(id).and_then(|status| status.endpoint);
        peers.find(|(id, _)| endpoint(**id) == Some(own.to())).and_then(|(_, peer)| peer.own)
    }

    /// Notes that there is a session through which to send what waits for a peer.
    pub(super) fn reached(&mut self, peer: PeerId) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.reached += 1;
        }
    }

    /// Notes the address of ours at which a peer was heard.
    pub(super) fn heard(&mut self, peer: PeerId, at: Option<Source>) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.own = at;
        }
    }
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("name", &self.name).finish_non_exhaustive()
    }
}
