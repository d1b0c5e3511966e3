//! The sections of a manual page that clap does not make: NOTES, EXAMPLES, EXIT STATUS, FILES.
//!
//! Help ends with text in which `Exit codes:` begins a sentence with each code and what it says, and `Examples:` indented
//! commands (`Example:` one in its own line). All the rest are notes.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::roff::{Roff, bold, roman};

/// What a command's help says after its options.
#[derive(Debug, Default)]
pub(super) struct Sections {
    notes: Vec<String>,
    /// Commands.
    pub(super) examples: Vec<String>,
    /// Codes with what they say: `0 done, 2 usage or input error.`
    pub(super) exit: String,
}

/// Where a line of the help belongs.
enum Part {
    Notes,
    Examples,
    Exit,
}

impl Sections {
    pub(super) fn of(command: &Command) -> Self {
        let help = command.get_after_long_help().or(command.get_after_help());
        Self::of_text(&help.map(ToString::to_string).unwrap_or_default())
    }

    pub(super) fn of_text(help: &str) -> Self {
        let (mut sections, mut part) = (Self::default(), Part::Notes);
        for line in help.lines() {
            let line = match (line.strip_prefix("Exit codes:"), line.strip_prefix("Example")) {
                (Some(codes), _) => {
                    part = Part::Exit;
                    codes
                }
                (_, Some("s:")) => {
                    part = Part::Examples;
                    continue;
                }
                (_, Some(rest)) if rest.starts_with(": ") => {
                    sections.examples.push(rest[2..].to_owned());
                    continue;
                }
                _ => line,
            };
            if matches!(part, Part::Examples) && !line.starts_with(' ') {
                part = Part::Notes;
            }
            match part {
                Part::Notes => sections.notes.push(line.to_owned()),
                Part::Examples => sections.examples.push(line.trim().to_owned()),
                Part::Exit => {
                    sections.exit += &format!(" {}", line.trim());
                    if line.ends_with('.') {
                        part = Part::Notes;
                    }
                }
            }
        }
        sections.exit = sections.exit.trim().to_owned();
        sections
    }

    /// Each code and what it says.
    pub(super) fn codes(&self) -> Vec<(&str, &str)> {
        let text = self.exit.trim_end_matches('.');
        let is_code = |at: usize| text[at..].starts_with(|first: char| first.is_ascii_digit());
        let begins = text.match_indices(", ").map(|(at, _)| at + 2).filter(|at| is_code(*at));
        let begins: Vec<usize> = std::iter::once(0).chain(begins).collect();
        let ends = begins.iter().skip(1).map(|begin| begin - 2).chain([text.len()]);
        begins
            .iter()
            .zip(ends)
            .filter_map(|(begin, end)| text[*begin..end].split_once(' '))
            .collect()
    }

    /// Writes the sections, with these files.
    pub(super) fn render(&self, files: &[(&str, &str)], to: &mut dyn Write) -> io::Result<()> {
        let mut page = Roff::new();
        if !self.notes.is_empty() {
            page.control("SH", ["NOTES"]);
            // Lines that are indented stand as they are.
            let mut kept = false;
            for line in &self.notes {
                if line.starts_with(' ') != kept {
                    kept = !kept;
                    page.control(if kept { "nf" } else { "fi" }, []);
                }
                page.text([roman(&**line)]);
            }
            page.control("fi", []);
        }
        if !self.examples.is_empty() {
            page.control("SH", ["EXAMPLES"]).control("nf", []);
            for line in &self.examples {
                page.text([roman(&**line)]);
            }
            page.control("fi", []);
        }
        page.control("SH", ["EXIT STATUS"]);
        tagged(&mut page, &self.codes());
        if !files.is_empty() {
            page.control("SH", ["FILES"]);
            tagged(&mut page, files);
        }
        page.to_writer(to)
    }
}

fn tagged(page: &mut Roff, entries: &[(&str, &str)]) {
    for (tag, text) in entries {
        page.control("TP", []).text([bold(*tag)]).text([roman(*text)]);
    }
}
