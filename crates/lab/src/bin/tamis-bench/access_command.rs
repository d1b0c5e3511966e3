//! `tamis-bench access`: engines, ways to share work, presets, threads and tracks, and the named
//! experiments.

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use engines::catalogue::Kind;
use engines::linear::subject::{self, Subject};
use lab::bench::access::contest::{Figures, contest};
use lab::bench::access::{Plan, Prepared, Start, bound, must_show, study1, study2};
use lab::bench::{Recorded, Rows, pictures, show};
use lab::workload::{PRESETS, Preset, Variant};

use crate::access_args::{AccessArgs, Profile};
use crate::access_grid::{engines, settings};
use crate::workload_command::DefaultChoice;

/// Measures.
pub(crate) fn run(args: &AccessArgs) -> Result<ExitCode> {
    let failed = |why: String| anyhow!("access: {why}");
    if let Some(count) = args.check {
        return check(count, args);
    }
    let mut out = args.output.begin()?;
    match args.profile {
        _ if args.must_show => {
            let asked =
                if args.engine.is_empty() { Kind::ALL.to_vec() } else { engines(&args.engine)? };
            must_show::run(&plan(args, None), &asked, &mut out).map_err(failed)?;
        }
        _ if args.bound => bound::run(&plan(args, None), &mut out).map_err(failed)?,
        Some(profile) => {
            if args.only.is_some_and(|only| only.part().1 != profile) {
                bail!("--only: expected a part of this study; --help says which ones are its");
            }
            let plan = plan(args, Some(profile));
            let report = match profile {
                Profile::Study1 => study1::run(&plan, &mut out),
                Profile::Study2 => study2::run(&plan, &mut out),
            };
            out.text(&report.map_err(failed)?);
            if let Some(dir) = &args.figure {
                let recorded = Recorded::of(&out).map_err(failed)?;
                pictures::draw(&recorded, dir).map_err(failed)?;
            }
        }
        None => grid(args, &mut out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that was asked for with everything else.
fn grid(args: &AccessArgs, out: &mut Rows) -> Result<()> {
    let settings = settings(args)?;
    let presets = match &args.preset[..] {
        [] if args.quick => &[&PRESETS[0], &PRESETS[3]][..],
        [] => &PRESETS.each_ref()[..],
        named => named,
    };
    let packets = args.packets.unwrap_or(if args.quick { 100_000 } else { 1_000_000 });
    let runs = args.runs.unwrap_or(if args.quick { 3 } else { 5 }) as usize;
    let variant: Variant = args.variant.into();
    let addresses = args.addresses.map(u32::next_power_of_two);
    if addresses != args.addresses {
        bail!("--addresses: expected a power of two");
    }
    for preset in presets {
        let usual = preset.addresses_log;
        let preset = &Preset { addresses_log: addresses.map_or(usual, u32::ilog2), ..**preset };
        if !out.begins(format!("access, preset {}", preset.number)) {
            continue;
        }
        let accept = args.default == DefaultChoice::Accept;
        let start = Start::Warm(args.warm_up.into());
        let prepared = Prepared::from(start, variant, preset, accept, packets);
        let (figures, missing) =
            contest(&settings, &prepared, runs).map_err(|why| anyhow!("access: {why}"))?;
        let is_roofline = |figures: &&Figures| figures.setting.engine == Kind::MatrixUnlocked;
        let roofline = figures.iter().find(is_roofline).map(|figures| ("matrix_unlocked", figures));
        for figures in &figures {
            out.push(figures.row(&prepared, roofline));
            out.extend(figures.times(&prepared));
        }
        missing.into_iter().for_each(|missing| out.lacks(missing.peer, missing.why));
    }
    Ok(())
}

/// How much to run: as much as the study did, or as must be shown, unless told otherwise.
fn plan(args: &AccessArgs, profile: Option<Profile>) -> Plan {
    let usual = match (profile, args.quick) {
        (None, false) => (1_000_000, 7, &PRESETS[..], &[][..]),
        (None, true) => (100_000, 3, &PRESETS[..4], &[][..]),
        (Some(Profile::Study1), false) => (10_000_000, 3, &PRESETS[..], &[3, 6, 10][..]),
        (Some(Profile::Study1), true) => (50_000, 1, &PRESETS[..1], &[3, 6][..]),
        (Some(Profile::Study2), false) => (1_000_000, 100, &[][..], &[][..]),
        (Some(Profile::Study2), true) => (10_000, 2, &[][..], &[][..]),
    };
    let (packets, runs, presets, threads) = usual;
    let named: Vec<Preset> = args.preset.iter().map(|preset| **preset).collect();
    Plan {
        packets: args.packets.unwrap_or(packets),
        presets: if named.is_empty() { presets.to_vec() } else { named },
        threads: if args.threads.is_empty() { threads.to_vec() } else { args.threads.clone() },
        runs: args.runs.unwrap_or(runs) as usize,
        only: args.only.map(|only| only.part().0),
    }
}

/// Histories of the engines asked for, by 2 to 4 threads; those that are not atomic have to be caught.
fn check(count: usize, args: &AccessArgs) -> Result<ExitCode> {
    let asked = if args.engine.is_empty() { &["all".to_owned()][..] } else { &args.engine };
    let mut wrong = false;
    for subject in engines(asked)?.into_iter().flat_map(Subject::of) {
        for threads in 2..=4 {
            let found = subject::check(subject, threads, count);
            let what = match (subject.is_atomic(), &found) {
                (true, Ok(overlapping)) => format!("all linearizable, {overlapping} overlap"),
                (false, Err(_)) => "caught, as it must be".to_owned(),
                (true, Err(_)) => "NOT LINEARIZABLE".to_owned(),
                (false, Ok(_)) => "NOT CAUGHT".to_owned(),
            };
            wrong |= subject.is_atomic() != found.is_ok();
            let name = subject.name();
            show(&format_args!("{name:<28} {threads} threads {count} histories  {what}"));
            if let Some(history) = found.err().filter(|_| subject.is_atomic()) {
                history.iter().for_each(|operation| show(&format_args!("  {operation:?}")));
            }
        }
    }
    Ok(ExitCode::from(u8::from(wrong)))
}
