//! `tamis-bench workload`: the hashes of a generated stream, to be compared with the recorded ones.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use lab::workload::golden::{self, Golden, GoldenOutcome};
use lab::workload::{Preset, Variant, summary};

/// `tamis-bench workload`.
#[derive(Debug, Args)]
pub(crate) struct WorkloadArgs {
    /// Which generator
    #[arg(long, default_value = "A")]
    variant: VariantChoice,
    /// Which mix
    #[arg(long, value_name = "1..8", value_parser = preset)]
    preset: &'static Preset,
    /// The hashes of the first 1,000 packets, the warm-up, and the 1,000,000 packets after it
    #[arg(long)]
    hash: bool,
    /// What the sequential model makes of these: passed packets, hash and sum of their fingerprints
    #[arg(long)]
    oracle: bool,
    /// Whether an address accepts sources that no config packet named
    #[arg(long, default_value = "deny")]
    default: DefaultChoice,
}

/// `--variant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "verbatim")]
pub(crate) enum VariantChoice {
    /// Addresses below their count
    A,
    /// As A, and all config packets at the start
    B,
    /// As B, addresses of 30 bits: the first study's
    C,
    /// As C, addresses from 1
    D,
}

/// `--default`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DefaultChoice {
    /// All sources
    Accept,
    /// None
    Deny,
}

impl From<VariantChoice> for Variant {
    fn from(choice: VariantChoice) -> Self {
        match choice {
            VariantChoice::A => Self::A,
            VariantChoice::B => Self::B,
            VariantChoice::C => Self::C,
            VariantChoice::D => Self::D,
        }
    }
}

/// A mix by its number.
pub(crate) fn preset(text: &str) -> Result<&'static Preset, String> {
    let number = text.parse().ok();
    number.and_then(Preset::of).ok_or_else(|| "expected 1 to 8".to_owned())
}

/// Shows; exit code 1 if a hash is not the recorded one.
pub(crate) fn run(args: &WorkloadArgs) -> Result<ExitCode> {
    if !args.hash && !args.oracle {
        bail!("expected --hash, --oracle or both");
    }
    let variant = args.variant.into();
    let (mut line, mut differs) = (Vec::new(), false);
    if args.hash {
        let found = summary::of(variant, args.preset);
        let Golden { first_1000, warm_up, next_1m, configs } = found;
        line.push(format!(
            "first1000={first_1000:016x} warm={warm_up:016x} next1M={next_1m:016x} cfg={configs}"
        ));
        differs |= found != golden::streams(variant)[args.preset.number - 1];
    }
    if args.oracle {
        let accept = args.default == DefaultChoice::Accept;
        let found = summary::oracle(variant, args.preset, accept);
        let GoldenOutcome { passed, histogram, fingerprints } = found;
        line.push(format!("passed={passed} histFNV={histogram:016x} fpsum={fingerprints}"));
        let recorded = golden::outcomes(variant, accept);
        differs |= recorded.is_some_and(|all| all[args.preset.number - 1] != found);
    }
    lab::bench::show(&line.join(" "));
    if differs {
        eprintln!("tamis-bench: not the recorded stream");
    }
    Ok(ExitCode::from(u8::from(differs)))
}
