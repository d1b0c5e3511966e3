//! `series`: real programs talk through tamis and this machine's kernel in series, under the same rules, in both orders,
//! and whether both count alike.
//!
//! `series [RULESET...] [--tamis BINARY] [--out DIR] [--rulesets DIR] [--size BYTES] [--played]`. BINARY is
//! `target/release/tamis` unless told, DIR `target/series` and `../shared/data/rulesets`, BYTES 3000000. `--played` plays
//! nothing and compares what lies in DIR. Exit code 1: something is not alike; 3: this machine cannot play.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use lab::series::compare::{Played, compare};
use lab::series::{Order, SETTINGS, Setting, forwarding, lacking, play};

struct Args {
    settings: Vec<Setting>,
    tamis: PathBuf,
    out: PathBuf,
    rulesets: PathBuf,
    size: u32,
    is_played: bool,
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

fn args() -> io::Result<Args> {
    let mut args = Args {
        settings: Vec::new(),
        tamis: PathBuf::from("target/release/tamis"),
        out: PathBuf::from("target/series"),
        rulesets: PathBuf::from("../shared/data/rulesets"),
        size: 3_000_000,
        is_played: false,
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value =
            || words.next().ok_or_else(|| io::Error::other(format!("{word} wants a value")));
        match word.as_str() {
            "--tamis" => args.tamis = PathBuf::from(value()?),
            "--out" => args.out = PathBuf::from(value()?),
            "--rulesets" => args.rulesets = PathBuf::from(value()?),
            "--size" => args.size = value()?.parse().map_err(io::Error::other)?,
            "--played" => args.is_played = true,
            name => {
                let setting = SETTINGS.iter().find(|setting| setting.ruleset == name);
                let setting =
                    setting.ok_or_else(|| io::Error::other(format!("no ruleset: {name}")))?;
                args.settings.push(*setting);
            }
        }
    }
    if args.settings.is_empty() {
        args.settings = SETTINGS.to_vec();
    }
    Ok(args)
}

fn run() -> io::Result<ExitCode> {
    let args = args()?;
    if let (false, Some(reason)) = (args.is_played, lacking()) {
        eprintln!("SKIPPED: {reason}");
        return Ok(ExitCode::from(3));
    }
    let mut is_good = true;
    for setting in &args.settings {
        is_good &= tell(setting, &args)?;
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays both orders, prints what was found, and says whether it is nothing.
fn tell(setting: &Setting, args: &Args) -> io::Result<bool> {
    let mut runs = Vec::new();
    for order in Order::ALL {
        let dir = args.out.join(setting.ruleset).join(order.name());
        if !args.is_played {
            let file = args.rulesets.join(format!("{}.save", setting.ruleset));
            let rules = forwarding(&fs::read_to_string(file)?);
            play(setting, &rules, order, &dir, &args.tamis, args.size)?;
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
