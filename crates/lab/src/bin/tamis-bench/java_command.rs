//! `tamis-bench java`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::bench::java::{self, Job, Plan};
use lab::bench::{Recorded, pictures};

use crate::output::Output;

/// `tamis-bench java`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The jar is made by `mvn -f bindings/java/bench package` (with -Djdk25.home=DIR it has java.lang.foreign, too), the
library, which is looked for beside tamis-bench, by `cargo build --release -p tamis-java-bench`.
Without --quick it takes half an hour for two JDKs.
Examples:
  tamis-bench java --quick
  tamis-bench java --jdk /usr/lib/jvm/java-17-openjdk-amd64 --jdk /opt/jdk-25 --json --figure figures")]
pub(crate) struct JavaArgs {
    /// Less of everything: within a minute for each JDK
    #[arg(long)]
    quick: bool,
    /// How it is told.
    #[command(flatten)]
    output: Output,
    /// Draw the study's figures as SVG files into a directory
    #[arg(long, value_name = "DIR")]
    figure: Option<PathBuf>,
    /// A JDK's home; may be repeated [default: that of `java`]
    #[arg(long, value_name = "PATH")]
    jdk: Vec<PathBuf>,
    /// One of both jobs
    #[arg(long, value_name = "JOB", value_parser = jobs())]
    only: Option<Job>,
    /// The benchmark's jar
    #[arg(long, value_name = "FILE", default_value = "bindings/java/bench/target/benchmarks.jar")]
    jar: PathBuf,
}

/// Jobs by name.
fn jobs() -> impl TypedValueParser<Value = Job> {
    PossibleValuesParser::new(Job::ALL.map(Job::name)).try_map(|word| {
        let found = Job::ALL.into_iter().find(|job| job.name() == word);
        found.ok_or("expected a job of the benchmark")
    })
}

/// Measures, draws and prints.
pub(crate) fn run(args: &JavaArgs) -> Result<ExitCode> {
    let JavaArgs { quick, output, figure, jdk, only, jar } = args;
    let own = std::env::current_exe().context("the program's own file")?;
    let plan = Plan {
        quick: *quick,
        only: *only,
        jdks: jdk.clone(),
        jar: jar.clone(),
        library: java::library_beside(&own),
    };
    let mut say = |line: &str| eprintln!("{line}");
    let mut out = output.begin()?;
    java::run(&plan, &mut out, &mut say).map_err(anyhow::Error::msg)?;
    if let Some(directory) = figure {
        let recorded = Recorded::of(&out).map_err(anyhow::Error::msg)?;
        pictures::draw(&recorded, directory).map_err(anyhow::Error::msg)?;
    }
    Ok(ExitCode::SUCCESS)
}
