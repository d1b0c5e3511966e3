//! Live: ports are opened and joined by wires, and workers take their frames through the rules until they are told to
//! stop. [`open`] and [`Opened::start`] start them, [`Run::wait`] sees them to their end; `wire`
//! has a frame's way, `worker` the loop.
//!
//! Contract: the handler is that of a replay, and so is its answer. Nothing on a wire is the host's: what is accepted
//! leaves by the other port as it came, but for what rules rewrite; a reply to a rejected packet goes back by the
//! port of arrival, as a bridge sends it. Every frame is accounted for ([`Accounted`]). What is counted is read while
//! it runs, and rules may be replaced ([`Run::published`]). Each worker drives all wires, with queues of its own: they share
//! connections. Who has a connection is `steering`'s to say, how its frames get there `handover`'s.
//!
//! Source of the latter: Linux 6.18 `net/bridge/br_netfilter_hooks.c`, `net/bridge/netfilter/nft_reject_bridge.c`.

mod account;
mod awake;
mod by_hand;
mod capture_port;
mod causes;
mod clock;
pub mod config;
mod connections;
mod control;
mod device;
pub mod doctor;
mod error;
mod fate;
mod fragments;
mod given_up;
mod handed;
mod handover;
mod interface;
pub mod journal;
mod links;
mod live;
mod load;
mod metrics;
mod middlebox;
mod offload;
mod opened;
mod ordered;
mod parker;
mod place;
mod port_checks;
mod ports;
mod questions;
pub mod replies;
mod restart;
mod revisions;
mod running;
mod serving;
mod shadow;
mod shared;
mod shared_port;
mod snapshot;
mod status;
mod steering;
mod talkers;
mod taps;
mod topology;
mod tunnel;
mod warnings;
mod watch;
mod wire;
mod worker;
mod workers;
#[cfg(target_os = "linux")]
mod xdp_ports;
#[cfg(not(target_os = "linux"))]
#[path = "no_xdp_ports.rs"]
mod xdp_ports;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rules::model::Ruleset;
use serde_json::Value;

use config::{OnPanic, Order, Other, Workers};
use control::Control;
use links::{Kernel, Links};
use live::Live;
use metrics::Metrics;
use revisions::Revisions;
use steering::Steering;
use tunnel::{Keeper, Site};
use watch::Watch;
use workers::{Crew, Joined, Queues, Thread};

use crate::config::Config;
use crate::publish::Published;
use crate::wires::{Crossing, Wires};

pub use account::{Accounted, Reason};
pub use control::{
    BanAction, FlowWords, MOST_CHANGES, NewPeer, Refusal, RefusalKind, Request,
    Watch as WatchRequest, ask, follow,
};
pub use device::is_like;
pub use error::RunError;
pub use given_up::GivenUp;
pub use load::Loaded;
pub use middlebox::{
    Descriptor, Driver, Hosted, LAYOUT_VERSION, Middlebox, Offsets, Polled, Shown, Verdict, Waiting,
};
pub use opened::{Opened, check, open};
pub use ordered::Queue;
pub use place::Place;
pub use ports::OpenDpdk;
pub use restart::Resumed;
pub use revisions::RevisionStatus;
pub use running::Running;
pub use status::{
    Direction, PortState, PortStatus, RingStatus, Status, WorkerState, WorkerStatus,
    text as status_text,
};
pub use taps::{FilterError, Listening, Next, Told, decided as told_verdict, text as told_text};
pub use topology::{Processor, here as processors};
pub use wire::BoxedPort;
pub use worker::DRAIN;

/// Has a tunnel meet a peer, and programs of the host, that do what `data` says (`fuzz/`, target `envelope`).
#[cfg(fuzzing)]
pub fn hostile_envelope(data: &[u8]) {
    tunnel::hostile::envelope(data);
}

/// How often the workers and the devices are looked after.
const LOOK: Duration = Duration::from_millis(10);

/// How long clients may take at the end of a run for what they watch.
const LAST_LINES: Duration = Duration::from_millis(200);

