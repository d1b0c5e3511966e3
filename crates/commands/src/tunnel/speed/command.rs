//! [`run`]: finds a peer, waits until it is clear how it is reached, measures, and prints what that gave.

use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use host::Network;
use live::Request;
use live::answers::{Peer, Peers};
use packet::visible;
use serde_json::json;

use super::super::ask::answer;
use super::super::{reach, why};
use super::PORT;
use super::measure::{Unmeasured, measure};
use super::report::{Report, document};
use crate::screen;

/// Tenths of a second of each of the three parts.
const TENTHS: u8 = 25;
/// How long an attempt to reach the peer without the relay is waited for.
const ATTEMPT: Duration = Duration::from_secs(3);
/// How often it is looked how that is.
const LOOK: Duration = Duration::from_millis(200);

/// `tamis tunnel speed`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It takes up to eleven seconds, and sends as fast as it can for five of them. The peer answers at TCP and UDP port 4503, if the rules
and the policy let it, unless its tunnel has speed = \"off\".
Exit codes: 0 measured, 1 there is no way to PEER, or it does not answer, 2 usage error, or the tunnel is not up.
Examples:
  tamis tunnel speed nas
  tamis tunnel speed 10.77.0.2 --json")]
pub(crate) struct SpeedArgs {
    /// A node's name, with the domain or without, the name of a peer of the configuration, or a virtual address
    #[arg(value_name = "PEER")]
    pub peer: String,
    /// The tunnel's name, or its configuration; by default the only tunnel that is up
    #[arg(long, value_name = "NAME|CONFIG")]
    pub tunnel: Option<String>,
    /// Print one JSON document, schema tamis.tunnel_speed/1
    #[arg(long)]
    pub json: bool,
}

/// Measures.
pub(crate) fn run(args: &SpeedArgs) -> Result<ExitCode> {
    let control = why::control(args.tunnel.as_deref())?;
    let (own, address) = match found(&args.peer, &control)? {
        Ok(found) => found,
        Err(what) => return failed(args, &what),
    };
    decided(address, &control)?;
    let measured = match measure(address, TENTHS) {
        Ok(measured) => measured,
        Err(why) => {
            let peer = peer_of(address, &control)?;
            return failed(args, &unmeasured(&args.peer, &why, way(peer.as_ref(), args, &own)));
        }
    };
    // It may be reached by another way by now.
    let peer = peer_of(address, &control)?;
    if args.json {
        screen::json(&document((args.peer.as_str(), address), peer.as_ref(), &measured))?;
    } else {
        let way = format!("{} is {address}; {}", args.peer, way(peer.as_ref(), args, &own));
        let text = Report { peer: &args.peer, way: &way, measured: &measured }.text();
        let is_relayed = peer.is_some_and(|peer| peer.path.as_deref() == Some("relay"));
        let next = format!("next: tamis tunnel why {}\n", args.peer);
        screen::print(&visible::text(&(text + if is_relayed { &next } else { "" })))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(args: &SpeedArgs, what: &str) -> Result<ExitCode> {
    match args.json {
        true => screen::json(
            &json!({ "schema": "tamis.tunnel_speed/1", "peer": args.peer, "why": what }),
        )?,
        false => screen::print(&visible::text(&format!("{what}\n")))?,
    }
    Ok(ExitCode::from(1))
}

/// This host's name, and the address of a peer inside the tunnel; or why there is no way to it.
fn found(peer: &str, control: &Path) -> Result<Result<(String, IpAddr), String>> {
    let here = || "this host".to_owned();
    if let Ok(address) = peer.parse::<IpAddr>() {
        let no_peer =
            || format!("no peer of the tunnel has {address}: tamis tunnel peers lists them");
        return Ok(peer_of(address, control)?.map(|_| (here(), address)).ok_or_else(no_peer));
    }
    let Peers { peers } = answer(control, &Request::Peers {})?;
    let named = peers.iter().find(|it| it.name == peer && it.path.is_none());
    if let Some(named) = named {
        let whole = named.allowed.iter().find_map(|prefix| {
            let Network { addr, bits } = Network::parse(prefix)?;
            (bits == if addr.is_ipv4() { 32 } else { 128 }).then_some(addr)
        });
        let no_host = || format!("{peer} has networks alone: give the address of a host in one");
        return Ok(whole.map(|address| (here(), address)).ok_or_else(no_host));
    }
    let no_name = || format!("{peer} is no [[peer]] of the tunnel");
    let pair = why::pair(peer, control).with_context(no_name)?;
    Ok(pair.map(|pair| (pair.own.0, IpAddr::V4(pair.peer.1))))
}

/// The peer whose address it is.
fn peer_of(address: IpAddr, control: &Path) -> Result<Option<Peer>> {
    let Peers { peers } = answer(control, &Request::Peers {})?;
    let holds = |peer: &Peer| {
        let networks = peer.allowed.iter().filter_map(|prefix| Network::parse(prefix));
        networks.filter(|it| it.holds(address)).map(|it| it.bits).max()
    };
    let held = peers.into_iter().filter_map(|peer| Some((holds(&peer)?, peer)));
    Ok(held.max_by_key(|(bits, _)| *bits).map(|(_, peer)| peer))
}

/// Waits while it is being tried to reach a peer without the relay: what is measured then is one way, not two.
fn decided(address: IpAddr, control: &Path) -> Result<()> {
    let until = Instant::now() + ATTEMPT;
    while Instant::now() < until {
        let peer = peer_of(address, control)?;
        let is_open = peer.is_some_and(|peer| {
            let tries = peer.direct.as_ref().is_none_or(|it| it.attempts == 0 || it.trying);
            peer.path.as_deref() == Some("relay") && tries
        });
        if !is_open {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// How a peer is reached, in words.
fn way(peer: Option<&Peer>, args: &SpeedArgs, own: &str) -> String {
    match peer {
        Some(peer) if peer.path.is_some() => {
            reach::lines(peer, [own, &args.peer]).into_iter().next().unwrap_or_default()
        }
        Some(Peer { endpoint: Some(at), handshake_s: Some(_), .. }) => format!("at {at}"),
        Some(_) => "it has not answered a handshake".to_owned(),
        None => "it is no peer any more".to_owned(),
    }
}

fn unmeasured(peer: &str, why: &Unmeasured, way: String) -> String {
    let what = match why {
        Unmeasured::Refused => format!(
            "it does not answer at port {PORT}: its tunnel has speed = \"off\", or its tamis is older"
        ),
        Unmeasured::Silent => format!(
            "nothing comes back from its TCP port {PORT}: it is down, or rules drop it (tamis tunnel why {peer} tcp/{PORT})"
        ),
        Unmeasured::Busy => "somebody else measures it now: try again in ten seconds".to_owned(),
        Unmeasured::Ended(error) => format!("it ended half-way: {error}"),
    };
    format!("{peer} was not measured: {what}; {way}")
}
