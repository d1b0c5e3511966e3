//! [`Devices`]: the part of a run that owns its devices and tunnels.
//!
//! Contract: any thread may use it; the lock of the links is held for one look at a time.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::answers::{Peer, Port};
use crate::devices::links::Links;
use crate::ports::tunnel::Site;

/// Devices that may disappear and come back, and tunnels with their peers.
#[derive(Debug)]
pub(crate) struct Devices {
    /// The links, which the thread that waits for the run's end checks.
    links: Mutex<Links>,
    tunnels: Vec<Arc<Site>>,
}

impl Devices {
    pub(crate) fn new(links: Links, tunnels: Vec<Arc<Site>>) -> Self {
        Self { links: Mutex::new(links), tunnels }
    }

    /// Checks devices, if it is time.
    pub(crate) fn look(&self, tell: &mut impl FnMut(&str)) {
        self.links().look(Instant::now(), tell);
    }

    /// Takes up again what was taken down for a lost link, at the end of a run.
    pub(crate) fn restore(&self, tell: &mut impl FnMut(&str)) {
        self.links().restore(tell);
    }

    pub(crate) fn status(&self) -> Vec<Port> {
        self.links().status()
    }

    pub(crate) fn tunnels(&self) -> &[Arc<Site>] {
        &self.tunnels
    }

    /// The state of all peers of tunnels.
    pub(crate) fn peers(&self) -> Vec<Peer> {
        self.tunnels.iter().flat_map(|site| site.told()).collect()
    }

    /// The name of the peer that has an address inside the tunnel of this name.
    pub(crate) fn peer_of(&self, tunnel: &str, address: IpAddr) -> Option<Arc<str>> {
        self.tunnels.iter().find(|site| site.name() == tunnel)?.peer_of(address)
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
