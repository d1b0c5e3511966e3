//! `tamis tunnel down`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use live::{Request, ask};

use super::host;
use super::place;
use crate::screen;

/// How long a tunnel may take over its end.
const PATIENCE: Duration = Duration::from_secs(20);

/// `tamis tunnel down`.
#[derive(Debug, clap::Args)]
pub(crate) struct DownArgs {
    /// Its name, or its configuration
    #[arg(value_name = "NAME|CONFIG")]
    pub which: String,
}

/// Ends a tunnel, and waits until the host is as it was before.
pub(crate) fn run(args: &DownArgs) -> Result<ExitCode> {
    let control = place::control(&args.which)?;
    if !place::is_up(&control) {
        bail!("{}: no such tunnel is up (tamis tunnel status)", args.which);
    }
    // One that is not served, or no longer, is asked by a signal.
    if !matches!(ask(&control, &Request::Stop {}), Ok(Ok(_)))
        && let Some(process) = place::process(&control)
    {
        host::ask_to_end(process)?;
    }
    if !place::is_down_within(&control, PATIENCE) {
        bail!("{}: it is not down after {} s", args.which, PATIENCE.as_secs());
    }
    screen::print("down\n")?;
    Ok(ExitCode::SUCCESS)
}
