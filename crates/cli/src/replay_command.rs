//! `tamis replay`.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use replay::report::{Report, Style};
use replay::run::{self, List, Wanted};

use crate::args::{ListChoice, ReplayArgs, standard_input_once};
use crate::progress::Progress;

/// Replays and reports.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode> {
    standard_input_once(&args.rules, &args.captures)?;
    let files = [args.walk.open(&args.rules)?];
    let config = args.walk.config()?;
    let mut verdicts = args.verdicts.as_deref().map(create).transpose()?;
    let mut progress = Progress::new();
    let mut at = |done, all| progress.at(done, all);
    let mut wanted = Wanted {
        list: args.list.map(|list| (list.into(), args.limit)),
        verdicts: verdicts.as_mut().map(|to| to as &mut dyn Write),
        progress: Some(&mut at),
    };
    let report = run::replay(&files, &args.captures, &config, &mut wanted)?;
    progress.finish();
    if let (Some(mut to), Some(name)) = (verdicts, &args.verdicts) {
        to.flush().with_context(|| name.clone())?;
    }
    if let Some(name) = &args.save_counters {
        std::fs::write(name, report.saved_counters(0)).with_context(|| name.clone())?;
    }
    print(&report, args.json)?;
    Ok(ExitCode::SUCCESS)
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
        }
    }
}
