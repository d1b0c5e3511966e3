//! `tamis why`.

use std::fmt;
use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use conntrack::Mode;
use dataplane::{Config, FinalVerdict};
use replay::spec::{self, Spec, SpecError};
use replay::walk::{Setup, names};
use replay::why::{self, Story};
use replay::{Room, RulesFile, Target, json_text};

use crate::outputs::Files;
use crate::replay_command::command_line;
use crate::screen;
use crate::standard_input::standard_input_once;
use crate::walk_args::{WalkArgs, warn_of_foreign};

/// `tamis why`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A packet spec: [in=IFACE] [out=IFACE] PROTOCOL SOURCE > DESTINATION [FLAGS or TYPE] [key=value …],
keys path ttl tos mark ctstate after len frag df; what is in it: payload dns options seq ack win chunk type spi mac id label.
What none of them gives is not known, and an answer that hangs on it says which to give:
  tamis why rules.v4 --packet 'in=eth0 tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn'
  tamis why rules.v4 --packet 'icmp 10.0.0.1 > 10.0.0.2 echo-request'
  tamis why rules.v4 --packet 'udp 10.0.0.1:4000 > 10.0.0.2:53 dns=example.org AAAA'
A packet with out= and without in= is the host's own. An interface that the folder or --links lacks is an error.
Several packet specs are a conversation, a second apart or after=SECONDS: the story is that of
the last one. Unless ctstate= says it, tracking finds the state of each, and that of the first is NEW.
A line of the kernel's log, of tcpdump -n, of nft monitor trace or of conntrack -L is a packet spec, too. The prefix
of a log line names the rule that wrote it. Without --packet, such lines are read from standard input, those of tcpdump
as one conversation, those of one trace id as one packet:
  tamis why rules.v4 < /var/log/kern.log
Exit codes: 0 accept, 1 drop or reject, 2 usage or input error, 4 unknown, or lines that contradict the rules.")]
pub(crate) struct WhyArgs {
    /// Rules, as iptables-save or its siblings (ip6tables, arptables, ebtables) or nft list ruleset (text or JSON) print
    /// them, - for standard input; or a folder that `tamis collect` wrote
    #[arg(value_name = "RULES|HOST")]
    pub rules: String,
    /// Captures that --packet NUMBER counts in: FILE, or IFACE=FILE for one that was recorded on one interface
    /// and does not say so
    #[arg(value_name = "CAPTURE")]
    pub captures: Vec<String>,
    /// A packet's number in the capture, from 1 (FILE:N where there are several captures), or a packet spec, which may be repeated
    #[arg(long = "packet", value_name = "N|SPEC")]
    pub packets: Vec<String>,
    /// List every rule that did not match, too
    #[arg(long)]
    pub all: bool,
    /// Show N near misses: rules that the packet met and would have matched but for one test
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub near: Option<u32>,
    /// The chains that it walked, with the rules that it matched there, as a diagram for Graphviz; - is standard output,
    /// which then has nothing else
    #[arg(long, value_name = "FILE")]
    pub dot: Option<String>,
    /// The same diagram as a picture
    #[arg(long, value_name = "FILE")]
    pub svg: Option<String>,
    /// One JSON document, schema tamis.why/1
    #[arg(long)]
    pub json: bool,
    /// Say nothing: the exit code tells
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub walk: WalkArgs,
}

/// Tells one packet's story.
pub(crate) fn run(args: &WhyArgs) -> Result<ExitCode> {
    standard_input_once(args.captures.iter().chain([&args.rules]).chain(&args.walk.rules6))?;
    keep_apart(args)?;
    let walk = args.walk.options();
    let files = walk.open(&args.rules)?;
    let usual = if args.captures.is_empty() { spec::CT } else { Mode::Midstream };
    let setup = walk.setup(&args.rules, usual)?;
    let config = &setup.config;
    if !args.quiet {
        warn_of_foreign(&config.host.foreign);
    }
    warn(&names::option_warnings(&files, config));
    if args.packets.is_empty() {
        return lines(args, &files, &setup);
    }
    let room = Room::default();
    let open =
        |name: &Option<String>| name.as_deref().map(|name| Target::open(name, &room)).transpose();
    let (dot, svg) = (open(&args.dot)?, open(&args.svg)?);
    let story = story(args, &files, &setup)?;
    dot.map_or(Ok(()), |to| to.write_whole(&story.dot()))?;
    svg.map_or(Ok(()), |to| to.write_whole(&story.svg()))?;
    let is_taken = [&args.dot, &args.svg].into_iter().flatten().any(|name| name == "-");
    if !is_taken {
        print(args, &story)?;
    }
    Ok(match story.verdict() {
        FinalVerdict::Accept(_) => ExitCode::SUCCESS,
        FinalVerdict::Drop(_) | FinalVerdict::Reject(_) => ExitCode::from(1),
        FinalVerdict::Unknown | FinalVerdict::Skip(_) => ExitCode::from(4),
    })
}

