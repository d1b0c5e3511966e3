//! Live: ports are opened and joined by wires, and a worker takes their frames through the rules until it is told to
//! stop. [`open`] and [`Opened::start`] start it, [`Run::wait`] sees it to its end; `wire` has a frame's way, `worker`
//! the loop.
//!
//! Contract: the handler is that of a replay, and so is its answer. Nothing on a wire is the host's: what is accepted
//! leaves by the other port as it came, but for what rules rewrite; a reply to a rejected packet goes back by the
//! port of arrival, as a bridge sends it. Every frame is accounted for ([`Accounted`]). What is counted is read while
//! it runs, and rules may be replaced ([`Run::published`]). One worker drives all wires: they share connections.
//!
//! Source of the latter: Linux 6.18 `net/bridge/br_netfilter_hooks.c`, `net/bridge/netfilter/nft_reject_bridge.c`.

mod account;
mod capture_port;
mod causes;
pub mod config;
mod control;
mod given_up;
mod load;
mod ports;
pub mod replies;
mod restart;
mod status;
mod wire;
mod worker;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pktio::PortError;
use rules::model::Ruleset;
use rules::revision::Refused;

use account::Account;
use config::{ConfigError, OnPanic, Other, Settings};
use control::Control;
use wire::Wire;
use worker::{Failed, Shared, Worker};

use crate::config::Config;
use crate::publish::{self, Published};

pub use account::{Accounted, Reason};
pub use control::{Request, ask};
pub use given_up::GivenUp;
pub use load::Loaded;
pub use restart::Resumed;
pub use status::{Direction, Status, text as status_text};
pub use wire::BoxedPort;
pub use worker::DRAIN;

/// How often the control socket and the worker are looked after.
const LOOK: Duration = Duration::from_millis(10);

/// What is told, and stands in every status, from the first panic on.
const PANICKED: &str = "the worker panicked: no rule sees a frame any more";

/// Wires with their worker, at work.
#[derive(Debug)]
pub struct Run {
    published: Arc<Published>,
    shared: Arc<Shared>,
    directions: Vec<Counted>,
    worker: JoinHandle<Ended>,
    control: Option<Control>,
    /// Where its connections are written at its end.
    connections: Option<PathBuf>,
    resumed: Resumed,
    given_up: GivenUp,
}

/// What a worker leaves: why it ended, and its way to the rules, with the connections.
type Ended = (Result<(), Failed>, publish::Worker);

/// A run to be: all that it needs is open, and no frame is taken yet. What opening takes and running does not may be
/// given up here, by the one thread that there is.
#[derive(Debug)]
pub struct Opened {
    wires: Vec<Ends>,
    loaded: Loaded,
    on_panic: OnPanic,
    control: Option<Control>,
    connections: Option<PathBuf>,
    resumed: Resumed,
}

/// One direction of a wire.
#[derive(Debug)]
struct Counted {
    from: Arc<str>,
    to: Arc<str>,
    account: Arc<Account>,
}

/// A wire to be: its ports with their names.
pub struct Ends {
    /// Each port, with what `-i` and `-o` see of it.
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
    /// The file of connections cannot be written, or taken over.
    Connections {
        /// Which one.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The worker panicked twice, or could not be started.
    Worker,
}

/// Reads all that a configuration names, and starts nothing.
///
/// # Errors
/// Something is refused.
pub fn check(settings: &Settings) -> Result<Loaded, ConfigError> {
    Ok(load(settings)?.0)
}

fn load(settings: &Settings) -> Result<(Loaded, Resumed), ConfigError> {
    let mut loaded = load::rules(settings)?;
    ports::check(settings)?;
    let resumed = restart::read(settings, &mut loaded)?;
    Ok((loaded, resumed))
}

/// Opens what a configuration names.
///
/// # Errors
/// Something is refused, or a port or the control socket cannot be opened.
pub fn open(settings: &Settings) -> Result<Opened, RunError> {
    let (loaded, resumed) = load(settings).map_err(RunError::Config)?;
    let control = settings.socket.as_deref().map(Control::open).transpose()?;
    let mut wires = Vec::new();
    for wire in &settings.wires {
        let open = |place: usize| {
            let port = ports::open(settings, place).map_err(RunError::Port)?;
            Ok((settings.ports[place].name.clone(), port))
        };
        let [first, second] = wire.ports;
        wires.push(Ends { ports: [open(first)?, open(second)?], other: wire.other });
    }
    let connections = settings.restart.file.as_ref().map(|file| file.path.clone());
    let on_panic = settings.on_panic;
    Ok(Opened { wires, loaded, on_panic, control, connections, resumed })
}

impl Opened {
    /// What is odd about the configuration.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.loaded.warnings
    }

