//! Ctrl-C and SIGTERM: the first one asks the work to end with what it has, the second ends the program at once. SIGHUP
//! asks a run to read its files again.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
#[cfg(feature = "live")]
use signal_hook::consts::SIGHUP;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Returns a flag that SIGHUP raises: files are to be read again. To be called once.
#[cfg(feature = "live")]
pub(crate) fn asked_to_reload() -> Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    flag::register(SIGHUP, Arc::clone(&asked)).context("signals")?;
    Ok(asked)
}

/// A flag that these signals raise. To be called once.
pub(crate) fn raised() -> Result<Arc<AtomicBool>> {
    let raised = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first one finds the flag down, then raises it.
        let killed = 128 + signal;
        flag::register_conditional_shutdown(signal, killed, Arc::clone(&raised))
            .and_then(|_| flag::register(signal, Arc::clone(&raised)))
            .context("signals")?;
    }
    Ok(raised)
}
