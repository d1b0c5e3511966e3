//! Live: ports are opened and joined by wires, and workers take their frames through the rules until they are told to
//! stop. [`Run::open`] starts them, [`Run::wait`] sees them to their end; `wire` has a frame's way, `worker` the loop.
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
mod fragments;
mod handed;
mod handover;
mod links;
mod load;
mod parker;
mod ports;
pub mod replies;
mod shared;
mod shared_port;
mod status;
mod steering;
mod topology;
mod watch;
mod wire;
mod worker;
mod workers;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pktio::PortError;
use rules::model::Ruleset;
use rules::revision::Refused;

use config::{ConfigError, LinkLoss, OnPanic, Other, Settings, Workers};
use control::Control;
use links::{Kernel, Links};
use ports::OpenPort;
use shared::Shared;
use steering::Steering;
use watch::Watch;
use worker::Failed;
use workers::{Counted, Crew, Joined, Queues, Thread};

use crate::config::Config;
use crate::publish::Published;

pub use account::{Accounted, Reason};
pub use control::{Request, ask};
pub use load::Loaded;
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
    cores: Vec<Option<usize>>,
    steering: Steering,
    /// Why one worker sees all packets where several were wanted.
    one_because: Option<String>,
    threads: Vec<Thread>,
    control: Option<Control>,
    links: Links,
}

/// A wire to be: its ports with their names.
pub struct Ends {
    /// Each port, with what `-i` and `-o` see of it. It has one queue, which the first worker receives by.
    pub ports: [(String, BoxedPort); 2],
    /// What becomes of frames that no rules are for.
    pub other: Other,
}

/// Why it does not run, or ran no further.
#[derive(Debug)]
pub enum RunError {
    /// The configuration, or a file that it names, is refused.
    Config(ConfigError),
    /// A port failed.
    Port(PortError),
    /// Chains form a loop.
    Rules(Refused),
    /// The control socket cannot be opened.
    Control {
        /// Where.
        socket: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A worker panicked twice: its number.
    Panicked(usize),
    /// Workers could not be started.
    Workers(std::io::Error),
}

/// Reads all that a configuration names, and starts nothing.
///
/// # Errors
/// Something is refused.
pub fn check(settings: &Settings) -> Result<Loaded, ConfigError> {
    let loaded = load::rules(settings)?;
    ports::check(settings)?;
    Ok(loaded)
}

impl Run {
    /// Opens what a configuration names, and starts; with what is odd about it.
    ///
    /// # Errors
    /// Something is refused, or a port or the control socket cannot be opened.
    pub fn open(settings: &Settings) -> Result<(Self, Vec<String>), RunError> {
        let Loaded { rulesets, config, mut warnings } =
            check(settings).map_err(RunError::Config)?;
        let control = settings.socket.as_deref().map(Control::open).transpose()?;
        let (steering, cores, why) = shared_out(&rulesets, &settings.workers);
        warnings.extend(why.as_deref().map(one_worker));
        warnings.extend(ports::apart(settings, &cores));
        let (mut wires, mut devices, mut passed) = (Vec::new(), Vec::new(), Vec::new());
        for wire in &settings.wires {
            let open = |place: usize| ports::open(settings, place, cores.len());
            let [first, second] =
                wire.ports.map(|place| settings.ports[place].name.as_str().into());
            let [OpenPort { queues: one, device: left }, OpenPort { queues: two, device: right }] =
                [open(wire.ports[0])?, open(wire.ports[1])?];
            wires.push(Joined { ports: [(first, one), (second, two)], other: wire.other });
            if let (LinkLoss::Pass, Some(left), Some(right)) = (wire.link, &left, &right) {
                passed.push([Arc::clone(left), Arc::clone(right)]);
            }
            devices.extend(left.into_iter().chain(right));
        }
        let published = publish(&rulesets, config)?;
        let run = Self::begin(wires, published, &steering, cores, settings.on_panic)?;
        let links = Links::new(devices, passed, Kernel);
        Ok((Self { control, one_because: why, links, ..run }, warnings))
    }

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
        let (steering, cores, why) = shared_out(rulesets, workers);
        let join = |Ends { ports, other }: Ends| {
            let ports = ports.map(|(name, port)| (Arc::from(name), Queues::One(port)));
            Joined { ports, other }
        };
        let wires = wires.into_iter().map(join).collect();
        let published = publish(rulesets, config)?;
        let run = Self::begin(wires, published, &steering, cores, on_panic)?;
        Ok(Self { one_because: why, ..run })
    }

