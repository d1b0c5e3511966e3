//! A request of `tamis ctl` to the run's control socket: the answer for a screen or as JSON, what is said where the run refuses
//! or nobody answers, and the exit codes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use live::answers;
use live::{Refusal, RefusalKind, Request, ask};
use packet::visible;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::screen;

/// Exit code where the run refuses.
const REFUSED: u8 = 1;

/// Exit code where what was given cannot be read.
const UNREADABLE: u8 = 2;

/// Exit code where a change was made for another revision than the one in force.
const STALE: u8 = 6;

/// The arguments that every request has.
#[derive(Debug, clap::Args)]
pub(crate) struct SocketArgs {
    /// The control socket, as the run's configuration names it
    #[arg(long, global = true, value_name = "PATH", default_value = "/run/tamis/control.sock")]
    pub socket: PathBuf,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The run refuses.
pub(super) struct Refused(Refusal);

/// Asks one thing.
pub(super) fn once<A: DeserializeOwned>(
    args: &SocketArgs,
    request: &Request,
    text: impl FnOnce(&A) -> String,
) -> Result<ExitCode> {
    match answer_to(args, request)? {
        Ok(answer) if args.json => screen::json(&answer)?,
        Ok(answer) => screen::print(&text(&answers::read(answer)?))?,
        Err(refused) => return Ok(refused.tell()),
    }
    Ok(ExitCode::SUCCESS)
}

/// How often it asks a run that is busy, and how long it waits in between.
const TRIES: (usize, Duration) = (20, Duration::from_millis(50));

/// What the run answers.
pub(super) fn answer_to(args: &SocketArgs, request: &Request) -> Result<Result<Value, Refused>> {
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
    pub(super) fn tell(self) -> ExitCode {
        refused(&self.0)
    }
}

/// Says why a run refuses: the exit code.
pub(crate) fn refused(refusal: &Refusal) -> ExitCode {
    let what = replay::without_numbers(&refusal.what);
    screen::tell(&format!("tamis: {}", visible::word(&what)));
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
