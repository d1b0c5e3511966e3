//! [`open`]: from a configuration to [`Opened`], a run before its start.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use dataplane::publish::Published;
use pktio::Opener;

use crate::answers::{DroppedPrivileges, Resumed};
use crate::config::{ConfigError, LinkLoss, MiddleboxSettings, OnPanic, Order, Settings, Slot};
use crate::devices::links::{Kernel, Links};
use crate::forward::middlebox::{Driver, Hosted, Middlebox};
use crate::ports::checks;
use crate::ports::opening::{self, OpenDpdk, OpenPort, Openers};
use crate::ports::tunnel::Site;
use crate::ports::xdp_ports::OpenXdp;
use crate::rules::journal::Journal;
use crate::rules::load::{self, Loaded, RulesText};
use crate::rules::revisions::{Chosen, Revisions, Time};
use crate::run::error::RunError;
use crate::run::files_apart;
use crate::run::life::{Run, RunPlan, connections_error, socket_error};
use crate::surfaces::control::{self, Control};
use crate::surfaces::metrics::{self, Metrics};
use crate::workers::builder::OpenWire;
use crate::workers::division::Division;
use crate::workers::restart;

/// A run before its start: all that it needs is open, and no frame is taken yet. Privileges that opening takes and
/// running does not may be dropped here, by the only thread.
pub struct Opened {
    wires: Vec<OpenWire>,
    tunnels: Vec<Arc<Site>>,
    links: Links,
    division: Division,
    loaded: Loaded,
    on_panic: OnPanic,
    control: Option<Control>,
    metrics: Option<Metrics>,
    connections: Option<PathBuf>,
    resumed: Resumed,
    settings: Settings,
    /// The rules that the journal chose.
    chosen: Chosen,
}

/// Refuses a configuration that writes one of these files, which the command line names.
///
/// # Errors
/// The configuration writes one of them.
pub fn keep_apart(settings: &Settings, files: &[String]) -> Result<(), ConfigError> {
    files_apart::check(settings, files)
}

/// Reads all that a configuration names, and starts nothing.
///
/// # Errors
/// A file or a setting is refused.
pub fn check(settings: &Settings) -> Result<Loaded, ConfigError> {
    files_apart::check(settings, &[])?;
    control::check(settings)?;
    let (mut loaded, _) = load(settings, &load::texts(settings)?)?;
    let journal = settings.journal.as_ref().map(|journal| Journal::check(&journal.path));
    loaded.warnings.extend(journal.and_then(Result::err).map(|error| error.to_string()));
    let division = divide(settings, &loaded);
    if settings.middlebox.is_some() {
        unordered(settings, &division)?;
    }
    loaded.warnings.extend(division.one_because());
    loaded.warnings.extend(ordered_by_one(settings, &division));
    Ok(loaded)
}

fn load(settings: &Settings, texts: &[RulesText]) -> Result<(Loaded, Resumed), ConfigError> {
    let mut loaded = load::rules(settings, texts)?;
    checks::check(settings)?;
    loaded.warnings.extend(checks::warnings(settings));
    loaded.warnings.extend(metrics::warning(settings.metrics.as_ref()));
    let Loaded { config, start, warnings, .. } = &mut loaded;
    let resumed = restart::read(settings, &mut config.ct, start, warnings)?;
    Ok((loaded, resumed))
}

/// Decides how the configured workers divide the work under these rules.
fn divide(settings: &Settings, loaded: &Loaded) -> Division {
    let orders = settings.wires.iter().map(|wire| wire.order);
    Division::of(&loaded.rulesets, &settings.workers, orders)
}

/// A warning where a wire is to be ordered and one worker, with no other reason given, keeps all order anyway.
fn ordered_by_one(settings: &Settings, division: &Division) -> Option<String> {
    let is_ordered = settings.wires.iter().any(|wire| wire.order == Order::Wire);
    let is_silent = division.why.is_none() && division.cores.len() == 1;
    let what = "one worker runs ordered wires to completion, which keeps the order of all frames: \
                [workers] count asks for more";
    (is_ordered && is_silent).then(|| what.to_owned())
}

