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
mod capture_port;
mod causes;
pub mod config;
mod control;
mod device;
pub mod doctor;
mod error;
mod fragments;
mod given_up;
mod handed;
mod handover;
mod interface;
mod links;
mod load;
mod offload;
mod opened;
mod ordered;
mod parker;
mod port_checks;
mod ports;
mod reload;
pub mod replies;
mod restart;
mod shared;
mod shared_port;
mod status;
mod steering;
mod topology;
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
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rules::model::Ruleset;

use config::{OnPanic, Order, Other, Workers};
use control::Control;
use links::{Kernel, Links};
use reload::Reload;
use shared::Shared;
use steering::Steering;
use watch::Watch;
use workers::{Counted, Crew, Joined, Queues, Thread};

use crate::arrival::Crossing;
use crate::config::Config;
use crate::publish::Published;

pub use account::{Accounted, Reason};
pub use control::{Request, ask};
pub use device::is_like;
pub use error::RunError;
pub use given_up::GivenUp;
pub use load::Loaded;
pub use opened::{Opened, check, open};
pub use ordered::Queue;
pub use ports::OpenDpdk;
pub use restart::Resumed;
pub use status::{
    Direction, PortState, PortStatus, Status, WorkerState, WorkerStatus, text as status_text,
};
pub use wire::BoxedPort;
pub use worker::DRAIN;

/// How often the control socket and the workers are looked after.
const LOOK: Duration = Duration::from_millis(10);

/// Wires with their workers, at work.
#[derive(Debug)]
pub struct Run {
    published: Arc<Published>,
    shared: Arc<Shared>,
    directions: Vec<Counted>,
    division: Division,
    threads: Vec<Thread>,
    control: Option<Control>,
    links: Links,
    /// Where its connections are written at its end.
    connections: Option<PathBuf>,
    resumed: Resumed,
    given_up: GivenUp,
    reload: Option<Reload>,
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
        Self::begin(wires, published, division, on_panic, None)
    }

    fn begin(
        wires: Vec<Joined>,
        published: Published,
        division: Division,
        on_panic: OnPanic,
        connections: Option<PathBuf>,
    ) -> Result<Self, RunError> {
        let crew = Crew::new(wires, &published, &division.steering, on_panic);
        let crew = crew.map_err(RunError::Workers)?;
        let (directions, shared) = (crew.directions.clone(), Arc::clone(&crew.shared));
        let threads =
            crew.start(&division.cores, connections.is_some()).map_err(RunError::Workers)?;
        Ok(Self {
            published: Arc::new(published),
            shared,
            directions,
            division,
            threads,
            control: None,
            links: Links::new(Vec::new(), Vec::new(), Kernel::default()),
            connections,
            resumed: Resumed::default(),
            given_up: GivenUp::default(),
            reload: None,
        })
    }

    /// Has it read rules, sets and bans anew whenever `asked` is raised; for one that [`Opened::start`] started.
    #[must_use]
    pub fn reloading(mut self, asked: Arc<AtomicBool>) -> Self {
        if let Some(reload) = &mut self.reload {
            reload.asked = asked;
        }
        self
    }

    /// The rules in force.
    #[must_use]
    pub fn published(&self) -> &Published {
        &self.published
    }

    /// Whether these rules may take the place of those in force while workers share connections as they do.
    ///
    /// # Errors
    /// Why not: it takes a new start.
    pub fn suits(&self, rulesets: &[Arc<Ruleset>]) -> Result<(), String> {
        self.division.steering.suits(rulesets)
    }

    /// Tells the workers to stop once they have handled what their ports still have.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// What has become of all frames so far, and how the workers are.
    #[must_use]
    pub fn status(&self) -> Status {
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
            program: self.published.program().number(),
            panicked: self.shared.has_panicked(),
            workers: workers.map(|(seat, core)| WorkerStatus::of(seat, *core)).collect(),
            ports: self.links.status(),
            one_worker_because: self.division.why.clone(),
            directions: directions.collect(),
            unknown_because: self.shared.causes.read(),
            resumed: self.resumed,
            given_up: self.given_up,
        }
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
        let mut control = self.control.take();
        let mut watch = Watch::new(&self.shared);
        while !self.threads.iter().all(Thread::is_finished) {
            if stop.load(Ordering::Relaxed) {
                self.stop();
            }
            watch.look(&self.shared, &mut tell);
            self.links.look(Instant::now(), &mut tell);
            if let Some(reload) = &self.reload {
                reload.look(&self.published, &self.division.steering, &mut tell);
            }
            let served = control.as_mut().is_some_and(|control| control.serve(&self));
            if !served {
                thread::sleep(LOOK);
            }
        }
        watch.look(&self.shared, &mut tell);
        self.links.restore(&mut tell);
        let status = self.status();
        let (ended, connections) = workers::join(self.threads);
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
