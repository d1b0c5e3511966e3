//! `tamis bench rules`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args as ClapArgs, ValueEnum};
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
    #[arg(long, value_name = "PART")]
    pub only: Option<PartChoice>,
}

/// Parts by name.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PartChoice {
    /// 100 chains of 1,000 rules, matching or not
    Linear,
    /// The same in every layout with every kind of counter
    Layouts,
    /// Bytes and allocations
    Memory,
    /// From text to rules
    Load,
    /// Single changes
    Update,
    /// 10,000 bans in one transaction
    Bulk,
    /// How changes grow
    Growth,
    /// A provider's fanned trees
    Fan,
    /// Kinds of counters
    Counters,
}

impl From<PartChoice> for Part {
    fn from(choice: PartChoice) -> Self {
        match choice {
            PartChoice::Linear => Self::Linear,
            PartChoice::Layouts => Self::Layouts,
            PartChoice::Memory => Self::Memory,
            PartChoice::Load => Self::Load,
            PartChoice::Update => Self::Update,
            PartChoice::Bulk => Self::Bulk,
            PartChoice::Growth => Self::Growth,
            PartChoice::Fan => Self::Fan,
            PartChoice::Counters => Self::Counters,
        }
    }
}

/// Measures, draws and prints.
pub(crate) fn run(args: &RulesArgs) -> Result<()> {
    let RulesArgs { peers, quick, json, figure, only } = args;
    let tamis = std::env::current_exe().context("the program's own file")?;
    let plan = Plan { peers: *peers, quick: *quick, only: only.map(Part::from) };
    let document = rules::run(&tamis, plan)?;
    if let Some(directory) = figure {
        figure::draw(&document, directory)?;
    }
    print(&document, *json)
}
