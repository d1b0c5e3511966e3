//! A tunnel as a port: transmitted packets are sealed for the peer that has their destination, and sent as UDP
//! datagrams; packets that peers sealed are received. The protocol is in [`tunnel`], and described in `docs/tunnel.md`.
//!
//! | | sequential | parallel | sequential |
//! |---|---|---|---|
//! | in | [`TunnelPort`]`::rx_burst`: datagrams, many in a frame; handshakes are answered | [`Worker`]`::open` | – |
//! | out | – | [`Worker`]`::seal`: places in a session, in a row for each superframe | [`TunnelPort`]`::tx_burst` |
//!
//! Contract: one [`Site`] for each tunnel, whose lock is taken twice for a burst that is opened and once for a burst
//! that is sealed, never while anything is ciphered or sent. Frames are cut, sealed, opened and joined in memory of
//! pools that are as large at the end as at the beginning. What waits for a peer is bounded ([`waiting::WAITING`]).
//! Losses are reported with their reason. Inner packets keep their order where bursts do: the packets of a burst are
//! sealed and opened in order. [`timers`] keeps time, looks up names of peers and probes the length of paths.

mod carried;
mod ecn;
mod fit;
#[cfg(any(test, fuzzing))]
pub(crate) mod hostile;
mod joining;
mod mss;
mod open;
mod outer;
mod own;
mod path_mtu;
mod peers;
mod reception;
mod seal;
mod site;
#[cfg(test)]
pub(super) mod tests;
mod timers;
mod waiting;
mod worker;

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use pktio::datagram::{Arrived, SendBatch, Source};
use pktio::{
    Burst, Direction, Envelope, FrameBuf, FrameMeta, LinkType, Port, PortError, Readiness, Stats,
    Timestamp,
};
use tunnel::Outgoing;

pub use carried::TunnelEnd;
pub use peers::Peers;
pub(crate) use site::Site;
pub(crate) use timers::Timers;

use self::outer::{Kind, Outer};
use self::reception::Reception;
use self::worker::Worker;
use crate::config::tunnel::TunnelSettings;

/// Handshake messages that are read of a message from anybody, in a turn in which peers are received. A sender of so
/// many that the kernel joins them leaves room for the others.
const HANDSHAKES: usize = 4;

/// The sockets of a tunnel.
pub(crate) struct TunnelPort {
    site: Arc<Site>,
    reception: Reception,
    sending: SendBatch,
    /// The replies to handshake messages of a burst, to be sent at once.
    replies: Vec<(Outgoing, Option<Source>)>,
    worker: Worker,
    stats: Stats,
}

impl TunnelPort {
    pub(crate) fn new(site: Arc<Site>) -> Self {
        let worker = Worker::new(Arc::clone(&site));
        Self {
            site,
            reception: Reception::new(),
            sending: SendBatch::default(),
            replies: Vec::new(),
            worker,
            stats: Stats::default(),
        }
    }

    fn failure(&self, source: std::io::Error) -> PortError {
        PortError::Io { name: self.site.name.to_string(), offset: 0, source }
    }

    /// Answers the handshake messages of a message, up to `room` of them; returns whether any datagram is data.
    fn answer(&mut self, frame: &FrameBuf, arrived: &Arrived, mut room: usize) -> bool {
        let (mut has_data, mut refused) = (false, 0);
        for datagram in frame.bytes().chunks(arrived.segment.max(1)) {
            match outer::kind(datagram) {
                Kind::Data => has_data = true,
                Kind::Handshake if room > 0 => {
                    room -= 1;
                    self.shake_hands(datagram, arrived);
                }
                Kind::Handshake | Kind::Noise => refused += 1,
            }
        }
        self.site.refuse(refused);
        has_data
    }

    /// A message with its outer data before it, if any of its datagrams is data.
    fn enveloped(
        &mut self,
        mut frame: FrameBuf,
        arrived: &Arrived,
        timestamp: Option<Timestamp>,
        room: usize,
    ) -> Option<FrameBuf> {
        let length = frame.bytes().len();
        if !self.answer(&frame, arrived, room) || !Outer::of(arrived).put_before(&mut frame) {
            return None;
        }
        self.stats.rx_frames += 1;
        self.stats.rx_bytes += length as u64;
        frame.meta = FrameMeta {
            number: self.stats.rx_frames,
            timestamp,
            wire_length: frame.bytes().len() as u32,
            link_type: LinkType::SEALED,
            interface: 0,
            direction: Direction::Inbound,
        };
        Some(frame)
    }

    fn shake_hands(&mut self, datagram: &[u8], arrived: &Arrived) {
        let (reply, established) = self.site.handshake(datagram, arrived);
        self.replies.extend(reply.map(|reply| (reply, arrived.at)));
        if let Some(peer) = established {
            self.reply();
            self.worker.send_waiting(peer);
        }
    }

    fn reply(&mut self) {
        if !self.replies.is_empty() {
            self.site.send_own(&self.replies, &mut self.sending);
            self.replies.clear();
        }
    }
}

/// Opens the tunnel of the port of this name, by its configuration.
///
/// # Errors
/// The configuration cannot be read any more, or the system has no such socket.
pub(crate) fn open(name: &str, file: &Path) -> Result<Arc<Site>, PortError> {
    let failed = |source| PortError::Io { name: name.to_owned(), offset: 0, source };
    let settings = TunnelSettings::read(file);
    let settings = settings.map_err(|error| failed(io::Error::other(error.to_string())))?;
    Site::open(name, &settings).map(Arc::new).map_err(failed)
}

impl Port for TunnelPort {
    /// Datagrams with data, as the kernel joined them, sealed. Handshakes are answered on the way.
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        let received = self.reception.receive(&self.site);
        let received = received.map_err(|source| self.failure(source));
        let mut arrived = std::mem::take(&mut self.reception.arrived);
        let by_peers = self.reception.by_peers.clone();
        // Peers' sockets are the peers' own, and where peers send nothing there is nothing that has to wait.
        let is_free = |number| by_peers.is_empty() || by_peers.contains(&number);
        let timestamp = (!arrived.is_empty()).then(Timestamp::now);
        for (number, (frame, from)) in arrived.drain(..).enumerate() {
            let room = if is_free(number) { usize::MAX } else { HANDSHAKES };
            if let Some(frame) = self.enveloped(frame, &from, timestamp, room) {
                burst.push_frame(frame);
            }
        }
        self.reception.arrived = arrived;
        self.reply();
        received.map(|()| burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let offered = burst.len();
        let sent = self.site.send(burst.iter().map(|frame| frame.bytes), &mut self.sending);
        let mut place = 0;
        burst.retain(|_| {
            place += 1;
            place > sent
        });
        let stats = &mut self.stats;
        stats.tx_frames += sent as u64;
        stats.tx_full += (offered - sent) as u64;
        Ok(sent)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Descriptor(self.site.own.as_fd())
    }

    fn stats(&self) -> Stats {
        Stats { rx_lost: self.site.overruns() + self.reception.lost(), ..self.stats }
    }

    fn finishes(&self) -> bool {
        true
    }

    fn envelope(&self) -> Option<Box<dyn Envelope>> {
        Some(Box::new(Worker::new(Arc::clone(&self.site))))
    }
}
