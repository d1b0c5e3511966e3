//! `tamis doctor`.

use std::process::ExitCode;

use anyhow::Result;
use live::config::Settings;
use live::doctor;
use packet::visible;

use crate::screen;

/// Exit code where something does not work that the configuration needs.
const UNWELL: u8 = 1;

/// `tamis doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 all works that CONFIG needs, 1 something does not, 2 usage error, or CONFIG is refused.")]
pub(crate) struct DoctorArgs {
    /// A configuration of `tamis run` (docs/live.md): what does it need that does not work?
    #[arg(value_name = "CONFIG")]
    pub config: Option<String>,
    /// Print what is found as JSON
    #[arg(long)]
    pub json: bool,
}

/// Says which kinds of ports work here, and what to do about the others.
pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let read = |config: &String| -> Result<Settings> {
        let text = replay::read_text(config)?;
        Ok(Settings::from_text(config, &text)?)
    };
    let settings = args.config.as_ref().map(read).transpose()?;
    let report = doctor::examine(settings.as_ref(), pktio_dpdk::IS_BUILT);
    match args.json {
        true => screen::json(&report.json())?,
        false => screen::print(&visible::text(&report.text()))?,
    }
    Ok(if report.is_well() { ExitCode::SUCCESS } else { ExitCode::from(UNWELL) })
}
