//! What `tamis-bench access` runs unless an experiment is named: everything that was asked for with everything else.

use anyhow::{Result, bail};
use engines::cached::Grain;
use engines::catalogue::Kind;
use engines::striped_map;
use lab::bench::access::{Origin, Setting, Track, Tuning, drivers};
use lab::studies::orchestrate::{Bins, Orchestration};

use crate::access_args::{AccessArgs, SinkChoice, SourceChoice, TrackChoice};

/// Every setting that the arguments name.
pub(crate) fn settings(args: &AccessArgs) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for track in &args.track {
        for (engine, models) in systems(args)? {
            let tunings = tunings(args, engine);
            for &threads in args.threads() {
                for orchestration in orchestrations(args, &models, engine, threads)? {
                    let threads = if engine.is_shared() { threads } else { 1 };
                    let of = |&tuning: &Tuning| Setting {
                        orchestration,
                        tuning,
                        ..setting(args, *track, engine, threads)
                    };
                    settings.extend(tunings.iter().map(of));
                }
            }
        }
    }
    Ok(settings)
}

/// Engines and the ways to share work of each: drivers where some are named.
fn systems(args: &AccessArgs) -> Result<Vec<(Kind, Vec<String>)>> {
    if args.driver.is_empty() {
        let all = engines(&args.engine)?.into_iter();
        return Ok(all.map(|engine| (engine, args.orchestration.clone())).collect());
    }
    let mut found = Vec::new();
    for name in &args.driver {
        let asked = if name == "all" { drivers::names() } else { vec![name.clone()] };
        for driver in asked {
            let Some((engine, model)) = drivers::named(&driver) else {
                let known = drivers::names().join(" ");
                bail!("--driver: expected all or some of {known}, found {driver}");
            };
            found.push((engine, vec![model.to_owned()]));
        }
    }
    Ok(found)
}

/// Everything that an engine may be told, of what was asked for.
fn tunings(args: &AccessArgs, engine: Kind) -> Vec<Tuning> {
    let usual = striped_map::Settings::default();
    let or = |asked: &[usize], usual| if asked.is_empty() { vec![usual] } else { asked.to_vec() };
    match engine {
        Kind::Striped | Kind::StripedSkipList => {
            let of = |&stripes: &usize| Tuning { stripes: Some(stripes), ..Tuning::default() };
            let asked: Vec<_> = args.stripes.iter().map(of).collect();
            if asked.is_empty() { vec![Tuning::default()] } else { asked }
        }
        Kind::StripedMap | Kind::StripedMapAsPublished => {
            let mut all = Vec::new();
            for initial in or(&args.initial, usual.initial) {
                for longest in or(&args.longest, usual.longest) {
                    for full_percent in or(&args.full_percent, usual.full_percent) {
                        let striped_map = striped_map::Settings { initial, longest, full_percent };
                        all.push(Tuning { striped_map, ..Tuning::default() });
                    }
                }
            }
            all
        }
        Kind::CachedExact => {
            let usual = Grain::default();
            let (stamps, blocks) = (or(&args.stamps, usual.stamps), or(&args.block, usual.block));
            let of = |&stamps: &usize| {
                let grains = blocks.iter().map(move |&block| Grain { stamps, block });
                grains.map(|grain| Tuning { grain, ..Tuning::default() })
            };
            stamps.iter().flat_map(of).collect()
        }
        _ => vec![Tuning::default()],
    }
}

fn setting(args: &AccessArgs, track: TrackChoice, engine: Kind, threads: usize) -> Setting {
    let track = match track {
        TrackChoice::A => Track::A,
        TrackChoice::B => Track::B,
        TrackChoice::C => Track::C,
    };
    let usual = Setting::pool(engine, threads).on(track);
    let origin = args.source.map_or(usual.origin, |source| match source {
        SourceChoice::Trace => Origin::Trace,
        SourceChoice::Generator => Origin::Generator,
        SourceChoice::Ahead => Origin::Ahead,
        SourceChoice::Parts => Origin::Parts,
        SourceChoice::PerWorker => Origin::PerWorker,
    });
    let bins = match args.sink {
        SinkChoice::SharedMap => Bins::SharedMap,
        SinkChoice::Atomics => Bins::Atomics,
        SinkChoice::Shards => Bins::Shards,
    };
    Setting { bins, origin, latencies: args.latency, ..usual }
}

/// Engines by name; the roofline and ours where none is named.
pub(crate) fn engines(names: &[String]) -> Result<Vec<Kind>> {
    let mut kinds = Vec::new();
    for name in names {
        match Kind::from_name(name) {
            _ if name == "all" => kinds.extend(Kind::ALL),
            Some(kind) => kinds.push(kind),
            None => {
                let known = Kind::ALL.map(Kind::name).join(" ");
                bail!("--engine: expected all or some of {known}, found {name}");
            }
        }
    }
    Ok(if kinds.is_empty() { vec![Kind::MatrixUnlocked, Kind::Tamis] } else { kinds })
}

fn orchestrations(
    args: &AccessArgs,
    models: &[String],
    engine: Kind,
    threads: usize,
) -> Result<Vec<Orchestration>> {
    let splits = match &args.split[..] {
        [] => vec![threads.div_ceil(2).max(1)],
        asked => asked.iter().map(|split| (*split).max(1)).collect(),
    };
    if !engine.is_shared() {
        // It belongs to one thread, whatever else is asked for; once is enough.
        let first = args.threads().first() == Some(&threads);
        return Ok(if first { vec![Orchestration::Serial] } else { Vec::new() });
    }
    let mut found: Vec<Orchestration> = Vec::new();
    for name in models {
        let pairs =
            args.task.iter().flat_map(|task| splits.iter().map(move |split| (*task, *split)));
        for (task, split) in pairs {
            let known = Orchestration::all(task, split);
            let these = known.into_iter().filter(|one| name == "all" || one.name() == name);
            let new = these.filter(|one| !found.contains(one)).collect::<Vec<_>>();
            if new.is_empty() && !known.iter().any(|one| one.name() == name) {
                let names = known.map(Orchestration::name).join(" ");
                bail!("--orchestration: expected all or some of {names}, found {name}");
            }
            found.extend(new);
        }
    }
    Ok(found)
}
