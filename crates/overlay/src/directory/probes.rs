//! Soundings: what the router in front of a node does with ports, found out at its registration and where it has moved.
//!
//! The node probes two ports of the relay, and the directory sees from which ports of the router. Then something comes to the
//! node from a third port that it has never sent to, and it probes that one: a router of Linux whose INPUT took what came
//! gives the node another port for it. Nobody's session ever uses that port before the router forgets it.
//!
//! Contract: a lost probe costs knowledge, and no path. What a node says by probes is counted once for each that it was asked for.

use std::net::SocketAddr;

use tunnel::PublicKey;

use super::sounding::{Sounding, Step};
use super::state::Directory;
use crate::effect::{Effect, Now};
use crate::limits;
use crate::message::Body;
use crate::name::Name;
use crate::paths::Pair;
use crate::router::{Ports, Strangers};

impl Directory {
    /// Begins to find out what a node's router does, where the relay is of this process.
    pub(super) fn sound(&mut self, name: &Name, now: Now) {
        if let Some(presence) = self.present.get_mut(name) {
            let Sounding { used, waiting, .. } = std::mem::take(&mut presence.sounding);
            let left = limits::SOUNDINGS;
            presence.sounding = Sounding { used, left, waiting, ..Sounding::default() };
        }
        self.sound_on(name, now);
    }

    /// Asks again for what was not seen.
    pub(super) fn sound_on(&mut self, name: &Name, now: Now) {
        let Some(presence) = self.present.get_mut(name) else { return };
        let (at, sounding) = (presence.at, &mut presence.sounding);
        if sounding.left == 0 || (sounding.step == Step::Next && sounding.waiting.is_empty()) {
            return;
        }
        sounding.left -= 1;
        let step = sounding.step;
        let count = if step == Step::Ports { 2 } else { 1 };
        let ports = self.beacons(name, count);
        if ports.len() < count {
            return;
        }
        if let (Step::Strangers, Some(to)) = (step, at) {
            // One may be lost.
            let stray = Effect::Stray { port: ports[0], to };
            self.effects.extend([stray.clone(), stray]);
        }
        self.ask_for_probes(name, ports, now);
    }

    fn ask_for_probes(&mut self, name: &Name, ports: Vec<u16>, now: Now) {
        let at = self.for_node(name, (self.relay.0, self.other));
        let to = ports.iter().map(|port| SocketAddr::new(at, *port)).collect();
        if let Some(presence) = self.present.get_mut(name) {
            presence.sounding.asked = ports.into_iter().map(|port| (port, None)).collect();
            presence.sounding.asked_at = Some(now.nanos);
        }
        self.send(name, 0, Body::Probe { to });
    }

    /// Ports of the relay that a node has no path by and was not asked to probe lately.
    fn beacons(&mut self, name: &Name, count: usize) -> Vec<u16> {
        let (first, last) = (*self.relay.1.start(), *self.relay.1.end());
        let of_range = u32::from(last.saturating_sub(first)) + 1;
        if !self.relays.is_empty() || of_range < limits::BEACONS {
            return Vec::new();
        }
        let Some(presence) = self.present.get_mut(name) else { return Vec::new() };
        let mut found = Vec::new();
        for _ in 0..of_range {
            let port = last - (u32::from(presence.sounding.used) % of_range) as u16;
            presence.sounding.used = presence.sounding.used.wrapping_add(1);
            if !self.paths.has_port(name, port) {
                found.push(port);
            }
            if found.len() == count {
                break;
            }
        }
        found
    }

