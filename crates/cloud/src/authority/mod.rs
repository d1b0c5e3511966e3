//! [`run`]: an authority on a host of its own, `tamis-cloud as`: the end of the tunnel by which devices are enrolled, nodes have their
//! identities renewed and a directory hears of both, its store, and the signer's key.
//!
//! Contract: no sockets and no clock. Of all that came in a turn, what is to be kept is committed at once, before anything that
//! follows from it is sent. It relays nothing, and knows nothing of who is there and who may reach whom.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use overlay::{Authority, Came, Carrier, Effect, JoinUrl, Now, PORT, guest_address};
use serde_json::{Value, json};
use tunnel::{PublicKey, SystemEntropy};

pub(crate) use config::{First, Settings, init};

use crate::clock::Clock;
use crate::control::Request;
use crate::identities;
use crate::peers::{self, end, time};
use crate::serve::{self, Places, Server};
use crate::store::{Changes, Redb, Store};

mod config;

/// An authority, its directory and its disk.
struct Signing<S> {
    authority: Authority,
    carrier: Carrier,
    store: S,
    own: PublicKey,
    /// The authority's address inside the tunnel.
    inside: std::net::IpAddr,
    /// Where the directory may be, where it is tried next first, and its key.
    nms: (Vec<SocketAddr>, PublicKey),
    url: String,
    tcp: Option<u16>,
}

/// Runs an authority.
pub(crate) fn run(config: &Path) -> Result<ExitCode> {
    let settings = Settings::read(config)?;
    let clock = Clock::start();
    let database = settings.database();
    let store = Redb::open(&database).with_context(|| database.display().to_string())?;
    let mut signing = Signing::new(&settings, store, clock.now())?;
    let control = Some(settings.control());
    let places = Places { tunnel: settings.listen, relay: None, tcp: settings.tcp, control };
    let says =
        format!("an authority of {} is served at {}", settings.network.domain, settings.public);
    serve::run(&mut signing, &places, (clock, config), &says)
}

impl<S: Store> Signing<S> {
    fn new(settings: &Settings, store: S, now: Now) -> Result<Self> {
        let (key, signer, nms) = (settings.key()?, settings.signer()?, settings.nms.clone());
        let (own, network) = (key.public(), settings.network.clone());
        let endpoints = vec![settings.public.to_string()];
        let url = JoinUrl { endpoints, key: own, signer: signer.key() };
        let entropy = Box::new(SystemEntropy::new());
        let mut authority = Authority::new(network, (signer, own), store.records()?, entropy)?;
        authority.directory_apart(nms.0.clone(), nms.1);
        let inside = settings.network.authority().0.into();
        let carrier = Carrier::new(end(key, now)?);
        let mut signing = Self {
            authority,
            carrier,
            store,
            own,
            inside,
            nms,
            url: url.to_string(),
            tcp: settings.tcp,
        };
        signing.call()?;
        signing.settle(now)?;
        Ok(signing)
    }

    /// Makes the directory a peer of the tunnel, without a session, at its next place.
    fn call(&mut self) -> Result<()> {
        peers::call(&mut self.carrier, &mut self.nms)
    }

    fn carry_out(&mut self, effect: Effect, now: Now) {
        match effect {
            Effect::Note(line) => eprintln!("{}", packet::visible::word(&line)),
            Effect::Admit { key, addresses } => peers::admit(&mut self.carrier, key, &addresses),
            Effect::Dismiss { key } => peers::dismiss(&mut self.carrier, &key),
            Effect::Send { to, at, message } => {
                // To its directory it speaks as guests do.
                let own =
                    if to == self.nms.1 { guest_address(&self.own).into() } else { self.inside };
                peers::send(&mut self.carrier, own, (&to, at), &message, now);
            }
            // What else there is a directory wants.
            Effect::Keep(_)
            | Effect::Tell(_)
            | Effect::Join { .. }
            | Effect::Part { .. }
            | Effect::Stray { .. } => {}
        }
    }

    fn devices(&self, now: Now) -> Value {
        let devices = self.authority.list().map(|(device, (v4, v6))| {
            json!({
                "name": device.name.as_str(),
                "key": device.key.to_string(),
                "v4": v4,
                "v6": v6,
                "state": if device.revoked { "revoked" } else { "enrolled" },
            })
        });
        let devices: Vec<Value> = devices.collect();
        let is_there = self.authority.has_directory(now.nanos).unwrap_or(false);
        let directory = json!({ "state": if is_there { "present" } else { "absent" } });
        json!({ "schema": "tamis.cloud-devices/1", "devices": devices, "directory": directory })
    }
}

impl<S: Store> Server for Signing<S> {
    fn arrived(&mut self, datagram: &mut [u8], from: SocketAddr, now: Now) {
        if let Came::Message(it) = self.carrier.receive(datagram, from, now.nanos)
            && it.to.port() == PORT
            && let Some(payload) = datagram.get(it.payload)
            && let Some(status) = self.carrier.tunnel().status(it.peer)
        {
            // What else a node says is for its directory.
            self.authority.receive(&status.key, payload, now);
        }
    }

    fn relayed(&mut self, _: u16, _: SocketAddr, _: &[u8], _: Now) -> Option<SocketAddr> {
        None
    }

    fn look_for(&mut self, _: u16, _: SocketAddr, _: &[u8], _: Now) -> bool {
        false
    }

    fn tick(&mut self, now: Now) {
        self.carrier.tick(now.nanos);
        self.authority.expire(now);
    }

    fn sweep(&mut self, now: Now) {
        self.authority.sweep(now);
        // A directory that began again knows no session.
        if self.authority.is_deserted(now.nanos)
            && let Err(error) = self.call()
        {
            eprintln!("warning: {error:#}");
        }
    }

    fn settle(&mut self, now: Now) -> Result<()> {
        let effects: Vec<Effect> = std::iter::from_fn(|| self.authority.take()).collect();
        let mut changes = Changes::default();
        for effect in &effects {
            match effect {
                Effect::Keep(record) => changes.records.push(record.clone()),
                Effect::Note(line) => changes.lines.push(format!("{} {line}", time(now.unix))),
                _ => {}
            }
        }
        if changes != Changes::default() {
            self.store.commit(&changes).context("the database")?;
        }
        effects.into_iter().for_each(|effect| self.carry_out(effect, now));
        Ok(())
    }

    fn take(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.carrier.take()
    }

    fn reload(&mut self, _: &Path, _: Now) -> Result<()> {
        Ok(())
    }

    fn answer(&mut self, request: Request, now: Now) -> Result<Value> {
        let answer = match request {
            Request::Enrol { names } => {
                identities::enrol(&mut self.authority, &names, (&self.url, self.tcp), now)?
            }
            Request::Devices {} => self.devices(now),
            Request::Revoke { name } => identities::revoke(&mut self.authority, &name),
            Request::Log {} => json!({ "lines": self.store.lines(usize::MAX)? }),
            Request::Policy(_) | Request::Overview {} => identities::of_directory(),
            Request::Paths {} => json!({ "error": "paths are the relay's, and it is asked" }),
        };
        self.settle(now)?;
        Ok(answer)
    }
}
