//! `tamis lint`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use host::Links;
use lint::{Code, InFile, Report, Severity};
use replay::cases::annotation;
use replay::walk::{HostFolder, words};
use replay::{Room, RulesFile, Target, json_text};
use rules::model::Family;
use rules::save::LoadOptions;

use crate::outputs::Files;
use crate::screen;

/// Exit code where something is wrong for certain.
const ERRORS: u8 = 1;
/// Exit code where something may be.
const WARNINGS: u8 = 3;

/// `tamis lint`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exit codes: 0 nothing but notes, 1 errors, 2 usage or input error, 3 warnings but no errors.
Every finding is checked: rules that never match are held to packets aimed at them.
Examples:
  tamis lint rules.v4
  tamis lint host/ --github
  tamis lint rules.v4 --sarif lint.sarif --json
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
    let mut named = Files::default();
    named.reads([Some(rules), args.links.as_deref()].into_iter().flatten().map(str::to_owned));
    named.writes(&[("--sarif", args.sarif.as_deref())])?;
    let report = report(args, rules)?;
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

fn report(args: &LintArgs, rules: &str) -> Result<Report> {
    let links = links(args, rules)?;
    let mut report = Report::default();
    for file in open(args, rules)? {
        let mut found = lint::lint(&file.ruleset, links.as_ref());
        found.findings.retain(|finding| !args.allow.contains(&finding.code));
        if found.contradicted > 0 {
            let line = format!(
                "{}: {} findings left out that a walk contradicts: please report this",
                file.file, found.contradicted
            );
            screen::tell(&line);
        }
        report.files.push(InFile { file: file.file, found });
    }
    Ok(report)
}

/// The rules of IPv4 and IPv6.
fn open(args: &LintArgs, rules: &str) -> Result<Vec<RulesFile>> {
    let options =
        LoadOptions { family: args.family, table: args.table.as_deref(), ..LoadOptions::default() };
    let files = match HostFolder::at(rules) {
        Some(folder) => folder.rules(&options)?,
        None => vec![RulesFile::open(rules, &options)?],
    };
    let (known, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| file.ruleset.family.is_ip());
    match (known.is_empty(), others.first()) {
        (true, Some(other)) => bail!("{}: expected rules of iptables or ip6tables", other.file),
        _ => Ok(known),
    }
}

fn links(args: &LintArgs, rules: &str) -> Result<Option<Links>> {
    if let Some(file) = &args.links {
        let text = replay::read_text(file)?;
        let links = Links::parse(&text).map_err(|what| anyhow::anyhow!("{file}:{what}"))?;
        return Ok(Some(links));
    }
    let host = HostFolder::at(rules).map(|folder| folder.host()).transpose()?;
    Ok(host.map(|host| host.links))
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
    let all =
        report.files.iter().flat_map(|it| it.found.findings.iter().map(|one| (&it.file, one)));
    all.map(|(file, finding)| {
        let level = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let text = format!("{}: {}", finding.text, finding.rule);
        annotation(level, file, finding.line as usize, finding.code.name(), &text)
    })
}
