//! Ctrl-C: the first one asks the work to end with what it has, the second ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

/// Exit code of a program that SIGINT ended, as shells have it.
const KILLED: i32 = 130;

/// A flag that Ctrl-C raises. To be called once.
pub(crate) fn flag() -> Result<Arc<AtomicBool>> {
    let raised = Arc::new(AtomicBool::new(false));
    let ours = Arc::clone(&raised);
    ctrlc::set_handler(move || {
        if ours.swap(true, Ordering::Relaxed) {
            std::process::exit(KILLED);
        }
    })
    .context("Ctrl-C")?;
    Ok(raised)
}
