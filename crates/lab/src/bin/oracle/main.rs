//! `oracle`: compares tamis with this machine's kernel for as long as it is told.
//!
//! `oracle [--packets N] [--seed N] [--family ip|ip6] [--threads N] [--failures N] [--summary FILE]
//! [--cases DIR] [--conformance FILE] [--real DIR] [--layout NAME]`. N packets for each family; then the
//! rulesets of DIR, without the rules that depend on state. NAME is what tamis walks the rules as: a layout, `model`
//! as they were read, or `each` for all of them in turn, which is the default. `--state N` compares N packets for
//! each family in conversations, under rules that depend on state, and nothing else. `--kernel VERSION` says which kernel
//! is asked, if `uname` does not. `--frames N` compares N frames on a bridge under rules of `--ebtables nft|legacy`. `oracle
//! --again FILE` asks the
//! kernel again about a case and writes its answers into it, `--only N` runs ruleset N of the seed alone,
//! `oracle --samples DIR` writes a case for every match. `oracle nft` compares under rulesets of nft ([`nft`]). Exit code 1: there are differences; 3: this machine cannot
//! be asked.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod nft;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let done = match words.next_if_eq("nft") {
        Some(_) => nft::run(words),
        None => linux::run(),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("oracle: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("SKIPPED: the oracle is the Linux kernel");
    ExitCode::from(3)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io;
    use std::path::PathBuf;
    use std::process::ExitCode;
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    use host::Kernel;
    use lab::case::Case;
    use lab::conformance::{Machine, date_of, page};
    use lab::failure::Failure;
    use lab::layouts::Layouts;
    use lab::oracle::campaign::{Plan, one, run as campaign, scene_of};
    use lab::oracle::ebtables::Ebtables;
    use lab::oracle::frames::{self, FrameSummary};
    use lab::oracle::load::{lacking, running, version};
    use lab::oracle::real::compare_dir;
    use lab::oracle::record::{again, samples};
    use lab::oracle::state::{self, StatePlan, StateSummary};
    use lab::real::RealFile;
    use lab::state::case::StateCase;
    use lab::state::summary::Heard;
    use rules::model::Family;

    struct Args {
        plan: Plan,
        summary: Option<PathBuf>,
        cases: Option<PathBuf>,
        conformance: Option<PathBuf>,
        again: Option<PathBuf>,
        samples: Option<PathBuf>,
        only: Option<u64>,
        real: Option<PathBuf>,
        state: Option<u64>,
        frames: Option<u64>,
        ebtables: Ebtables,
    }

    pub(super) fn run() -> io::Result<ExitCode> {
        let args = args()?;
        if let Some(reason) = lacking() {
            eprintln!("SKIPPED: {reason}");
            return Ok(ExitCode::from(3));
        }
        if let Some(path) = &args.again {
            let text = fs::read_to_string(path)?;
            if let Some(mut case) = StateCase::parse(&text) {
                case.stage.scene.kernel = args.plan.kernel;
                fs::write(path, state::ask::ask(&case)?.text())?;
                return Ok(ExitCode::SUCCESS);
            }
            let case = Case::parse(&text);
            let mut case = case.ok_or_else(|| io::Error::other("that is no case"))?;
            case.scene.kernel = args.plan.kernel;
            fs::write(path, again(&case)?.text())?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(dir) = &args.samples {
            for (name, case) in samples(args.plan.seed)? {
                fs::write(dir.join(name), case.text())?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(packets) = args.state {
            return converse(&args, packets);
        }
        if let Some(frames) = args.frames {
            return bridge(&args, frames);
        }
        let start = Instant::now();
        let (summary, mut failures) = match args.only {
            Some(number) => {
                let scene = scene_of(number, &args.plan);
                let (summary, failure) = one(args.plan.seed, number, scene)?;
                (summary, failure.into_iter().collect())
            }
            None => campaign(&args.plan)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        let packets = summary.packets(|_| true);
        let lines = summary.json_lines();
        print!("{lines}");
        println!("{packets} packets in {seconds:.1} s, {:.0}/s", packets as f64 / seconds);
        let (files, refused) = match &args.real {
            Some(dir) => compare_dir(dir, args.plan.seed)?,
            None => Default::default(),
        };
        for file in &files {
            println!("{}", real_line(file));
            failures.extend(file.failures.iter().cloned());
        }
        for (name, why) in &refused {
            println!("{name}: not loaded: {why}");
        }
        for failure in &failures {
            println!("=== ruleset {}\n{}", failure.number, failure.story);
        }
        if let Some(path) = &args.summary {
            fs::write(path, lines)?;
        }
        if let Some(dir) = &args.cases {
            keep(dir, &failures)?;
        }
        if let Some(path) = &args.conformance {
            fs::write(path, page(&summary, &files, &machine(args.plan.seed)))?;
        }
        Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    fn converse(args: &Args, packets: u64) -> io::Result<ExitCode> {
        let start = Instant::now();
        let plan = StatePlan {
            seed: args.plan.seed,
            packets,
            families: args.plan.families.clone(),
            layouts: args.plan.layouts,
            kernel: args.plan.kernel,
            threads: args.plan.threads,
            until: None,
            most_failures: args.plan.most_failures,
        };
        let summary = match args.only {
            Some(number) => only(&plan, number)?,
            None => state::run(&plan)?,
        };
        for ((tool, sort), heard) in &summary.heard {
            println!("{tool}{sort}: {}", heard_line(heard));
        }
        let (files, refused) = match &args.real {
            Some(dir) => state::real::compare_dir(dir, plan.seed)?,
            None => Default::default(),
        };
        for file in &files {
            let (name, kept, pairs) = (&file.name, file.kept, file.pairs);
            println!("{name}: {kept} rules, {pairs} pairs of devices, {}", heard_line(&file.heard));
        }
        for (name, why) in &refused {
            println!("{name}: not loaded: {why}");
        }
        let differences = files.iter().flat_map(|file| &file.failures).chain(&summary.failures);
        let differences: Vec<_> = differences.collect();
        println!("{:.1} s, {} differences", start.elapsed().as_secs_f64(), differences.len());
        for failure in &differences {
            println!("=== ruleset {}\n{}", failure.name, failure.story);
        }
        Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    fn bridge(args: &Args, frames: u64) -> io::Result<ExitCode> {
        if let Some(reason) = frames::lacks_bridge(args.ebtables) {
            eprintln!("SKIPPED: {reason}");
            return Ok(ExitCode::from(3));
        }
        let Plan { seed, layouts, .. } = args.plan;
        let found = frames::bridge(seed, frames, layouts, args.ebtables)?;
        let FrameSummary { rulesets, frames, passed, failures } = found;
        println!(
            "ebtables-{}: {rulesets} rulesets, {frames} packets, {passed} let through, {} differences",
            args.ebtables.backend().name(),
            failures.len()
        );
        for story in &failures {
            println!("=== {story}");
        }
        Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    fn only(plan: &StatePlan, number: u64) -> io::Result<StateSummary> {
        let (named, heard, failure) = state::one(plan, number)?;
        let heard = [(named, heard)].into();
        Ok(StateSummary { heard, failures: failure.into_iter().collect() })
    }

    fn heard_line(heard: &Heard) -> String {
        let Heard { rulesets, packets, came, .. } = heard;
        let share = heard.certain_share();
        format!("{rulesets} rulesets, {packets} packets, {came} came out, {share:.2} % certain")
    }

    fn real_line(file: &RealFile) -> String {
        let RealFile { name, kept, hit, packets, failures, .. } = file;
        format!(
            "{name}: {kept} rules, {hit} hit, {packets} packets, {} differences",
            failures.len()
        )
    }

    fn machine(seed: u64) -> Machine {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let kernel = release.trim().split('-').next().unwrap_or_default().to_owned();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Machine { kernel, tool: version("iptables-legacy-restore"), date: date_of(now), seed }
    }

    fn keep(dir: &std::path::Path, failures: &[Failure]) -> io::Result<()> {
        fs::create_dir_all(dir)?;
        for failure in failures {
            if let Some(case) = &failure.case {
                fs::write(dir.join(format!("{}.case", failure.number)), case.text())?;
            }
        }
        Ok(())
    }

    fn args() -> io::Result<Args> {
        let mut args = Args {
            plan: Plan {
                seed: 1,
                packets: 100_000,
                families: vec![Family::Ipv4, Family::Ipv6],
                until: None,
                layouts: Layouts::Each,
                kernel: running().unwrap_or_default(),
                threads: 8,
                most_failures: 5,
            },
            summary: None,
            cases: None,
            conformance: None,
            again: None,
            samples: None,
            only: None,
            real: None,
            state: None,
            frames: None,
            ebtables: Ebtables::Nft,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| wrong(&word))?;
            let number = || value.parse::<u64>().map_err(|_| wrong(&word));
            match word.as_str() {
                "--packets" => args.plan.packets = number()?,
                "--seed" => args.plan.seed = number()?,
                "--threads" => args.plan.threads = number()? as usize,
                "--failures" => args.plan.most_failures = number()? as usize,
                "--family" => {
                    let family = Family::from_name(&value).ok_or_else(|| wrong(&word))?;
                    args.plan.families = vec![family];
                }
                "--summary" => args.summary = Some(value.into()),
                "--cases" => args.cases = Some(value.into()),
                "--state" => args.state = Some(number()?),
                "--frames" => args.frames = Some(number()?),
                "--ebtables" => {
                    args.ebtables = Ebtables::from_name(&value).ok_or_else(|| wrong(&word))?;
                }
                "--layout" => {
                    let layouts = Layouts::from_name(&value).ok_or_else(|| wrong(&word))?;
                    args.plan.layouts = layouts;
                }
                "--kernel" => {
                    args.plan.kernel = Kernel::parse(&value).ok_or_else(|| wrong(&word))?
                }
                "--real" => args.real = Some(value.into()),
                "--only" => args.only = Some(number()?),
                "--again" => args.again = Some(value.into()),
                "--samples" => args.samples = Some(value.into()),
                "--conformance" => args.conformance = Some(value.into()),
                _ => return Err(wrong(&word)),
            }
        }
        Ok(args)
    }

    fn wrong(word: &str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{word}: see the head of its source"))
    }
}
