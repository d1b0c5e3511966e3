//! [`Live`]: a run while its workers work, for all who look at it or change it beside them.
//!
//! Contract: any thread may have it. What it tells is as of now; nothing here waits for a frame.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use access::list::List;
use conntrack::Listing;
use serde_json::{Value, json};

use super::Division;
use super::account::Accounted;
use super::clock::now;
use super::control::Refusal;
use super::given_up::GivenUp;
use super::links::Links;
use super::restart::Resumed;
use super::revisions::{Asked, InForce, Peer, Revisions};
use super::shadow::{self, Shadow};
use super::shared::Shared;
use super::status::{Direction, Status, WorkerStatus};
use super::taps::{Taps, Told};
use super::tunnel::{PeerTold, Site};
use super::workers::Counted;
use crate::publish::Published;
use crate::wires::Wires;

/// What a run is beside its threads.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) start: Instant,
    pub(super) published: Published,
    pub(super) shared: Arc<Shared>,
    pub(super) directions: Vec<Counted>,
    pub(super) division: Division,
    /// Looked after by who waits for the run's end.
    pub(super) links: Mutex<Links>,
    pub(super) resumed: Resumed,
    pub(super) given_up: GivenUp,
    /// Of a run that has a configuration.
    pub(super) revisions: Option<Revisions>,
    /// For those who watch frames.
    pub(super) taps: Arc<Taps>,
    /// As who replays frames is to know them.
    pub(super) wires: Wires,
    /// Where metrics are to be had.
    pub(super) metrics: Option<SocketAddr>,
    pub(super) tunnels: Vec<Arc<Site>>,
}

impl Live {
    /// How all peers of tunnels are.
    pub(super) fn peers(&self) -> Vec<PeerTold> {
        self.tunnels.iter().flat_map(|site| site.told()).collect()
    }

    /// A frame in a document, with the peers whose it is where it came by a tunnel or was to leave by one.
    pub(super) fn told(&self, told: &Told, with_bytes: bool) -> Value {
        let mut document = told.json(with_bytes);
        let Some(flow) = told.flow() else { return document };
        let sides =
            [("in_peer", &told.input, flow.source), ("out_peer", &told.output, flow.destination)];
        for (key, port, address) in sides {
            let site = self.tunnels.iter().find(|site| site.name() == &**port);
            if let Some(peer) = site.and_then(|site| site.peer_of(address)) {
                document[key] = (*peer).into();
            }
        }
        document
    }

    /// Tells the workers to stop once they have handled what their ports still have.
    pub(super) fn stop(&self) {
        self.shared.stop();
    }

    /// Has these rules tried beside those in force, in place of others that are; see [`Shadow::new`].
    ///
    /// # Errors
    /// They are refused.
    pub(super) fn shadow(&self, texts: Vec<String>) -> Result<(), shadow::Refused> {
        let connections = match self.published.program().tracks() {
            true => self
                .all_connections()
                .map_err(|silent| shadow::Refused::Other(silent.to_string()))?,
            false => Vec::new(),
        };
        let listing = Listing::of_flows(connections, now());
        let shadow = Shadow::new(texts, listing, self.in_force())?;
        self.shared.shadow.set(Some(Arc::new(shadow)));
        Ok(())
    }

    /// Puts the rules that are tried in force, and tries them no more: the answer is that of `apply`.
    ///
    /// # Errors
    /// There are none, or they are refused.
    pub(super) fn promote(&self, who: Option<Peer>) -> Result<Value, Refusal> {
        let Some(shadow) = self.shared.shadow.get() else {
            return Err(Refusal::refused("expected rules that are tried: tamis ctl shadow FILE"));
        };
        let asked = Asked { name: "shadow".to_owned(), ..Asked::default() };
        let done = self.revisions()?.apply(&asked, &shadow.text(), who, self.in_force())?;
        self.shared.shadow.set(None);
        Ok(done)
    }

    /// What they would have done otherwise.
    pub(super) fn shadow_json(&self) -> Value {
        match self.shared.shadow.get() {
            Some(shadow) => shadow.json(),
            None => json!({ "schema": "tamis.shadow/1", "active": false }),
        }
    }

    /// Looks after the devices, if it is time.
    pub(super) fn look_after_links(&self, tell: &mut impl FnMut(&str)) {
        self.links().look(Instant::now(), tell);
    }

    /// Looks whether rules are to change by themselves: their files are asked for, or a confirmation has not come.
    pub(super) fn look_after_rules(&self, tell: &mut impl FnMut(&str)) {
        if let Some(revisions) = &self.revisions {
            revisions.look(self.in_force(), tell);
        }
    }

    /// The revisions of its rules.
    ///
    /// # Errors
    /// It has no configuration, and so no files.
    pub(super) fn revisions(&self) -> Result<&Revisions, Refusal> {
        let none = || Refusal::refused("this run has no configuration");
        self.revisions.as_ref().ok_or_else(none)
    }

    /// The access list as it is now.
    pub(super) fn access_list(&self) -> List {
        self.published.shared().bans().reader().at(Some(now())).clone()
    }

    /// Where its rules are changed.
    pub(super) fn in_force(&self) -> InForce<'_> {
        InForce { published: &self.published, steering: &self.division.steering }
    }

    pub(super) fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has become of all frames so far, and how the workers are.
    pub(super) fn status(&self) -> Status {
        // Who sleeps tells what its ports lost as soon as it is awake.
        self.shared.wake_all();
        let sum = |counted: &Counted| {
            let accounts = counted.accounts.iter().map(|account| account.read());
            accounts.fold(Accounted::default(), Accounted::and)
        };
        let directions = self.directions.iter().map(|counted| Direction {
            from: counted.from.to_string(),
            to: counted.to.to_string(),
            frames: sum(counted),
            queue: counted.lanes.as_ref().map(|(lanes, from)| lanes.queue(*from)),
        });
        let workers = self.shared.seats().zip(&self.division.cores);
        Status {
            uptime: self.start.elapsed(),
            program: self.published.program().number(),
            revision: self.revisions.as_ref().map(Revisions::status),
            panicked: self.shared.has_panicked(),
            workers: workers.map(|(seat, core)| WorkerStatus::of(seat, *core)).collect(),
            ports: self.links().status(),
            one_worker_because: self.division.why.clone(),
            directions: directions.collect(),
            unknown_because: self.shared.causes.read(),
            resumed: self.resumed,
            given_up: self.given_up,
            metrics: self.metrics,
        }
    }
}
