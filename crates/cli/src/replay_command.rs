//! `tamis replay`.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use replay::report::{Report, Style};
use replay::run::{self, List, Wanted};
use replay::shell::quote;
use replay::{Filter, Moment, RulesFile, Selection};
use rules::Semantics;
use rules::conntrack::Mode;
use rules::model::Family;

use crate::args::standard_input_once;
use crate::interrupt;
use crate::progress::Progress;
use crate::walk_args::{SemanticsChoice, WalkArgs};

/// Exit code of a replay in which `--fail-on` found something.
const FOUND: u8 = 3;
/// Exit code of a replay that Ctrl-C ended: 128 and the number of SIGINT, as shells have it.
const STOPPED: u8 = 130;

/// `tamis replay`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 done, 2 usage or input error, 3 what --fail-on names is there, 130 stopped by Ctrl-C
(the report then says what there is so far).
Examples:
  tamis replay rules.v4 office.pcap
  tamis replay rules.v4 office.pcap --vs new.v4 --fail-on change
  tamis replay rules.v4 office.pcap --filter 'tcp port 443' --from +10 --to +20 --list drop
  tamis replay rules.v4 office.pcap --net eth0=0.0.0.0/0 --net eth1=10.0.0.0/8 --list drop")]
pub(crate) struct ReplayArgs {
    /// Rules, as iptables-save or its siblings (ip6tables, arptables, ebtables) print them, - for standard input; or a
    /// folder that `tamis collect` wrote
    #[arg(value_name = "RULES|HOST")]
    pub rules: String,
    /// Captures (pcap or pcapng, plain, gzip or zstd), merged by time: FILE, - for standard input, or IFACE=FILE
    /// for one that was recorded on one interface and does not say so
    #[arg(required = true, value_name = "CAPTURE")]
    pub captures: Vec<String>,
    /// Show packets with this verdict, or whose verdict changes under --vs, each with what decided
    #[arg(long, value_name = "VERDICT", requires_if("change", "vs"))]
    pub list: Option<ListChoice>,
    /// How many packets --list shows
    #[arg(long, default_value_t = 20, requires = "list", value_name = "N")]
    pub limit: usize,
    /// Show which packets change verdict under these rules, and by which rules; the file may be the same
    #[arg(long, value_name = "NEW_RULES")]
    pub vs: Option<String>,
    /// The same for the rules of --rules6
    #[arg(long, value_name = "NEW_RULES6", requires = "vs", requires = "rules6")]
    pub vs6: Option<String>,
    /// What carries out the rules of --vs [default: told from their text, else legacy]
    #[arg(long, requires = "vs", value_name = "WHICH")]
    pub vs_semantics: Option<SemanticsChoice>,
    /// Exit with 3 if there are such packets; drop includes reject, change needs --vs
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires_if("change", "vs"))]
    pub fail_on: Vec<FailOn>,
    /// The report as one self-contained page: verdicts over time, the rules with their hits
    #[arg(long, value_name = "FILE")]
    pub html: Option<String>,
    /// Threads that judge packets, besides the one that reads and reports; what comes out stays the same
    #[arg(short = 'j', long, default_value_t = 1, value_name = "N", value_parser = threads)]
    pub jobs: usize,
    /// One JSON document, schema tamis.replay/1
    #[arg(long)]
    pub json: bool,
    /// One word per packet in capture order: accept drop reject unknown skip
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub verdicts: Option<String>,
    /// One JSON object a line per packet: frame, time, tuple, in, out, path, verdict, table, chain, number, line,
    /// ctstate
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub packets: Option<String>,
    /// One capture per verdict and per dropping rule, such as drop.L211.pcapng
    #[arg(long, help_heading = "Files to write", value_name = "DIR")]
    pub split: Option<PathBuf>,
    /// All packets as pcapng, with verdict and deciding rule as packet comment
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub annotate: Option<String>,
    /// The rules with the counters of this replay, as iptables-save -c prints them
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub save_counters: Option<String>,
    /// The same for the IPv6 rules beside them
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub save_counters6: Option<String>,
    /// Judge only packets that pass a pcap filter expression, compiled by tcpdump, or its -ddd bytecode
    #[arg(long, help_heading = "Packets to judge", value_name = "BPF")]
    pub filter: Option<String>,
    /// Judge only packets at this time (RFC 3339, or +SECONDS after the first packet) or later
    #[arg(long, help_heading = "Packets to judge", value_name = "T", value_parser = moment)]
    pub from: Option<Moment>,
    /// Judge only packets before this time
    #[arg(long, help_heading = "Packets to judge", value_name = "T", value_parser = moment)]
    pub to: Option<Moment>,
    /// Stop after so many judged packets
    #[arg(long, help_heading = "Packets to judge", value_name = "N")]
    pub count: Option<u64>,
    #[command(flatten)]
    pub walk: WalkArgs,
}

