//! A tunnel as a port: what is transmitted into it is sealed for the peer that has its destination, and sent as UDP
//! datagrams; what its peers sealed is received. The protocol is [`tunnel`]'s, `docs/tunnel.md` has it.
//!
//! | | sequential | parallel | sequential |
//! |---|---|---|---|
//! | in | [`TunnelPort`]`::rx_burst`: datagrams, many in a frame; handshakes are answered | [`Worker`]`::open` | – |
//! | out | – | [`Worker`]`::seal`: places in a session, in a row for each superframe | [`TunnelPort`]`::tx_burst` |
//!
//! Contract: one [`Site`] for each tunnel, whose lock is taken twice for a burst that is opened and once for one that is
//! sealed, never while anything is ciphered or sent. Frames are cut, sealed, opened and joined in memory of pools that
//! are as large at the end as at the beginning. What waits for a peer is bounded ([`waiting::WAITING`]). What is lost is
//! told with its reason. Inner packets keep their order where bursts do: those of a burst are sealed and opened in order.
//! Timers, names of peers and the length of paths are a keeper's ([`keeper`]).

mod ecn;
mod fit;
#[cfg(any(test, fuzzing))]
pub(super) mod hostile;
mod joining;
mod keeper;
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
mod tests;
mod waiting;
mod worker;

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use pktio::datagram::{Arrived, Message, SendBatch};
use pktio::{
    Burst, Direction, Envelope, FrameBuf, FrameMeta, LinkType, Port, PortError, Readiness, Stats,
    Timestamp,
};
use tunnel::Outgoing;

pub(super) use keeper::Keeper;
pub(super) use peers::PeerTold;
pub(super) use site::Site;

use self::outer::{Kind, Outer};
use self::reception::Reception;
use self::worker::Worker;
use super::config::tunnel::TunnelSettings;

/// Handshake messages of anybody that are looked at in a turn in which peers are received.
const HANDSHAKES: usize = 32;

/// The sockets of a tunnel.
pub(super) struct TunnelPort {
    site: Arc<Site>,
    reception: Reception,
    sending: SendBatch,
    worker: Worker,
    stats: Stats,
}

impl TunnelPort {
    pub(super) fn new(site: Arc<Site>) -> Self {
        let worker = Worker::new(Arc::clone(&site));
        Self {
            site,
            reception: Reception::new(),
            sending: SendBatch::default(),
            worker,
            stats: Stats::default(),
        }
    }

    fn failure(&self, source: std::io::Error) -> PortError {
        PortError::Io { name: self.site.name.to_string(), offset: 0, source }
    }

    /// Answers the handshake messages among what arrived, as many as there is `room` for; whether any datagram is data.
    fn answer(&mut self, frame: &FrameBuf, arrived: &Arrived, room: &mut usize) -> bool {
        let (mut has_data, mut refused) = (false, 0);
        for datagram in frame.bytes().chunks(arrived.segment.max(1)) {
            match outer::kind(datagram) {
                Kind::Data => has_data = true,
                Kind::Handshake if *room > 0 => {
                    *room -= 1;
                    self.shake_hands(datagram, arrived);
                }
                Kind::Handshake | Kind::Noise => refused += 1,
            }
        }
        self.site.refuse(refused);
        has_data
    }

    /// A message with what is known of it before it, if any of its datagrams is data.
    fn enveloped(
        &mut self,
        mut frame: FrameBuf,
        arrived: &Arrived,
        timestamp: Option<Timestamp>,
        room: &mut usize,
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
        if let Some(reply) = reply {
            self.site.send_own(&reply, arrived.at, &mut self.sending);
        }
        if let Some(peer) = established {
            self.worker.send_waiting(peer);
        }
    }
}

/// Opens the tunnel that a port of this name is, by its configuration.
///
/// # Errors
/// It cannot be read any more, or the system has no such socket.
pub(super) fn open(name: &str, file: &Path) -> Result<Arc<Site>, PortError> {
    let failed = |source| PortError::Io { name: name.to_owned(), offset: 0, source };
    let settings = TunnelSettings::read(file);
    let settings = settings.map_err(|error| failed(io::Error::other(error.to_string())))?;
    Site::open(name, &settings).map(Arc::new).map_err(failed)
}

/// A datagram of the tunnel's own, to send.
fn message<'o>(own: &'o Outgoing, from: Option<pktio::datagram::Source>) -> Message<'o> {
    Message { bytes: own.bytes(), segment: 0, to: own.to(), from, tos: 0 }
}

impl Port for TunnelPort {
    /// Datagrams with data, as the kernel joined them, sealed. Handshakes are answered on the way.
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        let received = self.reception.receive(&self.site);
        let received = received.map_err(|source| self.failure(source));
        let mut arrived = std::mem::take(&mut self.reception.arrived);
        let by_peers = self.reception.by_peers.clone();
        // What peers send has its socket to itself, and where they send nothing there is nothing that has to wait.
        let mut room = if by_peers.is_empty() { usize::MAX } else { HANDSHAKES };
        let timestamp = (!arrived.is_empty()).then(Timestamp::now);
        for (number, (frame, from)) in arrived.drain(..).enumerate() {
            let mut any = usize::MAX;
            let room = if by_peers.contains(&number) { &mut any } else { &mut room };
            if let Some(frame) = self.enveloped(frame, &from, timestamp, room) {
                burst.push_frame(frame);
            }
        }
        self.reception.arrived = arrived;
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
