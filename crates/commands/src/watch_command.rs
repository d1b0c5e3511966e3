//! `tamis watch`: a line for each frame that a run drops, as it happens.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use live::answers::{self, WatchEnd, WatchLine};
use live::{Request, WatchRequest, follow};
use replay::json_text;

use crate::ctl::{nobody, refused};
use crate::screen::{self, Lines};

/// `tamis watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
FILTER is tests that all have to hold: host ADDRESS, net, src or dst ADDRESS/BITS, tcp, udp, icmp, proto N, port N,
in PORT, out PORT, reason REASON, verdict accept|drop|reject|unknown|any, and not before any of them. Without reason
and verdict it is what is dropped or rejected.
A run tells 1,000 frames a second at most; how many more there were is said.
Examples:
  tamis watch host 10.0.0.9 and tcp port 22
  tamis watch reason policy --count 10
  tamis watch verdict any net 192.0.2.0/24")]
pub(crate) struct WatchArgs {
    /// Which frames
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// End after N frames
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// The control socket, as the run's configuration names it
    #[arg(long, value_name = "PATH", default_value = "/run/tamis/control.sock")]
    pub socket: PathBuf,
    /// Print a JSON document for each frame
    #[arg(long)]
    pub json: bool,
}

/// Prints frames until the run, or the reader, ends.
pub(crate) fn run(args: &WatchArgs) -> Result<ExitCode> {
    let asked =
        WatchRequest { filter: args.filter.join(" "), count: args.count, frames: args.json };
    let mut out = Lines::new(Arc::new(AtomicBool::new(false)));
    let (mut told, mut lost) = (0, 0);
    let watched = follow(&args.socket, &Request::Watch(asked), |document| {
        let line = answers::read(document.clone())?;
        let now = match &line {
            WatchLine::End(WatchEnd { lost, .. }) => *lost,
            WatchLine::Frame(frame) => frame.lost.unwrap_or(lost),
        };
        if now > lost && !args.json {
            screen::tell(&format!("tamis: {} more frames were not told", now - lost));
        }
        lost = now;
        let WatchLine::Frame(frame) = line else { return Ok(ControlFlow::Break(())) };
        told += 1;
        match args.json {
            true => json_text::line(&mut out, &document)?,
            false => writeln!(out, "{frame}")?,
        }
        out.flush()?;
        Ok(if out.has_reader() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    });
    if let Err(refusal) = watched.map_err(|error| nobody(&args.socket, error))? {
        return Ok(refused(&refusal));
    }
    if told > 0 && !args.json {
        screen::tell(
            "next: tamis ctl capture FILE && tamis ctl snapshot DIR && tamis why DIR FILE --packet 1",
        );
    }
    Ok(ExitCode::SUCCESS)
}
