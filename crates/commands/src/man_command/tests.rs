//! Every page has its examples and exit codes, and examples are commands that there are.

use clap::{Command, CommandFactory, Parser};

use super::more::{self, EXAMPLES};
use super::pages::{exit_codes, name, page};
use super::sections::Sections;
use crate::args::Args;

/// A public key, as `tamis tunnel pubkey` prints one.
const PUBLIC: &str = "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=";

/// All commands, each with the exit codes of the one above it.
fn commands() -> Vec<(Command, String)> {
    fn below(command: &Command, above: &str, all: &mut Vec<(Command, String)>) {
        let exit = exit_codes(command, above);
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            below(command, &exit, all);
        }
        all.push((command.clone(), above.to_owned()));
    }
    let (mut command, mut all) = (Args::command().disable_help_subcommand(true), Vec::new());
    command.build();
    below(&command, more::EXIT, &mut all);
    all
}

/// The words of a command, up to what a shell takes for itself.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            '|' | '<' | '>' | '&' | '#' if !quoted => break,
            ' ' if !quoted => words.push(String::new()),
            letter => words.last_mut().expect("there is one").push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    // What stands for a peer's key.
    words.iter_mut().filter(|word| *word == "KEY").for_each(|word| *word = PUBLIC.to_owned());
    words
}

#[test]
fn every_command_has_examples_that_it_takes() {
    for (command, above) in commands() {
        let mut sections = Sections::of(&command);
        sections.examples.extend(more::examples(name(&command)).map(str::to_owned));
        let leaf = !command.has_subcommands();
        assert!(!leaf || !sections.examples.is_empty(), "{} has no example", name(&command));
        for example in sections.examples {
            for one in example.split(" && ").filter(|one| one.starts_with("tamis ")) {
                let taken = Args::try_parse_from(words(one));
                assert!(taken.is_ok(), "{one}: {}", taken.unwrap_err());
            }
        }
        let page = String::from_utf8(page(&command, &above).expect("in memory")).expect("UTF-8");
        assert!(page.contains(".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\n"), "{page}");
        assert!(!leaf || page.contains(".SH EXAMPLES\n.nf\n"), "{page}");
    }
}

#[test]
fn examples_are_of_commands_that_there_are() {
    let commands = commands();
    for (page, _) in EXAMPLES {
        assert!(commands.iter().any(|(command, _)| name(command) == page), "{page}");
    }
}

#[test]
fn help_is_taken_apart() {
    let help = "A note:\n  as it stands\nExit codes: 0 done, 3 what is named, or nothing,\n130 stopped (so far).\n\
                More.\nExamples:\n  one --a 'b c'\n  two\nThen: a note\nExample: three";
    let sections = Sections::of_text(help);
    assert_eq!(
        sections.codes(),
        [("0", "done"), ("3", "what is named, or nothing"), ("130", "stopped (so far)")]
    );
    assert_eq!(sections.examples, ["one --a 'b c'", "two", "three"]);
    let mut page = Vec::new();
    sections.render(&[("a.txt", "A file.")], &mut page).expect("in memory");
    let page = String::from_utf8(page).expect("UTF-8");
    let expected = [
        "NOTES\nA note:\n.nf\n  as it stands\n.fi\nMore.",
        ".SH FILES\n.TP\n\\fBa.txt\\fR\nA file.",
    ];
    for part in expected {
        assert!(page.contains(part), "{part:?} in {page}");
    }
}
