//! [`Live`], where this tamis has no live runs: their commands say so.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Subcommand;

use crate::moved::MovedArgs;

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Live {
    #[command(hide = true, disable_help_flag = true)]
    Run(MovedArgs),
    #[command(hide = true, disable_help_flag = true)]
    Ctl(MovedArgs),
    #[command(hide = true, disable_help_flag = true)]
    Top(MovedArgs),
    #[command(hide = true, disable_help_flag = true)]
    Watch(MovedArgs),
    #[command(hide = true, disable_help_flag = true)]
    Tunnel(MovedArgs),
    #[command(hide = true, disable_help_flag = true)]
    Doctor(MovedArgs),
}

impl Live {
    /// Refuses the command.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let command = match self {
            Self::Run(_) => "run",
            Self::Ctl(_) => "ctl",
            Self::Top(_) => "top",
            Self::Watch(_) => "watch",
            Self::Tunnel(_) => "tunnel",
            Self::Doctor(_) => "doctor",
        };
        bail!(
            "{command}: not built into this tamis, which works offline (cargo build --release --bin tamis)"
        )
    }

    /// Whether the command runs until it is asked to end: it does not, as it only says that it is not there.
    pub(crate) fn runs_for_long(&self) -> bool {
        false
    }
}