/// Wires with their workers, at work.
#[derive(Debug)]
pub struct Run {
    live: Arc<Live>,
    threads: Vec<Thread>,
    control: Option<Control>,
    metrics: Option<Metrics>,
    /// Where its connections are written at its end.
    connections: Option<PathBuf>,
    /// Of its tunnels.
    keepers: Vec<Keeper>,
}

/// A wire to be: its ports with their names.
pub struct Ends {
    /// Each port, with what `-i` and `-o` see of it. It has one queue, which the first worker receives by.
    pub ports: [(String, BoxedPort); 2],
    /// How frames cross it that come in by each port.
    pub crossings: [Crossing; 2],
    /// What becomes of frames that no rules are for.
    pub other: Other,
    /// What keeps its order.
    pub order: Order,
}

/// Why one worker evaluates where a wire keeps the order of all its frames, and connections are told apart by ports.
const FRAGMENTS: &str =
    "a wire keeps the order of all its frames, and fragments have no ports to be shared out by";

/// What a run has beside wires and rules.
#[derive(Debug)]
struct Beside {
    links: Links,
    resumed: Resumed,
    given_up: GivenUp,
    revisions: Option<Revisions>,
    /// Where metrics are to be had.
    metrics: Option<SocketAddr>,
    tunnels: Vec<Arc<Site>>,
}

impl Default for Beside {
    fn default() -> Self {
        let links = Links::new(Vec::new(), Vec::new(), Kernel::default());
        let (resumed, given_up) = (Resumed::default(), GivenUp::default());
        Self { links, resumed, given_up, revisions: None, metrics: None, tunnels: Vec::new() }
    }
}

/// How a run is to go.
#[derive(Debug)]
struct Plan {
    division: Division,
    on_panic: OnPanic,
    /// Where its connections are written at its end.
    connections: Option<PathBuf>,
    beside: Beside,
}

/// How the work is divided.
#[derive(Debug)]
struct Division {
    steering: Steering,
    /// Where each worker runs.
    cores: Vec<Option<usize>>,
    /// Why one worker sees all packets where several were wanted.
    why: Option<String>,
}

impl Run {
    /// Starts with ports that are open, and one worker.
    ///
    /// # Errors
    /// The rules form a loop, or no thread can be had.
    pub fn start(
        wires: Vec<Ends>,
        rulesets: &[Arc<Ruleset>],
        config: Config,
        on_panic: OnPanic,
    ) -> Result<Self, RunError> {
        Self::start_on(wires, rulesets, config, on_panic, &Workers::default())
    }

    /// The same with these workers, or with one where the rules need it.
    ///
    /// # Errors
    /// The rules form a loop, or no threads can be had.
    pub fn start_on(
        wires: Vec<Ends>,
        rulesets: &[Arc<Ruleset>],
        config: Config,
        on_panic: OnPanic,
        workers: &Workers,
    ) -> Result<Self, RunError> {
        let driven = Self::start_driven(wires, rulesets, config, on_panic, workers, Driver::Alone);
        Ok(driven?.0)
    }

    /// The same with middleboxes. Workers that are to be polled come with the run.
    ///
    /// # Errors
    /// The rules form a loop, no threads can be had, or several workers keep the order of a wire, which no middlebox sees.
    pub fn start_driven(
        wires: Vec<Ends>,
        rulesets: &[Arc<Ruleset>],
        config: Config,
        on_panic: OnPanic,
        workers: &Workers,
        driver: Driver<'_>,
    ) -> Result<(Self, Vec<Hosted>), RunError> {
        let division = Division::of(rulesets, workers, wires.iter().map(|wire| wire.order));
        let join = |Ends { ports: [first, second], crossings, other, order }: Ends| {
            let join = |(name, port): (_, BoxedPort)| {
                let queues = Queues::of(vec![port], division.steering.workers(), order)?;
                Ok::<_, io::Error>((Arc::from(name), queues))
            };
            Ok(Joined { ports: [join(first)?, join(second)?], crossings, other, order })
        };
        let wires = wires.into_iter().map(join).collect::<io::Result<_>>();
        let wires = wires.map_err(RunError::Workers)?;
        let published = publish(rulesets, config)?;
        let plan = Plan { division, on_panic, connections: None, beside: Beside::default() };
        Self::begin(wires, published, plan, driver)
    }

