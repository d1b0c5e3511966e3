//! `oracle nft [--packets N] [--seed N] [--family ip|ip6|inet] [--threads N] [--failures N] [--only N] [--items A,B]
//! [--reads commands|listing|json|nothing] [--refused yes] [--shrink no]`: compares tamis with this machine's kernel under random
//! rulesets of nft.
//!
//! N packets for each family. `--items` draws items alone whose names begin so; `--reads` says what tamis reads: the
//! commands that nft read, or what it lists of them (`nothing`: the kernel alone is asked); `--refused yes` tells what nft refused;
//! `--shrink no` leaves differences as they are, which is for kernels that answer slowly.

use std::io;
use std::process::ExitCode;
use std::time::Instant;

use lab::generate::nft::TableFamily;
use lab::oracle::nft::campaign::{Plan, Summary, Tally, one, run as campaign};
use lab::oracle::nft::compare::Reads;
use lab::oracle::nft::kernel::lacking;

struct Args {
    plan: Plan,
    only: Option<u64>,
    tells_refused: bool,
}

pub(super) fn run(words: impl Iterator<Item = String>) -> io::Result<ExitCode> {
    let args = args(words)?;
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return Ok(ExitCode::from(3));
    }
    let start = Instant::now();
    let summary = match args.only {
        Some(number) => {
            let (family, tally, failure) = one(&args.plan, number)?;
            let failures = failure.into_iter().map(|story| (number, story)).collect();
            Summary { families: [(family.name(), tally)].into(), failures }
        }
        None => campaign(&args.plan)?,
    };
    for (family, tally) in &summary.families {
        print_tally(family, tally, args.tells_refused);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{seconds:.1} s, {} differences", summary.failures.len());
    for (number, story) in &summary.failures {
        println!("=== ruleset {number}\n{story}");
    }
    Ok(if summary.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn print_tally(family: &str, tally: &Tally, tells_refused: bool) {
    let Tally { rulesets, rules, packets, left, unknown, lacks, items, refused } = tally;
    let lacking: u64 = unknown.values().sum();
    let lines: u64 = refused.values().map(|(count, _)| count).sum();
    println!(
        "{family}: {rulesets} rulesets, {rules} rules ({lines} refused by nft), {packets} packets, {left} left, {lacking} \
         not wholly known"
    );
    for (name, answers) in items {
        println!("  {name}: {} yes, {} no", answers.yes, answers.no);
    }
    for (lack, count) in lacks {
        println!("  not evaluated: {count} rules by {lack}");
    }
    for (cause, count) in unknown {
        println!("  unknown: {count} by {cause}");
    }
    if tells_refused {
        for (reason, (count, text)) in refused {
            println!("  refused: {count} {reason}: {text}");
        }
    }
}

fn args(mut words: impl Iterator<Item = String>) -> io::Result<Args> {
    let mut args = Args {
        plan: Plan {
            seed: 1,
            packets: 100_000,
            families: TableFamily::ALL.to_vec(),
            until: None,
            threads: 4,
            most_failures: 5,
            only: Vec::new(),
            reads: Reads::Commands,
            shrinks: true,
        },
        only: None,
        tells_refused: false,
    };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| wrong(&word))?;
        let number = || value.parse::<u64>().map_err(|_| wrong(&word));
        match word.as_str() {
            "--packets" => args.plan.packets = number()?,
            "--seed" => args.plan.seed = number()?,
            "--threads" => args.plan.threads = number()? as usize,
            "--failures" => args.plan.most_failures = number()? as usize,
            "--only" => args.only = Some(number()?),
            "--items" => args.plan.only = value.split(',').map(str::to_owned).collect(),
            "--shrink" => args.plan.shrinks = value != "no",
            "--refused" => args.tells_refused = value == "yes",
            "--reads" => args.plan.reads = reads(&value).ok_or_else(|| wrong(&word))?,
            "--family" => {
                let family = TableFamily::from_name(&value).ok_or_else(|| wrong(&word))?;
                args.plan.families = vec![family];
            }
            _ => return Err(wrong(&word)),
        }
    }
    Ok(args)
}

fn reads(word: &str) -> Option<Reads> {
    Some(match word {
        "commands" => Reads::Commands,
        "listing" => Reads::Listing,
        "json" => Reads::Json,
        "nothing" => Reads::Nothing,
        _ => return None,
    })
}

fn wrong(word: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{word}: see the head of its source"))
}
