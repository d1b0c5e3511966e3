//! `series`: real programs talk through tamis and this machine's kernel in series, under the same rules, in both orders,
//! and whether both count alike.
//!
//! Exit code 1: something is not alike; 2: it could not be played or compared; 3: this machine cannot play.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use lab::series::compare::{Played, compare};
use lab::series::{Backend, Order, SETTINGS, Setting, Wire, lacking, play};

/// Real programs talk through tamis and this machine's kernel in series, in both orders: whether both count alike.
#[derive(Debug, Parser)]
#[command(name = "series")]
struct Args {
    /// Rulesets to play under; all if none is named
    #[arg(value_name = "RULESET", value_parser = named)]
    settings: Vec<Setting>,
    /// The program to play with
    #[arg(long, value_name = "BINARY", default_value = "target/release/tamis")]
    tamis: PathBuf,
    /// What the wire's ports are: af_packet, af_xdp, or dpdk (over packet sockets, where tamis was built with it)
    #[arg(long, value_name = "KIND", value_parser = backend, default_value = "af_packet")]
    backend: Backend,
    /// Where what was counted is written
    #[arg(long, value_name = "DIR", default_value = "target/series")]
    out: PathBuf,
    /// Where the rulesets are
    #[arg(long, value_name = "DIR", default_value = "../shared/data/rulesets")]
    rulesets: PathBuf,
    /// Bytes of each download
    #[arg(long, value_name = "BYTES", default_value_t = 3_000_000)]
    size: u32,
    /// Play nothing, and compare what was counted before
    #[arg(long)]
    played: bool,
}

/// The kind of port of this name.
fn backend(name: &str) -> Result<Backend, String> {
    let names = Backend::ALL.map(Backend::name);
    let found = Backend::ALL.into_iter().find(|backend| backend.name() == name);
    found.ok_or_else(|| format!("expected one of {}", names.join(" ")))
}

/// The ruleset of this name, with how it is played.
fn named(name: &str) -> Result<Setting, String> {
    let names: Vec<_> = SETTINGS.iter().map(|setting| setting.ruleset).collect();
    let setting = SETTINGS.iter().find(|setting| setting.ruleset == name);
    setting.copied().ok_or_else(|| format!("expected one of {}", names.join(" ")))
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("series: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> io::Result<ExitCode> {
    let args = Args::parse();
    if let (false, Some(reason)) = (args.played, lacking()) {
        eprintln!("SKIPPED: {reason}");
        return Ok(ExitCode::from(3));
    }
    let mut is_good = true;
    let settings = if args.settings.is_empty() { &SETTINGS[..] } else { &args.settings[..] };
    for setting in settings {
        is_good &= tell(setting, &args)?;
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays both orders, prints what was found, and says whether it is nothing.
fn tell(setting: &Setting, args: &Args) -> io::Result<bool> {
    let mut runs = Vec::new();
    for order in Order::ALL {
        let dir = args.out.join(setting.ruleset).join(order.name());
        if !args.played {
            let wire = Wire { tamis: &args.tamis, backend: args.backend };
            let rules = setting.rules(&args.rulesets)?;
            play(setting, &rules, order, &dir, wire, args.size)?;
        }
        runs.push(Played::read(&dir, setting, order)?);
    }
    let compared = compare(&runs);
    println!(
        "{:28} packets {:6}  counters {:3}, hit {:3}  dropped {:4}  findings {}",
        setting.ruleset,
        compared.packets,
        compared.counters,
        compared.hit,
        compared.dropped,
        compared.findings.len()
    );
    compared.findings.iter().for_each(|finding| println!("    {finding}"));
    Ok(compared.findings.is_empty())
}
