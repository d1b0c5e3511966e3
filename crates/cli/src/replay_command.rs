//! `tamis replay`.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use replay::report::{Report, Style};
use replay::run::{self, List, Wanted};

use crate::args::{ListChoice, ReplayArgs};
use crate::progress::Progress;

/// Replays and reports.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let standard_input =
        args.captures.iter().chain([&args.rules]).filter(|name| *name == "-").count();
    if standard_input > 1 {
        bail!("expected - (standard input) once, found it {standard_input} times");
    }
    let files = [args.walk.open(&args.rules)?];
    let config = args.walk.config();
    let mut verdicts = args.verdicts.as_deref().map(create).transpose()?;
    let mut progress = Progress::new();
    let mut at = |done, all| progress.at(done, all);
    let mut wanted = Wanted {
        list: args.list.map(|list| (list.into(), args.limit)),
        verdicts: verdicts.as_mut().map(|to| to as &mut dyn Write),
        page: args.html.is_some(),
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
    if let Some(name) = &args.html {
        std::fs::write(name, report.html(&command_line())).with_context(|| name.clone())?;
    }
    print(&report, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// This command as it could be typed again; words that a shell would take apart are quoted.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    ["tamis".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn create(name: &str) -> Result<BufWriter<File>> {
    Ok(BufWriter::new(File::create(name).with_context(|| name.to_owned())?))
}

/// Writes the report to standard output.
pub(crate) fn print(report: &Report<'_>, json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{:#}", report.json())?;
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

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_as_a_shell_needs() {
        assert_eq!(quoted("--net=eth0=10.0.0.0/8"), "--net=eth0=10.0.0.0/8");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
