//! `tamis-bench rules`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lab::bench::rules::{self, Part, Plan};
use lab::bench::{Recorded, pictures, show};

use crate::measured;
use crate::output::Output;

/// `tamis-bench rules`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
With --peers, and as root, the kernel's tools do the same work in network namespaces that end with the run.
Without --quick it takes some minutes.
Examples:
  tamis-bench rules --quick
  tamis-bench rules --peers --only linear
  tamis-bench rules --json --figure figures")]
pub(crate) struct RulesArgs {
    /// Measure ip6tables-legacy, ip6tables-nft, nft, and iptables on the same work, too
    #[arg(long)]
    peers: bool,
    /// Less of everything: within a minute
    #[arg(long)]
    quick: bool,
    /// How it is told.
    #[command(flatten)]
    output: Output,
    /// Draw the study's tables and curves as SVG files into a directory
    #[arg(long, value_name = "DIR")]
    figure: Option<PathBuf>,
    /// Print the bytes by which a process grows for one layout
    #[arg(long, value_name = "LAYOUT:NUMBER", hide = true)]
    resident: Option<String>,
    /// Walk one layout so many times
    #[arg(long, value_name = "LAYOUT:TIMES", hide = true)]
    walked: Option<String>,
    /// One part of it
    #[arg(long, value_name = "PART", value_parser = parts())]
    only: Option<Part>,
}

/// Parts by name, as the benchmark lists them.
fn parts() -> impl TypedValueParser<Value = Part> {
    let values = Part::ALL.map(|(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|word| {
        let found = Part::ALL.into_iter().find(|(_, name, _)| *name == word);
        found.map(|(part, ..)| part).ok_or("expected a part of the benchmark")
    })
}

/// Measures, draws and prints.
pub(crate) fn run(args: &RulesArgs) -> Result<ExitCode> {
    let RulesArgs { peers, quick, output, figure, resident, walked, only } = args;
    if let Some(asked) = resident {
        let bytes = rules::resident(asked).ok_or_else(|| anyhow!("--resident: not known here"))?;
        show(&bytes);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(asked) = walked {
        anyhow::ensure!(rules::walked(asked), "--walked: not known here");
        return Ok(ExitCode::SUCCESS);
    }
    let plan = Plan { quick: *quick, only: *only };
    let tamis = peers.then(measured::tamis).transpose()?;
    let mut out = output.begin()?;
    rules::run(&std::env::current_exe()?, tamis.as_deref(), plan, &mut out)?;
    if let Some(directory) = figure {
        let failed = |why: String| anyhow!("rules: {why}");
        pictures::draw(&Recorded::of(&out).map_err(failed)?, directory).map_err(failed)?;
    }
    Ok(ExitCode::SUCCESS)
}
