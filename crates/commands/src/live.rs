//! [`Live`]: the commands of live runs and tunnels.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::ctl::{self, CtlArgs};
use crate::doctor_command::{self, DoctorArgs};
#[cfg(target_os = "linux")]
use crate::parent::{self, ParentArgs};
use crate::run_command::{self, RunArgs};
use crate::top::{self, TopArgs};
use crate::tunnel::{self, TunnelArgs};
use crate::watch_command::{self, WatchArgs};

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Live {
    /// Pass frames between ports under rules, live
    Run(RunArgs),
    /// Ask a run how it is, change its rules, or stop it
    Ctl(CtlArgs),
    /// Watch a run: rates, verdicts, rules, drops, talkers and workers
    Top(TopArgs),
    /// Frames that a run drops, as it happens
    Watch(WatchArgs),
    /// An end of an encrypted overlay: keys, up, down, peers
    Tunnel(TunnelArgs),
    /// Which kinds of ports work on this machine, and what the others lack
    Doctor(DoctorArgs),
    /// Opens devices for a run, which starts it
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Parent(ParentArgs),
}

impl Live {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        match self {
            Self::Run(run) => run_command::run(run),
            Self::Ctl(ctl) => ctl::run(ctl),
            Self::Top(top) => top::run(top),
            Self::Watch(watch) => watch_command::run(watch),
            Self::Tunnel(tunnel) => tunnel::run(tunnel),
            Self::Doctor(doctor) => doctor_command::run(doctor),
            #[cfg(target_os = "linux")]
            Self::Parent(asked) => parent::run(asked),
        }
    }

    /// Whether the command runs until it is asked to end.
    pub(crate) fn runs_for_long(&self) -> bool {
        match self {
            Self::Run(_) | Self::Watch(_) | Self::Top(_) => true,
            Self::Tunnel(tunnel) => tunnel.command.runs_for_long(),
            _ => false,
        }
    }
}
