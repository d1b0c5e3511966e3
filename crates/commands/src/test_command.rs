//! `tamis test`: rules held to cases, and cases recorded from a capture.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use conntrack::Mode;
use replay::cases::{Cases, Given, NamedFile, Results, evaluate, record};
use replay::walk::{Setup, WalkOptions, names};
use replay::{Room, Target, json_text, shell, spec};

use crate::outputs::Files;
use crate::screen;
use crate::standard_input::standard_input_once;
use crate::walk_args::{WalkArgs, warn_of_foreign};

/// `tamis test`.
#[derive(Debug, clap::Args)]
#[command(
    allow_missing_positional = true,
    override_usage = "tamis test [OPTIONS] [RULES] CASES.toml\n       \
                      tamis test [OPTIONS] --record CAPTURE [-o CASES.toml] RULES",
    after_help = "\
A cases file:
  rules = \"rules.v4\"          # beside this file or below; RULES on the command line wins
  rules6 = \"rules.v6\"         # IPv6 rules beside them
  [defaults]                  # in, out, net, local, path, ct, queue-verdict: options win
  options = \"usual\"           # what packets hold that do not say so: payload, options, mac, ...
  net = [\"eth0=0.0.0.0/0\", \"eth1=10.0.0.0/8\"]
  [[case]]
  name = \"the database is not reachable from outside\"
  packet = \"tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn\"
  expect = \"drop\"             # accept, drop, reject or unknown
  by = \"filter/FORWARD/12\"    # optional; or table/chain/policy, or ttl
`packets = [...]` instead of `packet` is a conversation: `expect` is then one verdict for every
packet, or a list with one for each. `by_text = \"-A FORWARD ...\"` instead of `by` names a rule by
its text. Both are about the last packet.
Exit codes: 0 every case passes, 1 a case fails, 2 usage or input error.
Examples:
  tamis test rules.v4 cases.toml --junit junit.xml
  tamis test cases.toml --github
  tamis test --record office.pcap --net lan0=10.20.0.0/24 -o cases.toml rules.v4"
)]
pub(crate) struct TestArgs {
    /// Rules, as iptables-save, ip6tables-save or nft list ruleset prints them, - for standard input; or a folder that
    /// `tamis collect` wrote [default: what the cases file names]
    #[arg(value_name = "RULES|HOST")]
    pub rules: Option<String>,
    /// Cases; with --record the rules
    #[arg(value_name = "CASES.toml")]
    pub cases: String,
    /// Write a cases file from this capture (FILE or IFACE=FILE), to start from; may be repeated, merged by time
    #[arg(long, value_name = "CAPTURE", conflicts_with_all = ["junit", "github", "json"])]
    pub record: Vec<String>,
    /// Where to write it, a file that is not there yet [default: standard output]
    #[arg(short = 'o', long = "output", value_name = "CASES.toml", requires = "record")]
    pub to: Option<String>,
    /// Have the recorded cases name the rules that decide, too: then a rule that is rewritten fails them
    #[arg(long, requires = "record")]
    pub pin: bool,
    /// How many cases to record at most
    #[arg(long, default_value_t = 200, value_name = "N", requires = "record",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Also write JUnit XML, which CI servers read
    #[arg(long, value_name = "FILE")]
    pub junit: Option<String>,
    /// Also print GitHub workflow commands, which annotate the lines of the cases file
    #[arg(long, conflicts_with = "json")]
    pub github: bool,
    /// Let the cases file name rules outside its folder, and such as are no files
    #[arg(long, conflicts_with = "record")]
    pub rules_outside: bool,
    /// One JSON document, schema tamis.test/1
    #[arg(long)]
    pub json: bool,
    /// Say nothing where every case passes
    #[arg(short, long, conflicts_with = "record")]
    pub quiet: bool,
    #[command(flatten)]
    pub walk: WalkArgs,
}

/// Tests or records.
pub(crate) fn run(args: &TestArgs) -> Result<ExitCode> {
    if args.record.is_empty() { test(args) } else { record(args) }
}

