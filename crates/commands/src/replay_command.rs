//! `tamis replay`.

use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{ArgGroup, Args, ValueEnum};
use conntrack::Mode;
use replay::groups::GroupBy;
use replay::report::{Report, Soundness};
use replay::run::{self, List, Lists, Wanted};
use replay::shell::quote;
use replay::walk::{WalkOptions, words};
use replay::{Filter, Moment, Room, RulesFile, Selection, Target};
use rules::Backend;

use crate::interrupt;
use crate::loudness::{Loudness, style};
use crate::outputs::{Files, is_standard};
use crate::progress::Progress;
use crate::saved_counters;
use crate::screen;
use crate::standard_input::standard_input_once;
use crate::walk_args::{SemanticsChoice, WalkArgs};

/// Exit code of a replay in which `--fail-on` found something.
const FOUND: u8 = 3;
/// Exit code of a replay that Ctrl-C or SIGTERM ended: 128 and the number of SIGINT, as shells have it.
const STOPPED: u8 = 130;

/// `tamis replay`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("shown").args(["list", "by"]).multiple(true))]
#[command(after_help = "\
Exit codes: 0 done, 2 usage or input error, 3 what --fail-on names is there, or nothing was proved,
130 stopped by Ctrl-C or SIGTERM (the report then says what there is so far).
Files to write: - is standard output, and the report goes to standard error then; none may be read or
written twice; each is there whole or not.
Examples:
  tamis replay rules.v4 office.pcap
  tamis replay rules.v4 office.pcap --vs new.v4 --fail-on change
  tamis replay rules.v4 office.pcap --filter 'tcp port 443' --from +10 --to +20 --list drop
  tcpdump -i any -U -w - | tamis replay rules.v4 - --follow --list drop
  tamis replay rules.v4 office.pcap --net eth0=0.0.0.0/0 --net eth1=10.0.0.0/8 --list drop")]
pub(crate) struct ReplayArgs {
    /// Rules, as iptables-save or its siblings (ip6tables, arptables, ebtables) or nft list ruleset (text or JSON) print
    /// them, - for standard input; or a folder that `tamis collect` wrote
    #[arg(value_name = "RULES|HOST")]
    pub rules: String,
    /// Captures (pcap or pcapng, plain, gzip or zstd), merged by time: FILE, - for standard input, or IFACE=FILE
    /// for one that was recorded on one interface and does not say so
    #[arg(required = true, value_name = "CAPTURE")]
    pub captures: Vec<String>,
    /// Show packets with these verdicts, or whose verdict changes under --vs, each with its time and what decided;
    /// never: the rules that no packet is known to have hit, and why
    #[arg(long, value_name = "WHICH", value_delimiter = ',', requires_if("change", "vs"))]
    pub list: Vec<ListChoice>,
    /// Show groups of packets instead of each: those of --list, or the dropped and rejected ones
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub by: Vec<ByChoice>,
    /// How many packets, rules or groups --list and --by show
    #[arg(long, default_value_t = 20, requires = "shown", value_name = "N")]
    pub limit: usize,
    /// Rows of each table of the report
    #[arg(long, value_name = "N", conflicts_with = "json")]
    pub top: Option<usize>,
    /// Show each packet with its verdict as it comes, those of --list alone if given, and the report at the end.
    /// Nothing is read ahead: no packet waits for one that shows how it left. For standard input and pipes
    #[arg(long, conflicts_with = "limit")]
    pub follow: bool,
    /// Show which packets change verdict under these rules, and by which rules; the file may be the same
    #[arg(long, value_name = "NEW_RULES")]
    pub vs: Option<String>,
    /// The same for the rules of --rules6
    #[arg(long, value_name = "NEW_RULES6", requires = "vs", requires = "rules6")]
    pub vs6: Option<String>,
    /// The backend of the rules of --vs [default: told from their text, else legacy]
    #[arg(long, requires = "vs", value_name = "WHICH")]
    pub vs_semantics: Option<SemanticsChoice>,
    /// Exit with 3 if there are such packets; drop includes reject, change needs --vs. Exit with 3, too, where nothing
    /// is proved: a capture is damaged or empty, or no packet has a known verdict
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires_if("change", "vs"))]
    pub fail_on: Vec<FailOn>,
    /// With --fail-on: pass, too, where a capture holds no packets or no packet has a known verdict
    #[arg(long, requires = "fail_on")]
    pub allow_empty: bool,
    /// The report as one self-contained page: verdicts over time, the rules with their hits
    #[arg(long, value_name = "FILE")]
    pub html: Option<String>,
    /// Workers that evaluate packets, besides the one that reads and reports; what comes out stays the same
    #[arg(short = 'j', long, default_value_t = 1, value_name = "N", value_parser = words::threads)]
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
    /// The rules with the counters of this replay, as iptables-save -c or nft prints them; into a folder (DIR/) each file
    /// of a host's rules by its name
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub save_counters: Option<String>,
    /// The same for the IPv6 rules beside them
    #[arg(long, help_heading = "Files to write", value_name = "FILE")]
    pub save_counters6: Option<String>,
    /// Give up rather than write more than this in all: bytes, or 500k, 20M, 4G. A compressed capture may hold a
    /// thousand times its size
    #[arg(long, help_heading = "Files to write", value_name = "SIZE", value_parser = size)]
    pub max_output: Option<u64>,
    /// Evaluate only packets that pass a pcap filter expression, compiled by tcpdump, or its -ddd bytecode
    #[arg(long, help_heading = "Packets to evaluate", value_name = "BPF")]
    pub filter: Option<String>,
    /// Evaluate only packets at this time (RFC 3339, or +SECONDS after the first packet) or later
    #[arg(long, help_heading = "Packets to evaluate", value_name = "T", value_parser = words::moment)]
    pub from: Option<Moment>,
    /// Evaluate only packets before this time
    #[arg(long, help_heading = "Packets to evaluate", value_name = "T", value_parser = words::moment)]
    pub to: Option<Moment>,
    /// Stop after N evaluated packets
    #[arg(long, help_heading = "Packets to evaluate", value_name = "N")]
    pub count: Option<u64>,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub loudness: Loudness,
}

