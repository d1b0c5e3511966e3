//! [`run`]: the commands of `tamis tunnel`, and who carries each out.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

#[cfg(target_os = "linux")]
use super::demo;
use super::{ask, down, import, join, keys, serve, speed, up, why};

/// `tamis tunnel`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
This is not WireGuard on the wire: every peer runs tamis. Keys are of the same form (docs/tunnel.md).
Exit codes: 0 done, 1 it failed, or the tunnel refuses, 2 usage or input error.
Begin with: tamis tunnel keygen --out office.key")]
pub(crate) struct TunnelArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TunnelCommand,
}

/// What may be done.
#[derive(Debug, Subcommand)]
pub(crate) enum TunnelCommand {
    /// Make a private key, and print its public one
    Keygen(keys::KeygenArgs),
    /// Print the public key of the private one on standard input
    Pubkey,
    /// Bring a tunnel up, and take it down at the end
    Up(up::UpArgs),
    /// Take a tunnel down
    Down(down::DownArgs),
    /// How tunnels that are up are doing
    Status(ask::WhichArgs),
    /// The peers of tunnels that are up
    Peers(ask::WhichArgs),
    /// Add a peer to a tunnel that is up, until it is taken down
    AddPeer(ask::AddPeerArgs),
    /// Remove a peer from a tunnel that is up, until it is brought up again
    RemovePeer(ask::RemovePeerArgs),
    /// Make a configuration of one of wg-quick, and say what does not carry over
    Import(import::ImportArgs),
    /// Join a network of named nodes with a one-time key, and write the configuration of its tunnel
    Join(join::JoinArgs),
    /// Whether a node of the network and this host may reach each other, and by which line of the policy
    Why(why::WhyArgs),
    /// How fast a peer is reached: round trips, what is lost, and what goes each way
    Speed(speed::SpeedArgs),
    /// Three hosts in namespaces of this machine, tunnels between them, and a port that a rule blocks
    #[cfg(target_os = "linux")]
    Demo(demo::DemoArgs),
    /// Move packets of a tunnel; `up` starts it
    #[command(hide = true)]
    Serve {
        /// The tunnel.
        config: PathBuf,
    },
}

impl TunnelCommand {
    /// Whether the command runs until it is asked to end.
    pub(crate) fn runs_for_long(&self) -> bool {
        match self {
            Self::Up(up) => !up.detach,
            Self::Serve { .. } => true,
            _ => false,
        }
    }
}

/// Does it.
pub(crate) fn run(args: &TunnelArgs) -> Result<ExitCode> {
    match &args.command {
        TunnelCommand::Keygen(keygen) => keys::generate(keygen),
        TunnelCommand::Pubkey => keys::public(),
        TunnelCommand::Up(up) => up::run(up),
        TunnelCommand::Down(down) => down::run(down),
        TunnelCommand::Status(which) => ask::status(which),
        TunnelCommand::Peers(which) => ask::peers(which),
        TunnelCommand::AddPeer(peer) => ask::add(peer),
        TunnelCommand::RemovePeer(peer) => ask::remove(peer),
        TunnelCommand::Import(import) => import::run(import),
        TunnelCommand::Join(join) => join::run(join),
        TunnelCommand::Why(why) => why::run(why),
        TunnelCommand::Speed(speed) => speed::run(speed),
        #[cfg(target_os = "linux")]
        TunnelCommand::Demo(demo) => demo::run(demo),
        TunnelCommand::Serve { config } => serve::run(config),
    }
}
