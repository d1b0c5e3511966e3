//! `tamis tunnel serve`: the process that moves a tunnel's packets.
//!
//! Contract: `up` starts it, with a pipe for standard input and output. A line on the latter says that it is ready; it
//! ends once the former is closed, so it does not outlive who started it. SIGHUP, which its parent passes on, makes it read
//! rules, sets and bans again. It executes nothing, and changes nothing of
//! the host but the device, which goes with it.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use live::config::tunnel::TunnelSettings;
use pktio::{InProcess, Opener};

use super::names::Names;
use super::settings;
use super::speed::{self, Answering};
use crate::log::Log;
use crate::{confine, interrupt};

/// Exit code where the device, the socket or a worker failed.
const FAILED: u8 = 1;

/// How much sooner than others it gets a processor.
const PRIORITY: i32 = -10;

/// What is written once packets are moved.
pub(super) const READY: &str = "ready\n";

/// Moves packets until it is asked to end.
pub(super) fn run(config: &Path) -> Result<ExitCode> {
    let tunnel = TunnelSettings::read(config)?;
    let settings = settings::of_run(&tunnel);
    let log = Log::start(settings.log);
    let failed = |error: &dyn std::fmt::Display| {
        log.tell(&format!("tamis: {}", replay::without_numbers(&error.to_string())));
        Ok(ExitCode::from(FAILED))
    };
    before_others();
    let (stop, asked) = (interrupt::raised()?, interrupt::asked_to_reload()?);
    let opener: Arc<dyn Opener> = Arc::new(InProcess);
    let opened = match live::open(&settings, &opener, &mut ()) {
        Ok(opened) => opened,
        Err(error) if error.is_input() => return Err(error.into()),
        Err(error) => return failed(&error),
    };
    log.warn(opened.warnings());
    // Before privileges are given up: the port of names is below 1,024.
    let names = match Names::open(&tunnel) {
        Ok(names) => names,
        Err(error) => return failed(&format_args!("{error:#}")),
    };
    // A tunnel that cannot be measured is a tunnel.
    let answering = Answering::open(&tunnel).unwrap_or_else(|error| {
        let port = speed::PORT;
        log.tell(&format!("warning: nobody can measure this tunnel: port {port}: {error}"));
        None
    });
    let (given_up, lacking) = match confine::confine(&settings) {
        Ok(confined) => confined,
        Err(error) => return failed(&error),
    };
    log.warn(&lacking);
    let run = match opened.start(given_up) {
        Ok(run) => run.reloading(asked),
        Err(error) if error.is_input() => return Err(error.into()),
        Err(error) => return failed(&error),
    };
    // Not before: what is given up is a thread's own.
    end_with_input(Arc::clone(&stop)).context("threads")?;
    let names = names.zip(run.running().peers(&tunnel.name)).map(|(names, peers)| {
        names.start((run.running(), peers), log, Arc::clone(&stop)).context("threads")
    });
    let names = names.transpose()?;
    if let Some(answering) = answering {
        answering.start(Arc::clone(&stop)).context("threads")?;
    }
    let _ = io::stdout().write_all(READY.as_bytes()).and_then(|()| io::stdout().flush());
    let (_, ended) = run.wait(&stop, |line| log.tell(line));
    stop.store(true, Ordering::Relaxed);
    let _ = names.map(thread::JoinHandle::join);
    ended.map_or_else(|error| failed(&error), |()| Ok(ExitCode::SUCCESS))
}

/// What the programs of this host send and receive waits for this process, so it goes before them, as the kernel's own
/// forwarding does. Who may not ask for that goes with them.
fn before_others() {
    let _ = rustix::process::setpriority_process(None, PRIORITY);
}

/// Asks for the end once standard input is closed.
fn end_with_input(stop: Arc<AtomicBool>) -> io::Result<()> {
    let wait = move || {
        let mut byte = [0];
        while io::stdin().read(&mut byte).is_ok_and(|read| read > 0) {}
        stop.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().name("end".to_owned()).spawn(wait).map(drop)
}
