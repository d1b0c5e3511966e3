//! `tamis ctl`: a request to a run by its control socket. This module has what all of them share; each group of commands
//! is in a module beside it, with its arguments, the request that they make, and the answer for a screen.

mod files;
mod lists;
mod rules;
mod seen;
mod shadow;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Subcommand;
use dataplane::run::{Refusal, RefusalKind, Request, ask, status_text};
use packet::visible;
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
    /// About what is beside them.
    #[command(flatten)]
    Lists(lists::ListsCommand),
    /// About frames.
    #[command(flatten)]
    Seen(seen::SeenCommand),
    /// Into files.
    #[command(flatten)]
    Files(files::FilesCommand),
    /// Rules that are tried beside those in force: what they would have done otherwise
    Shadow(shadow::ShadowArgs),
    /// Put the rules that are tried in force
    Promote,
    /// Handle what has come, and end
    Stop,
}

/// The run refuses.
pub(crate) struct Refused(Refusal);

/// Asks, and prints the answer.
pub(crate) fn run(args: &CtlArgs) -> Result<ExitCode> {
    match &args.command {
        CtlCommand::Status => once(args, &Request::Status {}, status_text),
        CtlCommand::Rules(command) => once(args, &command.request()?, |it| command.text(it)),
        CtlCommand::Lists(command) => command.run(args),
        CtlCommand::Seen(command) => once(args, &command.request(), |it| command.text(it)),
        CtlCommand::Files(command) => command.run(args),
        CtlCommand::Shadow(tried) => once(args, &tried.request()?, |it| tried.text(it)),
        CtlCommand::Promote => once(args, &Request::Promote {}, rules::applied),
        CtlCommand::Stop => once(args, &Request::Stop {}, |_| "stopping\n".to_owned()),
    }
}

/// Asks one thing.
fn once(
    args: &CtlArgs,
    request: &Request,
    text: impl FnOnce(&Value) -> String,
) -> Result<ExitCode> {
    match answer_to(args, request)? {
        Ok(answer) if args.json => screen::print(&format!("{answer:#}\n"))?,
        Ok(answer) => {
            warn(&answer);
            screen::print(&text(&answer))?;
        }
        Err(refused) => return Ok(refused.tell()),
    }
    Ok(ExitCode::SUCCESS)
}

/// How often it asks a run that is busy, and how long it waits in between.
const TRIES: (usize, Duration) = (20, Duration::from_millis(50));

/// What the run answers.
fn answer_to(args: &CtlArgs, request: &Request) -> Result<Result<Value, Refused>> {
    for _ in 1..TRIES.0 {
        let answer = ask(&args.socket, request).map_err(|error| nobody(&args.socket, error))?;
        match answer {
            Err(refusal) if refusal.kind == RefusalKind::Busy => thread::sleep(TRIES.1),
            answer => return Ok(answer.map_err(Refused)),
        }
    }
    let answer = ask(&args.socket, request).map_err(|error| nobody(&args.socket, error))?;
    Ok(answer.map_err(Refused))
}

impl Refused {
    /// Tells why; the exit code.
    fn tell(self) -> ExitCode {
        refused(&self.0)
    }
}

/// Says why a run refuses: the exit code.
pub(crate) fn refused(refusal: &Refusal) -> ExitCode {
    let what = replay::without_numbers(&refusal.what);
    screen::tell(&format!("tamis: {}", visible::word(&what)));
    ExitCode::from(code(refusal.kind))
}

/// What is odd about what was done.
fn warn(answer: &Value) {
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    for warning in warnings.filter_map(Value::as_str) {
        screen::tell(&format!("warning: {}", visible::word(warning)));
    }
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
