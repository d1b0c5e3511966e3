//! `tamis lint`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use host::Links;
use lint::{Baseline, Code, InFile, OnHost, Report, Severity};
use replay::cases::annotation;
use replay::walk::{HostFolder, words};
use replay::{Room, RulesFile, Target, json_text};
use rules::ipset::Sets;
use rules::model::Family;
use rules::save::LoadOptions;

use crate::outputs::Files;
use crate::screen;
use crate::standard_input::standard_input_once;
use crate::walk_args::warn_of_foreign;

/// Exit code where something is wrong for certain.
const ERRORS: u8 = 1;
/// Exit code where something may be.
const WARNINGS: u8 = 3;

/// `tamis lint`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exit codes: 0 nothing but notes, 1 errors, 2 usage or input error, 3 warnings but no errors.
Findings are checked: rules that never match are held to packets aimed at them (docs/lint.md has the limits).
Examples:
  tamis lint rules.v4
  tamis lint host/ --github
  tamis lint rules.v4 --sarif lint.sarif --json
  tamis lint new.v4 --vs old.v4
  tamis lint rules.v4 --write-baseline known.json && tamis lint rules.v4 --baseline known.json
  tamis lint --explain shadowed")]
pub(crate) struct LintArgs {
    /// Rules of iptables or ip6tables, - for standard input; of a folder both, with the links of the host
    #[arg(value_name = "RULES|HOST", required_unless_present = "explain")]
    pub rules: Option<String>,
    /// Family of the rules [default: told from the text, else ip]
    #[arg(long, value_parser = words::family)]
    pub family: Option<Family>,
    /// Only this table; also the table of `iptables -S` text
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// The host's links, as `ip -o link` prints them, for interfaces that are not there
    #[arg(long, value_name = "FILE")]
    pub links: Option<String>,
    /// Leave findings of this code out; may be repeated
    #[arg(long, value_name = "CODE", value_parser = code)]
    pub allow: Vec<Code>,
    /// The host's sets, as `ipset save` prints them, for sets that are not there
    #[arg(long, value_name = "FILE")]
    pub ipset: Option<String>,
    /// Leave out what was found before: a file that --write-baseline wrote
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<String>,
    /// Write all that is found into a file for --baseline
    #[arg(long, value_name = "FILE")]
    pub write_baseline: Option<String>,
    /// Leave out what is found in these older rules, too
    #[arg(long, value_name = "OLD")]
    pub vs: Option<String>,
    /// Print JSON (tamis.lint/1)
    #[arg(long, conflicts_with = "github")]
    pub json: bool,
    /// Print annotations for GitHub, too
    #[arg(long)]
    pub github: bool,
    /// Write SARIF 2.1.0 to a file
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<String>,
    /// Say what a code means, and what to do
    #[arg(long, value_name = "CODE", value_parser = code, conflicts_with = "rules")]
    pub explain: Option<Code>,
}

fn code(text: &str) -> Result<Code, String> {
    let names = || Code::ALL.map(Code::name).join(", ");
    let found = Code::ALL.into_iter().find(|code| code.name() == text);
    found.ok_or_else(|| format!("expected one of {}", names()))
}

