//! [`open`]: from a configuration to [`Opened`], a run to be.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pktio::Opener;

use super::config::{ConfigError, LinkLoss, MiddleboxSettings, OnPanic, Order, Settings, Slot};
use super::control::Control;
use super::error::RunError;
use super::given_up::GivenUp;
use super::journal::Journal;
use super::links::{Kernel, Links};
use super::load::{self, Loaded, RulesText};
use super::metrics::{self, Metrics};
use super::middlebox::{Driver, Hosted, Middlebox};
use super::ports::{self, OpenDpdk, OpenPort, Openers};
use super::restart::{self, Resumed};
use super::revisions::{Chosen, Revisions};
use super::tunnel::Site;
use super::workers::Joined;
use super::xdp_ports::OpenXdp;
use super::{Beside, Division, Plan, Run, port_checks, publish};

/// A run to be: all that it needs is open, and no frame is taken yet. What opening takes and running does not may be
/// given up here, by the one thread that there is.
pub struct Opened {
    wires: Vec<Joined>,
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
    /// What the rules are by the journal.
    chosen: Chosen,
}

/// Reads all that a configuration names, and starts nothing.
///
/// # Errors
/// Something is refused.
pub fn check(settings: &Settings) -> Result<Loaded, ConfigError> {
    let (mut loaded, _) = load(settings, &load::texts(settings)?)?;
    let journal = settings.journal.as_deref().map(Journal::check);
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
    port_checks::check(settings)?;
    loaded.warnings.extend(port_checks::warnings(settings));
    loaded.warnings.extend(metrics::warning(settings.metrics.as_ref()));
    let resumed = restart::read(settings, &mut loaded)?;
    Ok((loaded, resumed))
}

/// How the workers that are configured divide the work under these rules.
fn divide(settings: &Settings, loaded: &Loaded) -> Division {
    let orders = settings.wires.iter().map(|wire| wire.order);
    Division::of(&loaded.rulesets, &settings.workers, orders)
}

/// What is told where a wire is to be ordered and one worker, which nobody said is too few, keeps all order anyway.
fn ordered_by_one(settings: &Settings, division: &Division) -> Option<String> {
    let is_ordered = settings.wires.iter().any(|wire| wire.order == Order::Wire);
    let is_silent = division.why.is_none() && division.cores.len() == 1;
    let what = "one worker runs ordered wires to completion, which keeps the order of all frames: \
                [workers] count asks for more";
    (is_ordered && is_silent).then(|| what.to_owned())
}

/// Refuses wires whose order several workers keep, where there are to be middleboxes.
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