impl ReplayArgs {
    /// Whether packets are shown line by line: not where something else is to stand on standard output alone.
    fn prints_lines(&self) -> bool {
        self.follow && !self.json && !self.writes_to_standard_output()
    }

    /// Whether one of the files to write is standard output, which then holds nothing for people.
    fn writes_to_standard_output(&self) -> bool {
        let lines = [&self.packets, &self.verdicts, &self.annotate];
        let whole = [&self.html, &self.save_counters, &self.save_counters6];
        lines.into_iter().chain(whole).flatten().any(|name| is_standard(name))
    }
}

/// `--list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListChoice {
    /// Accepted packets
    Accept,
    /// Dropped packets
    Drop,
    /// Rejected packets
    Reject,
    /// Packets whose verdict depends on something unknown
    Unknown,
    /// Packets whose verdict is another under --vs
    Change,
    /// All packets
    All,
    /// Rules that no packet is known to have hit: not reached, reached and not matched, or maybe
    Never,
}

/// `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByChoice {
    /// The rule or policy that decided, and the jumps that led there
    Path,
    /// The connection, with all its verdicts
    Flow,
    /// The source address
    Source,
    /// The destination address
    Destination,
    /// The protocol and destination port
    Port,
}

/// `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Packets whose verdict depends on something unknown
    Unknown,
    /// Dropped or rejected packets
    Drop,
    /// Packets whose verdict is another under --vs
    Change,
    /// Packets that the replay drops and the captures show leaving
    Contradiction,
}

/// Bytes, with a decimal unit or none.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => 0,
    };
    let bytes = digits.parse().ok().and_then(|count: u64| count.checked_mul(unit));
    bytes.filter(|_| unit > 0).ok_or_else(|| "expected bytes, or such as 500k, 20M, 4G".to_owned())
}