/// Refuses wires whose order several workers keep, where there are middleboxes.
fn unordered(settings: &Settings, division: &Division) -> Result<(), ConfigError> {
    let mut ordered = settings.wires.iter().filter(|wire| wire.order == Order::Wire);
    match ordered.next() {
        Some(wire) if division.steering.workers() > 1 => {
            let what = "expected order = \"flow\": several workers keep the order of this wire, and \
                        then no middlebox sees its frames";
            Err(settings.refuse(wire.at, what))
        }
        _ => Ok(()),
    }
}

/// Opens what a configuration names; devices of DPDK by way of `dpdk`, which is `()` where there is none. `opener` does
/// what takes privileges about other devices: now, and each time that a device has come back.
///
/// # Errors
/// A file or a setting is refused, or a port or the control socket cannot be opened.
pub fn open(
    settings: &Settings,
    opener: &Arc<dyn Opener>,
    dpdk: &mut dyn OpenDpdk,
) -> Result<Opened, RunError> {
    files_apart::check(settings, &[]).map_err(RunError::Config)?;
    let files = load::texts(settings).map_err(RunError::Config)?;
    let journal = settings.journal.as_ref().map(|journal| Journal::open(&journal.path)).transpose();
    let chosen = Chosen::between(files, journal.map_err(RunError::Journal)?, Time::now);
    let mut chosen = chosen.map_err(RunError::Journal)?;
    let (mut loaded, resumed) = load(settings, &chosen.texts).map_err(RunError::Config)?;
    let later = chosen.later();
    if !later.is_empty() {
        load::rules(settings, &later).map_err(RunError::Config)?;
    }
    loaded.warnings.append(&mut chosen.warnings);
    let start = &mut loaded.start;
    let by_hand = chosen.by_hand.held();
    let (sets, left_out) = by_hand.on_sets(start.sets.take());
    (start.sets, start.bans) = (sets, by_hand.on_bans(start.bans.take()));
    drop(by_hand);
    loaded.warnings.extend(left_out);
    let control = settings.socket.as_ref().map(|socket| {
        Control::open(&socket.path).map_err(|source| socket_error(&socket.path, source))
    });
    let control = control.transpose()?;
    let metrics = settings.metrics.as_ref().map(|metrics| {
        let listen = metrics.listen;
        Metrics::open(metrics).map_err(|source| RunError::Metrics { listen, source })
    });
    let metrics = metrics.transpose()?;
    let division = divide(settings, &loaded);
    if settings.middlebox.is_some() {
        unordered(settings, &division).map_err(RunError::Config)?;
    }
    loaded.warnings.extend(division.one_because());
    loaded.warnings.extend(ordered_by_one(settings, &division));
    loaded.warnings.extend(opening::apart(settings, &division.cores));
    let mut openers = Openers {
        opener: Arc::clone(opener),
        program: division.steering.program(),
        dpdk,
        xdp: OpenXdp::sharing(settings)?,
        tunnels: Vec::new(),
    };
    let (mut wires, mut devices, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    for wire in &settings.wires {
        let mut open = |place: usize| {
            let name = settings.ports[place].name.as_str().into();
            let OpenPort { queues, device, odd } =
                opening::open(settings, place, division.cores.len(), wire.order, &mut openers)?;
            loaded.warnings.extend(odd);
            Ok::<_, RunError>(((name, queues), device))
        };
        let [(first, left), (second, right)] = [open(wire.ports[0])?, open(wire.ports[1])?];
        // Devices that are made by being opened have an MTU now.
        let crossings = opening::crossings(settings, wire, &openers.tunnels);
        let (other, order) = (wire.other, wire.order);
        wires.push(OpenWire { ports: [first, second], crossings, other, order });
        if let (LinkLoss::Pass, Some(left), Some(right)) = (wire.link, &left, &right) {
            passed.push([Arc::clone(left), Arc::clone(right)]);
        }
        devices.extend(left.into_iter().chain(right));
    }
    let tunnels = openers.tunnels;
    Ok(Opened {
        wires,
        tunnels,
        links: Links::new(devices, passed, Kernel::by(opener)),
        division,
        loaded,
        on_panic: settings.on_panic,
        control,
        metrics,
        connections: settings.restart.file.as_ref().map(|file| file.path.clone()),
        resumed,
        settings: settings.clone(),
        chosen,
    })
}

impl Opened {
    /// The number of workers that the run will have.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.division.cores.len()
    }

    /// The warnings about the configuration.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.loaded.warnings
    }

    /// Starts the run, after these privileges were dropped.
    ///
    /// # Errors
    /// The rules form a loop, the journal does not take them, no threads can be had, or the file of connections cannot
    /// be taken over.
    pub fn start(self, given_up: DroppedPrivileges) -> Result<Run, RunError> {
        if let Some(MiddleboxSettings { at, .. }) = self.settings.middlebox {
            let what = "a middlebox sees frames in a program that has one: nothing here does \
                        (kind = \"java\" names one)";
            return Err(RunError::Config(self.settings.refuse(at, what)));
        }
        Ok(self.begin(given_up, |_| Driver::Alone)?.0)
    }

    /// Starts the run with a middlebox for each worker, which `make` makes by its number.
    ///
    /// # Errors
    /// As for [`Opened::start`], or several workers keep the order of a wire, or the configuration asks for a ring.
    pub fn start_with(
        self,
        given_up: DroppedPrivileges,
        make: &mut dyn FnMut(usize) -> Box<dyn Middlebox>,
    ) -> Result<Run, RunError> {
        self.settings.expect_no_java().map_err(RunError::Config)?;
        if let Some(MiddleboxSettings { at, ring: 1.., .. }) = self.settings.middlebox {
            let what = "expected no ring: this middlebox sees frames in the workers' own threads";
            return Err(RunError::Config(self.settings.refuse(at, what)));
        }
        Ok(self.begin(given_up, |slot| Driver::With(slot, make))?.0)
    }

    /// Starts the run with workers that have no threads: the calling program is the middlebox, polls each worker from a
    /// thread of its own, and is shown up to `burst` frames at a time. Where the configuration asks for a ring the
    /// workers have threads, too, and a ring to the poller.
    ///
    /// # Errors
    /// As for [`Opened::start_with`].
    pub fn start_hosted(
        self,
        given_up: DroppedPrivileges,
        burst: usize,
    ) -> Result<(Run, Vec<Hosted>), RunError> {
        let room = self.settings.ring();
        self.begin(given_up, |slot| match room {
            0 => Driver::Hosted(slot, burst),
            room => Driver::Ringed { slot, burst, room },
        })
    }

    fn begin<'m>(
        self,
        given_up: DroppedPrivileges,
        driver: impl FnOnce(Slot) -> Driver<'m>,
    ) -> Result<(Run, Vec<Hosted>), RunError> {
        let driver =
            driver(self.settings.middlebox.as_ref().map(|set| set.slot).unwrap_or_default());
        if driver.slot().is_some() {
            unordered(&self.settings, &self.division).map_err(RunError::Config)?;
        }
        let Loaded { rulesets, config, start, .. } = self.loaded;
        let published = Published::counting(rulesets.iter().map(|rules| &**rules), config, start);
        let Self { wires, tunnels, division, on_panic, connections, links, resumed, .. } = self;
        let revisions = Revisions::begin(self.settings, self.chosen, &published);
        let revisions = Some(revisions.map_err(RunError::Journal)?);
        let metrics = self.metrics.as_ref().and_then(Metrics::address);
        let plan = RunPlan {
            division,
            on_panic,
            connections,
            links,
            tunnels,
            revisions,
            resumed,
            dropped: given_up,
            metrics,
        };
        let (run, hosted) = Run::begin(wires, published, plan, driver)?;
        // Not before: a run that cannot start leaves them to the next attempt.
        if let Some(file) = &run.connections
            && let Err(source) = restart::begin(file)
        {
            run.stop();
            return Err(connections_error(file, source));
        }
        Ok((Run { control: self.control, metrics: self.metrics, ..run }, hosted))
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("wires", &self.wires.len()).finish_non_exhaustive()
    }
}
