//! `campaign`: rules, captures and options that are drawn from seeds, through the built binary: no crash, and all ways to
//! replay them agree.
//!
//! Exit code 1: some case failed, and is kept; 2: it could not be played.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use lab::campaign::{Campaign, Materials, Played};

/// Rules, captures and options that are drawn from seeds, through the built binary.
#[derive(Debug, Parser)]
#[command(name = "campaign")]
struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, one after the other
    #[arg(long, default_value_t = u64::MAX)]
    cases: u64,
    /// No case begins after so many seconds
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Cases that are played at once
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// The program to play with
    #[arg(long, value_name = "BINARY", default_value = "target/release/tamis")]
    tamis: PathBuf,
    /// Rulesets and captures beside the checkout
    #[arg(long, value_name = "DIR", default_value = "../shared/data")]
    shared: PathBuf,
    /// Where failing cases are kept
    #[arg(long, value_name = "DIR", default_value = "target/campaign")]
    out: PathBuf,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut materials = Materials::of_checkout(Path::new("."));
    let room = args.out.join("captures");
    if !args.shared.exists() || !materials.add_shared(&args.shared, &room) {
        eprintln!("SKIPPED: captures of {}, which are not there", args.shared.display());
    }
    let Ok(tamis) = args.tamis.canonicalize() else {
        eprintln!("campaign: no {}", args.tamis.display());
        return ExitCode::from(2);
    };
    let (rules, captures) = (materials.rules.len(), materials.captures.len());
    println!("{rules} rulesets, {captures} captures, from seed {}", args.seed);
    let campaign = Campaign { tamis, materials, folder: args.out.clone() };
    let counts = play(&campaign, &args);
    let Counts { replayed, refused, packets, failed, lost } = &counts;
    let [replayed, refused, packets, failed, lost] =
        [replayed, refused, packets, failed, lost].map(|count| count.load(Ordering::Relaxed));
    println!("{replayed} cases replayed, {packets} packets; {refused} refused; {failed} failed");
    match (failed, lost) {
        (0, 0) => ExitCode::SUCCESS,
        (_, 0) => ExitCode::from(1),
        _ => ExitCode::from(2),
    }
}

#[derive(Debug, Default)]
struct Counts {
    replayed: AtomicU64,
    refused: AtomicU64,
    packets: AtomicU64,
    failed: AtomicU64,
    /// Cases whose files could not be written.
    lost: AtomicU64,
}

fn play(campaign: &Campaign, args: &Args) -> Counts {
    let (counts, next, began) = (Counts::default(), AtomicU64::new(0), Instant::now());
    let work = || {
        let add = |count: &AtomicU64, more| {
            count.fetch_add(more, Ordering::Relaxed);
        };
        while began.elapsed() < Duration::from_secs(args.seconds) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= args.cases {
                return;
            }
            match campaign.play(args.seed.wrapping_add(number)) {
                Ok(Ok(Played::Replayed(packets))) => {
                    add(&counts.replayed, 1);
                    add(&counts.packets, packets);
                }
                Ok(Ok(Played::Refused)) => add(&counts.refused, 1),
                Ok(Err(wrong)) => {
                    println!("{wrong}");
                    add(&counts.failed, 1);
                }
                Err(error) => {
                    eprintln!("campaign: {error}");
                    add(&counts.lost, 1);
                }
            }
        }
    };
    thread::scope(|scope| (0..args.threads).for_each(|_| drop(scope.spawn(work))));
    counts
}
