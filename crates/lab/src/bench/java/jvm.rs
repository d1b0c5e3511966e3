//! A JVM that runs the benchmark's jar.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::jmh::{self, COUNTED, Measured};
use super::technique::{Job, Pace, Technique};

/// The hash of memory after a job, by job and number: the same on every JDK.
pub(super) type Hashes = BTreeMap<(&'static str, u32), (String, String)>;

/// Lines of a failed program that are shown, but for stack traces.
const SHOWN: usize = 15;

/// What one run of JMH measures: techniques of one pace in JVMs with the same options, each by each of the numbers.
pub(super) struct Sweep {
    pub(super) job: Job,
    pub(super) names: Vec<&'static str>,
    pub(super) varied: Vec<u32>,
    pub(super) pace: Pace,
    pub(super) options: &'static [&'static str],
}

/// A JDK's `java`, the jar, and the library.
pub(super) struct Jvm {
    java: PathBuf,
    jar: PathBuf,
    library: PathBuf,
    /// 17, 21, 25, …
    pub(super) release: u32,
}

impl Jvm {
    /// That of a JDK's home, or `java`.
    pub(super) fn find(home: Option<&Path>, jar: &Path, library: &Path) -> Result<Self, String> {
        for (file, how) in [(jar, "mvn package"), (library, "cargo build -p tamis-java-bench")] {
            if !file.is_file() {
                return Err(format!("{}: not there ({how} makes it)", file.display()));
            }
        }
        let java = home.map_or_else(|| "java".into(), |home| home.join("bin/java"));
        let library = library.canonicalize().map_err(|error| error.to_string())?;
        let settings = output(Command::new(&java).args(["-XshowSettings:properties", "-version"]))?;
        let told = String::from_utf8_lossy(&settings.stderr);
        let release = release(&told)
            .ok_or_else(|| format!("{}: it does not tell its version", java.display()))?;
        Ok(Self { java, jar: jar.to_owned(), library, release })
    }

    /// One that is never run.
    #[cfg(test)]
    pub(super) fn named(release: u32) -> Self {
        Self { java: PathBuf::new(), jar: PathBuf::new(), library: PathBuf::new(), release }
    }

    /// Options of every JVM of the benchmark. One collector everywhere; what later JDKs warn of is allowed.
    fn options(&self) -> Vec<String> {
        let mut options = vec![
            "-XX:+UseSerialGC".to_owned(),
            format!("-Dbench.library={}", self.library.display()),
        ];
        if self.release >= 22 {
            options.push("--enable-native-access=ALL-UNNAMED".to_owned());
        }
        if self.release >= 23 {
            options.push("--sun-misc-unsafe-memory-access=allow".to_owned());
        }
        options
    }

    /// Has every technique do its job once, and compares what it left in memory; the techniques that there are.
    pub(super) fn check(
        &self,
        hashes: &mut Hashes,
    ) -> Result<Vec<(Job, &'static Technique)>, String> {
        let mut command = Command::new(&self.java);
        command.args(self.options()).arg("-cp").arg(&self.jar).arg("dev.tamis.bench.Check");
        let lines = output(&mut command)?.stdout;
        compare(&String::from_utf8_lossy(&lines), hashes)
    }

    /// Has a technique do its job on its first packet, alone in a JVM: nanoseconds, and classes that were loaded meanwhile.
    pub(super) fn set_up(&self, technique: &str) -> Result<(f64, u64), String> {
        let mut command = Command::new(&self.java);
        command.args(self.options()).arg("-cp").arg(&self.jar).arg("dev.tamis.bench.SetUp");
        let lines = output(command.arg(technique))?.stdout;
        first_packet(&String::from_utf8_lossy(&lines))
    }

    /// Runs JMH.
    pub(super) fn measure(&self, sweep: &Sweep, quick: bool) -> Result<Vec<Measured>, String> {
        let found = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let Sweep { job, names, varied, pace, options } = sweep;
        let numbers: Vec<String> = varied.iter().map(u32::to_string).collect();
        let mut command = Command::new(&self.java);
        // Forks have the options of the JVM that starts them.
        command.args(self.options()).args(*options).arg("-jar").arg(&self.jar).arg(job.class());
        for (name, value) in [
            ("technique", names.join(",")),
            (job.varies(), numbers.join(",")),
            ("packets", pace.packets(quick).to_string()),
        ] {
            command.args(["-p", &format!("{name}={value}")]);
        }
        let rounds = pace.warm_up() + COUNTED;
        command.args(["-wi", "0", "-i", &rounds.to_string(), "-f", "1", "-foe", "true"]);
        if *job == Job::Realistic {
            command.args(["-prof", "gc"]);
        }
        command.args(["-rf", "json", "-rff"]).arg(found.path());
        output(&mut command)?;
        jmh::read(found.path(), job.varies())
    }
}

/// The number of a JDK in what `-XshowSettings:properties` prints.
fn release(settings: &str) -> Option<u32> {
    let line = settings.lines().find(|line| line.contains("java.specification.version"))?;
    line.split_once('=')?.1.trim().parse().ok()
}

/// A line `nanoseconds classes`.
pub(super) fn first_packet(line: &str) -> Result<(f64, u64), String> {
    let words = line.trim().split_once(' ');
    let found = words.and_then(|(nanos, loaded)| Some((nanos.parse().ok()?, loaded.parse().ok()?)));
    found.ok_or_else(|| format!("{line}: expected nanoseconds and classes"))
}

/// Lines `job technique number hash`: all techniques of a job and number must have one hash.
pub(super) fn compare(
    lines: &str,
    hashes: &mut Hashes,
) -> Result<Vec<(Job, &'static Technique)>, String> {
    let mut there: Vec<(Job, &'static Technique)> = Vec::new();
    for line in lines.lines() {
        let unknown = || format!("{line}: expected job, technique, number and hash");
        let mut words = line.split(' ');
        let mut word = || words.next().ok_or_else(unknown);
        let (job, name, number, hash) = (word()?, word()?, word()?, word()?);
        let job = Job::ALL.into_iter().find(|one| one.name() == job).ok_or_else(unknown)?;
        let technique = job.technique(name).ok_or_else(unknown)?;
        let number = number.parse().map_err(|_| unknown())?;
        let mine = (name.to_owned(), hash.to_owned());
        let (other, expected) = hashes.entry((job.name(), number)).or_insert(mine);
        if expected != hash {
            return Err(format!("{line}: {other} leaves {expected} in memory"));
        }
        if !there.iter().any(|(of, one)| *of == job && one.name == name) {
            there.push((job, technique));
        }
    }
    if there.is_empty() { Err("the jar has no technique".to_owned()) } else { Ok(there) }
}

/// Runs a program to its end; what it said last, if it failed.
fn output(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let is_frame = |line: &&str| line.trim_start().starts_with("at ");
    let lines: Vec<&str> = said.lines().filter(|line| !is_frame(line)).collect();
    let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    Err(format!("{name}: {}\n{last}", output.status))
}
