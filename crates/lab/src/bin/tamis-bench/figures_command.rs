//! `tamis-bench figures`: what was measured once is drawn again, without measuring.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use lab::bench::{Recorded, pictures};

/// `tamis-bench figures`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis-bench access --profile study1 --json > study1.json
  tamis-bench figures study1.json --dir figures")]
pub(crate) struct FiguresArgs {
    /// Documents of schema tamis.bench/1
    #[arg(required = true, value_name = "FILE")]
    documents: Vec<PathBuf>,
    /// Where the figures go, as SVG
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Draws.
pub(crate) fn run(args: &FiguresArgs) -> Result<ExitCode> {
    for path in &args.documents {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        let recorded = Recorded::from_json(&text).map_err(|why| anyhow!("{}: {why}", name()))?;
        pictures::draw(&recorded, &args.dir).map_err(|why| anyhow!("{}: {why}", name()))?;
    }
    Ok(ExitCode::SUCCESS)
}
