//! [`Keeper`]: what a tunnel does by itself: handshakes and keepalives in time, probes of paths, sockets that follow
//! their peers, and peers' names.
//!
//! Contract: two threads for each tunnel, one for deadlines and one that asks for names, as that may take long. They end
//! with the keeper, but for a name that is being asked for: nobody waits for that. They start with the run, after it was
//! confined, and hold no lock while they send or ask.

use std::io;
use std::net::ToSocketAddrs;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pktio::datagram::{Message, SendBatch};
use tunnel::{HEADROOM, PeerId, TAILROOM};

use super::site::Site;
use crate::run::config::tunnel::Endpoint;

/// How often deadlines are looked at. Handshakes that packets wait for do not wait for this.
const TICK: Duration = Duration::from_millis(50);
/// How often it is looked whose name is to be asked for.
const NAMES: Duration = Duration::from_secs(1);
/// A peer that is silent for as long while it is spoken to, in nanoseconds, may have another address now.
const SILENT: u64 = 15_000_000_000;
/// And its name is not asked for again before, in turns of [`NAMES`].
const PAUSE: u32 = 15;

/// The threads of one tunnel.
pub(in crate::run) struct Keeper {
    end: Arc<End>,
    deadlines: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

/// Whether it is over.
#[derive(Default)]
struct End {
    is_over: Mutex<bool>,
    over: Condvar,
}

impl End {
    /// Waits; whether it goes on.
    fn wait(&self, pause: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.over.wait_timeout_while(is_over, pause, |is_over| !*is_over);
        let (is_over, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*is_over
    }
}

impl Keeper {
    /// Starts them.
    ///
    /// # Errors
    /// There are no threads left.
    pub(in crate::run) fn start(site: &Arc<Site>) -> io::Result<Self> {
        let end = Arc::<End>::default();
        let (of, until) = (Arc::clone(site), Arc::clone(&end));
        let deadlines =
            thread::Builder::new().name(format!("tunnel {}", site.name)).spawn(move || {
                let mut sending = SendBatch::default();
                while until.wait(TICK) {
                    of.send_due(&mut sending);
                    of.follow_peers();
                    of.probe(&mut sending);
                }
            })?;
        let keeper = Self { end, deadlines: Some(deadlines) };
        if site.asks_for_names() {
            let (of, until) = (Arc::clone(site), Arc::clone(&keeper.end));
            let names = move || {
                let mut asked = Vec::new();
                while of.ask_names(&mut asked) && until.wait(NAMES) {}
            };
            drop(thread::Builder::new().name(format!("names {}", site.name)).spawn(names)?);
        }
        Ok(keeper)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.end.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end.over.notify_all();
        if let Some(deadlines) = self.deadlines.take() {
            let _ = deadlines.join();
        }
    }
}

impl Site {
    /// Sends probes of paths that are due.
    fn probe(&self, sending: &mut SendBatch) {
        let mut state = self.lock();
        let now = self.now();
        let super::site::State { tunnel, peers } = &mut *state;
        let mut probes = Vec::new();
        for (id, peer) in peers.iter_mut() {
            let heard = tunnel.status(*id).filter(|status| status.session.is_some());
            let heard = heard.and_then(|status| status.heard);
            let is_heard = heard.is_some_and(|heard| now.saturating_sub(heard) < SILENT);
            let Some((number, len)) = peer.path.due(now, is_heard) else { continue };
            let len = usize::from(len);
            let mut buffer = vec![0; HEADROOM + len + TAILROOM];
            if let Some((range, to)) = tunnel.probe(*id, number, (&mut buffer, len), now) {
                probes.push((buffer, range, to, peer.own));
            }
        }
        let is_narrow = peers.values().any(|peer| peer.path.usable() < self.mtu);
        self.is_narrow.store(is_narrow, Ordering::Relaxed);
        drop(state);
        for (buffer, range, to, from) in &probes {
            let message =
                Message { bytes: &buffer[range.clone()], segment: 0, to: *to, from: *from, tos: 0 };
            self.socket.send(sending, [message]);
            self.learn(sending);
        }
    }

    /// Asks for names of peers that are not known, or are silent though they are spoken to. `asked` has those that were asked
    /// for lately, and for how long they are not again. Always true.
    fn ask_names(&self, asked: &mut Vec<(PeerId, u32)>) -> bool {
        asked.retain_mut(|(_, pause)| {
            *pause -= 1;
            *pause > 0
        });
        let wanted: Vec<(PeerId, Endpoint)> = {
            let (state, now) = (self.lock(), self.now());
            let named = state.peers.iter().filter_map(|(id, peer)| {
                let endpoint =
                    peer.endpoint.as_ref().filter(|endpoint| endpoint.name().is_some())?;
                let status = state.tunnel.status(*id)?;
                let is_silent =
                    status.heard.is_none_or(|heard| now.saturating_sub(heard) >= SILENT);
                let is_lost = status.endpoint.is_none() || (status.handshaking && is_silent);
                let is_free = asked.iter().all(|(other, _)| other != id);
                (is_lost && is_free).then(|| (*id, endpoint.clone()))
            });
            named.collect()
        };
        for (id, endpoint) in wanted {
            asked.push((id, PAUSE));
            let Some(host) = endpoint.name() else { continue };
            // A name that nobody knows may be known later.
            let found = (host, endpoint.port()).to_socket_addrs().ok();
            if let Some(address) = found.and_then(|mut addresses| addresses.next()) {
                self.lock().tunnel.set_endpoint(id, address);
            }
        }
        true
    }
}