/// Replays and reports.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let more = [&args.vs, &args.vs6, &args.walk.rules6].map(Option::as_ref);
    let rules = more.into_iter().flatten().chain([&args.rules]);
    standard_input_once(rules.chain(&args.captures))?;
    let mut apart = keep_apart(args)?;
    // The process ends with this command: to free large rulesets rule by rule would take a tenth of it.
    let walk = args.walk.options();
    let files = ManuallyDrop::new(walk.open(&args.rules)?);
    let versus = args.vs.as_deref().map(|name| new_rules(args, &walk, name)).transpose()?;
    let setup = walk.setup(&args.rules, Mode::Midstream)?;
    let room = args.max_output.map_or_else(Room::default, Room::of);
    let target =
        |name: &Option<String>| name.as_deref().map(|name| Target::open(name, &room)).transpose();
    let mut verdicts = target(&args.verdicts)?;
    let mut packets = target(&args.packets)?;
    let mut annotated = target(&args.annotate)?;
    let html = target(&args.html)?;
    let named = [args.save_counters.as_deref(), args.save_counters6.as_deref()];
    let counters = saved_counters::targets(named, &files, &room, &mut apart)?;
    let mut progress = Progress::new();
    let mut at = |done, all| progress.at(done, all);
    let stop = interrupt::raised()?;
    let lists: Lists = args.list.iter().copied().map(List::from).collect();
    // Packets that are shown as they come are not shown again.
    let shown = match args.follow && args.by.is_empty() {
        true => lists.clone().without_packets(),
        false => lists.clone(),
    };
    let mut lines = args.prints_lines().then(|| screen::Lines::new(Arc::clone(&stop)));
    let mut wanted = Wanted {
        list: (shown.has_any() || !args.by.is_empty()).then_some((shown, args.limit)),
        groups: args.by.iter().copied().map(GroupBy::from).collect(),
        follow: args.follow,
        lines: lines
            .as_mut()
            .map(|lines| (Some(lists).filter(Lists::has_packets), lines as &mut dyn Write)),
        verdicts: verdicts.as_mut().map(|to| to as &mut dyn Write),
        page: args.html.is_some(),
        // A bar has no place between lines.
        progress: if args.follow || args.loudness.quiet { None } else { Some(&mut at) },
        selection: selected(args)?,
        versus,
        packets: packets.as_mut().map(|to| to as &mut dyn Write),
        split: args.split.clone(),
        room: room.clone(),
        annotate: annotated.as_mut().map(|to| to as &mut dyn Write),
        stop: Some(stop),
        threads: args.jobs,
    };
    let mut report = run::replay(&files, &args.captures, &setup, &mut wanted)?;
    report.also = walk.also();
    report.rows = args.top;
    progress.finish();
    [verdicts, packets, annotated].into_iter().flatten().try_for_each(Target::keep)?;
    for (saved, target) in counters {
        target.write_whole(&saved.text(&report)?)?;
    }
    html.map_or(Ok(()), |to| to.write_whole(&report.html(&command_line(""))))?;
    if let (Some(_), false) = (lines, args.loudness.quiet) {
        screen::print("\n")?;
    }
    say(&report, args)?;
    if let (2.., Some(why), false) = (args.jobs, report.one_worker(), args.loudness.quiet) {
        screen::tell(&format!("tamis: -j {}: one worker evaluates: {why}", args.jobs));
    }
    Ok(exit_code(&report, args))
}

/// The packets that are asked for.
fn selected(args: &ReplayArgs) -> Result<Selection> {
    let filter = args.filter.as_deref().map(Filter::new).transpose()?;
    Ok(Selection { filter, from: args.from, to: args.to, count: args.count })
}

/// Refuses outputs that are inputs, or each other, and more than one capture to follow.
fn keep_apart(args: &ReplayArgs) -> Result<Files> {
    if args.follow && args.captures.len() > 1 {
        bail!("--follow: expected one CAPTURE, found {}", args.captures.len());
    }
    let rules = [Some(&args.rules), args.vs.as_ref(), args.vs6.as_ref()];
    let mut files = Files::default();
    files.reads(args.walk.inputs(rules.into_iter().flatten().map(String::as_str)));
    files.reads(args.captures.iter().cloned());
    files.writes(&[
        ("--verdicts", args.verdicts.as_deref()),
        ("--packets", args.packets.as_deref()),
        ("--annotate", args.annotate.as_deref()),
        ("--html", args.html.as_deref()),
        (
            "--save-counters",
            args.save_counters.as_deref().filter(|name| !saved_counters::is_folder(name)),
        ),
        ("--save-counters6", args.save_counters6.as_deref()),
    ])?;
    args.split.as_deref().map_or(Ok(()), |folder| files.splits(folder))?;
    Ok(files)
}

