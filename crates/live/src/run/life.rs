//! [`Run`]: a run from its start to its end.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dataplane::Wires;
use dataplane::publish::Published;
use rules::model::Ruleset;
use serde_json::Value;

use crate::answers::{self, DroppedPrivileges, Resumed};
use crate::api::parts::{Parts, Started};
use crate::api::requests::answer_to_line;
use crate::api::status::Status;
use crate::api::watchers::Watchers;
use crate::config::{OnPanic, Workers};
use crate::devices::links::{Kernel, Links};
use crate::devices::owner::Devices;
use crate::forward::middlebox::{Driver, Hosted};
use crate::forward::taps::{FilterError, Listening};
use crate::ports::queues::Queues;
use crate::ports::tunnel::{Site, Timers};
use crate::rules::load::{Loaded, shown};
use crate::rules::owner::{Rules, shadow};
use crate::rules::revisions::Revisions;
use crate::run::error::RunError;
use crate::run::running::Running;
use crate::run::wire_spec::WireSpec;
use crate::surfaces::control::Control;
use crate::surfaces::metrics::Metrics;
use crate::workers::builder::{self, OpenWire, Thread, WorkerBuilder};
use crate::workers::division::Division;
use crate::workers::owner;
use crate::workers::restart;
use pktio::BoxedPort;

/// How often the workers and the devices are checked.
const LOOK: Duration = Duration::from_millis(10);

/// How long clients may take at the end of a run to read what they watch.
const LAST_LINES: Duration = Duration::from_millis(200);

/// A running set of wires with their workers.
#[derive(Debug)]
pub struct Run {
    pub(super) parts: Arc<Parts>,
    pub(super) threads: Vec<Thread>,
    pub(super) control: Option<Control>,
    pub(super) metrics: Option<Metrics>,
    /// The file that connections are written to at the end.
    pub(super) connections: Option<PathBuf>,
    /// The timers of the tunnels.
    pub(super) keepers: Vec<Timers>,
}

/// The settings of a run besides wires and rules.
#[derive(Debug)]
pub(super) struct RunPlan {
    pub(super) division: Division,
    pub(super) on_panic: OnPanic,
    /// The file that connections are written to at the end.
    pub(super) connections: Option<PathBuf>,
    pub(super) links: Links,
    pub(super) tunnels: Vec<Arc<Site>>,
    pub(super) revisions: Option<Revisions>,
    pub(super) resumed: Resumed,
    pub(super) dropped: DroppedPrivileges,
    /// The address that serves metrics.
    pub(super) metrics: Option<SocketAddr>,
}

impl RunPlan {
    /// The plan of a run that has neither devices nor a configuration.
    fn bare(division: Division, on_panic: OnPanic) -> Self {
        Self {
            division,
            on_panic,
            connections: None,
            links: Links::new(Vec::new(), Vec::new(), Kernel::default()),
            tunnels: Vec::new(),
            revisions: None,
            resumed: Resumed::default(),
            dropped: DroppedPrivileges::default(),
            metrics: None,
        }
    }
}

impl Run {
    /// Starts a run with ports that are open, and one worker.
    ///
    /// # Errors
    /// The rules form a loop, or no thread can be had.
    pub fn start(
        wires: Vec<WireSpec>,
        rules: impl Into<Loaded>,
        on_panic: OnPanic,
    ) -> Result<Self, RunError> {
        Self::start_on(wires, rules, on_panic, &Workers::default())
    }

    /// Starts with ports that are open and these workers, or with one worker where the rules need it.
    ///
    /// # Errors
    /// The rules form a loop, or no threads can be had.
    pub fn start_on(
        wires: Vec<WireSpec>,
        rules: impl Into<Loaded>,
        on_panic: OnPanic,
        workers: &Workers,
    ) -> Result<Self, RunError> {
        let driven = Self::start_driven(wires, rules, on_panic, workers, Driver::Alone);
        Ok(driven?.0)
    }

