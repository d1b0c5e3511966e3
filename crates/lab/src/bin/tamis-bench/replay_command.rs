//! `tamis-bench replay`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use lab::bench::replay;

use crate::measured;
use crate::output::Output;

/// `tamis-bench replay`.
#[derive(Debug, Args)]
#[command(after_help = "\
Captures of up to 760 MB are written to the directory for temporary files and removed. With --quick they are
a tenth of that, and it ends within a minute.")]
pub(crate) struct ReplayArgs {
    /// Measure tcpdump on the same captures, too, with an expression that asks the same
    #[arg(long)]
    peers: bool,
    /// Fewer packets and runs
    #[arg(long)]
    quick: bool,
    /// How it is told.
    #[command(flatten)]
    output: Output,
}

/// Measures and prints.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let plan = replay::Plan { peers: args.peers, quick: args.quick };
    replay::run(&measured::tamis()?, plan, &mut args.output.begin()?)?;
    Ok(ExitCode::SUCCESS)
}
