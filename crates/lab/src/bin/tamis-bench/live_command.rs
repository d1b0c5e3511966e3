//! `tamis-bench live`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::bench::live::{self, Part, Plan};

/// `tamis-bench live`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs root. Makes devices in network namespaces of its own, which go with it, and runs everything on the first and the
last core before all other processes.")]
pub(crate) struct LiveArgs {
    /// Measure testpmd, and the kernel under iptables-legacy, on the same frames, too
    #[arg(long)]
    peers: bool,
    /// Fewer and shorter runs
    #[arg(long)]
    quick: bool,
    /// One JSON document, schema tamis.bench/1
    #[arg(long)]
    json: bool,
    /// One part of it
    #[arg(long, value_name = "PART", value_parser = parts())]
    only: Option<Part>,
}

/// Parts by name.
fn parts() -> impl TypedValueParser<Value = Part> {
    PossibleValuesParser::new(Part::ALL.map(|(_, name)| name)).try_map(|word| {
        let found = Part::ALL.into_iter().find(|(_, name)| *name == word);
        found.map(|(part, _)| part).ok_or("expected a part of the benchmark")
    })
}

/// Measures and prints.
pub(crate) fn run(args: &LiveArgs) -> Result<ExitCode> {
    let plan = Plan { peers: args.peers, quick: args.quick, only: args.only };
    crate::print(&live::run(&crate::tamis()?, plan)?, args.json)?;
    Ok(ExitCode::SUCCESS)
}
