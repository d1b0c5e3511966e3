//! `tamis demo`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use dataplane::Config;
use host::Network;
use packet::visible;
use replay::run::{self, Wanted};
use replay::{Room, RulesFile, Target, demo};
use rules::save::LoadOptions;

use crate::replay_command::{command_line, print};
use crate::screen;

/// `tamis demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Where to write demo-report.html and the demonstration's rules and capture
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
}

/// Replays the built-in capture and writes the report next to it.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    let written = demo::write(&args.dir)?;
    let rules = written.rules.display().to_string();
    let files = [RulesFile::open(&rules, &LoadOptions::default())?];
    let capture = written.capture.display().to_string();
    let net = |name: &str, cidr| Some((name.to_owned(), Network::parse(cidr)?));
    let nets = [net("lan0", "10.20.0.0/24"), net("wan0", "0.0.0.0/0")];
    let config = Config { nets: nets.into_iter().flatten().collect(), ..Config::default() };
    let mut wanted = Wanted { page: true, ..Wanted::default() };
    let report = run::replay(&files, &[capture], &config.into(), &mut wanted)?;
    let page = written.report.display().to_string();
    Target::open(&page, &Room::default())?.write_whole(&report.html(&command_line("")))?;
    print(&report, false)?;
    screen::print(&format!("report: {}\n", visible::word(&page)))?;
    Ok(ExitCode::SUCCESS)
}