/// Opens what a configuration names; devices of DPDK by way of `dpdk`, which is `()` where there is none. What
/// takes privileges about other devices `opener` does: now, and each time that one has come back.
///
/// # Errors
/// Something is refused, or a port or the control socket cannot be opened.
pub fn open(
    settings: &Settings,
    opener: &Arc<dyn Opener>,
    dpdk: &mut dyn OpenDpdk,
) -> Result<Opened, RunError> {
    let files = load::texts(settings).map_err(RunError::Config)?;
    let journal = settings.journal.as_deref().map(Journal::open).transpose();
    let mut chosen =
        Chosen::between(files, journal.map_err(RunError::Journal)?).map_err(RunError::Journal)?;
    let (mut loaded, resumed) = load(settings, &chosen.texts).map_err(RunError::Config)?;
    loaded.warnings.append(&mut chosen.warnings);
    let config = &mut loaded.config;
    let (sets, left_out) = chosen.by_hand.on_sets(config.sets.take());
    (config.sets, config.bans) = (sets, chosen.by_hand.on_bans(config.bans.take()));
    loaded.warnings.extend(left_out);
    let control = settings.socket.as_deref().map(Control::open).transpose()?;
    let metrics = settings.metrics.as_ref().map(Metrics::open).transpose()?;
    let division = divide(settings, &loaded);
    if settings.middlebox.is_some() {
        unordered(settings, &division).map_err(RunError::Config)?;
    }
    loaded.warnings.extend(division.one_because());
    loaded.warnings.extend(ordered_by_one(settings, &division));
    loaded.warnings.extend(ports::apart(settings, &division.cores));
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
                ports::open(settings, place, division.cores.len(), wire.order, &mut openers)?;
            loaded.warnings.extend(odd);
            Ok::<_, RunError>(((name, queues), device))
        };
        let [(first, left), (second, right)] = [open(wire.ports[0])?, open(wire.ports[1])?];
        // Devices that are made by being opened have an MTU now.
        let crossings = ports::crossings(settings, wire, &openers.tunnels);
        let (other, order) = (wire.other, wire.order);
        wires.push(Joined { ports: [first, second], crossings, other, order });
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
    /// How many workers it will have.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.division.cores.len()
    }

    /// What is odd about the configuration.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.loaded.warnings
    }

    /// Starts, after this was given up.
    ///
    /// # Errors
    /// The rules form a loop, the journal does not take them, no threads can be had, or the file of connections cannot
    /// be taken over.
    pub fn start(self, given_up: GivenUp) -> Result<Run, RunError> {
        if let Some(MiddleboxSettings { at, .. }) = self.settings.middlebox {
            let what = "a middlebox sees frames in a program that has one: nothing here does \
                        (kind = \"java\" names one)";
            return Err(RunError::Config(self.settings.refuse(at, what)));
        }
        Ok(self.begin(given_up, |_| Driver::Alone)?.0)
    }

    /// The same with a middlebox for each worker, which `make` makes by its number.
    ///
    /// # Errors
    /// As [`Opened::start`], or several workers keep the order of a wire, or the configuration asks for a ring.
    pub fn start_with(
        self,
        given_up: GivenUp,
        make: &mut dyn FnMut(usize) -> Box<dyn Middlebox>,
    ) -> Result<Run, RunError> {
        self.settings.expect_no_java().map_err(RunError::Config)?;
        if let Some(MiddleboxSettings { at, ring: 1.., .. }) = self.settings.middlebox {
            let what = "expected no ring: this middlebox sees frames in the workers' own threads";
            return Err(RunError::Config(self.settings.refuse(at, what)));
        }
        Ok(self.begin(given_up, |slot| Driver::With(slot, make))?.0)
    }

    /// The same, with workers that have no threads: who is a middlebox polls each from a thread of its own, and is shown up
    /// to `burst` frames at a time. Where the configuration asks for a ring they have threads, too, and a ring to who polls.
    ///
    /// # Errors
    /// As [`Opened::start_with`].
    pub fn start_hosted(
        self,
        given_up: GivenUp,
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
        given_up: GivenUp,
        driver: impl FnOnce(Slot) -> Driver<'m>,
    ) -> Result<(Run, Vec<Hosted>), RunError> {
        let driver =
            driver(self.settings.middlebox.as_ref().map(|set| set.slot).unwrap_or_default());
        if driver.slot().is_some() {
            unordered(&self.settings, &self.division).map_err(RunError::Config)?;
        }
        let Loaded { rulesets, config, .. } = self.loaded;
        let published = publish(&rulesets, config)?;
        let Self { wires, tunnels, division, on_panic, connections, links, resumed, .. } = self;
        let revisions = Revisions::begin(self.settings, self.chosen, &published);
        let revisions = Some(revisions.map_err(RunError::Journal)?);
        let metrics = self.metrics.as_ref().and_then(Metrics::address);
        let beside = Beside { links, resumed, given_up, revisions, metrics, tunnels };
        let plan = Plan { division, on_panic, connections, beside };
        let (run, hosted) = Run::begin(wires, published, plan, driver)?;
        // Not before: what cannot start leaves them to the next attempt.
        if let Err(error) = restart::begin(run.connections.as_deref()) {
            run.stop();
            return Err(error);
        }
        Ok((Run { control: self.control, metrics: self.metrics, ..run }, hosted))
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("wires", &self.wires.len()).finish_non_exhaustive()
    }
}