/// The rules to compare with: read like the first ones, but for the backend.
fn new_rules(args: &ReplayArgs, walk: &WalkOptions, name: &str) -> Result<Vec<RulesFile>> {
    let semantics = args.vs_semantics.map(Backend::from);
    Ok(walk.open_on(&args.rules, name, args.vs6.as_deref(), semantics)?)
}

fn exit_code(report: &Report, args: &ReplayArgs) -> ExitCode {
    if report.interrupted {
        return ExitCode::from(STOPPED);
    }
    if args.fail_on.iter().any(|what| what.is_there(report)) {
        return ExitCode::from(FOUND);
    }
    match void(report, args.allow_empty).filter(|_| !args.fail_on.is_empty()) {
        Some(why) => {
            screen::tell(&format!("tamis: --fail-on: {why}"));
            ExitCode::from(FOUND)
        }
        None => ExitCode::SUCCESS,
    }
}

impl FailOn {
    fn is_there(self, report: &Report) -> bool {
        let verdicts = &report.verdicts;
        match self {
            Self::Unknown => verdicts.unknown.packets > 0,
            Self::Drop => verdicts.drop.packets + verdicts.reject.packets > 0,
            Self::Contradiction => report.contradictions.packets() > 0,
            Self::Change => report.changes.as_ref().is_some_and(|changes| changes.packets > 0),
        }
    }
}

/// Why a replay proves nothing, though it found nothing: it would pass a gate that has not looked.
fn void(report: &Report, allow_empty: bool) -> Option<&'static str> {
    let verdicts = &report.verdicts;
    let decided = [verdicts.accept, verdicts.drop, verdicts.reject];
    let is_decided = decided.iter().any(|count| count.packets > 0);
    match report.soundness {
        Soundness::Damaged => Some("a capture is damaged or cut off"),
        Soundness::Empty if !allow_empty => {
            Some("a capture holds no packets (--allow-empty passes that)")
        }
        _ if !is_decided && !allow_empty => {
            Some("no packet has a known verdict (--allow-empty passes that)")
        }
        _ => None,
    }
}

/// Returns this command as it could be typed again, with more options; words that a shell would take apart are quoted.
pub(crate) fn command_line(more: &str) -> String {
    let words = std::env::args_os().skip(1).map(|word| quote(&word.to_string_lossy()).into_owned());
    let mut words: Vec<String> = ["tamis".to_owned()].into_iter().chain(words).collect();
    if !more.is_empty() {
        // What stands after `--` is no option.
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.insert(end, more.to_owned());
    }
    words.join(" ")
}

/// The report, where it is wanted: on standard output unless that is taken.
fn say(report: &Report, args: &ReplayArgs) -> Result<()> {
    let Loudness { quiet, verbose } = args.loudness;
    if args.json {
        screen::write(|out| report.write_json(out))?;
    } else if args.writes_to_standard_output() {
        if !quiet {
            screen::tell_text(&report.text(style(&std::io::stderr(), verbose)));
        }
    } else if !quiet {
        print(report, verbose)?;
    }
    if verbose {
        let (packets, seconds) = (report.packets, report.elapsed_s);
        let rate = report.packets_per_s();
        screen::tell(&format!("tamis: {packets} packets in {seconds:.3} s, {rate:.0} a second"));
    }
    Ok(())
}

/// Writes the report for people to standard output.
pub(crate) fn print(report: &Report, is_whole: bool) -> Result<()> {
    screen::print(&report.text(style(&std::io::stdout(), is_whole)))
}

impl From<ListChoice> for List {
    fn from(choice: ListChoice) -> Self {
        match choice {
            ListChoice::Accept => Self::Accept,
            ListChoice::All => Self::All,
            ListChoice::Never => Self::Never,
            ListChoice::Drop => Self::Drop,
            ListChoice::Reject => Self::Reject,
            ListChoice::Unknown => Self::Unknown,
            ListChoice::Change => Self::Change,
        }
    }
}

impl From<ByChoice> for GroupBy {
    fn from(choice: ByChoice) -> Self {
        match choice {
            ByChoice::Path => Self::Path,
            ByChoice::Flow => Self::Flow,
            ByChoice::Source => Self::Source,
            ByChoice::Destination => Self::Destination,
            ByChoice::Port => Self::Port,
        }
    }
}
