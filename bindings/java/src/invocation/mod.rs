//! Runs whose handlers are in Java and whose program is tamis: a JVM in this process, and an upcall for each burst.
//!
//! Contract: [`check`] before anything is opened; [`start`] once privileges are given up, as all threads of the JVM
//! then lack them like all others. A process has one JVM, once. The JVM leaves signals to tamis (`-Xrs`). Whatever is wrong
//! with a configuration's `[middlebox]` is refused there, at its line and column. Each worker has a thread, which is
//! attached to the JVM from its beginning to its end, and a handler, which is made before any frame is taken.
//!
//! Source: JNI specification, chapter 5 (The Invocation API).

mod jdk;
mod jvm;
mod registered;
mod upcalls;

use std::sync::Arc;

use live::config::{ConfigError, JavaSettings, Settings};
use live::{DroppedPrivileges, Opened, Run, RunError, Status};

use crate::live::{BURST, Started};
use crate::natives;
use jvm::Jvm;
use upcalls::{Handlers, Upcalls};

/// Handlers of a run, in their JVM.
#[derive(Debug)]
pub struct Hosting {
    jvm: Jvm,
    upcalls: Upcalls,
    started: Arc<Started>,
}

/// Refuses a configuration whose JVM or class path is not there; a configuration without a handler in Java needs
/// neither.
///
/// # Errors
/// Something is not there.
pub fn check(settings: &Settings) -> Result<(), ConfigError> {
    let Some(java) = settings.java() else { return Ok(()) };
    for entry in &java.jar {
        if let Err(error) = std::fs::metadata(&entry.path) {
            let what = format!("{}: {error}", entry.path.display());
            return Err(settings.refuse(entry.at, replay::without_numbers(&what)));
        }
    }
    library(settings, java).map(drop)
}

fn library(settings: &Settings, java: &JavaSettings) -> Result<std::path::PathBuf, ConfigError> {
    let named = java.jvm.as_ref();
    let at = named.map_or(java.at, |named| named.at);
    jdk::library(named.map(|named| &*named.path)).map_err(|what| settings.refuse(at, what))
}

/// Starts a run of this configuration with the JVM that it asks for.
///
/// # Errors
/// The JVM does not start, or there is no handler in it; or as [`Opened::start_hosted`].
pub fn start(
    settings: &Settings,
    java: &JavaSettings,
    opened: Opened,
    given_up: DroppedPrivileges,
) -> Result<(Run, Hosting), RunError> {
    let (jvm, handlers) =
        with_handlers(settings, java, opened.workers()).map_err(RunError::Config)?;
    let (run, workers) = opened.start_hosted(given_up, BURST)?;
    let started = Arc::new(Started::of_host(run.running()));
    let begun = natives::knows(&started)
        .map_err(|lost| lost.to_string())
        .and_then(|number| Upcalls::begin(&jvm, &handlers, number, workers));
    match begun {
        Ok(upcalls) => Ok((run, Hosting { jvm, upcalls, started })),
        Err(what) => {
            run.stop();
            Err(RunError::Config(settings.refuse(java.at, what)))
        }
    }
}

fn with_handlers(
    settings: &Settings,
    java: &JavaSettings,
    workers: usize,
) -> Result<(Jvm, Handlers), ConfigError> {
    let library = library(settings, java)?;
    let jvm = Jvm::start(&library, java);
    let jvm = jvm.map_err(|what| settings.refuse(java.options_at, what))?;
    let of_tamis = java.jar.first().map_or(java.at, |jar| jar.at);
    registered::register(&jvm).map_err(|what| settings.refuse(of_tamis, what))?;
    let handlers = Handlers::new(&jvm, &java.class, workers);
    Ok((jvm, handlers.map_err(|what| settings.refuse(java.class_at, what))?))
}

impl Hosting {
    /// Ends the handlers and the JVM after their run has ended. `tell` is given what does not end.
    pub fn end(self, status: &Status, failed: Option<&RunError>, mut tell: impl FnMut(&str)) {
        self.started.has_ended(status, failed);
        if !self.upcalls.end(&mut tell) {
            tell("a handler does not return: the JVM ends with the process");
        } else if !self.jvm.end() {
            tell(
                "threads or shutdown hooks of the handlers do not end: the JVM ends with the process",
            );
        }
    }
}
