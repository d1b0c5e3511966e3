//! `tamis-bench tunnel`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::bench::tunnel::{self, Part, Plan, figure};

use crate::measured;
use crate::output::Output;

/// `tamis-bench tunnel`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs root, iperf3, ping, nft and ip, but for --only workers. Hosts are network namespaces without names, which go with it.
Peers: wireguard-go (go install golang.zx2c4.com/wireguard@latest; the program is called wireguard there),
boringtun-cli and gotatun (cargo install boringtun-cli gotatun-cli).
Without --quick it takes an hour and a half with all peers.
Examples:
  tamis-bench tunnel --peers --quick --only pair
  tamis-bench tunnel --forms --only star --as-study --initiators 1,3,10 --for 600 --json
  tamis-bench tunnel --peers --peer wireguard-go=/opt/wireguard --json --figure figures")]
pub(crate) struct TunnelArgs {
    /// Measure peers, too: those that are on PATH or given by --peer
    #[arg(long)]
    peers: bool,
    /// Where a peer's program is; may be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = program)]
    peer: Vec<(String, PathBuf)>,
    /// One round, and short
    #[arg(long)]
    quick: bool,
    /// So many rounds [default: 7, or 1 with --quick]
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    rounds: usize,
    /// How it is told.
    #[command(flatten)]
    output: Output,
    /// Draw figures as SVG files into a directory
    #[arg(long, value_name = "DIR")]
    figure: Option<PathBuf>,
    /// One part of it
    #[arg(long, value_name = "PART", value_parser = parts())]
    only: Option<Part>,
    /// Measure both forms of the study's packet handling, too: by one thread, and with a lock for each packet
    #[arg(long)]
    forms: bool,
    /// How many workers each end of tamis has, in turn [default: 1; 1,2 of --only workers]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    workers: Vec<usize>,
    /// How many initiators there are, in turn [default: 1,4,7,10, or 1,10 with --quick]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=10))]
    initiators: Vec<u8>,
    /// The responder of the star is as in the study: behind a link of 1 Gbit/s, with 1 GiB of memory
    #[arg(long)]
    as_study: bool,
    /// Measure everything else, but not tamis
    #[arg(long)]
    without_tamis: bool,
}

/// `NAME=FILE`.
fn program(word: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = word.split_once('=').ok_or("expected NAME=FILE")?;
    match tunnel::peers().any(|peer| peer == name) {
        true => Ok((name.to_owned(), PathBuf::from(file))),
        false => {
            Err(format!("expected a name of {}", tunnel::peers().collect::<Vec<_>>().join(", ")))
        }
    }
}

/// Parts by name.
fn parts() -> impl TypedValueParser<Value = Part> {
    PossibleValuesParser::new(Part::ALL.map(|(_, name)| name)).try_map(|word| {
        let found = Part::ALL.into_iter().find(|(_, name)| *name == word);
        found.map(|(part, _)| part).ok_or("expected a part of the benchmark")
    })
}

/// `tamis-bench tunnel-end`.
#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// A form of the study's.
    form: String,
}

/// One end, until it is ended.
pub(crate) fn end(args: &EndArgs) -> Result<ExitCode> {
    tunnel::end(&args.form)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures, draws and prints.
pub(crate) fn run(args: &TunnelArgs) -> Result<ExitCode> {
    let TunnelArgs { peers, quick, rounds, only, forms, as_study, without_tamis, .. } = *args;
    let plan = Plan {
        tamis: (!without_tamis && only != Some(Part::Workers)).then(measured::tamis).transpose()?,
        peers,
        programs: args.peer.clone(),
        quick,
        only,
        rounds,
        workers: args.workers.clone(),
        initiators: args.initiators.clone(),
        forms,
        as_study,
    };
    let mut say = |line: &str| eprintln!("{line}");
    let mut out = args.output.begin()?;
    tunnel::run(&plan, &mut out, &mut say)?;
    if let Some(directory) = &args.figure {
        figure::draw(out.rows(), directory)?;
    }
    Ok(ExitCode::SUCCESS)
}
