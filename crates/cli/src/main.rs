//! `tamis`: what happens to this packet under these rules, and why?
//!
//! Arguments to the crates that do the work, nothing else. Exit code 2 is a usage or input error, said in
//! one line on standard error; a closed pipe changes no exit code.
#![forbid(unsafe_code)]

mod args;
mod collect_command;
mod completions_command;
#[cfg(feature = "live")]
mod confine;
mod convert_command;
#[cfg(feature = "live")]
mod ctl;
mod demo;
mod diff_capture;
mod diff_command;
#[cfg(feature = "live")]
mod doctor_command;
#[cfg(feature = "live")]
mod dpdk_ports;
mod huge_pages;
mod interrupt;
#[cfg(feature = "java")]
mod java;
#[cfg(all(feature = "live", not(feature = "java")))]
#[path = "no_java.rs"]
mod java;
mod lint_command;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "no_live.rs"]
mod live;
#[cfg(feature = "live")]
mod log;
mod loudness;
mod man_command;
mod moved;
mod outputs;
#[cfg(all(feature = "live", target_os = "linux"))]
mod parent;
mod progress;
mod reach_command;
mod replay_command;
#[cfg(feature = "live")]
mod run_command;
mod screen;
mod short_help;
mod standard_input;
mod test_command;
#[cfg(feature = "live")]
mod top;
#[cfg(feature = "live")]
mod tunnel;
mod walk_args;
#[cfg(feature = "live")]
mod watch_command;
mod why_command;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use args::{Args, Command};
use moved::MovedArgs;
use replay::without_numbers;

/// Rulesets are many small allocations, and large ones fault thousands of pages in: this one asks for huge pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = short_help::shortened(Args::command());
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
        Command::Completions(completions) => completions_command::run(completions, Args::command()),
        Command::Man(man) => man_command::run(man, Args::command()),
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
            // Before a command stand options of all commands and their values; after it, those of its own.
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
