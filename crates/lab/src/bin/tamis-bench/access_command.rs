//! `tamis-bench access`: engines, ways to share work, presets, threads and tracks, and the named
//! experiments.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use engines::catalogue::Kind;
use engines::linear::subject::{self, Subject};
use lab::bench::access::contest::{Figures, contest};
use lab::bench::access::{Part, Plan, Prepared, Start, bound, must_show, study1, study2};
use lab::bench::{Document, Missing, Recorded, Row, figure};
use lab::workload::{PRESETS, Preset, Variant, WarmUp};

use crate::access_grid::{engines, settings};
use crate::workload_command::{DefaultChoice, VariantChoice, preset};
use crate::{print, show};

/// `tamis-bench access`.
#[derive(Debug, Args)]
#[command(after_help = "\
Engines: serial matrix_unlocked coarse striped fine optimistic concurrent_map split_ordered striped_map matrix
cached_exact cached_epoch tamis, and concurrent_map.as_published striped_map.as_published matrix.as_published,
which are not atomic. `all` means all.
Examples:
  tamis-bench access --quick
  tamis-bench access --engine all --orchestration worker_pool --preset 1,8 --threads 1,2
  tamis-bench access --engine optimistic --orchestration all --threads 4 --track b --sink atomics
  tamis-bench access --must-show
  tamis-bench access --profile study1 --figure figures")]
