//! [`Service`]: a directory, its tunnel, its store, and the authority and the relay that are not on hosts of their own, as one:
//! datagrams in, datagrams out.
//!
//! Contract: no sockets and no clock. Of all that came in a turn, what is to be kept is committed at once, before anything
//! that follows from it is sent. An error of the store ends it: nothing is acknowledged that is not kept. While a store that is shared is
//! away, it goes on from memory ([`held`]).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use overlay::{
    Authority, Came, Carrier, Directory, Effect, Now, PORT, Record, Relay, limits::SECOND,
};
use serde_json::{Value, json};
use tunnel::{PeerId, PublicKey, SystemEntropy};

use crate::charge;
use crate::clock::Clock;
use crate::config::Settings;
use crate::control::{NewPolicy, Request};
use crate::etcd::Etcd;
use crate::identities;
use crate::page::Page;
use crate::paths;
use crate::peers::{self, end, is_guest, time};
use crate::policy::Written;
use crate::serve::{self, Places, Server};
use crate::store::{Changes, Place, Redb, Shared, Store};
use crate::workers::Relaying;
use held::Held;
use policy::InForce;

mod held;
mod overview;
mod policy;

/// Nodes that are called in a tick after a restart: not all at once, as their answers come all at once, too.
const CALLS: usize = 128;

/// Nanoseconds within which paths are kept, and where nodes send from to the relay: a commit for each would be a wait for the
/// disk for each.
const SOON: u64 = SECOND / 10;

/// The servers of one network.
pub(crate) struct Service<S> {
    directory: Directory,
    /// Nothing where the authority is on a host of its own.
    authority: Option<Authority>,
    /// The key of one on a host of its own.
    authority_apart: Option<PublicKey>,
    carrier: Carrier,
    /// Nothing where the relay is on a host of its own.
    relay: Option<Relay>,
    /// Where nodes reach it.
    own_relay: IpAddr,
    store: S,
    /// Where nodes are, as the store knows it, and since when.
    places: HashMap<PublicKey, (SocketAddr, u64)>,
    /// Paths that came or went since they were kept last, and when that was.
    paths: Vec<Record>,
    kept: u64,
    /// Ports of the relay, and places that did not ask for what comes from there.
    strays: Vec<(u16, SocketAddr)>,
    /// Nodes that are to hear that this cloud began again.
    calls: Vec<PeerId>,
    policy: InForce,
    /// What cannot be kept now.
    held: Option<Held>,
    url: String,
    tcp: Option<u16>,
}

/// What makes a relay for a directory on another host, whose key this is.
pub(crate) fn relay_wanted(public: SocketAddr, key: &PublicKey) -> String {
    format!(
        "on the relay's host, whose address is ADDRESS:\n\
         tamis-cloud trs /etc/tamis/trs.toml --init --public ADDRESS --nms {public} --key {key}\n\
         its [relay] belongs into the configuration here"
    )
}

/// What makes an authority for a directory on another host, whose key this is.
pub(crate) fn authority_wanted(settings: &Settings, key: &PublicKey) -> String {
    let (public, network) = (settings.public, &settings.network);
    let (domain, (v4, bits), (v6, bits6)) = (&network.domain, network.v4, network.v6);
    format!(
        "on the authority's host, whose address is ADDRESS:\n\
         tamis-cloud as /etc/tamis/as.toml --init --public ADDRESS:51900 --nms {public} --key {key} \
         --domain {domain} --v4 {v4}/{bits} --v6 {v6}/{bits6}\n\
         its [as] belongs into the configuration here"
    )
}