    /// The node of this key has probed a port of the relay, from there.
    pub fn probed(&mut self, from: &PublicKey, port: u16, at: SocketAddr, now: Now) {
        let Some(name) = self.by_key.get(from).cloned() else { return };
        let Some(presence) = self.present.get_mut(&name) else { return };
        let at = SocketAddr::new(at.ip().to_canonical(), at.port());
        let sounding = &mut presence.sounding;
        let mut asked = sounding.asked.iter_mut();
        let Some((_, seen)) = asked.find(|(of, seen)| *of == port && seen.is_none()) else {
            return;
        };
        (*seen, sounding.last) = (Some(at), Some((at, now.nanos)));
        let seen: Option<Vec<SocketAddr>> = sounding.asked.iter().map(|(_, seen)| *seen).collect();
        let (Some(seen), Some(session)) = (seen, presence.at) else { return };
        sounding.asked.clear();
        match (sounding.step, &seen[..]) {
            (Step::Ports, [one, other]) => {
                let is_one_host = one.ip() == other.ip() && one.ip() == session.ip();
                sounding.router.ports = match is_one_host {
                    true => Ports::of(session.port(), [one.port(), other.port()]),
                    false => Ports::Each,
                };
                let is_one = sounding.router.ports == Ports::One;
                sounding.step = if is_one { Step::Strangers } else { Step::Next };
                sounding.left = limits::SOUNDINGS;
                self.sound_on(&name, now);
            }
            (Step::Strangers, _) => {
                let is_other = at != session;
                let strangers = if is_other { Strangers::Taken } else { Strangers::Pass };
                (sounding.router.strangers, sounding.step) = (strangers, Step::Next);
            }
            _ => {}
        }
        self.punch_waiting(&name, now);
    }

    /// Begins the attempts that waited for what is known of a node's router by now.
    fn punch_waiting(&mut self, name: &Name, now: Now) {
        let Some(presence) = self.present.get_mut(name) else { return };
        let sounding = &mut presence.sounding;
        if !sounding.is_under_way(now.nanos) {
            let waiting = std::mem::take(&mut sounding.waiting);
            waiting.iter().for_each(|(pair, pause)| self.punch(pair, *pause, now));
        }
    }

    /// Has the attempt of a pair wait until [`Directory::begin_waiting`].
    pub(super) fn wait_with(&mut self, (pair, pause): (&Pair, u64)) {
        if let Some(presence) = self.present.get_mut(&pair.0) {
            presence.sounding.waiting.insert(pair.clone(), pause);
        }
    }

    /// Begins attempts that wait for probes that were lost, or for another attempt: to be called each second.
    pub(super) fn begin_waiting(&mut self, now: Now) {
        let waiting = self.present.iter().filter(|(_, it)| !it.sounding.waiting.is_empty());
        let names: Vec<Name> = waiting.map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.punch_waiting(name, now));
    }

    /// Whether the attempt of a pair waits for what is being found out of a node's router.
    pub(super) fn awaits_sounding(
        &mut self,
        name: &Name,
        (pair, pause): (&Pair, u64),
        now: Now,
    ) -> bool {
        let Some(presence) = self.present.get_mut(name) else { return false };
        let is_awaited = presence.sounding.is_under_way(now.nanos);
        if is_awaited {
            presence.sounding.waiting.insert(pair.clone(), pause);
        }
        is_awaited
    }

    /// Where a node may be whose router counts on: where it was seen last, if that was just now. If it was not, it is asked to
    /// probe, and the attempt of the pair waits for that once.
    pub(super) fn latest(&mut self, name: &Name, (pair, pause): (&Pair, u64), now: Now) -> Latest {
        let Some(presence) = self.present.get_mut(name) else { return Latest::Unknown };
        let sounding = &mut presence.sounding;
        let is_recent = |at: u64| now.nanos.saturating_sub(at) < limits::RECENT;
        if let Some((at, _)) = sounding.last.filter(|(_, at)| is_recent(*at)) {
            return Latest::At(at);
        }
        if sounding.asked_at.is_some_and(is_recent) {
            return Latest::Unknown;
        }
        sounding.waiting.insert(pair.clone(), pause);
        let port = self.beacons(name, 1);
        if port.is_empty() {
            return Latest::Unknown;
        }
        self.ask_for_probes(name, port, now);
        Latest::Asked
    }
}

/// Where a node was seen last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Latest {
    At(SocketAddr),
    /// It is asked: the attempt waits.
    Asked,
    Unknown,
}
