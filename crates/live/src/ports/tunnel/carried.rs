//! [`TunnelEnd`]: one of two ends of a tunnel whose datagrams somebody else carries, such as a benchmark in memory.
//!
//! Contract: the ends have a session, and no timers run: it lasts for as long as a session may
//! ([`tunnel::limits::REJECT_AFTER_TIME`]). What one end's envelopes seal the other's open. Neither sends anything.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use pktio::Envelope;
use tunnel::{Due, Received, Tunnel};

use super::site::Site;
use super::worker::Worker;
use crate::config::tunnel::TunnelSettings;

/// One end of a tunnel, which has a session with the other.
#[derive(Debug)]
pub struct TunnelEnd(Arc<Site>);

impl TunnelEnd {
    /// Two ends, of which each has the other as its only peer.
    ///
    /// # Errors
    /// The system has no sockets or no randomness, or the ends do not know each other.
    pub fn pair(settings: [&TunnelSettings; 2]) -> io::Result<[Self; 2]> {
        let [first, second] = settings.map(|settings| Site::open(&settings.name, settings));
        let (first, second) = (first?, second?);
        let session = shake_hands(&first, &second);
        session.ok_or_else(|| io::Error::other("the ends of a tunnel have no session"))?;
        Ok([first, second].map(|site| Self(Arc::new(site))))
    }

    /// An envelope for one more user of this end.
    #[must_use]
    pub fn envelope(&self) -> Box<dyn Envelope> {
        Box::new(Worker::new(Arc::clone(&self.0)))
    }
}

fn shake_hands(first: &Site, second: &Site) -> Option<()> {
    let place = |site: &Site| SocketAddr::from((Ipv4Addr::LOCALHOST, site.socket.port()));
    let [(from, now), (to, then)] = [first, second].map(|site| (place(site), site.now()));
    let (mut asks, mut answers) = (first.lock(), second.lock());
    let (asks, answers) = (&mut asks.tunnel, &mut answers.tunnel);
    let peer = asks.peers().next()?;
    asks.set_endpoint(peer, to);
    asks.call(peer, now);
    let Some(Due::Send(initiation)) = asks.due(now) else { return None };
    let Received::Answered { reply, .. } = answers.receive(initiation.bytes(), from, then) else {
        return None;
    };
    let Received::Established { reply, .. } = asks.receive(reply.bytes(), to, now) else {
        return None;
    };
    confirm(answers, &mut reply.bytes().to_vec(), (from, then))
}

/// Takes the first datagram of a session.
fn confirm(end: &mut Tunnel, datagram: &mut [u8], (from, now): (SocketAddr, u64)) -> Option<()> {
    let Received::Opening(opening) = end.receive(datagram, from, now) else { return None };
    let opened = opening.open(datagram).ok()?;
    end.release(opened, datagram, now).ok().map(drop)
}