/// `--list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListChoice {
    /// Dropped packets
    Drop,
    /// Rejected packets
    Reject,
    /// Packets whose verdict hangs on something unknown
    Unknown,
    /// Packets whose verdict is another under --vs
    Change,
}

/// `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Packets whose verdict hangs on something unknown
    Unknown,
    /// Dropped or rejected packets
    Drop,
    /// Packets whose verdict is another under --vs
    Change,
    /// Packets that the replay drops and the captures show leaving
    Contradiction,
}

fn moment(text: &str) -> Result<Moment, String> {
    Moment::parse(text)
        .ok_or_else(|| "expected RFC 3339 such as 2026-11-21T10:00:00Z, or +SECONDS".to_owned())
}

/// Threads: at least one, and no more than can be told apart by a byte.
fn threads(text: &str) -> Result<usize, String> {
    let threads: usize = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (1..=255).contains(&threads) { Ok(threads) } else { Err("expected 1 to 255".to_owned()) }
}

/// Replays and reports.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let more = [&args.vs, &args.vs6, &args.walk.rules6].map(Option::as_ref);
    let rules = more.into_iter().flatten().chain([&args.rules]);
    standard_input_once(rules.chain(&args.captures))?;
    // The process ends with this command: to free large rulesets rule by rule would take a tenth of it.
    let files = ManuallyDrop::new(args.walk.open(&args.rules)?);
    let versus = args.vs.as_deref().map(|name| new_rules(args, name)).transpose()?;
    let selection = Selection {
        filter: args.filter.as_deref().map(Filter::new).transpose()?,
        from: args.from,
        to: args.to,
        count: args.count,
    };
    let has_v6 = files.iter().any(|file| file.ruleset.family == Family::Ipv6);
    if args.save_counters6.is_some() && !has_v6 {
        bail!("--save-counters6: expected IPv6 rules (--rules6 FILE), found none");
    }
    let config = args.walk.config(&args.rules, Mode::Midstream)?;
    let mut verdicts = args.verdicts.as_deref().map(create).transpose()?;
    let mut packets = args.packets.as_deref().map(create).transpose()?;
    let mut annotated = args.annotate.as_deref().map(create).transpose()?;
    let html = Reserved::of(args.html.as_deref())?;
    let counters = [
        Reserved::of(args.save_counters.as_deref())?,
        Reserved::of(args.save_counters6.as_deref())?,
    ];
    let mut progress = Progress::new();
    let mut at = |done, all| progress.at(done, all);
    let mut wanted = Wanted {
        list: args.list.map(|list| (list.into(), args.limit)),
        verdicts: verdicts.as_mut().map(|to| to as &mut dyn Write),
        page: args.html.is_some(),
        progress: Some(&mut at),
        selection,
        versus,
        packets: packets.as_mut().map(|to| to as &mut dyn Write),
        split: args.split.clone(),
        annotate: annotated.as_mut().map(|to| to as &mut dyn Write),
        stop: Some(interrupt::flag()?),
        threads: args.jobs,
    };
    let mut report = run::replay(&files, &args.captures, &config, &mut wanted)?;
    report.also = args.walk.also();
    progress.finish();
    if let (Some(mut to), Some(name)) = (verdicts, &args.verdicts) {
        to.flush().with_context(|| name.clone())?;
    }
    // Those of --rules6 or a folder's ip6tables.save stand behind the others.
    let v6 = files.iter().position(|file| file.ruleset.family == Family::Ipv6);
    for (file, reserved) in [Some(0), v6].into_iter().zip(counters) {
        if let (Some(file), Some(to)) = (file, reserved) {
            to.write(&report.saved_counters(file))?;
        }
    }
    html.map_or(Ok(()), |to| to.write(&report.html(&command_line())))?;
    print(&report, args.json)?;
    if let (2.., Some(why)) = (args.jobs, report.one_judge()) {
        eprintln!("tamis: -j {}: one thread judges: {}", args.jobs, replay::visible(why));
    }
    Ok(exit_code(&report, &args.fail_on))
}

