//! `tamis ctl capture` and `snapshot`: frames that a run dropped, and what it evaluates them by, in files that `tamis why`
//! and `tamis replay` take. The run opens none of them: they are written here.

mod capture;
mod snapshot;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use dataplane::run::Request;

use super::CtlArgs;
use capture::CaptureArgs;
use snapshot::SnapshotArgs;

/// What may be written to files.
#[derive(Debug, Subcommand)]
pub(crate) enum FilesCommand {
    /// Write frames as they are dropped into a pcapng file, each with its verdict and rule as comment
    Capture(CaptureArgs),
    /// Write the rules in force, and what else decides, into a folder that replay and why take
    Snapshot(SnapshotArgs),
}

impl FilesCommand {
    pub(super) fn request(&self) -> Request {
        match self {
            Self::Capture(capture) => capture.request(),
            Self::Snapshot(_) => Request::Snapshot {},
        }
    }

    /// Asks, and writes.
    pub(super) fn run(&self, args: &CtlArgs) -> Result<ExitCode> {
        match self {
            Self::Capture(capture) => capture.run(args, &self.request()),
            Self::Snapshot(snapshot) => snapshot.run(args, &self.request()),
        }
    }
}
