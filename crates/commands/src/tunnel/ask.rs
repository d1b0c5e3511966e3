//! `tamis tunnel status`, `peers`, `add-peer` and `remove-peer`: what is asked of tunnels that are up, by their control
//! sockets.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::tunnel::PublicKey;
use anyhow::{Result, bail};
use live::answers::{self, Peer, Peers, Status};
use live::config::tunnel::{Endpoint, preshared_key};
use live::{NewPeer, Request, ask};
use packet::visible;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{peers_text, place};
use crate::ctl::{nobody, refused};
use crate::screen;

/// Which tunnels.
#[derive(Debug, clap::Args)]
pub(crate) struct WhichArgs {
    /// Its name, or its configuration; all that are up where nothing is said
    #[arg(value_name = "NAME|CONFIG")]
    pub which: Option<String>,
    /// Print one JSON document, schema tamis.tunnel/1
    #[arg(long)]
    pub json: bool,
}

/// `tamis tunnel add-peer`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It stays until the tunnel is taken down: a [[peer]] of the configuration stays longer.
Example: tamis tunnel add-peer office alice KEY --allowed 10.77.0.9/32 --endpoint alice.example.org:51900")]
pub(crate) struct AddPeerArgs {
    /// The tunnel's name, or its configuration
    #[arg(value_name = "TUNNEL")]
    pub tunnel: String,
    /// What the peer is called
    #[arg(value_name = "PEER")]
    pub peer: String,
    /// Its public key
    #[arg(value_name = "KEY")]
    pub key: PublicKey,
    /// Where it is: ADDRESS:PORT, `[ADDRESS]:PORT` or NAME:PORT
    #[arg(long)]
    pub endpoint: Option<Endpoint>,
    /// Addresses that are its own, with a comma between them
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    pub allowed: Vec<String>,
    /// Seconds of silence after which it gets a keepalive
    #[arg(long, value_name = "SECONDS")]
    pub keepalive: Option<u16>,
    /// A file with the key that the pair shares besides
    #[arg(long, value_name = "FILE")]
    pub preshared: Option<PathBuf>,
}

/// `tamis tunnel remove-peer`.
#[derive(Debug, clap::Args)]
pub(crate) struct RemovePeerArgs {
    /// The tunnel's name, or its configuration
    #[arg(value_name = "TUNNEL")]
    pub tunnel: String,
    /// The peer's name, or its public key
    #[arg(value_name = "PEER")]
    pub peer: String,
}

/// A tunnel that is up, as it answers.
#[derive(Serialize)]
struct Tunnel {
    name: String,
    control: PathBuf,
    peers: Vec<Peer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

/// What has become of all packets, and the peers.
pub(crate) fn status(args: &WhichArgs) -> Result<ExitCode> {
    of_each(args, |control| {
        let status = answer(&control, &Request::Status {})?;
        Ok(Tunnel { status: Some(status), ..tunnel(control)? })
    })
}

/// The peers.
pub(crate) fn peers(args: &WhichArgs) -> Result<ExitCode> {
    of_each(args, tunnel)
}

fn tunnel(control: PathBuf) -> Result<Tunnel> {
    let Peers { peers } = answer(&control, &Request::Peers {})?;
    let name = control.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Tunnel { name, control, peers, status: None })
}

/// Asks each tunnel, and prints what it says.
fn of_each(args: &WhichArgs, told: impl Fn(PathBuf) -> Result<Tunnel>) -> Result<ExitCode> {
    let controls = match &args.which {
        Some(which) => vec![place::control(which)?],
        None => place::all(),
    };
    let all = controls.into_iter().map(told).collect::<Result<Vec<Tunnel>>>()?;
    if args.json {
        screen::json(&json!({ "schema": "tamis.tunnel/1", "tunnels": all }))?;
    } else if all.is_empty() {
        screen::print("no tunnel is up\nnext: tamis tunnel up CONFIG\n")?;
    } else {
        screen::print(&all.iter().map(text).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a tunnel answers.
pub(super) fn answer<A: DeserializeOwned>(control: &Path, request: &Request) -> Result<A> {
    match ask(control, request).map_err(|error| nobody(control, error))? {
        Ok(answer) => Ok(answers::read(answer)?),
        Err(refusal) => bail!("{}: {}", control.display(), visible::word(&refusal.what)),
    }
}

fn text(Tunnel { name, peers, status, .. }: &Tunnel) -> String {
    let status = status.as_ref().map(Status::to_string);
    peers_text::text(name, peers) + &status.unwrap_or_default()
}

/// Adds a peer.
pub(crate) fn add(args: &AddPeerArgs) -> Result<ExitCode> {
    let preshared = args.preshared.as_deref().map(preshared_key).transpose();
    let preshared = preshared.map_err(anyhow::Error::msg)?;
    let request = Request::AddPeer(NewPeer {
        tunnel: None,
        name: args.peer.clone(),
        key: args.key.to_string(),
        endpoint: args.endpoint.as_ref().map(ToString::to_string),
        allowed: args.allowed.clone(),
        keepalive: args.keepalive,
        preshared: preshared.as_ref().map(|key| key.text().to_string()),
    });
    change(&args.tunnel, &request, &format!("added {}", args.peer))
}

/// Removes a peer.
pub(crate) fn remove(args: &RemovePeerArgs) -> Result<ExitCode> {
    let request = Request::RemovePeer { tunnel: None, peer: args.peer.clone() };
    change(&args.tunnel, &request, &format!("removed {}", args.peer))
}

fn change(which: &str, request: &Request, done: &str) -> Result<ExitCode> {
    let control = place::control(which)?;
    match ask(&control, request).map_err(|error| nobody(&control, error))? {
        Ok(_) => {
            let next = format!("next: tamis tunnel peers {}", visible::word(which));
            screen::print(&format!("{}\n{next}\n", visible::word(done)))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(refusal) => Ok(refused(&refusal)),
    }
}