    fn begin(
        wires: Vec<Joined>,
        published: Published,
        plan: Plan,
        driver: Driver<'_>,
    ) -> Result<(Self, Vec<Hosted>), RunError> {
        let Plan { division, on_panic, connections, beside } = plan;
        let addresses = published.program().config().host.addresses.clone();
        let all = wires.iter().map(Joined::join).collect();
        let crew = Crew::new(wires, &published, &division.steering, on_panic, driver.slot());
        let mut crew = crew.map_err(RunError::Workers)?;
        let (directions, shared) = (crew.directions.clone(), Arc::clone(&crew.shared));
        let taps = Arc::clone(&crew.taps);
        let (cores, keeps) = (&division.cores, connections.is_some());
        let (threads, hosted) = match driver {
            Driver::Hosted(_, burst) => crew.host(cores, keeps, burst),
            Driver::Alone => (crew.start(cores, keeps).map_err(RunError::Workers)?, Vec::new()),
            Driver::With(_, make) => {
                crew.equip(make);
                (crew.start(cores, keeps).map_err(RunError::Workers)?, Vec::new())
            }
            Driver::Ringed { burst, room, .. } => {
                let hosted = crew.ring(room, burst).map_err(RunError::Workers)?;
                (crew.start(cores, keeps).map_err(RunError::Workers)?, hosted)
            }
        };
        let keepers = beside.tunnels.iter().map(Keeper::start).collect::<io::Result<_>>();
        let keepers = keepers.map_err(RunError::Workers)?;
        let live = Live {
            start: Instant::now(),
            published,
            shared,
            directions,
            division,
            links: Mutex::new(beside.links),
            resumed: beside.resumed,
            given_up: beside.given_up,
            revisions: beside.revisions,
            taps,
            wires: Wires { all, addresses },
            metrics: beside.metrics,
            tunnels: beside.tunnels,
        };
        let run = Self {
            live: Arc::new(live),
            threads,
            control: None,
            metrics: None,
            connections,
            keepers,
        };
        Ok((run, hosted))
    }

    /// Has it read rules, sets and bans anew whenever `asked` is raised; for one that [`Opened::start`] started.
    #[must_use]
    pub fn reloading(self, asked: Arc<AtomicBool>) -> Self {
        if let Some(revisions) = &self.live.revisions {
            revisions.asked_by(asked);
        }
        self
    }

    /// Has it serve a control socket while somebody waits for its end.
    ///
    /// # Errors
    /// Nobody can listen there.
    pub fn controlled(self, socket: &Path) -> Result<Self, RunError> {
        Ok(Self { control: Some(Control::open(socket)?), ..self })
    }

    /// What a client is answered to this line.
    #[must_use]
    pub fn answer(&self, line: &str) -> Value {
        control::answer_to_line(line, &self.live)
    }

    /// This run for others, who may have it longer than it goes.
    #[must_use]
    pub fn running(&self) -> Running {
        Running(Arc::clone(&self.live))
    }

    /// The rules in force.
    #[must_use]
    pub fn published(&self) -> &Published {
        &self.live.published
    }

    /// Whether these rules may take the place of those in force while workers share connections as they do.
    ///
    /// # Errors
    /// Why not: it takes a new start.
    pub fn suits(&self, rulesets: &[Arc<Ruleset>]) -> Result<(), String> {
        self.live.division.steering.suits(rulesets)
    }

    /// Has rules tried beside those in force: save texts, one for each family that is to have other rules. They act on
    /// nothing; what they would have done otherwise is counted.
    ///
    /// # Errors
    /// Why they are refused, with the text and its line and column.
    pub fn shadow(&self, texts: Vec<String>) -> Result<(), String> {
        self.live.shadow(texts).map_err(|refused| refused.to_string())
    }

    /// What they would have done otherwise: `tamis.shadow/1`.
    #[must_use]
    pub fn shadow_json(&self) -> Value {
        self.live.shadow_json()
    }