/// Runs all servers, or, where some are on hosts of their own, the directory and the others.
pub(crate) fn run(config: &Path, is_apart: bool) -> Result<ExitCode> {
    let settings = Settings::read(config)?;
    let shown = config.display();
    let has_apart = !settings.relays.is_empty() || settings.authority.is_some();
    match (is_apart, has_apart) {
        (true, false) => {
            let key = settings.key()?.public();
            eprintln!("{}", relay_wanted(settings.public, &key));
            eprintln!("or {}", authority_wanted(&settings, &key));
            bail!("{shown}: expected [relay] or [as], of a server on another host")
        }
        (false, true) => {
            bail!("{shown}: expected no [relay] and no [as]; with one: tamis-cloud nms {shown}")
        }
        _ => {}
    }
    let page = settings.page.map(|at| Page::open(at, &settings.control())).transpose()?;
    // It asks the control socket, which is there by the time that anybody asks for the page.
    page.map(Page::start).transpose()?;
    let Some(etcd) = &settings.etcd else {
        let database = settings.database();
        let store = Redb::open(&database).with_context(|| database.display().to_string())?;
        return run_with(&settings, store, config);
    };
    let etcd = Arc::new(Etcd::new(etcd.clone(), &settings.network.domain));
    let Some(charge) = charge::awaited(&etcd, &settings.public.to_string(), &settings.control())?
    else {
        return Ok(ExitCode::SUCCESS);
    };
    // It may have changed while this directory waited.
    let settings = Settings::read(config)?;
    let store = Shared::open(etcd, charge).and_then(|store| begun(store, &settings));
    match store.and_then(|store| run_with(&settings, store, config)) {
        Err(error) if held::is_away(&error) => {
            eprintln!("tamis-cloud: {}", packet::visible::word(&format!("{error:#}")));
            Ok(ExitCode::from(serve::FAILED))
        }
        ended => ended,
    }
}

/// A store in etcd that is new begins with what is in the database of this directory, if it has one.
fn begun(mut store: Shared, settings: &Settings) -> Result<Shared> {
    if store.is_new() {
        let database = settings.database();
        let shown = || database.display().to_string();
        let before = database.exists().then(|| Redb::open(&database).with_context(shown));
        store.begin(before.transpose()?.as_ref())?;
    }
    Ok(store)
}

/// Runs them with what they keep.
fn run_with<S: Store>(settings: &Settings, store: S, config: &Path) -> Result<ExitCode> {
    let clock = Clock::start();
    let mut service = Service::new(settings, store, clock.now())?;
    let relay = service.relay.as_ref().map(|relay| Relaying {
        ports: settings.relay.1.clone(),
        workers: 1,
        forwarding: relay.forwarding(),
    });
    let (tunnel, tcp) = (settings.listen, settings.tcp);
    let places = Places { tunnel, relay, tcp, control: Some(settings.control()) };
    let says = format!("{} is served at {}", settings.network.domain, settings.public);
    serve::run(&mut service, &places, (clock, config), &says)
}

impl<S: Store> Service<S> {
    /// Begins with what is kept.
    pub(crate) fn new(settings: &Settings, store: S, now: Now) -> Result<Self> {
        let key = settings.key()?;
        let (kept, policy) = (store.records()?, InForce::kept(&store)?);
        let (signer, authority) = match settings.authority {
            Some((_, signer)) => (signer, None),
            None => {
                let authority = authority(settings, (&key.public(), kept.clone()))?;
                (settings.signer()?.key(), Some(authority))
            }
        };
        let mut directory = Directory::new(
            settings.network.clone(),
            settings.relay.clone(),
            policy.policy().clone(),
            (signer, key.public()),
            kept,
            &mut SystemEntropy::new(),
        )?;
        settings.relays.iter().for_each(|(at, key)| directory.relay_apart(*at, *key));
        settings.others.iter().for_each(|(at, other)| directory.relay_also_at(*at, *other));
        if let Some((key, _)) = settings.authority {
            directory.authority_apart(key);
        }
        let url = settings.url(&key, signer).to_string();
        let (carrier, relay) = (Carrier::new(end(key, now)?), settings.relays.is_empty());
        let mut service = Self {
            directory,
            authority,
            authority_apart: settings.authority.map(|(key, _)| key),
            carrier,
            relay: relay.then(Relay::default),
            own_relay: settings.relay.0,
            store,
            places: HashMap::new(),
            paths: Vec::new(),
            kept: now.nanos,
            strays: Vec::new(),
            calls: Vec::new(),
            policy,
            held: None,
            url,
            tcp: settings.tcp,
        };
        service.configured(&settings.policy, now)?;
        service.settle(now)?;
        // The others came from the store.
        service.paths.retain(|record| matches!(record, Record::Parted(_)));
        service.go_on()?;
        Ok(service)
    }