pub(crate) struct AccessArgs {
    /// Engines [default: matrix_unlocked and tamis]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) engine: Vec<String>,
    /// Ways to share work: serial task_pool worker_pool partial_pipeline phased_pipeline stream ordered, or all
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "worker_pool")]
    pub(crate) orchestration: Vec<String>,
    /// Mixes
    #[arg(long, value_name = "1..8", value_delimiter = ',', value_parser = preset)]
    preset: Vec<&'static Preset>,
    /// Workers [default: 1; of study1 3,6,10]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) threads: Vec<usize>,
    /// What counts as work: a decisions and changes; b also the fingerprint; c also that, by jump-ahead
    #[arg(long, value_delimiter = ',', default_value = "a")]
    pub(crate) track: Vec<TrackChoice>,
    /// Which generator
    #[arg(long, default_value = "A")]
    variant: VariantChoice,
    /// Whether an address accepts sources that no config packet named
    #[arg(long, default_value = "deny")]
    default: DefaultChoice,
    /// Which addresses the warm-up of variants C and D names
    #[arg(long, default_value = "mended")]
    warm_up: WarmUpChoice,
    /// How fingerprints are counted
    #[arg(long, default_value = "shards")]
    pub(crate) sink: SinkChoice,
    /// Where packets come from [default: trace for track a, else generator]
    #[arg(long)]
    pub(crate) source: Option<SourceChoice>,
    /// Packets of a task in task_pool
    #[arg(long, value_delimiter = ',', default_value = "16", value_name = "N")]
    pub(crate) task: Vec<usize>,
    /// Config workers of partial_pipeline, control workers of phased_pipeline [default: half of all]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) split: Vec<usize>,
    /// Locks of striped
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) stripes: Vec<usize>,
    /// Buckets that striped_map begins with, and its locks for ever [default: 1024]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) initial: Vec<usize>,
    /// Entries of a bucket of striped_map that does not count as full [default: 4]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) longest: Vec<usize>,
    /// Full buckets, in percent, that make striped_map double [default: 10]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) full_percent: Vec<usize>,
    /// Packets after the warm-up [default: 1000000; of study1 10000000]
    #[arg(long, value_name = "N")]
    packets: Option<usize>,
    /// Timed rounds [default: 5; 3 of study1, 100 of study2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Also take the time of each packet from source to end, and say how many were in flight
    #[arg(long)]
    pub(crate) latency: bool,
    /// The figures that the access list is held to
    #[arg(long, conflicts_with = "profile")]
    must_show: bool,
    /// What two threads gain over one if they share only the words that must change
    #[arg(long, conflicts_with_all = ["profile", "must_show"])]
    bound: bool,
    /// A study's experiments, its published figures beside ours
    #[arg(long)]
    profile: Option<Profile>,
    /// One part of a study
    #[arg(long, requires = "profile")]
    only: Option<PartChoice>,
    /// Record N histories of each engine and number of threads, and check them
    #[arg(long, value_name = "N", conflicts_with_all = ["profile", "must_show"])]
    check: Option<usize>,
    /// Where the figures of --profile go, as SVG
    #[arg(long, value_name = "DIR", requires = "profile")]
    figure: Option<PathBuf>,
    /// Done within a minute: fewer packets, rounds and presets
    #[arg(long)]
    quick: bool,
    /// One JSON document, schema tamis.bench/1
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrackChoice {
    A,
    B,
    C,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum WarmUpChoice {
    /// One address in all of it
    AsPublished,
    /// A new one every second time
    Mended,
}

impl From<WarmUpChoice> for WarmUp {
    fn from(choice: WarmUpChoice) -> Self {
        match choice {
            WarmUpChoice::AsPublished => Self::AsPublished,
            WarmUpChoice::Mended => Self::Mended,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SinkChoice {
    SharedMap,
    Atomics,
    Shards,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SourceChoice {
    /// Prepared in memory
    Trace,
    /// The generator, by whoever needs packets
    Generator,
    /// The generator in a thread of its own
    Ahead,
    /// A generator for each worker, as the first study's code has it
    PerWorker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// Enumerating design choices (four firewalls, four orchestrations)
    Study1,
    /// Three tables, threads and streams
    Study2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartChoice {
    /// Of study1: every firewall under every way to share work
    SpeedUps,
    /// Of study1: locks of striped
    Stripes,
    /// Of study2: every table at the study's sizes
    Sizes,
    /// Of study2: addresses doubled
    Addresses,
    /// Of study2: settings of striped_map
    Settings,
}

impl PartChoice {
    /// The part, and which study has it.
    fn part(self) -> (Part, Profile) {
        match self {
            Self::SpeedUps => (Part::SpeedUps, Profile::Study1),
            Self::Stripes => (Part::Stripes, Profile::Study1),
            Self::Sizes => (Part::Sizes, Profile::Study2),
            Self::Addresses => (Part::Addresses, Profile::Study2),
            Self::Settings => (Part::Settings, Profile::Study2),
        }
    }
}

/// Measures.
pub(crate) fn run(args: &AccessArgs) -> Result<ExitCode> {
    let failed = |why: String| anyhow!("access: {why}");
    if let Some(count) = args.check {
        return check(count, args);
    }
    let mut shown = Shown::new(args.json);
    let mut say = |row: Row| shown.row(row);
    match args.profile {
        _ if args.must_show => {
            let asked =
                if args.engine.is_empty() { Kind::ALL.to_vec() } else { engines(&args.engine)? };
            must_show::run(&plan(args, None), &asked, &mut say).map_err(failed)?;
        }
        _ if args.bound => bound::run(&plan(args, None), &mut say).map_err(failed)?,
        Some(profile) => {
            if args.only.is_some_and(|only| only.part().1 != profile) {
                bail!("--only: expected a part of this study; --help says which ones are its");
            }
            let plan = plan(args, Some(profile));
            let report = match profile {
                Profile::Study1 => study1::run(&plan, &mut say),
                Profile::Study2 => study2::run(&plan, &mut say),
            };
            shown.text(&report.map_err(failed)?);
            if let Some(dir) = &args.figure {
                let recorded = Recorded::of(&shown.document).map_err(failed)?;
                figure::draw(&recorded, dir).map_err(failed)?;
            }
        }
        None => grid(args, &mut shown)?,
    }
    shown.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Everything that was asked for with everything else.
fn grid(args: &AccessArgs, shown: &mut Shown) -> Result<()> {
    let settings = settings(args)?;
    let presets = match &args.preset[..] {
        [] if args.quick => &[&PRESETS[0], &PRESETS[3]][..],
        [] => &PRESETS.each_ref()[..],
        named => named,
    };
    let packets = args.packets.unwrap_or(if args.quick { 100_000 } else { 1_000_000 });
    let runs = args.runs.unwrap_or(if args.quick { 3 } else { 5 }) as usize;
    let variant: Variant = args.variant.into();
    for preset in presets {
        let accept = args.default == DefaultChoice::Accept;
        let start = Start::Warm(args.warm_up.into());
        let prepared = Prepared::from(start, variant, preset, accept, packets);
        let (figures, missing) =
            contest(&settings, &prepared, runs).map_err(|why| anyhow!("access: {why}"))?;
        let is_roofline = |figures: &&Figures| figures.setting.engine == Kind::MatrixUnlocked;
        let roofline = figures.iter().find(is_roofline).map(|figures| ("matrix_unlocked", figures));
        for figures in &figures {
            shown.row(figures.row(&prepared, roofline));
            figures.times(&prepared).into_iter().for_each(|row| shown.row(row));
        }
        missing.into_iter().for_each(|missing| shown.missing(missing));
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

impl AccessArgs {
    /// Workers, one unless told.
    pub(crate) fn threads(&self) -> &[usize] {
        if self.threads.is_empty() { &[1] } else { &self.threads }
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
            show(format_args!("{name:<28} {threads} threads {count} histories  {what}"));
            if let Some(history) = found.err().filter(|_| subject.is_atomic()) {
                history.iter().for_each(|operation| show(format_args!("  {operation:?}")));
            }
        }
    }
    Ok(ExitCode::from(u8::from(wrong)))
}

/// What has been shown so far: rows as they are measured, unless there is to be one document.
struct Shown {
    json: bool,
    document: Document,
}

impl Shown {
    fn new(json: bool) -> Self {
        let document = Document::new();
        if !json {
            show(&document.machine);
        }
        Self { json, document }
    }

    fn row(&mut self, row: Row) {
        if !self.json {
            show(&row);
        }
        self.document.results.push(row);
    }

    fn missing(&mut self, missing: Missing) {
        if !self.document.missing.contains(&missing) {
            self.document.missing.push(missing);
        }
    }

    fn text(&self, text: &str) {
        if !self.json {
            show(text);
        }
    }

    fn finish(self) -> Result<()> {
        if self.json {
            return print(&self.document, true);
        }
        self.document.missing.iter().for_each(show);
        Ok(())
    }
}
