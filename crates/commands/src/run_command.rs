//! `tamis run`.

use std::fmt::Display;
use std::os::unix::net::UnixDatagram;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use live::config::{LogFormat, Privileges, Settings, properties};
use live::{Run, RunError, Status};
use packet::visible;
use pktio::{InProcess, Opener};

use crate::dpdk_ports::DpdkPorts;
use crate::java::Hosting;
use crate::log::Log;
#[cfg(target_os = "linux")]
use crate::parent::Parent;
use crate::{confine, interrupt, java, screen};

/// Exit code where a port, or the worker, failed.
const FAILED: u8 = 1;

/// `tamis run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
SIGHUP has it read rules, sets and bans anew; connections stay. SIGTERM and Ctrl-C end it once what has come is handled.
Exit codes: 0 ended, 1 a port or worker failed, 2 usage or input error.
Then: tamis ctl status, tamis watch (frames as they are dropped), tamis ctl capture FILE")]
pub(crate) struct RunArgs {
    /// Ports, wires and rules, in TOML (docs/live.md)
    #[arg(value_name = "CONFIG", required_unless_present = "from_properties")]
    pub config: Option<String>,
    /// Print what a .properties file of the study's framework says as such a configuration, and start nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "check", "json"])]
    pub from_properties: Option<String>,
    /// Read everything, say what is wrong or odd, and start nothing
    #[arg(long)]
    pub check: bool,
    /// Rules to try beside those in force, for one family: what they would do otherwise is counted (tamis ctl shadow)
    #[arg(long, value_name = "FILE")]
    pub shadow: Vec<String>,
    /// Print the counters at the end as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs until all ports have ended, or somebody asks for its end.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    if let Some(file) = &args.from_properties {
        let text = replay::read_text(file)?;
        screen::print(&properties::to_toml(file, &text)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let config = args.config.as_deref().unwrap_or_default();
    let text = replay::read_text(config)?;
    let settings = Settings::from_text(config, &text)?;
    let checked = if args.check { Some(live::check(&settings)?) } else { None };
    java::check(&settings)?;
    live::keep_apart(&settings, &args.shadow)?;
    if let Some(loaded) = checked {
        Log::start(LogFormat::Text).warn(&loaded.warnings);
        let (ports, wires) = (settings.ports.len(), settings.wires.len());
        let file = visible::word(config);
        screen::print(&format!("{file}: ports {ports}, wires {wires}\nnext: tamis run {file}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let tried = args.shadow.iter().map(|file| replay::read_text(file));
    let tried = tried.collect::<Result<Vec<_>, _>>()?;
    let log = Log::start(settings.log);
    let failed = |error: &dyn Display| failed(log, error);
    let opener = match opener(&settings, log) {
        Ok(opener) => opener,
        Err(error) => return Ok(failed(&error)),
    };
    let (stop, asked) = (interrupt::raised()?, interrupt::asked_to_reload()?);
    let opened = match live::open(&settings, &opener, &mut DpdkPorts::default()) {
        Ok(opened) => opened,
        Err(error) if error.is_input() => return Err(error.into()),
        Err(error) => return Ok(failed(&error)),
    };
    log.warn(opened.warnings());
    let (given_up, lacking) = match confine::confine(&settings) {
        Ok(confined) => confined,
        Err(error) => return Ok(failed(&error)),
    };
    log.warn(&lacking);
    let started = match settings.java() {
        None => opened.start(given_up).map(|run| (run, None)),
        Some(java) => java::start(&settings, java, opened, given_up)
            .map(|(run, hosting)| (run, Some(hosting))),
    };
    let (run, hosting) = match started {
        Ok((run, hosting)) => (run.reloading(asked), hosting),
        Err(error) if error.is_input() => return Err(error.into()),
        Err(error) => return Ok(failed(&error)),
    };
    if !tried.is_empty()
        && let Err(what) = run.shadow(tried)
    {
        run.stop();
        let _ = wait(run, hosting, &stop, log);
        anyhow::bail!("--shadow: {what}");
    }
    ready(log);
    let (status, ended) = wait(run, hosting, &stop, log);
    print(&status, args.json)?;
    Ok(ended.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS))
}

/// Waits for the end of a run, and for that of its handlers in Java.
fn wait(
    run: Run,
    hosting: Option<Hosting>,
    stop: &AtomicBool,
    log: Log,
) -> (Status, Result<(), RunError>) {
    let (status, ended) = run.wait(stop, |line| log.tell(line));
    if let Some(hosting) = hosting {
        hosting.end(&status, ended.as_ref().err(), |line| log.tell(line));
    }
    (status, ended)
}

/// Chooses what opens devices: this process, or a parent that keeps the privileges for it while this process gives them
/// up.
fn opener(settings: &Settings, log: Log) -> Result<Arc<dyn Opener>> {
    #[cfg(target_os = "linux")]
    if let Some(reopened) = settings.reopened() {
        match Parent::start(settings, &reopened) {
            Ok(parent) => return Ok(Arc::new(parent)),
            Err(error) if settings.privileges == Privileges::Required => return Err(error),
            Err(error) => log.warn(&[format!("a device that goes stays gone: {error:#}")]),
        }
    }
    Ok(Arc::new(InProcess))
}

fn failed(log: Log, error: &dyn Display) -> ExitCode {
    log.tell(&format!("tamis: {}", replay::without_numbers(&error.to_string())));
    ExitCode::from(FAILED)
}

/// Says that ports are open and the worker runs: on standard error, and to who started it where that asks
/// (`sd_notify(3)`).
fn ready(log: Log) {
    log.tell("ready");
    notify_ready();
}

/// The latter.
pub(crate) fn notify_ready() {
    if let (Some(socket), Ok(from)) = (std::env::var_os("NOTIFY_SOCKET"), UnixDatagram::unbound()) {
        // Who asked and does not listen is not told.
        let _ = from.send_to(b"READY=1", socket);
    }
}

fn print(status: &Status, json: bool) -> Result<()> {
    match json {
        true => screen::json(&status.json()),
        false => screen::print(&status.text()),
    }
}
