//! `tamis`: what happens to this packet under these rules, and why?
//!
//! Arguments to the crates that do the work, nothing else. Exit code 2 is a usage or input error, said in
//! one line on standard error; a closed pipe changes no exit code.
#![forbid(unsafe_code)]

mod args;
mod collect_command;
mod completions_command;
mod confine;
mod convert_command;
mod ctl;
mod demo;
mod diff_command;
mod doctor_command;
mod dpdk_ports;
mod interrupt;
#[cfg(feature = "java")]
mod java;
#[cfg(not(feature = "java"))]
#[path = "no_java.rs"]
mod java;
mod lint_command;
mod log;
mod man_command;
mod moved;
mod outputs;
#[cfg(target_os = "linux")]
mod parent;
mod progress;
mod replay_command;
mod run_command;
mod screen;
mod standard_input;
mod test_command;
mod top;
mod tunnel;
mod walk_args;
mod watch_command;
mod why_command;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Args, Command};
use moved::MovedArgs;
use replay::without_numbers;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let ended = match &args.command {
        Command::Demo(demo) => demo::run(demo),
        Command::Replay(replay) => replay_command::run(replay),
        Command::Why(why) => why_command::run(why),
        Command::Test(test) => test_command::run(test),
        Command::Convert(convert) => convert_command::run(convert),
        Command::Lint(lint) => lint_command::run(lint),
        Command::Diff(diff) => diff_command::run(diff),
        Command::Collect(collect) => collect_command::run(collect),
        Command::Run(run) => run_command::run(run),
        Command::Ctl(ctl) => ctl::run(ctl),
        Command::Watch(watch) => watch_command::run(watch),
        Command::Top(top) => top::run(top),
        Command::Tunnel(tunnel) => tunnel::run(tunnel),
        Command::Doctor(doctor) => doctor_command::run(doctor),
        Command::Completions(completions) => completions_command::run(completions, Args::command()),
        Command::Man(man) => man_command::run(man, Args::command()),
        #[cfg(target_os = "linux")]
        Command::Parent(asked) => parent::run(asked),
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
fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Nothing is left to do when even this cannot be written.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        screen::tell("tamis: expected a command: demo, replay, why or test (see tamis --help)");
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
    screen::tell(&format!("tamis: {line} (see tamis --help)"));
    ExitCode::from(2)
}
