//! `tamis-bench live`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::bench::live::changing::Changes;
use lab::bench::live::{self, Part, Plan};
use lab::bench::show;

use crate::measured;
use crate::output::Output;

/// `tamis-bench live`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs root. Makes devices in network namespaces of its own, which go with it, and runs everything on the first and the
last core before all other processes.")]
pub(crate) struct LiveArgs {
    /// Measure testpmd, and the kernel under iptables-legacy and -nft, on the same frames, too
    #[arg(long)]
    peers: bool,
    /// Fewer and shorter runs
    #[arg(long)]
    quick: bool,
    /// How it is told.
    #[command(flatten)]
    output: Output,
    /// Draw delays and frames per second as SVG files into a directory
    #[arg(long, value_name = "DIR")]
    figure: Option<PathBuf>,
    /// One part of it; dpdk and handlers are measured only if they are named
    #[arg(long, value_name = "PART", value_parser = parts())]
    only: Option<Part>,
    /// Workers that keep packets in order, besides one, in turn, in the part `ordered`
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "2")]
    workers: Vec<usize>,
    /// Look at the order of so many packets, in the part `ordered`, in one run; and of as many frames on a wire
    #[arg(long, value_name = "PACKETS")]
    packets: Option<u64>,
    /// Measure nothing, but send so many frames through faults, a link that flaps, and rules and bans that change, and
    /// watch the memory
    #[arg(long, value_name = "FRAMES", conflicts_with_all = ["peers", "quick", "json", "seconds", "figure", "only"])]
    soak: Option<u64>,
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
    if let Some(frames) = args.soak {
        return soak(frames);
    }
    let LiveArgs { peers, quick, only, packets, .. } = *args;
    // As long as the program.
    let workers = args.workers.clone().leak();
    let plan = Plan { peers, quick, only, workers, packets };
    let mut out = args.output.begin()?;
    match only {
        // These need no devices, and no tamis.
        Some(Part::Ordered) => plan.ordered(&mut out),
        Some(Part::Middlebox) => plan.middlebox(&mut out),
        _ => live::run(&measured::tamis()?, plan, &mut out)?,
    }
    if let Some(directory) = &args.figure {
        live::figure::draw(out.rows(), directory)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Soaks and tells; exit code 1 if memory grew, or a frame is not accounted for.
fn soak(frames: u64) -> Result<ExitCode> {
    let soaked = live::soak::run(&measured::tamis()?, frames)?;
    let megabytes: Vec<String> =
        soaked.resident.iter().map(|bytes| format!("{:.1}", *bytes as f64 / 1e6)).collect();
    show(&format!("frames    {}, link down {} times", soaked.frames, soaked.flaps));
    let Changes { rules, bans, pages } = soaked.changes;
    show(&format!("changes   {rules} of rules, {bans} bans, {pages} pages of metrics"));
    show(&format!("resident  {} MB", megabytes.join(" ")));
    show(&format!("growth    {} bytes after the first tenth", soaked.growth()));
    show(&format!("accounted {}", soaked.is_accounted));
    show(&soaked.status["wires"]);
    Ok(if soaked.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
