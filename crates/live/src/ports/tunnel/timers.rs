//! [`Timers`]: the threads of a tunnel: handshakes and keepalives in time, probes of paths, sockets that follow their
//! peers, and peers' names.
//!
//! Contract: two threads for each tunnel, one for deadlines and one for looking up names, which may take long. They end
//! when this is dropped, except for a look-up in progress, which nothing waits for. They start with the run, after it
//! was confined, and hold no lock while they send or look up.

use std::io;
use std::net::ToSocketAddrs;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pktio::datagram::{Message, SendBatch};
use tunnel::{HEADROOM, PeerId, TAILROOM};

use super::site::Site;
use crate::config::tunnel::Endpoint;

/// How often deadlines are checked, at least and at most. Handshakes that packets wait for do not wait for this.
const TICK: Duration = Duration::from_millis(50);
const SHORTEST_TICK: Duration = Duration::from_millis(2);
/// How often names to be looked up are checked.
const NAMES: Duration = Duration::from_secs(1);
/// A peer that is silent for this long while it is active, in nanoseconds, may have another address now.
const SILENT: u64 = 15_000_000_000;
/// A name is not looked up again before, in turns of [`NAMES`].
const PAUSE: u32 = 15;

/// The threads of one tunnel.
pub(crate) struct Timers {
    end: Arc<End>,
    deadlines: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Timers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timers").finish_non_exhaustive()
    }
}

/// Whether the threads are to end.
#[derive(Default)]
struct End {
    is_over: Mutex<bool>,
    over: Condvar,
}

impl End {
    /// Waits; returns whether the threads go on.
    fn wait(&self, pause: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.over.wait_timeout_while(is_over, pause, |is_over| !*is_over);
        let (is_over, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*is_over
    }
}

impl Timers {
    /// Starts the threads.
    ///
    /// # Errors
    /// There are no threads left.
    pub(crate) fn start(site: &Arc<Site>) -> io::Result<Self> {
        let end = Arc::<End>::default();
        let (of, until) = (Arc::clone(site), Arc::clone(&end));
        let deadlines =
            thread::Builder::new().name(format!("tunnel {}", site.name)).spawn(move || {
                let mut sending = SendBatch::default();
                while until.wait(of.pause()) {
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

impl Drop for Timers {
    fn drop(&mut self) {
        *self.end.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end.over.notify_all();
        if let Some(deadlines) = self.deadlines.take() {
            let _ = deadlines.join();
        }
    }
}

impl Site {
    /// How long nothing is due. Two ends that are to send at once do not wait for a tick.
    fn pause(&self) -> Duration {
        let due = self.lock().tunnel.next_due();
        let left = due.map_or(TICK, |due| Duration::from_nanos(due.saturating_sub(self.now())));
        left.clamp(SHORTEST_TICK, TICK)
    }

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

    /// Looks up names of peers that are not known, or are silent though they are active. `asked` has the names that
    /// were looked up lately, and for how long they are not again. Always true.
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
            // An unknown name may be known later.
            let found = (host, endpoint.port()).to_socket_addrs().ok();
            if let Some(address) = found.and_then(|mut addresses| addresses.next()) {
                self.lock().tunnel.set_endpoint(id, address);
            }
        }
        true
    }
}
