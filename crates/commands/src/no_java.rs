//! Middleboxes in Java, where this tamis has none: a configuration that asks for one is refused.

use std::convert::Infallible;

use live::config::{ConfigError, JavaSettings, Settings};
use live::{DroppedPrivileges, Opened, Run, RunError, Status};

/// Handlers in Java, of which there are none.
#[derive(Debug)]
pub(crate) struct Hosting(Infallible);

impl Hosting {
    pub(crate) fn end(self, _: &Status, _: Option<&RunError>, _: impl FnMut(&str)) {
        match self.0 {}
    }
}

/// Refuses a middlebox in Java.
pub(crate) fn check(settings: &Settings) -> Result<(), ConfigError> {
    settings.java().map_or(Ok(()), |java| Err(refused(settings, java)))
}

/// Refuses to start such a middlebox.
pub(crate) fn start(
    settings: &Settings,
    java: &JavaSettings,
    _: Opened,
    _: DroppedPrivileges,
) -> Result<(Run, Hosting), RunError> {
    Err(RunError::Config(refused(settings, java)))
}

fn refused(settings: &Settings, java: &JavaSettings) -> ConfigError {
    let what = "kind \"java\": not built into this tamis (cargo build --features java)";
    settings.refuse(java.at, what)
}