    /// Starts with ports that are open, these workers and middleboxes. Workers that are to be polled come with the run.
    ///
    /// # Errors
    /// The rules form a loop, no threads can be had, or several workers keep the order of a wire, which no middlebox sees.
    pub fn start_driven(
        wires: Vec<WireSpec>,
        rules: impl Into<Loaded>,
        on_panic: OnPanic,
        workers: &Workers,
        driver: Driver<'_>,
    ) -> Result<(Self, Vec<Hosted>), RunError> {
        let Loaded { rulesets, config, start, .. } = rules.into();
        let division = Division::of(&rulesets, workers, wires.iter().map(|wire| wire.order));
        let join = |WireSpec { ports: [first, second], crossings, other, order }: WireSpec| {
            let join = |(name, port): (_, BoxedPort)| {
                let queues = Queues::of(vec![port], division.steering.workers(), order)?;
                Ok::<_, io::Error>((Arc::from(name), queues))
            };
            Ok(OpenWire { ports: [join(first)?, join(second)?], crossings, other, order })
        };
        let wires = wires.into_iter().map(join).collect::<io::Result<_>>();
        let wires = wires.map_err(RunError::Workers)?;
        let rulesets = rulesets.iter().map(|rules| &**rules);
        let published = Published::counting(rulesets, config, start);
        Self::begin(wires, published, RunPlan::bare(division, on_panic), driver)
    }

    pub(super) fn begin(
        wires: Vec<OpenWire>,
        published: Published,
        plan: RunPlan,
        driver: Driver<'_>,
    ) -> Result<(Self, Vec<Hosted>), RunError> {
        let RunPlan { division, on_panic, connections, links, tunnels, .. } = plan;
        let addresses = published.program().config().host.addresses.clone();
        let all = wires.iter().map(OpenWire::join).collect();
        let crew =
            WorkerBuilder::new(wires, &published, &division.steering, on_panic, driver.slot());
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
        let keepers = tunnels.iter().map(Timers::start).collect::<io::Result<_>>();
        let keepers = keepers.map_err(RunError::Workers)?;
        let steering = division.steering.clone();
        let parts = Parts {
            rules: Rules::new(published, steering, plan.revisions),
            workers: owner::Workers::new(shared, directions, division),
            devices: Devices::new(links, tunnels),
            watchers: Watchers::new(taps, Wires { all, addresses }),
            started: Started {
                at: Instant::now(),
                resumed: plan.resumed,
                given_up: plan.dropped,
                metrics: plan.metrics,
            },
        };
        let run = Self {
            parts: Arc::new(parts),
            threads,
            control: None,
            metrics: None,
            connections,
            keepers,
        };
        Ok((run, hosted))
    }

    /// Makes the run read rules, sets and bans again whenever `asked` is raised; for a run that [`Opened::start`](crate::Opened::start)
    /// started.
    #[must_use]
    pub fn reloading(self, asked: Arc<AtomicBool>) -> Self {
        self.parts.rules.reload_by(asked);
        self
    }

    /// Serves a control socket until [`Run::wait`] returns.
    ///
    /// # Errors
    /// The socket cannot be opened there.
    pub fn controlled(self, socket: &Path) -> Result<Self, RunError> {
        let control = Control::open(socket).map_err(|source| socket_error(socket, source))?;
        Ok(Self { control: Some(control), ..self })
    }

    /// Answers a line of the control protocol.
    #[must_use]
    pub fn answer(&self, line: &str) -> Value {
        answer_to_line(line, &self.parts)
    }

    /// A handle to this run, which may outlive it.
    #[must_use]
    pub fn running(&self) -> Running {
        Running(Arc::clone(&self.parts))
    }

    /// The rules in force.
    #[must_use]
    pub fn published(&self) -> &Published {
        self.parts.rules.published()
    }

