//! `tamis ctl`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;
use dataplane::run::{Request, ask, status_text};
use packet::visible;
use serde_json::Value;

use crate::screen;

/// Exit code where the run refuses.
const REFUSED: u8 = 1;

/// `tamis ctl`.
#[derive(Debug, clap::Args)]
pub(crate) struct CtlArgs {
    /// The control socket, as the run's configuration names it
    #[arg(long, value_name = "PATH", default_value = "/run/tamis/control.sock")]
    pub socket: PathBuf,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// What is asked.
    #[command(subcommand)]
    pub command: CtlCommand,
}

/// What may be asked.
#[derive(Debug, Subcommand)]
pub(crate) enum CtlCommand {
    /// What has become of all frames
    Status,
    /// The rules that packets matched, with their counters
    Counters {
        /// All rules with their counters, as the save tool prints them
        #[arg(long)]
        save: bool,
    },
    /// Handle what has come, and end
    Stop,
}

/// Asks, and prints the answer.
pub(crate) fn run(args: &CtlArgs) -> Result<ExitCode> {
    let request = match args.command {
        CtlCommand::Status => Request::Status {},
        CtlCommand::Counters { save } => Request::Counters { save },
        CtlCommand::Stop => Request::Stop {},
    };
    let answer = ask(&args.socket, &request).with_context(|| args.socket.display().to_string())?;
    match answer {
        Ok(answer) if args.json => screen::print(&format!("{answer:#}\n"))?,
        Ok(answer) => screen::print(&text(&request, &answer))?,
        Err(error) => {
            screen::tell(&format!("tamis: {}", error.what));
            return Ok(ExitCode::from(REFUSED));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn text(request: &Request, answer: &Value) -> String {
    match request {
        Request::Status {} => status_text(answer),
        Request::Counters { save: true } => {
            screen::data(answer["text"].as_str().unwrap_or_default()).into_owned()
        }
        Request::Counters { save: false } => hits(answer),
        Request::Stop {} => "stopping\n".to_owned(),
        Request::Talkers {} => format!("{answer:#}\n"),
    }
}

fn hits(answer: &Value) -> String {
    let rules = answer["rules"].as_array().into_iter().flatten();
    let lines = rules.map(|rule| {
        let word = |key: &str| visible::word(rule[key].as_str().unwrap_or_default()).into_owned();
        let (packets, bytes) = (&rule["packets"], &rule["bytes"]);
        format!("{packets:>12} {bytes:>15} {} {} {}\n", word("family"), word("table"), word("text"))
    });
    lines.collect()
}
