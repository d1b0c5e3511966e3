//! `tamis bench rules`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lab::bench::rules::{self, Part, Plan, figure};

use crate::bench_command::print;

/// `tamis bench rules`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
With --peers, and as root, the kernel's tools do the same work in network namespaces that end with the run.
Without --quick it takes some minutes.
Examples:
  tamis bench rules --quick
  tamis bench rules --peers --only linear
  tamis bench rules --json --figure figures")]
pub(crate) struct RulesArgs {
    /// Measure ip6tables-legacy, ip6tables-nft, nft, and iptables on the same work, too
    #[arg(long)]
    pub peers: bool,
    /// Less of everything: within a minute
    #[arg(long)]
    pub quick: bool,
    /// One JSON document, schema tamis.bench/1
    #[arg(long)]
    pub json: bool,
    /// Draw the study's tables and curves as SVG files into a directory
    #[arg(long, value_name = "DIR")]
    pub figure: Option<PathBuf>,
    /// One part of it
    #[arg(long, value_name = "PART", value_parser = parts())]
    pub only: Option<Part>,
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
pub(crate) fn run(args: &RulesArgs) -> Result<()> {
    let RulesArgs { peers, quick, json, figure, only } = args;
    let tamis = std::env::current_exe().context("the program's own file")?;
    let plan = Plan { peers: *peers, quick: *quick, only: *only };
    let document = rules::run(&tamis, plan)?;
    if let Some(directory) = figure {
        figure::draw(&document, directory)?;
    }
    print(&document, *json)
}
