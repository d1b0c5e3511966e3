//! `tamis man`: manual pages, from the same definitions as the help.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;

use crate::screen;

/// `tamis man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tamis man | man -l -
  tamis man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write every page into this directory (made if it is not there) instead of printing the first
    #[arg(value_name = "DIR")]
    pub dir: Option<std::path::PathBuf>,
}

/// Prints or writes the pages of `tamis`.
pub(crate) fn run(args: &ManArgs, command: Command) -> Result<ExitCode> {
    match &args.dir {
        Some(dir) => {
            let named = || dir.display().to_string();
            std::fs::create_dir_all(dir).with_context(named)?;
            clap_mangen::generate_to(command, dir).with_context(named)?;
            let page = dir.join("tamis-replay.1").display().to_string();
            screen::print(&format!("next: man {}\n", replay::shell::quote(&page)))?;
        }
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            screen::write(|out| out.write_all(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