/// Looks for what is wrong.
pub(crate) fn run(args: &LintArgs) -> Result<ExitCode> {
    if let Some(code) = args.explain {
        screen::print(&format!("{code}: {}\n\n{}\n", code.title(), code.explanation()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rules = args.rules.as_deref().unwrap_or("-");
    standard_input_once(args.rules.iter().chain(&args.vs))?;
    let mut named = Files::default();
    let inputs = [Some(rules), args.links.as_deref(), args.ipset.as_deref(), args.vs.as_deref()];
    let inputs = inputs.into_iter().chain([args.baseline.as_deref()]);
    named.reads(inputs.flatten().map(str::to_owned));
    named.writes(&[
        ("--sarif", args.sarif.as_deref()),
        ("--write-baseline", args.write_baseline.as_deref()),
    ])?;
    let mut report = report(args, rules)?;
    if let Some(name) = &args.write_baseline {
        let text = json_text::visible(&Baseline::of(&report).text());
        Target::open(name, &Room::default())?.write_whole(&text)?;
    }
    for known in known(args)? {
        known.leave_out(&mut report);
    }
    if let Some(name) = &args.sarif {
        let mut text = Vec::new();
        json_text::pretty(&mut text, &report.sarif(env!("CARGO_PKG_VERSION")))?;
        let to = Target::open(name, &Room::default())?;
        to.write_whole(&String::from_utf8_lossy(&text))?;
    }
    print(&report, args)?;
    Ok(match [Severity::Error, Severity::Warning].map(|severity| report.count(severity)) {
        [0, 0] => ExitCode::SUCCESS,
        [0, _] => ExitCode::from(WARNINGS),
        [_, _] => ExitCode::from(ERRORS),
    })
}

/// What is known already.
fn known(args: &LintArgs) -> Result<Vec<Baseline>> {
    let mut all = Vec::new();
    if let Some(file) = &args.baseline {
        let text = replay::read_text(file)?;
        all.push(Baseline::parse(&text).map_err(|what| anyhow::anyhow!("{file}:{what}"))?);
    }
    if let Some(old) = &args.vs {
        all.push(Baseline::of(&report(args, old)?));
    }
    Ok(all)
}

fn report(args: &LintArgs, rules: &str) -> Result<Report> {
    let files = open(args, rules)?;
    let host = given(args, rules)?;
    let mut report = Report::default();
    for file in files {
        let mut found = lint::lint_on(&file.ruleset, &host);
        found.findings.extend(lint::lint_text(&file.text, &file.ruleset));
        found.findings.retain(|finding| !args.allow.contains(&finding.code));
        if found.contradicted > 0 {
            let line = format!(
                "{}: {} findings left out that a walk contradicts: please report this",
                file.file, found.contradicted
            );
            screen::tell(&line);
        }
        let family = file.ruleset.family.name().to_owned();
        report.files.push(InFile { file: file.file, family, found });
    }
    Ok(report)
}

/// The rules of IPv4 and IPv6.
fn open(args: &LintArgs, rules: &str) -> Result<Vec<RulesFile>> {
    let options =
        LoadOptions { family: args.family, table: args.table.as_deref(), ..LoadOptions::default() };
    let files = match HostFolder::at(rules) {
        Some(folder) => folder.rules_of_iptables(&options)?,
        None => vec![RulesFile::open(rules, &options)?],
    };
    let (known, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| file.ruleset.family.is_ip());
    match (known.is_empty(), others.first()) {
        (true, Some(other)) => bail!("{}: expected rules of iptables or ip6tables", other.file),
        _ => Ok(known),
    }
}

/// What is known of the host.
fn given(args: &LintArgs, rules: &str) -> Result<OnHost> {
    let folder = HostFolder::at(rules);
    let mut on = OnHost::default();
    if let Some(folder) = &folder {
        let host = folder.host()?;
        // Findings are of the rules alone.
        warn_of_foreign(&folder.foreign(true, false)?);
        (on.links, on.policy) = (Some(host.links), host.policy);
        on.sets = folder.sets()?;
    }
    if let Some(file) = &args.links {
        let text = replay::read_text(file)?;
        on.links = Some(Links::parse(&text).map_err(|what| anyhow::anyhow!("{file}:{what}"))?);
    }
    if let Some(file) = &args.ipset {
        let text = replay::read_text(file)?;
        on.sets = Some(Sets::parse(&text).map_err(|what| anyhow::anyhow!("{file}:{what}"))?);
    }
    Ok(on)
}

fn print(report: &Report, args: &LintArgs) -> Result<()> {
    screen::write(|out| {
        if args.json {
            return json_text::pretty(out, &report.json());
        }
        if args.github {
            for line in annotations(report) {
                writeln!(out, "{line}")?;
            }
        }
        out.write_all(screen::data(&report.text()).as_bytes())
    })
}

fn annotations(report: &Report) -> impl Iterator<Item = String> {
    report.told().map(|(file, told)| {
        let level = match told.finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let rule =
            if told.others == 0 { format!(": {}", told.finding.rule) } else { String::new() };
        let text = format!("{}{rule}", told.text);
        annotation(level, file, told.finding.line as usize, told.finding.code.name(), &text)
    })
}