fn test(args: &TestArgs) -> Result<ExitCode> {
    standard_input_once(args.rules.iter().chain([&args.cases]).chain(&args.walk.rules6))?;
    let cases = Cases::open(&args.cases)?;
    // What the command line says wins, and what loses is not looked at.
    let file = |given: &Option<String>, named: &Option<NamedFile>| match (given, named) {
        (Some(given), _) => Ok(Some(given.clone())),
        (None, Some(named)) if args.rules_outside => Ok(Some(named.path())),
        (None, Some(named)) => named.inside().map(Some),
        (None, None) => Ok(None),
    };
    let Some(rules) = &file(&args.rules, &cases.rules)? else {
        bail!("{}: expected rules = \"…\", or RULES on the command line", args.cases);
    };
    let rules6 = file(&args.walk.rules6, &cases.rules6)?;
    let rules6 = rules6.as_deref();
    let mut named = Files::default();
    named.reads(args.walk.inputs([&**rules, &args.cases].into_iter().chain(rules6)));
    named.writes(&[("--junit", args.junit.as_deref())])?;
    let junit = args.junit.as_deref().map(|name| Target::open(name, &Room::default()));
    let junit = junit.transpose()?;
    let from_cases = [&cases.rules, &cases.rules6].into_iter().flatten().cloned();
    let from_cases = from_cases.filter(|_| !args.rules_outside);
    let walk = WalkOptions { named: from_cases.collect(), ..args.walk.options() };
    let files = walk.open_both(rules, rules6)?;
    let given = Given { path: args.walk.path.is_some(), ct: args.walk.ct.is_some() };
    let Setup { config, start } = walk.setup(rules, spec::CT)?;
    let setup = Setup { config: cases.defaults.under(config, given), start };
    let config = &setup.config;
    if !args.quiet {
        warn_of_foreign(&config.host.foreign);
    }
    cases.fit(config)?;
    let warnings = cases.warnings(&files, config).into_iter();
    let warnings = warnings.chain(names::option_warnings(&files, config));
    warnings.for_each(|warning| screen::tell(&format!("warning: {warning}")));
    let results = evaluate(cases, &files, &setup, &walk.also());
    junit.map_or(Ok(()), |to| to.write_whole(&results.junit()))?;
    print(&results, args)?;
    let failed = results.failed().next().is_some();
    Ok(ExitCode::from(u8::from(failed)))
}

fn print(results: &Results, args: &TestArgs) -> Result<()> {
    screen::write(|out| {
        if args.json {
            return json_text::pretty(out, &results.json());
        }
        if args.github {
            out.write_all(results.github().as_bytes())?;
        }
        match args.quiet && results.failed().next().is_none() {
            true => Ok(()),
            false => out.write_all(results.text().as_bytes()),
        }
    })
}

fn record(args: &TestArgs) -> Result<ExitCode> {
    if args.rules.is_some() {
        bail!(
            "expected only RULES beside --record, found \"{}\" too (-o names a file)",
            args.cases
        );
    }
    let name = &args.cases;
    standard_input_once(args.record.iter().chain([name]).chain(&args.walk.rules6))?;
    let walk = args.walk.options();
    let files = walk.open(name)?;
    let setup = walk.setup(name, Mode::Midstream)?;
    warn_of_foreign(&setup.config.host.foreign);
    let mut recording = record::record(&files, &setup, &args.record, args.limit as usize)?;
    recording.pins = args.pin;
    let named = [Some(name), args.walk.rules6.as_ref()]
        .map(|name| below(args.to.as_deref(), name.filter(|name| *name != "-")?));
    let toml = recording.toml([named[0].as_deref(), named[1].as_deref()], &args.record);
    match &args.to {
        None => screen::print(&screen::data(&toml))?,
        Some(output) => {
            // A cases file is edited by hand: none is ever overwritten.
            let mut file = File::create_new(output).with_context(|| output.clone())?;
            file.write_all(toml.as_bytes()).with_context(|| output.clone())?;
            // Rules that the file could not name are given along with it.
            let rules = named[0].is_none().then_some(&**name);
            let rules6 = args.walk.rules6.as_ref().filter(|_| named[1].is_none());
            let rules6 = rules6.map_or_else(String::new, |file| shell::option("rules6", file));
            let operands: Vec<&str> = rules.into_iter().chain([&**output]).collect();
            let next = shell::command("test", &operands, &(walk.also() + &rules6));
            let (cases, packets) = (recording.case_count(), recording.packets);
            screen::print(&format!("{cases} cases of {packets} packets\nnext: {next}\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How a cases file that will lie at `output` is to name the rules: from where it lies. `None` where they are not in
/// its folder or below.
pub(crate) fn below(output: Option<&str>, rules: &str) -> Option<String> {
    let steps = |path: &Path| -> Option<Vec<OsString>> {
        let path = std::path::absolute(path).ok()?;
        path.components()
            .map(|step| (step != Component::ParentDir).then(|| step.as_os_str().to_owned()))
            .collect()
    };
    let folder = Path::new(output.unwrap_or_default()).parent().unwrap_or(Path::new(""));
    let (folder, rules) = (steps(&Path::new(".").join(folder))?, steps(Path::new(rules))?);
    let rest = rules.strip_prefix(&folder[..])?;
    Some(rest.iter().collect::<PathBuf>().display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named_from_where_the_cases_lie() {
        let named = |output, rules| below(output, rules).unwrap();
        assert_eq!(named(None, "a/rules.v4"), "a/rules.v4");
        assert_eq!(named(Some("cases.toml"), "./a/rules.v4"), "a/rules.v4");
        assert_eq!(named(Some("t/cases.toml"), "t/u/rules.v4"), "u/rules.v4");
        assert_eq!(named(Some("/t/cases.toml"), "/t/rules.v4"), "rules.v4");
        for (output, rules) in [
            ("./t/u/cases.toml", "rules.v4"),
            ("t/cases.toml", "/etc/rules.v4"),
            ("cases.toml", "../rules.v4"),
            ("/t/cases.toml", "rules.v4"),
        ] {
            assert_eq!(below(Some(output), rules), None, "{output} {rules}");
        }
    }
}
