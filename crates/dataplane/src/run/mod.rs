//! Live: ports are opened and joined by wires, and a worker takes their frames through the rules until it is told to
//! stop. [`Run::open`] starts it, [`Run::wait`] sees it to its end; `wire` has a frame's way, `worker` the loop.
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
mod load;
mod ports;
pub mod replies;
mod status;
mod wire;
mod worker;

use std::fmt;
use std::path::Path;
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
use crate::publish::Published;

pub use account::{Accounted, Reason};
pub use control::{Request, ask};
pub use load::Loaded;
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
    worker: JoinHandle<Result<(), Failed>>,
    control: Option<Control>,
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
    /// The worker panicked twice, or could not be started.
    Worker,
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
        let (mut wires, mut devices) = (Vec::new(), ports::Devices::default());
        for wire in &settings.wires {
            let mut open = |place: usize| {
                let port = ports::open(settings, place, &mut devices).map_err(RunError::Port)?;
                Ok((settings.ports[place].name.clone(), port))
            };
            let [first, second] = wire.ports;
            wires.push(Ends { ports: [open(first)?, open(second)?], other: wire.other });
        }
        warnings.extend(devices.warnings);
        let run = Self::start(wires, &rulesets, config, settings.on_panic)?;
        Ok((Self { control, ..run }, warnings))
    }

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
        let worker = Worker { wires, rules, on_panic, shared: Arc::clone(&shared) };
        let thread = thread::Builder::new().name("worker 0".to_owned());
        let worker = thread.spawn(move || worker.run()).map_err(|_| RunError::Worker)?;
        Ok(Self { published: Arc::new(published), shared, directions, worker, control: None })
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
        }
    }

    fn has_panicked(&self) -> bool {
        self.shared.panicked.load(Ordering::Relaxed)
    }

    /// Serves the control socket until the worker ends, which it does once `stop` is raised, somebody asks for it by
    /// the socket, or all ports have ended. `tell` is given what happens meanwhile.
    ///
    /// # Errors
    /// A port failed, or the worker panicked for a second time; what was counted is in the status all the same.
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
        let ended = match self.worker.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Failed::Port(error))) => Err(RunError::Port(error)),
            Ok(Err(Failed::Panicked)) | Err(_) => Err(RunError::Worker),
        };
        (status, ended)
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
            Self::Control { socket, source } => write!(f, "{socket}: {source}"),
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
