//! `tamis ctl`: a request to a run by its control socket. This module has what all of them share; each group of commands
//! is in a module beside it, with its arguments, the request that they make, and the answer for a screen.

mod files;
mod rules;
mod seen;
mod shadow;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Subcommand;
use dataplane::run::{Refusal, RefusalKind, Request, ask, status_text};
use serde_json::Value;

use crate::screen;

/// Exit code where the run refuses.
const REFUSED: u8 = 1;

/// Exit code where what was given cannot be read.
const UNREADABLE: u8 = 2;

/// Exit code where a change was made for another revision than the one in force.
const STALE: u8 = 6;

/// `tamis ctl`.
#[derive(Debug, clap::Args)]
pub(crate) struct CtlArgs {
    /// The control socket, as the run's configuration names it
    #[arg(long, global = true, value_name = "PATH", default_value = "/run/tamis/control.sock")]
    pub socket: PathBuf,
    /// Print the answer as JSON
    #[arg(long, global = true)]
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
    /// About its rules.
    #[command(flatten)]
    Rules(rules::RulesCommand),
    /// About frames.
    #[command(flatten)]
    Seen(seen::SeenCommand),
    /// Into files.
    #[command(flatten)]
    Files(files::FilesCommand),
    /// Rules that are tried beside those in force: what they would have done otherwise
    Shadow(shadow::ShadowArgs),
    /// Handle what has come, and end
    Stop,
}

/// Asks, and prints the answer.
pub(crate) fn run(args: &CtlArgs) -> Result<ExitCode> {
    if let CtlCommand::Files(command) = &args.command {
        return command.run(args);
    }
    let answer = ask(&args.socket, &args.command.request()?);
    match answer.map_err(|error| nobody(&args.socket, error))? {
        Ok(answer) if args.json => screen::print(&format!("{answer:#}\n"))?,
        Ok(answer) => screen::print(&args.command.text(&answer))?,
        Err(refusal) => return Ok(refused(&refusal)),
    }
    Ok(ExitCode::SUCCESS)
}

impl CtlCommand {
    fn request(&self) -> Result<Request> {
        Ok(match self {
            Self::Status => Request::Status {},
            Self::Rules(command) => command.request()?,
            Self::Seen(command) => command.request(),
            Self::Files(command) => command.request(),
            Self::Shadow(args) => args.request()?,
            Self::Stop => Request::Stop {},
        })
    }

    fn text(&self, answer: &Value) -> String {
        match self {
            Self::Status => status_text(answer),
            Self::Rules(command) => command.text(answer),
            Self::Seen(command) => command.text(answer),
            // They say themselves what they wrote.
            Self::Files(_) => String::new(),
            Self::Shadow(args) => args.text(answer),
            Self::Stop => "stopping\n".to_owned(),
        }
    }
}

/// Says why a run refuses: the exit code.
pub(crate) fn refused(refusal: &Refusal) -> ExitCode {
    screen::tell(&format!("tamis: {}", refusal.what));
    ExitCode::from(code(refusal.kind))
}

/// The exit code of a refusal.
fn code(kind: RefusalKind) -> u8 {
    match kind {
        RefusalKind::Request | RefusalKind::Refused | RefusalKind::Busy => REFUSED,
        RefusalKind::Text => UNREADABLE,
        RefusalKind::Stale => STALE,
    }
}

/// Why nobody answered, and what to do about it.
pub(crate) fn nobody(socket: &Path, error: std::io::Error) -> anyhow::Error {
    let named = "name the run's with --socket PATH (the configuration has it: [control] socket)";
    let what = match error.kind() {
        ErrorKind::NotFound => format!("no run listens there: start one, or {named}"),
        ErrorKind::ConnectionRefused => format!("the run that listened there is gone: {named}"),
        _ => error.to_string(),
    };
    anyhow!("{}: {what}", socket.display())
}
