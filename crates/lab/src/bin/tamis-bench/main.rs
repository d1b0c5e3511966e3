//! `tamis-bench`: how fast tamis is beside its peers, and the experiments of the studies.
//!
//! Arguments to the lab, nothing else. Exit code 2 is a usage or input error on standard error, 143 that SIGTERM ended it
//! before its end: what it has printed are whole rows.
#![forbid(unsafe_code)]

mod access_args;
mod access_command;
mod access_grid;
mod figures_command;
mod java_command;
#[cfg(target_os = "linux")]
mod live_command;
mod measured;
mod output;
mod replay_command;
mod rules_command;
#[cfg(target_os = "linux")]
mod tunnel_command;
mod workload_command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lab::bench::limit;
#[cfg(target_os = "linux")]
use lab::bench::tunnel;

/// As a shell has it of a process that SIGTERM ended.
const STOPPED: u8 = 128 + 15;

/// Measure tamis, and its peers on the same work
#[derive(Debug, Parser)]
#[command(name = "tamis-bench", version, max_term_width = 100, disable_help_subcommand = true)]
struct Args {
    /// What to measure.
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Packets per second of a replay: 20 and 100 rules walked, a full table of connections, a SYN flood
    Replay(replay_command::ReplayArgs),
    /// The walk over rules, their memory, load and changes, in every layout
    Rules(rules_command::RulesArgs),
    /// Frames per second and processor time of a wire between devices, beside testpmd and the kernel (root)
    #[cfg(target_os = "linux")]
    Live(live_command::LiveArgs),
    /// The overlay beside other tunnels: throughput, delays and memory between hosts on this machine (root)
    #[cfg(target_os = "linux")]
    Tunnel(tunnel_command::TunnelArgs),
    /// One end of an overlay, for `tunnel`
    #[cfg(target_os = "linux")]
    #[command(hide = true, name = tunnel::COMMAND)]
    TunnelEnd(tunnel_command::EndArgs),
    /// Access-control engines, ways to share work, and both studies
    Access(Box<access_args::AccessArgs>),
    /// Draw the figures of the three studies from documents that `access` and `rules` printed with --json
    Figures(figures_command::FiguresArgs),
    /// Ways to share packets between native code and Java, on each JDK that is given
    Java(java_command::JavaArgs),
    /// The hashes of a workload stream of the access-control studies, and of what the sequential model makes of it
    Workload(workload_command::WorkloadArgs),
}

fn main() -> ExitCode {
    let ended = match &Args::parse().what {
        What::Replay(args) => replay_command::run(args),
        What::Rules(args) => rules_command::run(args),
        #[cfg(target_os = "linux")]
        What::Live(args) => live_command::run(args),
        #[cfg(target_os = "linux")]
        What::Tunnel(args) => tunnel_command::run(args),
        #[cfg(target_os = "linux")]
        What::TunnelEnd(args) => tunnel_command::end(args),
        What::Access(args) => access_command::run(args),
        What::Figures(args) => figures_command::run(args),
        What::Java(args) => java_command::run(args),
        What::Workload(args) => workload_command::run(args),
    };
    // What SIGTERM interrupted may have failed of it.
    if limit::is_stopped() {
        return ExitCode::from(STOPPED);
    }
    ended.unwrap_or_else(|error| {
        eprintln!("tamis-bench: {error:#}");
        ExitCode::from(2)
    })
}
