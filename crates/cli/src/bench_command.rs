//! `tamis bench`.

use std::process::ExitCode;

use ::replay::json_text;
use anyhow::{Context, Result};
use clap::{Args as ClapArgs, Subcommand};
use lab::bench::{Document, replay};

use crate::bench_access::{self, AccessArgs};
use crate::bench_rules::{self, RulesArgs};
use crate::screen;

/// `tamis bench`.
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchArgs {
    /// What to measure.
    #[command(subcommand)]
    pub what: Bench,
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Packets per second of a replay: 20 and 100 rules walked, a full table of connections, a SYN flood
    Replay(ReplayArgs),
    /// The walk over rules, their memory, load and changes, in every layout
    Rules(RulesArgs),
    /// Access-control engines, ways to share work, and both studies
    Access(Box<AccessArgs>),
}

/// `tamis bench replay`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Captures of up to 760 MB are written to the directory for temporary files and removed. With --quick they are
a tenth of that, and it ends within a minute.")]
pub(crate) struct ReplayArgs {
    /// Measure tcpdump on the same captures, too, with an expression that asks the same
    #[arg(long)]
    pub peers: bool,
    /// Fewer packets and runs
    #[arg(long)]
    pub quick: bool,
    /// One JSON document, schema tamis.bench/1
    #[arg(long)]
    pub json: bool,
}

/// Measures and prints.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    match &args.what {
        Bench::Replay(ReplayArgs { peers, quick, json }) => {
            let tamis = std::env::current_exe().context("the program's own file")?;
            let plan = replay::Plan { peers: *peers, quick: *quick };
            print(&replay::run(&tamis, plan)?, *json)?;
        }
        Bench::Rules(rules) => bench_rules::run(rules)?,
        Bench::Access(access) => return bench_access::run(access),
    }
    Ok(ExitCode::SUCCESS)
}

/// The document, for people or for programs.
pub(crate) fn print(document: &Document, json: bool) -> Result<()> {
    if json {
        return screen::write(|out| json_text::pretty(out, document));
    }
    screen::print(&document.to_string())
}
