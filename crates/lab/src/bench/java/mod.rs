//! `tamis-bench java`: ways to share packets between native code and Java, beside the same job in Rust.
//!
//! Contract: the JVM measures (JMH, a fork for each technique), this compares. No figure is taken before every technique
//! has left the same bytes in memory as Rust, and each fork holds what its own rounds left to the same. A factor is the
//! median of a pass by that of Rust's in the same pass; passes follow each other, techniques take turns.
//! Source: the fourth study, "Data sharing", section 1.3; `docs/studies-java.md` has what came of it.

mod expectations;
pub mod figure;
mod jmh;
mod jvm;
mod technique;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::document::{Peer, Row, Runs};
use super::rows::Rows;
use crate::bench::limit;
use expectations::SET_UP;
use jmh::Measured;
use jvm::{Jvm, Sweep};
pub use technique::Job;
use technique::{FLOOR, Pace, Technique};

/// Structs of the study, and of a ring that a cache must hold.
const STRUCTS: [u32; 2] = [1, 1024];
const BURSTS: [u32; 4] = [1, 32, 64, 256];
/// JVMs whose first packet is timed.
const SET_UPS: usize = 5;
/// What to measure, and with what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Fewer packets, one pass, one size of ring and burst.
    pub quick: bool,
    /// One of both jobs.
    pub only: Option<Job>,
    /// Homes of JDKs; that of `java` if there is none.
    pub jdks: Vec<PathBuf>,
    /// The benchmark's jar.
    pub jar: PathBuf,
    /// The benchmark's native library.
    pub library: PathBuf,
}

/// Measures all techniques that each JDK has.
///
/// # Errors
/// A JDK cannot be run, a technique leaves other bytes in memory than Rust, or a round fails.
pub fn run(plan: &Plan, out: &mut Rows, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    let homes =
        if plan.jdks.is_empty() { vec![None] } else { plan.jdks.iter().map(Some).collect() };
    let mut hashes = jvm::Hashes::default();
    for home in homes {
        let jvm = Jvm::find(home.map(PathBuf::as_path), &plan.jar, &plan.library)?;
        say(&format!("JDK {}: the same bytes by every technique", jvm.release));
        let there = jvm.check(&mut hashes)?;
        lacking(&there, &jvm, out);
        if plan.only != Some(Job::Realistic)
            && out.begins(format!("{SET_UP} with JDK {}", jvm.release))
        {
            set_up(plan, &jvm, &there, out)?;
        }
        for job in Job::ALL.into_iter().filter(|job| plan.only.is_none_or(|only| only == *job)) {
            if !out.begins(format!("java.{} with JDK {}", job.name(), jvm.release)) {
                continue;
            }
            measure(plan, &jvm, job, &there, out, say)?;
        }
    }
    let found = expectations::rows(out.rows());
    out.extend(found);
    Ok(())
}