    /// Starts, after this was given up.
    ///
    /// # Errors
    /// The rules form a loop, no thread can be had, or the file of connections cannot be taken over.
    pub fn start(self, given_up: GivenUp) -> Result<Run, RunError> {
        let Self { wires, loaded, on_panic, control, connections, resumed } = self;
        let run = Run::start(wires, &loaded.rulesets, loaded.config, on_panic)?;
        // Not before: what cannot start leaves them to the next attempt.
        if let Err(error) = restart::begin(connections.as_deref()) {
            run.stop();
            return Err(error);
        }
        Ok(Run { control, connections, resumed, given_up, ..run })
    }
}

impl Run {
    /// Starts with ports that are open.
    ///
    /// # Errors
    /// The rules form a loop, or no thread can be had.
    pub fn start(
        wires: Vec<Ends>,
        rulesets: &[Arc<Ruleset>],
        config: Config,
        on_panic: OnPanic,
    ) -> Result<Self, RunError> {
        let published = Published::new(rulesets.iter().map(|rules| &**rules), config)
            .map_err(RunError::Rules)?;
        let wires = wires.into_iter().map(|Ends { ports, other }| {
            Wire::new(ports.map(|(name, port)| (name.into(), port)), other)
        });
        let wires: Vec<Wire> = wires.collect();
        let directions = wires.iter().flat_map(directions).collect();
        let shared = Arc::<Shared>::default();
        let rules = published.worker().sending();
        let mut worker = Worker { wires, rules, on_panic, shared: Arc::clone(&shared) };
        let thread = thread::Builder::new().name("worker 0".to_owned());
        let run = move || (worker.run(), worker.rules);
        let worker = thread.spawn(run).map_err(|_| RunError::Worker)?;
        Ok(Self {
            published: Arc::new(published),
            shared,
            directions,
            worker,
            control: None,
            connections: None,
            resumed: Resumed::default(),
            given_up: GivenUp::default(),
        })
    }

    /// The rules in force.
    #[must_use]
    pub fn published(&self) -> &Published {
        &self.published
    }

    /// Tells the worker to stop once it has handled what its ports still have.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// What has become of all frames so far.
    #[must_use]
    pub fn status(&self) -> Status {
        let directions = self.directions.iter().map(|counted| Direction {
            from: counted.from.to_string(),
            to: counted.to.to_string(),
            frames: counted.account.read(),
        });
        Status {
            program: self.published.program().number(),
            panicked: self.has_panicked(),
            directions: directions.collect(),
            unknown_because: self.shared.causes.read(),
            resumed: self.resumed,
            given_up: self.given_up,
        }
    }

    fn has_panicked(&self) -> bool {
        self.shared.panicked.load(Ordering::Relaxed)
    }

    /// Serves the control socket until the worker ends, which it does once `stop` is raised, somebody asks for it by
    /// the socket, or all ports have ended. `tell` is given what happens meanwhile.
    ///
    /// # Errors
    /// A port failed, the worker panicked for a second time, or its connections cannot be written; what was counted is
    /// in the status all the same.
    pub fn wait(
        mut self,
        stop: &AtomicBool,
        mut tell: impl FnMut(&str),
    ) -> (Status, Result<(), RunError>) {
        let mut is_told = false;
        let mut control = self.control.take();
        while !self.worker.is_finished() {
            if stop.load(Ordering::Relaxed) {
                self.stop();
            }
            if !is_told && self.has_panicked() {
                tell(PANICKED);
                is_told = true;
            }
            let served = control.as_mut().is_some_and(|control| control.serve(&self));
            if !served {
                thread::sleep(LOOK);
            }
        }
        if !is_told && self.has_panicked() {
            tell(PANICKED);
        }
        let status = self.status();
        let Ok((ended, mut worker)) = self.worker.join() else {
            return (status, Err(RunError::Worker));
        };
        // What a panic left of them may be anything.
        let file = self.connections.as_deref().filter(|_| !status.panicked);
        let written = file.map_or(Ok(()), |file| restart::write(file, &worker.connections()));
        let ended = ended.map_err(|failed| match failed {
            Failed::Port(error) => RunError::Port(error),
            Failed::Panicked => RunError::Worker,
        });
        if let (Err(_), Err(error)) = (&ended, &written) {
            tell(&error.to_string());
        }
        (status, ended.and(written))
    }
}

fn directions(wire: &Wire) -> [Counted; 2] {
    let [first, second] = wire.names();
    let [there, back] = wire.accounts();
    [
        Counted { from: Arc::clone(&first), to: Arc::clone(&second), account: there },
        Counted { from: second, to: first, account: back },
    ]
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
            Self::Control { socket: file, source } | Self::Connections { file, source } => {
                write!(f, "{file}: {source}")
            }
            Self::Worker => f.write_str("the worker panicked and ended"),
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