    /// Whether these rules may take the place of those in force while workers share connections as they do.
    ///
    /// # Errors
    /// Why not: it takes a new start.
    pub fn suits(&self, rulesets: &[Arc<Ruleset>]) -> Result<(), String> {
        self.parts.rules.suits(rulesets)
    }

    /// Starts a shadow: candidate rules see a copy of every frame and affect no traffic. `texts` are save texts, one
    /// for each family that is to have other rules; differing verdicts are counted.
    ///
    /// # Errors
    /// The rules are refused, with the text and its line and column.
    pub fn shadow(&self, texts: Vec<String>) -> Result<(), String> {
        self.parts.rules.shadow(texts, &self.parts.workers).map_err(|refused| refused.to_string())
    }

    /// The differing verdicts of the shadow: `tamis.shadow/1`.
    #[must_use]
    pub fn shadow_json(&self) -> Value {
        answers::json(&shadow(&self.parts.workers))
    }

    /// Asks the workers to stop once they have handled what their ports still have.
    pub fn stop(&self) {
        self.parts.workers.stop();
    }

    /// Returns the fates of all frames so far, and the state of the workers.
    #[must_use]
    pub fn status(&self) -> Status {
        self.parts.status()
    }

    /// Subscribes to frames that match `filter`; docs/control.md has its words. An empty filter matches the frames that
    /// are dropped.
    ///
    /// # Errors
    /// The words are no filter.
    pub fn listen(&self, filter: &str) -> Result<Listening, FilterError> {
        self.parts.watchers.listen(filter)
    }

    /// Serves the control socket until the workers end, which they do once `stop` is raised, a client of the socket
    /// asks for it, or all ports have ended. `tell` is given what happens meanwhile.
    ///
    /// # Errors
    /// A port failed, a worker panicked for a second time, or connections cannot be written; what was counted is in the
    /// status all the same.
    pub fn wait(
        mut self,
        stop: &AtomicBool,
        mut tell: impl FnMut(&str),
    ) -> (Status, Result<(), RunError>) {
        let parts = &self.parts;
        let Parts { rules, workers, devices, watchers, .. } = &**parts;
        let serving = self.control.take().map(|control| control.serve(parts));
        if let Some(Err(error)) = &serving {
            tell(&format!("the control socket is not served: {error}"));
        }
        let scraped = self.metrics.take().map(|metrics| metrics.serve(parts));
        if let Some(Err(error)) = &scraped {
            tell(&format!("metrics are not served: {error}"));
        }
        let mut watch = workers.watch();
        while !self.threads.iter().all(Thread::is_finished) {
            if stop.load(Ordering::Relaxed) {
                workers.stop();
            }
            workers.look(&mut watch, &mut tell);
            devices.look(&mut tell);
            rules.look(&mut tell);
            watchers.collect();
            thread::sleep(LOOK);
        }
        workers.look(&mut watch, &mut tell);
        watchers.end();
        devices.restore(&mut tell);
        if serving.is_some() {
            watchers.wait(LAST_LINES);
        }
        drop((serving, scraped));
        let status = self.status();
        let (ended, connections) = builder::join(self.threads);
        drop(self.keepers);
        // A panic may have left them in any state.
        let file = self.connections.as_deref().filter(|_| !status.panicked);
        let written = file.map_or(Ok(()), |file| {
            restart::write(file, &connections).map_err(|source| connections_error(file, source))
        });
        if let (Err(_), Err(error)) = (&ended, &written) {
            tell(&error.to_string());
        }
        (status, ended.map_err(RunError::from).and(written))
    }
}

/// The error of a control socket, with its name.
pub(super) fn socket_error(socket: &Path, source: io::Error) -> RunError {
    RunError::Control { socket: shown(socket), source }
}

/// The error of a file of connections, with its name.
pub(super) fn connections_error(file: &Path, source: io::Error) -> RunError {
    RunError::Connections { file: shown(file), source }
}