    /// Takes up where nodes are, and where they send from to the relay. They have sessions with the cloud that was before, and
    /// would notice late that these are worth nothing: so they are called.
    fn go_on(&mut self) -> Result<()> {
        let tunnel = self.carrier.tunnel_mut();
        for (key, place) in self.store.places()? {
            self.places.insert(key, (place, 0));
            if let Some(peer) = tunnel.find(&key) {
                tunnel.set_endpoint(peer, place);
                self.calls.push(peer);
            }
        }
        if let Some(relay) = &mut self.relay {
            self.store.sources()?.iter().for_each(|(pair, bound)| relay.restore(pair, *bound));
        }
        Ok(())
    }

    /// Where a peer is, if the store does not know: of a node that moves all the time, once a second.
    fn moved(&self, key: &PublicKey, at: IpAddr, now: Now) -> Option<Place> {
        let tunnel = self.carrier.tunnel();
        let place = tunnel.status(tunnel.find(key)?)?.endpoint?;
        let is_known = self.places.get(key).is_some_and(|(known, since)| {
            *known == place || (*since != 0 && now.nanos.saturating_sub(*since) < SECOND)
        });
        (!is_known && !is_guest(key, at)).then_some((*key, place))
    }

    /// Whether a datagram that came to a port of the relay is a probe of a node's router; notes what it shows.
    fn is_probe(&mut self, port: u16, from: SocketAddr, datagram: &[u8], now: Now) -> bool {
        let peer = self.carrier.tunnel_mut().probed_aside(datagram, from, now.nanos);
        let status = peer.and_then(|peer| self.carrier.tunnel().status(peer));
        let Some(status) = status else { return false };
        self.directory.probed(&status.key, port, from, now);
        true
    }

    /// Notes what is to be kept of an effect: before it is carried out, and of a path soon.
    fn note(&mut self, effect: &Effect, changes: &mut Changes, now: Now) {
        match effect {
            Effect::Keep(record) => changes.records.push(record.clone()),
            Effect::Note(line) => changes.lines.push(format!("{} {line}", time(now.unix))),
            Effect::Dismiss { key } if self.places.remove(key).is_some() => {
                changes.displaced.push(*key);
            }
            // Where it is has to outlast what it is answered: a cloud that begins again calls it there.
            Effect::Send { to, at, .. } => {
                if let Some((key, place)) = self.moved(to, *at, now) {
                    self.places.insert(key, (place, now.nanos));
                    changes.places.push((key, place));
                }
            }
            Effect::Join { pair, port, .. } => self.paths.push(Record::Path(pair.clone(), *port)),
            Effect::Part { pair } => self.paths.push(Record::Parted(pair.clone())),
            Effect::Dismiss { .. }
            | Effect::Admit { .. }
            | Effect::Stray { .. }
            | Effect::Tell(_) => {}
        }
    }

    fn carry_out(&mut self, effect: Effect, now: Now) {
        match effect {
            Effect::Keep(_) | Effect::Tell(_) => {}
            Effect::Stray { port, to } => self.strays.push((port, to)),
            Effect::Note(line) => eprintln!("{}", packet::visible::word(&line)),
            Effect::Admit { key, addresses } => peers::admit(&mut self.carrier, key, &addresses),
            Effect::Dismiss { key } => peers::dismiss(&mut self.carrier, &key),
            Effect::Send { to, at, message } => {
                let own = self.directory.network().directory().0.into();
                peers::send(&mut self.carrier, own, (&to, at), &message, now);
            }
            Effect::Join { pair, keys, port } => {
                if let Some(relay) = &mut self.relay {
                    relay.join(&pair, keys, port);
                }
            }
            Effect::Part { pair } => {
                if let Some(relay) = &mut self.relay {
                    relay.part(&pair);
                }
            }
        }
    }

    /// What is to be done. What the authority says of devices the directory learns at once.
    fn effects(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        loop {
            match self.authority.as_mut().and_then(Authority::take) {
                Some(Effect::Tell(device)) => self.directory.learn(device),
                Some(effect) => effects.push(effect),
                None => match self.directory.take() {
                    Some(effect) => effects.push(effect),
                    None => return effects,
                },
            }
        }
    }

    /// Puts what a configuration allows in force, unless that is what is kept, or somebody has put a policy in force himself.
    pub(crate) fn configured(&mut self, written: &Written, now: Now) -> Result<()> {
        match self.policy.is_followed_by(written) {
            true => self.put(written, None, now).map(drop),
            false => Ok(()),
        }
    }

