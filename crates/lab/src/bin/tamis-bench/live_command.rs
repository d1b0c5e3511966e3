//! `tamis-bench live`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::bench::live::changing::Changes;
use lab::bench::live::{self, Part, Plan};

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
    /// One JSON document, schema tamis.bench/1
    #[arg(long)]
    json: bool,
    /// Draw delays and frames per second as SVG files into a directory
    #[arg(long, value_name = "DIR")]
    figure: Option<PathBuf>,
    /// One part of it; dpdk and handlers are measured only if they are named
    #[arg(long, value_name = "PART", value_parser = parts())]
    only: Option<Part>,
    /// Look at the order of so many packets, in the part `ordered`, in one run; and of as many frames on a wire
    #[arg(long, value_name = "PACKETS")]
    packets: Option<u64>,
    /// Measure nothing, but send so many frames through faults, a link that flaps, and rules and bans that change, and
    /// watch the memory
    #[arg(long, value_name = "FRAMES", conflicts_with_all = ["peers", "quick", "json", "figure", "only"])]
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
    let plan = Plan { peers, quick, only, packets };
    // These need no devices, and no tamis.
    let document = match only {
        Some(Part::Ordered) => Some(plan.ordered()),
        Some(Part::Middlebox) => Some(plan.middlebox()),
        _ => None,
    };
    if let Some(document) = document {
        crate::print(&document, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let document = live::run(&crate::tamis()?, plan)?;
    if let Some(directory) = &args.figure {
        live::figure::draw(&document, directory)?;
    }
    crate::print(&document, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Soaks and tells; exit code 1 if memory grew, or a frame is not accounted for.
fn soak(frames: u64) -> Result<ExitCode> {
    let soaked = live::soak::run(&crate::tamis()?, frames)?;
    let megabytes: Vec<String> =
        soaked.resident.iter().map(|bytes| format!("{:.1}", *bytes as f64 / 1e6)).collect();
    crate::show(format!("frames    {}, link down {} times", soaked.frames, soaked.flaps));
    let Changes { rules, bans, pages } = soaked.changes;
    crate::show(format!("changes   {rules} of rules, {bans} bans, {pages} pages of metrics"));
    crate::show(format!("resident  {} MB", megabytes.join(" ")));
    crate::show(format!("growth    {} bytes after the first tenth", soaked.growth()));
    crate::show(format!("accounted {}", soaked.is_accounted));
    crate::show(&soaked.status["wires"]);
    Ok(if soaked.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
