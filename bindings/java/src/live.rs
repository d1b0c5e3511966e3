//! Runs whose workers Java polls.
//!
//! Contract: a [`JavaRun`] is any thread's; a [`Hosted`] that it gave away is the thread's that polls it. A thread of the
//! run's own waits for its end, as `tamis run` does, and says on standard error what happens. No privilege is given up, and no
//! signal asked for: both are the JVM's.

use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use live::config::Settings;
use live::{DroppedPrivileges, Hosted, OpenDpdk, Run, Running};
#[cfg(feature = "invocation")]
use live::{RunError, Status};
use pktio::{InProcess, Opener};
#[cfg(feature = "invocation")]
use replay::without_numbers;

use crate::entry::Thrown;
use crate::handles::Lost;

/// Frames that a poll shows at most.
pub(crate) const BURST: usize = 256;

/// A flag that nothing raises: a run is ended by stopping it.
static NEVER: AtomicBool = AtomicBool::new(false);

/// What a configuration is called in errors that came as text, in its folder.
const NAME: &str = "tamis.toml";

/// A run, from its configuration to its end.
#[derive(Debug)]
pub(crate) struct JavaRun {
    stage: Mutex<Stage>,
}

#[derive(Debug)]
enum Stage {
    /// Nothing is open yet.
    Configured(Box<Settings>),
    Started(Arc<Started>),
    /// The run could not start, or is given up.
    Over,
}

/// A run that goes, or has ended.
#[derive(Debug)]
pub(crate) struct Started {
    running: Running,
    /// Workers by their numbers.
    workers: Mutex<Vec<Worker>>,
    ended: Arc<Ended>,
    /// The thread that waits for its end.
    waiting: Mutex<Option<JoinHandle<()>>>,
}

/// The owner of a worker.
#[derive(Debug)]
enum Worker {
    /// Not given out yet.
    Here(Hosted),
    /// Java, which knows it by this number.
    Given(i64),
    /// Has ended, or was taken back.
    Gone,
}

/// How a run has ended, once it has.
#[derive(Debug, Default)]
struct Ended {
    how: Mutex<Option<End>>,
    told: Condvar,
}

/// The last status as JSON, and what failed.
#[derive(Debug, Clone)]
struct End {
    status: String,
    failed: Option<String>,
}

impl JavaRun {
    /// Reads a configuration. `place` is its file, or the folder that its relative paths are from.
    ///
    /// # Errors
    /// It is refused at a line and column.
    pub(crate) fn configured(toml: &str, place: &str) -> Result<Self, Thrown> {
        let path = Path::new(place);
        let file = if path.is_dir() { path.join(NAME) } else { path.to_owned() };
        let settings = Settings::from_text(&file.to_string_lossy(), toml)?;
        settings.expect_no_java()?;
        Ok(Self { stage: Mutex::new(Stage::Configured(Box::new(settings))) })
    }

    /// A run that tamis has started itself.
    #[cfg(feature = "invocation")]
    pub(crate) fn of_host(started: &Arc<Started>) -> Self {
        Self { stage: Mutex::new(Stage::Started(Arc::clone(started))) }
    }

    /// Opens its ports and starts it: how many workers it has, all of which have to be polled.
    ///
    /// # Errors
    /// Something is refused, or cannot be opened; or it was started before.
    pub(crate) fn start(&self) -> Result<usize, Thrown> {
        let mut stage = lock(&self.stage);
        match mem::replace(&mut *stage, Stage::Over) {
            Stage::Configured(settings) => {
                let started = Started::new(&settings, &mut dpdk())?;
                let workers = lock(&started.workers).len();
                *stage = Stage::Started(Arc::new(started));
                Ok(workers)
            }
            other => {
                *stage = other;
                Err(Thrown("expected a run that was not started yet".to_owned()))
            }
        }
    }

    /// The run that goes.
    ///
    /// # Errors
    /// It was not started, or could not be.
    pub(crate) fn started(&self) -> Result<Arc<Started>, Thrown> {
        match &*lock(&self.stage) {
            Stage::Started(started) => Ok(Arc::clone(started)),
            Stage::Configured(_) | Stage::Over => {
                Err(Thrown("expected a run that was started".to_owned()))
            }
        }
    }
}

impl Started {
    fn new(settings: &Settings, dpdk: &mut dyn OpenDpdk) -> Result<Self, Thrown> {
        let opener: Arc<dyn Opener> = Arc::new(InProcess);
        let opened = live::open(settings, &opener, dpdk)?;
        opened.warnings().iter().for_each(|warning| tell(warning));
        let (run, workers) = opened.start_hosted(DroppedPrivileges::default(), BURST)?;
        let (running, ended) = (run.running(), Arc::<Ended>::default());
        let told = Arc::clone(&ended);
        let builder = thread::Builder::new().name("tamis run".to_owned());
        let waiting = builder.spawn(move || told.tell(run))?;
        let workers = workers.into_iter().map(Worker::Here).collect();
        Ok(Self {
            running,
            workers: Mutex::new(workers),
            ended,
            waiting: Mutex::new(Some(waiting)),
        })
    }

