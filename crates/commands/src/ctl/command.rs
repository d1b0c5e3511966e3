//! [`run`]: the commands of `tamis ctl`, their arguments, and who answers each.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use live::Request;
use live::answers::{Status, Stopping};

use super::capture::CaptureArgs;
use super::control::{SocketArgs, once};
use super::lists::ListsCommand;
use super::rules::{self, RulesCommand};
use super::seen::SeenCommand;
use super::shadow::ShadowArgs;
use super::snapshot::SnapshotArgs;

/// `tamis ctl`.
#[derive(Debug, clap::Args)]
pub(crate) struct CtlArgs {
    /// The run that is asked.
    #[command(flatten)]
    socket: SocketArgs,
    /// What is asked.
    #[command(subcommand)]
    command: CtlCommand,
}

/// What may be asked.
#[derive(Debug, Subcommand)]
enum CtlCommand {
    /// What has become of all frames
    Status,
    /// About its rules.
    #[command(flatten)]
    Rules(RulesCommand),
    /// About what is beside them.
    #[command(flatten)]
    Lists(ListsCommand),
    /// About frames.
    #[command(flatten)]
    Seen(SeenCommand),
    /// Write frames as they are dropped into a pcapng file, each with its verdict and rule as comment
    Capture(CaptureArgs),
    /// Write the rules in force, and what else decides, into a folder that replay and why take
    Snapshot(SnapshotArgs),
    /// Rules that are tried beside those in force: what they would have done otherwise
    Shadow(ShadowArgs),
    /// Put the rules that are tried in force
    Promote,
    /// Handle what has come, and end
    Stop,
}

/// Asks, and prints the answer.
pub(crate) fn run(args: &CtlArgs) -> Result<ExitCode> {
    let socket = &args.socket;
    match &args.command {
        CtlCommand::Status => {
            once(socket, &Request::Status {}, |status: &Status| status.to_string())
        }
        CtlCommand::Rules(command) => command.run(socket),
        CtlCommand::Lists(command) => command.run(socket),
        CtlCommand::Seen(command) => command.run(socket),
        CtlCommand::Capture(capture) => capture.run(socket),
        CtlCommand::Snapshot(snapshot) => snapshot.run(socket),
        CtlCommand::Shadow(tried) => once(socket, &tried.request()?, |it| tried.text(it)),
        CtlCommand::Promote => once(socket, &Request::Promote {}, rules::applied),
        CtlCommand::Stop => once(socket, &Request::Stop {}, |_: &Stopping| "stopping\n".to_owned()),
    }
}
