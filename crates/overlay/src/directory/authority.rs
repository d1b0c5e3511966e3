//! An authority on another host: its orders say what devices there are, and by its clock identities are judged.

use tunnel::PublicKey;

use super::apart::Apart;
use super::state::Directory;
use crate::effect::{Effect, Now};
use crate::limits::{self, SECOND};
use crate::members::{Certifying, Following};
use crate::message::{Body, Message, Transaction};
use crate::network::guest_address;

impl Directory {
    /// The authority is another process, and has this key: to be said before anything else is. It is a peer of the tunnel with an
    /// address of the link alone, as guests are.
    pub fn authority_apart(&mut self, key: PublicKey) {
        let addresses = vec![guest_address(&key).into()];
        self.effects.push_back(Effect::Admit { key, addresses });
        self.authority = Some(Apart::new(key));
    }

    /// Of an authority apart: whether it is there.
    #[must_use]
    pub fn has_authority(&self) -> Option<bool> {
        self.authority.as_ref().map(|apart| apart.heard.is_some())
    }

    /// Whether this is the key of an authority apart.
    pub(super) fn is_authority(&self, key: &PublicKey) -> bool {
        self.authority.as_ref().is_some_and(|apart| apart.key == *key)
    }

    /// Seconds after 1970: by the authority's clock, if it was heard since this start.
    pub(super) fn unix(&self, now: Now) -> u64 {
        match self.authority.as_ref().and_then(|apart| apart.clock) {
            Some((unix, at)) => unix.saturating_add(now.nanos.saturating_sub(at) / SECOND),
            None => now.unix,
        }
    }

    /// The authority says something. What has been carried out is said to it, each time.
    pub(super) fn authority_says(&mut self, transaction: Transaction, body: Body, now: Now) {
        let started = self.started;
        match body {
            Body::Certifies(said) => {
                if !self.is_of_this_network(&said) {
                    return;
                }
                self.keep_time(said.time, now);
                let Some(apart) = &mut self.authority else { return };
                apart.followed.follow(said.series, started);
                if apart.heard.replace(now.nanos).is_none() {
                    self.note("the authority is there".to_owned());
                }
            }
            Body::Member { series, device } => {
                let Some(apart) = &mut self.authority else { return };
                // A word with its network comes first.
                if apart.heard.is_none() {
                    return;
                }
                apart.followed.follow(series, started);
                if apart.followed.is_next(series, transaction) {
                    self.learn(*device);
                }
            }
            _ => {
                return self
                    .note("the authority sent a message that is not an authority's".to_owned());
            }
        }
        self.answer_authority();
    }

    fn answer_authority(&mut self) {
        let Some(apart) = &mut self.authority else { return };
        apart.said += 1;
        let (started, series, done) = (self.started, apart.followed.series, apart.followed.done);
        let body = Body::Follows(Following { started, series, done });
        let message = Message { transaction: apart.said, body }.to_bytes();
        let (to, at) = (apart.key, guest_address(&apart.key).into());
        self.effects.push_back(Effect::Send { to, at, message });
    }

    /// Whether the authority names nodes of this network; it is noted once where it does not.
    fn is_of_this_network(&mut self, said: &Certifying) -> bool {
        let is_ours = said.is_of(&self.network);
        let Some(apart) = &mut self.authority else { return false };
        if !is_ours && apart.strange.replace(said.started) != Some(said.started) {
            let (v4, v6) = (self.network.v4, self.network.v6);
            let ours = format!("{} {}/{} {}/{}", self.network.domain, v4.0, v4.1, v6.0, v6.1);
            let (v4, v6) = (said.v4, said.v6);
            let its = format!("{} {}/{} {}/{}", said.domain, v4.0, v4.1, v6.0, v6.1);
            self.note(format!("expected an authority of {ours}, found {its}"));
        }
        is_ours
    }

    /// Follows the authority's clock.
    fn keep_time(&mut self, time: u64, now: Now) {
        let Some(apart) = &mut self.authority else { return };
        apart.clock = Some((time, now.nanos));
        let skew = time.abs_diff(now.unix);
        let was_skewed = std::mem::replace(&mut apart.is_skewed, skew > limits::SKEW);
        if apart.is_skewed && !was_skewed {
            let is = if time > now.unix { "ahead of" } else { "behind" };
            self.note(format!(
                "the authority's clock is {skew} s {is} this host's: identities are judged by the authority's"
            ));
        }
    }

    /// Notices that the authority no longer speaks.
    pub(super) fn miss_authority(&mut self, now: u64) {
        let Some(apart) = &mut self.authority else { return };
        let is_silent = |heard| now >= limits::SERVER_PRESENT.saturating_add(heard);
        if apart.heard.is_some_and(is_silent) {
            apart.heard = None;
            self.note("the authority is not there".to_owned());
        }
    }
}
