//! [`main`]: reads the arguments, runs their command, and says in a line what was wrong.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use replay::without_numbers;

use crate::args::{Args, Command};
use crate::moved::{self, MovedArgs};
use crate::{
    collect_command, completions_command, convert_command, demo, diff_command, huge_pages,
    lint_command, loudness, man_command, reach_command, replay_command, screen, short_help,
    test_command, why_command,
};

/// Runs the command that the program's arguments name; `--version` tells `version`.
pub fn main(version: &'static str) -> ExitCode {
    let all = Args::command().long_version(version);
    let command = short_help::shortened(all.clone());
    let read = command.clone().try_get_matches();
    let args = match read.and_then(|found| Args::from_arg_matches(&found)) {
        Ok(args) => args,
        Err(error) => return usage(&error, command),
    };
    if args.command.runs_for_long() {
        huge_pages::forgo();
    }
    loudness::set_colour(args.color);
    let ended = match &args.command {
        Command::Demo(demo) => demo::run(demo),
        Command::Replay(replay) => replay_command::run(replay),
        Command::Why(why) => why_command::run(why),
        Command::Test(test) => test_command::run(test),
        Command::Convert(convert) => convert_command::run(convert),
        Command::Lint(lint) => lint_command::run(lint),
        Command::Diff(diff) => diff_command::run(diff),
        Command::Reach(reach) => reach_command::run(reach),
        Command::Collect(collect) => collect_command::run(collect),
        Command::Live(live) => live.run(),
        Command::Completions(completions) => completions_command::run(completions, all),
        Command::Man(man) => man_command::run(man, all),
        Command::Bench(MovedArgs { .. }) => moved::refuse("bench"),
        Command::Lab(MovedArgs { .. }) => moved::refuse("lab"),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            screen::tell(&format!("tamis: {}", without_numbers(&format!("{error:#}"))));
            let misspelt = error.downcast_ref::<why_command::Misspelt>();
            misspelt.iter().flat_map(|it| it.shown()).for_each(|line| screen::tell(&line));
            ExitCode::from(2)
        }
    }
}

/// Help and version as clap writes them; any other error in one line.
fn usage(error: &clap::Error, command: clap::Command) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Nothing is left to do when even this cannot be written.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let page = page(command, std::env::args().skip(1));
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let what = "expected a command: demo, replay, why or test";
        screen::tell(&format!("tamis: {what} (see {page})"));
        return ExitCode::from(2);
    }
    let text = error.to_string();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty())
        .collect();
    let line = lines.join(" ").replace(" tip: ", "; ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    screen::tell(&format!("tamis: {line} (see {page})"));
    ExitCode::from(2)
}

/// The command that shows the help of what these words ask for, as far as they name commands.
fn page(mut command: clap::Command, words: impl Iterator<Item = String>) -> String {
    let mut page = "tamis".to_owned();
    for word in words {
        match command.find_subcommand(&word).filter(|found| !found.is_hide_set()) {
            Some(found) => {
                page = format!("{page} {}", found.get_name());
                command = found.clone();
            }
            // Before a command stand options of all commands and their values; after it, its own.
            None if page == "tamis" => {}
            None => break,
        }
    }
    page + " --help"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_points_to_the_help_of_its_command() {
        let of = |line: &str| page(Args::command(), line.split(' ').map(str::to_owned));
        assert_eq!(of("replay --lst x"), "tamis replay --help");
        assert_eq!(of("--color always ctl sets ad"), "tamis ctl sets --help");
        assert_eq!(of("rpelay rules.v4"), "tamis --help");
        // What is hidden has no page; a file may have a command's name.
        assert_eq!(of("bench"), "tamis --help");
        assert_eq!(of("why why"), "tamis why --help");
    }
}