    /// Keeps a policy and puts it in force, by this user or by the configuration: the answer to a request.
    fn put(&mut self, written: &Written, user: Option<u32>, now: Now) -> Result<Value> {
        let (next, changed) = self.policy.next(written, user.is_some());
        let version = next.policy().version;
        let by = user.map_or("the configuration".to_owned(), |uid| format!("user {uid}"));
        let line = format!("version {version} of the policy is in force, by {by}: {changed}");
        let lines = vec![format!("{} {line}", time(now.unix))];
        let changes = Changes { policy: Some(next.to_keep()), lines, ..Changes::default() };
        eprintln!("{}", packet::visible::word(&line));
        if self.keep(changes, &mut Vec::new(), Some(&next))? {
            self.enforce(next);
        }
        Ok(json!({ "version": version, "changed": changed }))
    }

    /// Puts a policy in force that is kept.
    fn enforce(&mut self, next: InForce) {
        self.directory.set_policy(next.policy().clone());
        self.policy = next;
    }

    fn devices(&self, now: Now) -> Value {
        let devices = self.directory.list(now.nanos).map(|listed| {
            let state = match (listed.device.revoked, listed.present) {
                (true, _) => "revoked",
                (false, true) => "present",
                (false, false) => "absent",
            };
            json!({
                "name": listed.device.name.as_str(),
                "key": listed.device.key.to_string(),
                "v4": listed.addresses.0,
                "v6": listed.addresses.1,
                "state": state,
            })
        });
        let devices: Vec<Value> = devices.collect();
        let own = self.relay.as_ref().map(Relay::counts);
        let own = own.map(|counts| (self.own_relay, true, counts));
        let apart = self.directory.relays(now.nanos).map(|it| (it.at, it.is_there, it.counts));
        let state = |is_there| if is_there { "present" } else { "absent" };
        let relays = own.into_iter().chain(apart).map(|(at, is_there, (forwarded, dropped))| {
            json!({
                "at": at, "forwarded": forwarded, "dropped": dropped, "state": state(is_there),
            })
        });
        let relays: Vec<Value> = relays.collect();
        let authority = json!({ "state": state(self.directory.has_authority().unwrap_or(true)) });
        json!({
            "schema": "tamis.cloud-devices/1",
            "devices": devices,
            "relays": relays,
            "authority": authority,
        })
    }
}

impl<S: Store> Server for Service<S> {
    fn arrived(&mut self, datagram: &mut [u8], from: SocketAddr, now: Now) {
        let (peer, payload) = match self.carrier.receive(datagram, from, now.nanos) {
            Came::Message(it) if it.to.port() == PORT => (it.peer, datagram.get(it.payload)),
            Came::Session(peer) => (peer, None),
            Came::Message(_) | Came::Nothing | Came::Dropped(_) => return,
        };
        let Some(status) = self.carrier.tunnel().status(peer) else { return };
        match payload {
            Some(payload) if self.declines(&status.key, payload) => {}
            Some(payload) => {
                let authority = self.authority.as_mut();
                if !authority.is_some_and(|it| it.receive(&status.key, payload, now)) {
                    self.directory.receive(&status.key, payload, now);
                }
            }
            None => self.directory.met(&status.key, now),
        }
        self.directory.heard(&status.key, from, now);
    }

    fn relayed(
        &mut self,
        port: u16,
        from: SocketAddr,
        datagram: &[u8],
        now: Now,
    ) -> Option<SocketAddr> {
        if self.is_probe(port, from, datagram, now) {
            return None;
        }
        let tunnel = self.carrier.tunnel();
        self.relay.as_mut()?.forward(port, from, datagram, now.nanos, |key| {
            tunnel.status(tunnel.find(key)?)?.endpoint
        })
    }

    fn look_for(&mut self, port: u16, from: SocketAddr, datagram: &[u8], now: Now) -> bool {
        if self.is_probe(port, from, datagram, now) {
            return false;
        }
        let tunnel = self.carrier.tunnel();
        if let Some(relay) = &mut self.relay {
            relay.look_for(port, from, datagram, |key| tunnel.status(tunnel.find(key)?)?.endpoint);
        }
        true
    }

