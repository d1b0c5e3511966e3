//! `campaign`: rules, captures and options that are drawn from seeds, through the built binary: no crash, and all ways to
//! replay them agree. `campaign lint` and `campaign diff` hold what those commands say of rulesets to packets.
//!
//! Exit code 1: some case failed, and is kept or told; 2: it could not be played.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use lab::aimed::{Subject, hold_diff, hold_lint, subjects};
use lab::campaign::{Campaign, Materials, Played};

/// What tamis says, held to much that is drawn from seeds.
#[derive(Debug, Parser)]
#[command(name = "campaign", args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    replays: Replays,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Every finding of `tamis lint` in rulesets, held to packets that are aimed at it
    Lint {
        #[command(flatten)]
        rulesets: Rulesets,
        /// Packets for each finding; fewer where rulesets are large
        #[arg(long, default_value_t = 1_000_000)]
        packets: u64,
    },
    /// What `tamis diff` says of one-rule edits, held to packets that are aimed at their edges
    Diff {
        #[command(flatten)]
        rulesets: Rulesets,
        /// Packets in all
        #[arg(long, default_value_t = 10_000_000)]
        packets: u64,
        /// Edits of each ruleset
        #[arg(long, default_value_t = 20)]
        edits: usize,
    },
}

#[derive(Debug, clap::Args)]
struct Rulesets {
    /// Folder of rulesets (files `*.save`)
    #[arg(long, value_name = "DIR", default_value = "../shared/data/rulesets")]
    rulesets: PathBuf,
    /// Only those whose names have this in them
    #[arg(long, value_name = "WORD", default_value = "")]
    only: String,
    /// What packets and edits are drawn by
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Findings or edits that are looked at at once
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// Rules, captures and options that are drawn from seeds, through the built binary.
#[derive(Debug, clap::Args)]
struct Replays {
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
    match &args.what {
        None => replays(&args.replays),
        Some(What::Lint { rulesets, packets }) => lint(rulesets, *packets),
        Some(What::Diff { rulesets, packets, edits }) => diff(rulesets, *packets, *edits),
    }
}

/// The rulesets that are asked for; those that cannot be read are told.
fn asked(of: &Rulesets) -> Option<Vec<Subject>> {
    let (mut found, refused) = subjects(&of.rulesets);
    refused.iter().for_each(|why| println!("left out: {why}"));
    found.retain(|subject| subject.name.contains(&of.only));
    if found.is_empty() {
        eprintln!("campaign: no rulesets in {}", of.rulesets.display());
        return None;
    }
    println!("{} rulesets, from seed {}", found.len(), of.seed);
    Some(found)
}

fn lint(of: &Rulesets, packets: u64) -> ExitCode {
    let Some(subjects) = asked(of) else { return ExitCode::from(2) };
    let found = hold_lint(&subjects, (packets, of.seed), of.threads, |line| println!("{line}"));
    println!("all: {}", found.line());
    found.unproven.iter().for_each(|table| println!("not proven: {table}"));
    code_of(&found.wrong)
}

fn diff(of: &Rulesets, packets: u64, edits: usize) -> ExitCode {
    let Some(subjects) = asked(of) else { return ExitCode::from(2) };
    let found =
        hold_diff(&subjects, (edits, packets, of.seed), of.threads, |line| println!("{line}"));
    println!("all: {}", found.line());
    found.too_large.iter().for_each(|edit| println!("too large: {edit}"));
    found.not_proven.iter().for_each(|order| println!("not proven equal: {order}"));
    code_of(&found.wrong)
}

fn code_of(wrong: &[String]) -> ExitCode {
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn replays(args: &Replays) -> ExitCode {
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
    let counts = play(&campaign, args);
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

fn play(campaign: &Campaign, args: &Replays) -> Counts {
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
