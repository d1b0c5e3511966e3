//! The arguments of `tamis-bench access`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lab::bench::access::Part;
use lab::workload::{Preset, WarmUp};

use crate::output::Output;
use crate::workload_command::{DefaultChoice, VariantChoice, preset};

/// `tamis-bench access`.
#[derive(Debug, Args)]
#[command(after_help = "\
Engines: serial matrix_unlocked coarse striped fine optimistic concurrent_map split_ordered hopscotch striped_map matrix
cached_exact cached_epoch tamis, and concurrent_map.as_published striped_map.as_published matrix.as_published,
which are not atomic. `all` means all.
Examples:
  tamis-bench access --quick
  tamis-bench access --engine all --orchestration worker_pool --preset 1,8 --threads 1,2
  tamis-bench access --engine optimistic --orchestration all --threads 4 --track b --sink atomics
  tamis-bench access --driver FineGrainedTaskPoolDriver,SerialFirewallDriver --variant C --default accept --threads 2
  tamis-bench access --must-show
  tamis-bench access --profile study1 --figure figures")]
pub(crate) struct AccessArgs {
    /// Engines [default: matrix_unlocked and tamis]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) engine: Vec<String>,
    /// Drivers of study 1 by its names, such as NonBlockingWorkerPoolDriver, or all of the 17, in place of engines and
    /// ways to share work
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with_all = ["engine", "orchestration", "profile"])]
    pub(crate) driver: Vec<String>,
    /// Ways to share work: serial task_pool worker_pool one_by_one partial_pipeline phased_pipeline stream ordered, or all
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "worker_pool")]
    pub(crate) orchestration: Vec<String>,
    /// Mixes
    #[arg(long, value_name = "1..8", value_delimiter = ',', value_parser = preset)]
    pub(crate) preset: Vec<&'static Preset>,
    /// Addresses of a mix, a power of two, in place of its own; with few, changes and decisions meet
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=65_536), conflicts_with_all = ["profile", "must_show", "bound"])]
    pub(crate) addresses: Option<u32>,
    /// Workers [default: 1; of study1 3,6,10]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) threads: Vec<usize>,
    /// What counts as work: a decisions and changes; b also the fingerprint; c also that, by jump-ahead
    #[arg(long, value_delimiter = ',', default_value = "a")]
    pub(crate) track: Vec<TrackChoice>,
    /// Which generator
    #[arg(long, default_value = "A")]
    pub(crate) variant: VariantChoice,
    /// Whether an address accepts sources that no config packet named
    #[arg(long, default_value = "deny")]
    pub(crate) default: DefaultChoice,
    /// Which addresses the warm-up of variants C and D names
    #[arg(long, default_value = "mended")]
    pub(crate) warm_up: WarmUpChoice,
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
    /// Stamps of cached_exact: with more, a change revokes less that it does not concern [default: 262144]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) stamps: Vec<usize>,
    /// Sources that share a stamp of cached_exact [default: 64]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) block: Vec<usize>,
    /// Packets after the warm-up [default: 1000000; of study1 10000000]
    #[arg(long, value_name = "N")]
    pub(crate) packets: Option<usize>,
    /// Timed rounds [default: 5; 3 of study1, 100 of study2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// Also take the time of each packet from source to end, and say how many were in flight
    #[arg(long)]
    pub(crate) latency: bool,
    /// The figures that the access list is held to
    #[arg(long, conflicts_with = "profile")]
    pub(crate) must_show: bool,
    /// What two threads, or those of --threads, gain over one if they share only the words that must change
    #[arg(long, conflicts_with_all = ["profile", "must_show"])]
    pub(crate) bound: bool,
    /// A study's experiments, its published figures beside ours
    #[arg(long)]
    pub(crate) profile: Option<Profile>,
    /// One part of a study
    #[arg(long, requires = "profile")]
    pub(crate) only: Option<PartChoice>,
    /// Record N histories of each engine and number of threads, and check them
    #[arg(long, value_name = "N", conflicts_with_all = ["profile", "must_show"])]
    pub(crate) check: Option<usize>,
    /// Where the figures of --profile go, as SVG
    #[arg(long, value_name = "DIR", requires = "profile")]
    pub(crate) figure: Option<PathBuf>,
    /// Done within a minute: fewer packets, rounds and presets
    #[arg(long)]
    pub(crate) quick: bool,
    /// How it is told.
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrackChoice {
    A,
    B,
    C,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum WarmUpChoice {
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
    /// The generator in as many threads as there are workers, each making parts of the stream
    Parts,
    /// A generator for each worker, as the first study's code has it
    PerWorker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Enumerating design choices (four firewalls, four orchestrations)
    Study1,
    /// Three tables, threads and streams
    Study2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartChoice {
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
    pub(crate) fn part(self) -> (Part, Profile) {
        match self {
            Self::SpeedUps => (Part::SpeedUps, Profile::Study1),
            Self::Stripes => (Part::Stripes, Profile::Study1),
            Self::Sizes => (Part::Sizes, Profile::Study2),
            Self::Addresses => (Part::Addresses, Profile::Study2),
            Self::Settings => (Part::Settings, Profile::Study2),
        }
    }
}

impl AccessArgs {
    /// Workers, one unless told.
    pub(crate) fn threads(&self) -> &[usize] {
        if self.threads.is_empty() { &[1] } else { &self.threads }
    }
}