    fn begin(
        wires: Vec<Joined>,
        published: Published,
        steering: &Steering,
        cores: Vec<Option<usize>>,
        on_panic: OnPanic,
    ) -> Result<Self, RunError> {
        let crew = Crew::new(wires, &published, steering, on_panic).map_err(RunError::Workers)?;
        let Crew { directions, shared, .. } = &crew;
        let (directions, shared) = (directions.clone(), Arc::clone(shared));
        let threads = crew.start(&cores).map_err(RunError::Workers)?;
        let links = Links::new(Vec::new(), Vec::new(), Kernel);
        let (published, one_because, control) = (Arc::new(published), None, None);
        let steering = steering.clone();
        Ok(Self {
            published,
            shared,
            directions,
            cores,
            steering,
            one_because,
            threads,
            control,
            links,
        })
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
        self.steering.suits(rulesets)
    }

    /// Tells the workers to stop once they have handled what their ports still have.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// What has become of all frames so far, and how the workers are.
    #[must_use]
    pub fn status(&self) -> Status {
        let sum = |counted: &Counted| {
            let accounts = counted.accounts.iter().map(|account| account.read());
            accounts.fold(Accounted::default(), Accounted::and)
        };
        let directions = self.directions.iter().map(|counted| Direction {
            from: counted.from.to_string(),
            to: counted.to.to_string(),
            frames: sum(counted),
        });
        let workers = self.shared.seats().zip(&self.cores);
        Status {
            program: self.published.program().number(),
            panicked: self.shared.has_panicked(),
            workers: workers.map(|(seat, core)| WorkerStatus::of(seat, *core)).collect(),
            ports: self.links.status(),
            one_worker_because: self.one_because.clone(),
            directions: directions.collect(),
            unknown_because: self.shared.causes.read(),
        }
    }

    /// Serves the control socket until the workers end, which they do once `stop` is raised, somebody asks for it by
    /// the socket, or all ports have ended. `tell` is given what happens meanwhile.
    ///
    /// # Errors
    /// A port failed, or a worker panicked for a second time; what was counted is in the status all the same.
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
            let served = control.as_mut().is_some_and(|control| control.serve(&self));
            if !served {
                thread::sleep(LOOK);
            }
        }
        watch.look(&self.shared, &mut tell);
        self.links.restore(&mut tell);
        let status = self.status();
        let ends = self.threads.into_iter().enumerate().map(|(number, thread)| {
            thread.join().unwrap_or(Err(Failed::Panicked(number))).map_err(RunError::from)
        });
        // The first one to fail stopped the others.
        (status, ends.fold(Ok(()), Result::and))
    }
}

/// How frames are shared out between the workers that are wanted, and where those run; why there is one where several are
/// wanted.
fn shared_out(
    rulesets: &[Arc<Ruleset>],
    workers: &Workers,
) -> (Steering, Vec<Option<usize>>, Option<String>) {
    let mut cores = topology::chosen(&workers.cores, workers.count);
    let (steering, why) = Steering::of(rulesets, cores.len());
    cores.truncate(steering.workers());
    (steering, cores, why)
}

fn publish(rulesets: &[Arc<Ruleset>], config: Config) -> Result<Published, RunError> {
    Published::new(rulesets.iter().map(|rules| &**rules), config).map_err(RunError::Rules)
}

/// What is told where one worker sees all packets.
fn one_worker(why: &str) -> String {
    format!("one worker evaluates all packets: {why}")
}

impl From<PortError> for RunError {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

impl From<Failed> for RunError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Port(error) => Self::Port(error),
            Failed::Panicked(worker) => Self::Panicked(worker),
        }
    }
}

impl RunError {
    /// Whether what was given is wrong, and not the machine.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(self, Self::Config(_) | Self::Rules(_))
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Port(error) => error.fmt(f),
            Self::Rules(error) => error.fmt(f),
            Self::Control { socket, source } => write!(f, "{socket}: {source}"),
            Self::Panicked(worker) => write!(f, "worker {worker} panicked again, and ended"),
            Self::Workers(error) => write!(f, "workers: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

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