/// Refuses diagrams that are inputs, or each other.
fn keep_apart(args: &WhyArgs) -> Result<()> {
    let mut files = Files::default();
    files.reads(args.walk.inputs([&*args.rules]));
    files.reads(args.captures.iter().cloned());
    match args.dot.is_some() || args.svg.is_some() {
        true => files.writes(&[("--dot", args.dot.as_deref()), ("--svg", args.svg.as_deref())]),
        false => Ok(()),
    }
}

/// Writes the story to standard output.
fn print(args: &WhyArgs, story: &Story) -> Result<()> {
    screen::write(|out| {
        if args.json {
            return json_text::pretty(out, &story.json());
        }
        if args.quiet {
            return Ok(());
        }
        out.write_all(story.text(args.all).as_bytes())?;
        match more(args, story) {
            Some(more) => writeln!(out, "next: {}", command_line(more)),
            None => Ok(()),
        }
    })
}

/// Judges each packet that a line of standard input says.
fn lines(args: &WhyArgs, files: &[RulesFile], setup: &Setup) -> Result<ExitCode> {
    let input = std::io::stdin();
    let has_story_options =
        args.near.is_some() || args.all || args.dot.is_some() || args.svg.is_some();
    if input.is_terminal() || !args.captures.is_empty() || has_story_options {
        bail!(
            "expected --packet SPEC, or --packet N of a capture, or lines of packets on standard input"
        );
    }
    let recorded = if args.walk.ct.is_some() { setup.config.ct.mode } else { Mode::Midstream };
    let judged = why::of_lines(files, setup, recorded, input.lock()).context("standard input")?;
    if let (0, Some((line, error))) = (judged.packets(), judged.refusal()) {
        bail!("standard input:{line}:{}: expected {}", error.column, error.what);
    }
    if judged.packets() == 0 {
        bail!(
            "standard input: expected a line that says what a packet was, found none (or give one by --packet)"
        );
    }
    warn(judged.warnings());
    screen::write(|out| {
        if args.json {
            return json_text::pretty(out, &judged.json());
        }
        if args.quiet {
            return Ok(());
        }
        out.write_all(judged.text().as_bytes())?;
        match judged.example() {
            Some(options) => writeln!(out, "next: {}", command_line(options.trim_start())),
            None => Ok(()),
        }
    })?;
    if judged.contradicted() > 0 {
        return Ok(ExitCode::from(4));
    }
    Ok(match judged.verdicts() {
        [_, 0, 0] => ExitCode::SUCCESS,
        [_, 0, _] => ExitCode::from(4),
        _ => ExitCode::from(1),
    })
}

/// The option that would show most of what is not shown yet.
fn more(args: &WhyArgs, story: &Story) -> Option<&'static str> {
    match story.verdict() {
        FinalVerdict::Drop(_) | FinalVerdict::Reject(_) if args.near.is_none() => Some("--near 3"),
        _ if !args.all && story.is_abridged() => Some("--all"),
        _ => None,
    }
}

/// A packet spec that cannot be read.
#[derive(Debug)]
pub(crate) struct Misspelt {
    error: SpecError,
    text: String,
}

impl Misspelt {
    /// The spec, and a mark under what is wrong.
    pub(crate) fn shown(&self) -> [String; 2] {
        [format!("  {}", self.text), format!("  {}", self.error.mark(&self.text))]
    }
}

impl fmt::Display for Misspelt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Misspelt {}

/// Reads a packet spec, and warns of interfaces in it that nothing names.
fn read(packet: &str, files: &[RulesFile], config: &Config) -> Result<Spec> {
    let misspelt = |error| Misspelt { error, text: packet.to_owned() };
    let spec = spec::parse(packet).map_err(misspelt)?;
    spec.fit(packet, config).map_err(misspelt)?;
    warn(&spec.warnings(packet, files, config));
    Ok(spec)
}

fn warn(warnings: &[String]) {
    warnings.iter().for_each(|warning| screen::tell(&format!("warning: {warning}")));
}

fn story(args: &WhyArgs, files: &[RulesFile], setup: &Setup) -> Result<Story> {
    let near = args.near.map(|count| count as usize);
    // A packet spec may end like FILE:N, but says where it goes.
    let is_number = |packet: &&String| {
        let (file, number) = packet.trim().rsplit_once(':').unwrap_or(("", packet.trim()));
        let is_spec = !file.is_empty() && (args.captures.is_empty() || file.contains('>'));
        !is_spec && !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit())
    };
    let numbers: Vec<&String> = args.packets.iter().filter(is_number).collect();
    match (&numbers[..], args.captures.is_empty()) {
        ([number], false) if args.packets.len() == 1 => {
            Ok(why::of_capture(files, setup, &args.captures, number.trim(), near)?)
        }
        ([], true) => {
            let (last, before) = args.packets.split_last().context("expected --packet")?;
            let read = |packet: &String| read(packet, files, &setup.config);
            let before = before.iter().map(read).collect::<Result<Vec<Spec>>>()?;
            Ok(why::of_conversation(files, setup, &before, &read(last)?, near))
        }
        (_, true) => bail!("expected a CAPTURE in which --packet NUMBER counts"),
        (_, false) => {
            let found = args.packets.join("\", \"");
            bail!("expected one --packet NUMBER with a capture, found \"{found}\"")
        }
    }
}