    /// A run whose workers tamis itself has, and whose end it tells ([`Started::has_ended`]).
    #[cfg(feature = "invocation")]
    pub(crate) fn of_host(running: Running) -> Self {
        let (workers, ended, waiting) = Default::default();
        Self { running, workers, ended, waiting }
    }

    /// Tells how it has ended to those who wait for that.
    #[cfg(feature = "invocation")]
    pub(crate) fn has_ended(&self, status: &Status, failed: Option<&RunError>) {
        let failed = failed.map(|error| without_numbers(&error.to_string()));
        self.ended.is(End { status: status.json().to_string(), failed });
    }

    /// Gives a worker to who will poll it, who knows it by the number that `take` has for it.
    ///
    /// # Errors
    /// There is none of this number, somebody has it, or `take` fails.
    pub(crate) fn worker(
        &self,
        number: usize,
        take: impl FnOnce(Hosted) -> Result<i64, Lost>,
    ) -> Result<i64, Thrown> {
        let mut workers = lock(&self.workers);
        let last = workers.len().saturating_sub(1);
        let unknown = || Thrown(format!("expected a worker from 0 to {last}, found {number}"));
        let worker = workers.get_mut(number).ok_or_else(unknown)?;
        match mem::replace(worker, Worker::Gone) {
            Worker::Here(hosted) => {
                let given = take(hosted)?;
                *worker = Worker::Given(given);
                Ok(given)
            }
            other => {
                *worker = other;
                Err(Thrown(format!("worker {number} was given away before")))
            }
        }
    }

    /// The numbers of workers that somebody has, or had.
    pub(crate) fn given(&self) -> Vec<i64> {
        let number = |worker: &Worker| match worker {
            Worker::Given(number) => Some(*number),
            Worker::Here(_) | Worker::Gone => None,
        };
        lock(&self.workers).iter().filter_map(number).collect()
    }

    /// Asks it to end.
    pub(crate) fn stop(&self) {
        self.running.stop();
    }

    /// `tamis.status/1`, as of now.
    pub(crate) fn status(&self) -> String {
        self.running.status().json().to_string()
    }

    /// What a client of the control socket is answered to this line.
    pub(crate) fn answer(&self, line: &str) -> String {
        self.running.answer(line).to_string()
    }

    /// Waits for the run's end and returns its last status; `None` if that takes longer than `most`.
    ///
    /// # Errors
    /// A port or a worker failed.
    pub(crate) fn wait(&self, most: Duration) -> Result<Option<String>, Thrown> {
        let how = lock(&self.ended.how);
        let waited = self.ended.told.wait_timeout_while(how, most, |how| how.is_none());
        let (how, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match how.clone() {
            Some(End { failed: Some(failed), .. }) => Err(Thrown(failed)),
            ended => Ok(ended.map(|end| end.status)),
        }
    }

    /// Stops it and waits for its end, which comes once no worker is left that somebody has.
    pub(crate) fn close(&self) {
        self.stop();
        lock(&self.workers).clear();
        let waiting = lock(&self.waiting).take();
        if let Some(waiting) = waiting {
            // A panic of it is on standard error.
            let _ = waiting.join();
        }
    }
}

impl Ended {
    /// Waits for the end of a run and tells how it came, also where waiting panics: nobody waits for ever.
    fn tell(&self, run: Run) {
        let running = run.running();
        let waited = panic::catch_unwind(AssertUnwindSafe(|| run.wait(&NEVER, tell)));
        let (status, failed) = match waited {
            Ok((status, ended)) => (status, ended.err().map(|error| Thrown::from(error).0)),
            Err(_) => (running.status(), Some("tamis has panicked".to_owned())),
        };
        self.is(End { status: status.json().to_string(), failed });
    }

    fn is(&self, end: End) {
        *lock(&self.how) = Some(end);
        self.told.notify_all();
    }
}

/// Says what happens, as `tamis run` does.
fn tell(line: &str) {
    eprintln!("tamis: {line}");
}

/// The opener of ports of DPDK.
#[cfg(feature = "dpdk")]
fn dpdk() -> impl OpenDpdk {
    crate::dpdk_ports::DpdkPorts::default()
}

/// The opener of ports of DPDK, which opens none.
#[cfg(not(feature = "dpdk"))]
fn dpdk() -> impl OpenDpdk {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
