//! `tamis replay`.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use anyhow::{Context, Result};
use replay::report::{Report, Style};
use replay::run::{self, List, Wanted};
use replay::shell::quote;
use replay::{Filter, RulesFile, Selection};
use rules::Semantics;
use rules::conntrack::Mode;

use crate::args::{FailOn, ListChoice, ReplayArgs, standard_input_once};
use crate::interrupt;
use crate::progress::Progress;

/// Exit code of a replay in which `--fail-on` found something.
const FOUND: u8 = 3;
/// Exit code of a replay that Ctrl-C ended: 128 and the number of SIGINT, as shells have it.
const STOPPED: u8 = 130;

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
    let config = args.walk.config(Mode::Midstream)?;
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
    for (file, reserved) in counters.into_iter().enumerate() {
        reserved.map_or(Ok(()), |to| to.write(&report.saved_counters(file)))?;
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