/// What the first packet of each technique takes, in JVMs of their own, one technique after the other.
fn set_up(
    plan: &Plan,
    jvm: &Jvm,
    there: &[(Job, &'static Technique)],
    out: &mut Rows,
) -> Result<(), String> {
    let study = there.iter().filter(|(job, _)| *job == Job::Study);
    let names: Vec<_> = study.map(|(_, technique)| technique.name).collect();
    let mut found = vec![Vec::new(); names.len()];
    let mut classes = vec![0; names.len()];
    for _ in limit::rounds(if plan.quick { 1 } else { SET_UPS }) {
        for (index, name) in names.iter().enumerate() {
            let (nanos, loaded) = jvm.set_up(name)?;
            found[index].push(nanos / 1e6);
            classes[index] = loaded;
        }
    }
    let row = |((name, millis), loaded): ((&'static str, Vec<f64>), u64)| {
        let row = Row::new(SET_UP, name, "ms", &millis).with("jdk", jvm.release);
        row.with("structs", STRUCTS[0]).with("classes", loaded)
    };
    out.extend(names.into_iter().zip(found).zip(classes).map(row));
    Ok(())
}

/// Lists the techniques that this JVM does not have.
fn lacking(there: &[(Job, &'static Technique)], jvm: &Jvm, out: &mut Rows) {
    for job in Job::ALL {
        for technique in job.techniques() {
            let has = |(of, one): &(Job, &Technique)| *of == job && one.name == technique.name;
            if !there.iter().any(has) {
                out.lacks(technique.name, format!("{} with JDK {}", job.name(), jvm.release));
            }
        }
    }
}

/// One job on one JDK: passes, one after the other, of all that there is.
fn measure(
    plan: &Plan,
    jvm: &Jvm,
    job: Job,
    there: &[(Job, &'static Technique)],
    out: &mut Rows,
    say: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let passes = if plan.quick { 1 } else { 3 };
    let mut all = Vec::new();
    for pass in limit::rounds(passes) {
        // What takes seconds a round is not repeated.
        for sweep in
            sweeps(plan, job, there).iter().filter(|one| pass == 0 || one.pace == Pace::Fast)
        {
            let options = sweep.options.join(" ");
            let (release, name, pace) = (jvm.release, job.name(), sweep.pace);
            say(&format!("JDK {release} {options}: {name}, {pace:?}, pass {}", pass + 1));
            all.extend(jvm.measure(sweep, plan.quick)?.into_iter().map(|one| (pass, one)));
        }
    }
    out.extend(rows(jvm, job, &all));
    Ok(())
}

/// All techniques of a job that there are.
fn sweeps(plan: &Plan, job: Job, there: &[(Job, &'static Technique)]) -> Vec<Sweep> {
    let mut sweeps: Vec<Sweep> = Vec::new();
    for (_, technique) in there.iter().filter(|(of, _)| *of == job) {
        let &Technique { name, pace, options, .. } = *technique;
        match sweeps.iter_mut().find(|one| one.pace == pace && one.options == options) {
            Some(sweep) => sweep.names.push(name),
            None => {
                let varied = varied(plan, job, pace);
                sweeps.push(Sweep { job, names: vec![name], varied, pace, options });
            }
        }
    }
    sweeps
}

/// Sizes of the ring, or of bursts. What is slow has the study's one struct alone.
fn varied(plan: &Plan, job: Job, pace: Pace) -> Vec<u32> {
    match (job, pace) {
        (Job::Study, Pace::Slow) => vec![STRUCTS[0]],
        (Job::Study, Pace::Fast) if plan.quick => vec![STRUCTS[0]],
        (Job::Study, Pace::Fast) => STRUCTS.to_vec(),
        (Job::Realistic, _) if plan.quick => vec![32],
        (Job::Realistic, _) => BURSTS.to_vec(),
    }
}

/// A row for each technique and number, beside Rust's with the same number.
fn rows(jvm: &Jvm, job: Job, all: &[(usize, Measured)]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (_, first) in all.iter().filter(|(pass, _)| *pass == 0) {
        let of = |name: &str| {
            let is = |one: &Measured| one.technique == name && one.varied == first.varied;
            all.iter().filter(|(_, one)| is(one)).map(|(_, one)| one).collect::<Vec<_>>()
        };
        let Some(technique) = job.technique(&first.technique) else { continue };
        let (ours, floor) = (of(&first.technique), of(FLOOR));
        let figures: Vec<f64> = ours.iter().flat_map(|one| one.counted()).copied().collect();
        let mut row = Row::new(format!("java.{}", job.name()), technique.name, "ns", &figures)
            .with("jdk", jvm.release)
            .with(job.varies(), first.varied)
            .with("rounds", shown(&first.rounds));
        if let Some(bytes) = first.allocated {
            row = row.with("allocated", bytes);
        }
        row.peer = beside(&ours, &floor).filter(|_| technique.name != FLOOR);
        rows.push(row);
    }
    rows
}

/// The factors of passes, in the middle.
fn beside(ours: &[&Measured], floor: &[&Measured]) -> Option<Peer> {
    let ratios = ours.iter().zip(floor).map(|(one, other)| one.median() / other.median());
    let ratio = Runs::of(ratios.collect()).value;
    let theirs: Vec<f64> = floor.iter().flat_map(|one| one.counted()).copied().collect();
    (!theirs.is_empty()).then(|| Peer { peer: "rust", value: Runs::of(theirs).value, ratio })
}

/// All rounds of a pass in tenths of nanoseconds, those that warm up as well.
fn shown(rounds: &[f64]) -> Value {
    rounds.iter().map(|round| (round * 10.0).round() / 10.0).collect()
}

/// The jar and the library where the build leaves them.
#[must_use]
pub fn library_beside(program: &Path) -> PathBuf {
    let name = [std::env::consts::DLL_PREFIX, "tamis_java_bench", std::env::consts::DLL_SUFFIX];
    program.with_file_name(name.concat())
}

#[cfg(test)]
mod tests;