    /// Tells the workers to stop once they have handled what their ports still have.
    pub fn stop(&self) {
        self.live.stop();
    }

    /// What has become of all frames so far, and how the workers are.
    #[must_use]
    pub fn status(&self) -> Status {
        self.live.status()
    }

    /// Has frames told from now on that a filter wants; the words are in docs/control.md, and without any it is those that
    /// are dropped.
    ///
    /// # Errors
    /// It is no filter.
    pub fn listen(&self, filter: &str) -> Result<Listening, FilterError> {
        self.live.taps.listen(filter)
    }

    /// Serves the control socket until the workers end, which they do once `stop` is raised, somebody asks for it by
    /// the socket, or all ports have ended. `tell` is given what happens meanwhile.
    ///
    /// # Errors
    /// A port failed, a worker panicked for a second time, or connections cannot be written; what was counted is in the
    /// status all the same.
    pub fn wait(
        mut self,
        stop: &AtomicBool,
        mut tell: impl FnMut(&str),
    ) -> (Status, Result<(), RunError>) {
        let live = &self.live;
        let serving = self.control.take().map(|control| control.serve(live));
        if let Some(Err(error)) = &serving {
            tell(&format!("the control socket is not served: {error}"));
        }
        let scraped = self.metrics.take().map(|metrics| metrics.serve(live));
        if let Some(Err(error)) = &scraped {
            tell(&format!("metrics are not served: {error}"));
        }
        let mut watch = Watch::new(&live.shared);
        while !self.threads.iter().all(Thread::is_finished) {
            if stop.load(Ordering::Relaxed) {
                live.stop();
            }
            watch.look(&live.shared, &mut tell);
            live.look_after_links(&mut tell);
            live.look_after_rules(&mut tell);
            live.taps.collect();
            live.shared.talkers.look(Instant::now());
            thread::sleep(LOOK);
        }
        watch.look(&live.shared, &mut tell);
        live.taps.end();
        live.links().restore(&mut tell);
        if serving.is_some() {
            live.taps.wait(LAST_LINES);
        }
        drop((serving, scraped));
        let status = self.status();
        let (ended, connections) = workers::join(self.threads);
        drop(self.keepers);
        // What a panic left of them may be anything.
        let file = self.connections.as_deref().filter(|_| !status.panicked);
        let written = file.map_or(Ok(()), |file| restart::write(file, &connections));
        if let (Err(_), Err(error)) = (&ended, &written) {
            tell(&error.to_string());
        }
        (status, ended.map_err(RunError::from).and(written))
    }
}

impl Division {
    /// Between the workers that are wanted, or on one where the rules need it.
    fn of(
        rulesets: &[Arc<Ruleset>],
        workers: &Workers,
        mut orders: impl Iterator<Item = Order>,
    ) -> Self {
        let mut cores = topology::chosen(&workers.cores, workers.count);
        let (mut steering, mut why) = Steering::of(rulesets, cores.len());
        if orders.any(|order| order == Order::Wire) && !steering.can_order() {
            steering = Steering::of(rulesets, 1).0;
            why = Some(FRAGMENTS.to_owned());
        }
        cores.truncate(steering.workers());
        Self { steering, cores, why }
    }

    /// What is told where one worker sees all packets.
    fn one_because(&self) -> Option<String> {
        self.why.as_deref().map(one_worker)
    }
}

/// What is told where one worker sees all packets.
fn one_worker(why: &str) -> String {
    format!("one worker evaluates all packets: {why}")
}

fn publish(rulesets: &[Arc<Ruleset>], config: Config) -> Result<Published, RunError> {
    Published::new(rulesets.iter().map(|rules| &**rules), config).map_err(RunError::Rules)
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.ports.each_ref().map(|(name, _)| name);
        f.debug_struct("Ends").field("ports", &names).finish_non_exhaustive()
    }
}

/// A socket's name, as messages say it.
fn socket_error(socket: &Path, source: std::io::Error) -> RunError {
    RunError::Control { socket: load::shown(socket), source }
}