/// The rules to compare with: read like the first ones, but for what carries them out.
fn new_rules(args: &ReplayArgs, name: &str) -> Result<Vec<RulesFile>> {
    let semantics = args.vs_semantics.map(Semantics::from);
    args.walk.open_all(name, args.vs6.as_deref(), semantics)
}

fn exit_code(report: &Report<'_>, fail_on: &[FailOn]) -> ExitCode {
    let verdicts = &report.verdicts;
    let found = fail_on.iter().any(|what| match what {
        FailOn::Unknown => verdicts.unknown.packets > 0,
        FailOn::Drop => verdicts.drop.packets + verdicts.reject.packets > 0,
        FailOn::Contradiction => report.contradictions.packets() > 0,
        FailOn::Change => report.changes.as_ref().is_some_and(|changes| changes.packets > 0),
    });
    match (report.interrupted, found) {
        (true, _) => ExitCode::from(STOPPED),
        (_, true) => ExitCode::from(FOUND),
        _ => ExitCode::SUCCESS,
    }
}

/// This command as it could be typed again; words that a shell would take apart are quoted.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quote(&word.to_string_lossy()).into_owned());
    ["tamis".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// A file opened before the replay, so that a name that cannot be written is known at once; what it held
/// stays until there is something to write.
struct Reserved<'n> {
    name: &'n str,
    file: File,
}

impl<'n> Reserved<'n> {
    fn of(name: Option<&'n str>) -> Result<Option<Self>> {
        let Some(name) = name else { return Ok(None) };
        let file = File::options().write(true).create(true).truncate(false).open(name);
        Ok(Some(Self { name, file: file.with_context(|| name.to_owned())? }))
    }

    fn write(mut self, text: &str) -> Result<()> {
        let written = self.file.metadata().and_then(|metadata| {
            if metadata.is_file() {
                self.file.set_len(0)?;
            }
            self.file.write_all(text.as_bytes())
        });
        written.with_context(|| self.name.to_owned())
    }
}

fn create(name: &str) -> Result<BufWriter<File>> {
    Ok(BufWriter::new(File::create(name).with_context(|| name.to_owned())?))
}

/// Writes the report to standard output.
pub(crate) fn print(report: &Report<'_>, json: bool) -> Result<()> {
    // Standard output by itself writes line by line.
    let mut out = BufWriter::new(std::io::stdout().lock());
    if json {
        report.write_json(&mut out)?;
    } else {
        out.write_all(report.text(style()).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Colour on a terminal, unless NO_COLOR says otherwise (<https://no-color.org>).
fn style() -> Style {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && std::io::stdout().is_terminal() { Style::Colour } else { Style::Plain }
}

impl From<ListChoice> for List {
    fn from(choice: ListChoice) -> Self {
        match choice {
            ListChoice::Drop => Self::Drop,
            ListChoice::Reject => Self::Reject,
            ListChoice::Unknown => Self::Unknown,
            ListChoice::Change => Self::Change,
        }
    }
}