    fn take(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.carrier.take()
    }

    fn take_stray(&mut self) -> Option<(u16, SocketAddr)> {
        self.strays.pop()
    }

    fn tick(&mut self, now: Now) {
        for peer in self.calls.drain(self.calls.len().saturating_sub(CALLS)..) {
            self.carrier.tunnel_mut().call(peer, now.nanos);
        }
        self.carrier.tick(now.nanos);
        self.directory.expire(now);
        self.authority.iter_mut().for_each(|authority| authority.expire(now));
    }

    fn sweep(&mut self, now: Now) {
        self.directory.sweep(now);
        self.directory.recall(now);
        self.authority.iter_mut().for_each(|authority| authority.sweep(now));
    }

    /// Carries out what is wanted: first what is to be kept.
    fn settle(&mut self, now: Now) -> Result<()> {
        self.keep_held(now)?;
        let mut effects = self.effects();
        let mut changes = Changes::default();
        effects.iter().for_each(|effect| self.note(effect, &mut changes, now));
        if now.nanos.saturating_sub(self.kept) >= SOON {
            self.kept = now.nanos;
            let records = std::mem::take(&mut self.paths);
            let sources = self.relay.as_mut().map(Relay::take_changed).unwrap_or_default();
            let soon = Changes { records, sources, ..Changes::default() };
            if soon != Changes::default() {
                self.store.commit_soon(soon).context("the database")?;
            }
        }
        if changes != Changes::default() && !self.keep(changes, &mut effects, None)? {
            return Ok(());
        }
        effects.into_iter().for_each(|effect| self.carry_out(effect, now));
        Ok(())
    }

    fn answer(&mut self, request: Request, now: Now) -> Result<Value> {
        // An answer comes after all that was to be kept by then.
        self.store.flush().context("the database")?;
        let is_change = matches!(
            request,
            Request::Enrol { .. }
                | Request::Revoke { .. }
                | Request::Policy(NewPolicy { text: Some(_), .. })
        );
        if let Some(why) = self.unkept().filter(|_| is_change) {
            return Ok(json!({ "error": format!("{why}: nothing is changed") }));
        }
        let answer = match request {
            Request::Enrol { names } => match &mut self.authority {
                Some(authority) => {
                    identities::enrol(authority, &names, (&self.url, self.tcp), now)?
                }
                None => identities::elsewhere(),
            },
            Request::Devices {} => self.devices(now),
            Request::Revoke { name } => match &mut self.authority {
                Some(authority) => identities::revoke(authority, &name),
                None => identities::elsewhere(),
            },
            Request::Policy(new) => match self.policy.asked(&new) {
                Ok(written) => self.put(&written, Some(new.uid), now)?,
                Err(answer) => answer,
            },
            Request::Paths {} => match &self.relay {
                Some(relay) => paths::answer(relay.paths()),
                None => json!({ "error": "the relay is on a host of its own, and is asked there" }),
            },
            Request::Overview {} => serde_json::to_value(self.overview(now)?)?,
            Request::Log {} => {
                let lines = self.store.lines(usize::MAX)?;
                json!({ "lines": lines })
            }
        };
        self.settle(now)?;
        Ok(self.held_answer().filter(|_| is_change).unwrap_or(answer))
    }

    fn reload(&mut self, config: &Path, now: Now) -> Result<()> {
        let unkept = self.unkept().map_or(Ok(()), |why| Err(anyhow!(why)));
        match unkept.and_then(|()| Settings::read(config)) {
            Ok(settings) => self.configured(&settings.policy, now),
            Err(error) => {
                eprintln!("warning: what is allowed stays as it was: {error:#}");
                Ok(())
            }
        }
    }
}

/// The authority of this process.
fn authority(settings: &Settings, (own, kept): (&PublicKey, Vec<Record>)) -> Result<Authority> {
    let keys = (settings.signer()?, *own);
    let entropy = Box::new(SystemEntropy::new());
    let mut authority = Authority::new(settings.network.clone(), keys, kept, entropy)?;
    settings.relays.iter().for_each(|(_, key)| authority.reserve(*key));
    Ok(authority)
}

#[cfg(test)]
mod figures;
#[cfg(test)]
mod tests;
