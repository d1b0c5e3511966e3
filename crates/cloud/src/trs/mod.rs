//! [`Trs`]: a relay on a host of its own, the end of the tunnel by which a directory orders it, and its store.
//!
//! Contract: no sockets and no clock. It keeps where nodes send from, so what they send goes on at once after a restart. It
//! has a key for its directory, and none of the nodes'.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use overlay::{
    Came, Carrier, GUESTS_DIRECTORY, Now, Outpost, PORT, Record, guest_address, limits::SECOND,
};
use serde_json::{Value, json};
use tunnel::{PublicKey, SystemEntropy};

pub(crate) use config::{Settings, init};

use crate::clock::Clock;
use crate::control::Request;
use crate::paths;
use crate::peers::{self, end};
use crate::serve::{self, Places, Server};
use crate::store::{Changes, Redb, Store};
use crate::workers::Relaying;

mod config;

/// Nanoseconds within which sources are kept.
const SOON: u64 = SECOND / 10;

/// A relay, its directory and its disk.
struct Trs<S> {
    outpost: Outpost,
    carrier: Carrier,
    store: S,
    own: PublicKey,
    /// Where the directory may be, where it is tried next first, and its key.
    nms: (Vec<SocketAddr>, PublicKey),
    kept: u64,
}

/// Runs a relay.
pub(crate) fn run(config: &Path) -> Result<ExitCode> {
    let settings = Settings::read(config)?;
    let clock = Clock::start();
    let database = settings.database();
    let store = Redb::open(&database).with_context(|| database.display().to_string())?;
    let mut trs = Trs::new(&settings, store, clock.now())?;
    let tunnel = SocketAddr::new(settings.listen, 0);
    let (forwarding, workers) = (trs.outpost.forwarding(), settings.workers);
    forwarding.limit(settings.rate);
    let relay = Some(Relaying { ports: settings.ports.clone(), workers, forwarding });
    let places = Places { tunnel, relay, tcp: settings.tcp, control: Some(settings.control()) };
    let (first, last) = (settings.ports.start(), settings.ports.end());
    let says = format!("a relay is served at {}, ports {first}-{last}", settings.public);
    serve::run(&mut trs, &places, (clock, config), &says)
}

impl<S: Store> Trs<S> {
    fn new(settings: &Settings, store: S, now: Now) -> Result<Self> {
        let key = settings.key()?;
        let own = key.public();
        let entropy = &mut SystemEntropy::new();
        let outpost = Outpost::new(settings.ports.clone(), store.sources()?, entropy)?;
        let carrier = Carrier::new(end(key, now)?);
        let (nms, kept) = (settings.nms.clone(), now.nanos);
        let mut trs = Self { outpost, carrier, store, own, nms, kept };
        trs.call()?;
        Ok(trs)
    }

    /// Makes the directory a peer of the tunnel, without a session, at its next place.
    fn call(&mut self) -> Result<()> {
        peers::call(&mut self.carrier, &mut self.nms)
    }
}

impl<S: Store> Server for Trs<S> {
    fn arrived(&mut self, datagram: &mut [u8], from: SocketAddr, now: Now) {
        if let Came::Message(it) = self.carrier.receive(datagram, from, now.nanos)
            && it.to.port() == PORT
            && let Some(payload) = datagram.get(it.payload)
        {
            self.outpost.receive(payload, now.nanos);
        }
    }

    fn relayed(
        &mut self,
        port: u16,
        from: SocketAddr,
        datagram: &[u8],
        now: Now,
    ) -> Option<SocketAddr> {
        self.outpost.forward(port, from, datagram, now.nanos)
    }

    fn look_for(&mut self, port: u16, from: SocketAddr, datagram: &[u8], _: Now) -> bool {
        self.outpost.look_for(port, from, datagram);
        true
    }

    fn tick(&mut self, now: Now) {
        self.carrier.tick(now.nanos);
    }

    fn sweep(&mut self, now: Now) {
        // A directory that began again knows no session.
        if self.outpost.is_deserted(now.nanos)
            && let Err(error) = self.call()
        {
            eprintln!("warning: {error:#}");
        }
    }

    fn settle(&mut self, now: Now) -> Result<()> {
        if now.nanos.saturating_sub(self.kept) >= SOON {
            self.kept = now.nanos;
            let parted = self.outpost.take_parted().into_iter().map(Record::Parted);
            let (records, sources) = (parted.collect(), self.outpost.take_changed());
            let changes = Changes { records, sources, ..Changes::default() };
            if changes != Changes::default() {
                self.store.commit_soon(changes).context("the database")?;
            }
        }
        if let Some(message) = self.outpost.take(now.nanos) {
            let place = |address: IpAddr| SocketAddr::new(address, PORT);
            let (own, to) = (guest_address(&self.own).into(), GUESTS_DIRECTORY.into());
            self.carrier.send(place(own), place(to), &message, now.nanos);
        }
        Ok(())
    }

    fn take(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.carrier.take()
    }

    fn reload(&mut self, _: &Path, _: Now) -> Result<()> {
        Ok(())
    }

    fn answer(&mut self, request: Request, _: Now) -> Result<Value> {
        Ok(match request {
            Request::Paths {} => paths::answer(self.outpost.paths()),
            _ => json!({ "error": "a relay answers `paths` alone" }),
        })
    }
}
