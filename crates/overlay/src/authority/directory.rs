//! A directory on another host: what it hears of devices, and when.
//!
//! It hears of each change at once. After a restart of either side all devices are named, those first that are revoked. What
//! a directory has carried out is on its disk.

use std::net::SocketAddr;

use tunnel::PublicKey;

use super::apart::Apart;
use super::state::Authority;
use crate::effect::{Effect, Now};
use crate::limits;
use crate::members::{Certifying, Following};
use crate::message::{Body, Transaction};
use crate::network::GUESTS_DIRECTORY;
use crate::queue::Heard;
use crate::record::Device;

impl Authority {
    /// The directory is another process, which is reached at one of at most [`limits::DIRECTORIES`] places and has this key: to be
    /// said before anything else is. To it, this authority speaks from its address for the link alone, as guests do.
    pub fn directory_apart(&mut self, at: Vec<SocketAddr>, key: PublicKey) {
        self.reserve(key);
        self.directory = Some(Apart::new(at, key));
    }

    /// Of a directory apart: whether it is there.
    #[must_use]
    pub fn has_directory(&self, now: u64) -> Option<bool> {
        self.directory.as_ref().map(|apart| apart.orders.is_there(now))
    }

    /// Whether a directory apart has said nothing for so long that the session with it may be worth nothing; then not again for
    /// a while.
    pub fn is_deserted(&mut self, now: u64) -> bool {
        let Some(apart) = &mut self.directory else { return false };
        let is_silent = now >= apart.heard.saturating_add(limits::SERVER_PATIENCE);
        if is_silent {
            (apart.heard, apart.say_at) = (now, now);
        }
        is_silent
    }

    pub(super) fn is_directory(&self, key: &PublicKey) -> bool {
        self.directory.as_ref().is_some_and(|apart| apart.orders.key == *key)
    }

    /// Tells the directory what a device is now.
    pub(super) fn tell(&mut self, device: &Device) {
        self.effects.push_back(Effect::Tell(device.clone()));
        if let Some(apart) = &mut self.directory {
            apart.orders.order(device.name.clone());
            self.send_orders();
        }
    }

    /// The directory says how far it has come.
    pub(super) fn directory_says(&mut self, said: Following, transaction: Transaction, now: Now) {
        let started = self.started;
        let Some(apart) = &mut self.directory else { return };
        apart.heard = now.nanos;
        let word = (said.started, said.series, said.done);
        match apart.orders.hear(started, word, transaction, now.nanos) {
            Heard::Nothing => return,
            Heard::GoesOn => {}
            Heard::Begins { is_other } => {
                let (revoked, others): (Vec<_>, Vec<_>) =
                    self.devices.values().partition(|device| device.revoked);
                let all = revoked.into_iter().chain(others).map(|device| device.name.clone());
                apart.orders.begin(all.collect(), now.nanos);
                apart.say_at = now.nanos;
                if is_other {
                    self.note("the directory is there".to_owned());
                }
            }
        }
        self.certify(now);
        self.send_orders();
    }

    /// Says what the directory is to follow, and repeats orders that it has not carried out, if it is time.
    pub(super) fn certify(&mut self, now: Now) {
        let Some(apart) = &mut self.directory else { return };
        apart.orders.repeat(now.nanos);
        if now.nanos >= apart.say_at {
            apart.say_at = now.nanos.saturating_add(limits::SERVER_SAYS);
            apart.said += 1;
            let certifying = Certifying {
                started: self.started,
                series: apart.orders.series(self.started),
                time: now.unix,
                domain: self.network.domain.clone(),
                v4: self.network.v4,
                v6: self.network.v6,
            };
            let (to, transaction) = (apart.orders.key, apart.said);
            let body = Body::Certifies(Box::new(certifying));
            self.send((to, GUESTS_DIRECTORY.into()), transaction, body);
        }
        self.send_orders();
    }

    fn send_orders(&mut self) {
        while let Some(apart) = &mut self.directory
            && let Some((number, name)) = apart.orders.send()
        {
            let (to, series) = (apart.orders.key, apart.orders.series(self.started));
            let Some(device) = self.devices.get(&name).cloned() else { return };
            let body = Body::Member { series, device: Box::new(device) };
            self.send((to, GUESTS_DIRECTORY.into()), number, body);
        }
    }

    /// Notices that the directory no longer speaks.
    pub(super) fn miss_directory(&mut self, now: u64) {
        if self.directory.as_mut().is_some_and(|apart| apart.orders.misses(now)) {
            self.note("the directory is not there".to_owned());
        }
    }
}
