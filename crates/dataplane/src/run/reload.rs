//! [`Reload`]: rules, sets and bans are read anew when somebody asks for it.
//!
//! Contract: all change at once, and connections stay. Files that are refused change nothing, and neither do rules that
//! the workers cannot share as they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::info_span;

use super::config::Settings;
use super::load::{self, Loaded};
use super::steering::Steering;
use crate::config::Config;
use crate::publish::Published;

/// What is read anew, when somebody asks for it.
#[derive(Debug)]
pub(super) struct Reload {
    settings: Settings,
    /// Raised by whoever asks.
    pub(super) asked: Arc<AtomicBool>,
}

impl Reload {
    /// The files of this configuration.
    pub(super) fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), asked: Arc::default() }
    }

    /// Reads the files if somebody has asked for it.
    pub(super) fn look(
        &self,
        published: &Published,
        steering: &Steering,
        tell: &mut impl FnMut(&str),
    ) {
        if !self.asked.swap(false, Ordering::Relaxed) {
            return;
        }
        match self.read(published, steering) {
            Ok((number, warnings)) => {
                warnings.iter().for_each(|warning| tell(&format!("warning: {warning}")));
                info_span!("program", program = number)
                    .in_scope(|| tell(&format!("reloaded: program {number}")));
            }
            Err(what) => tell(&format!("not reloaded: {what}")),
        }
    }

    fn read(
        &self,
        published: &Published,
        steering: &Steering,
    ) -> Result<(u64, Vec<String>), String> {
        let loaded = load::rules(&self.settings).map_err(|error| error.to_string())?;
        let Loaded { rulesets, config: Config { sets, bans, .. }, warnings } = loaded;
        steering.suits(&rulesets)?;
        let rulesets = rulesets.into_iter().filter_map(Arc::into_inner).collect();
        let current = published.program().number();
        let number = published.reload(current, rulesets, sets, bans);
        number.map(|number| (number, warnings)).map_err(|error| error.to_string())
    }
}
