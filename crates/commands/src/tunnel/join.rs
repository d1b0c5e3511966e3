//! `tamis tunnel join`: makes this host a node of a network of named nodes, by a one-time key.
//!
//! Contract: nothing is written over. The node's key is made here and never leaves; a second try with the same files goes on
//! where the first one ended, as the authority answers the same key again.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::tunnel::{Config, Entropy, Offer, PeerConfig, Prefix, PrivateKey, SystemEntropy, Tunnel};
use anyhow::{Context, Result, anyhow, bail};
use live::config::Named;
use live::config::tunnel::{
    CloudSettings, Endpoint, MTU, PeerSettings, TunnelSettings, private_key,
};
use overlay::{Carrier, Enrolment, GUESTS_DIRECTORY, JoinUrl, Membership, PORT, guest_address};
use packet::visible;

use super::bridge::Bridge;
use super::keys::write_secret;
use super::settings::AT;
use crate::screen;

/// How long the authority may take over its answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two questions.
const AGAIN: Duration = Duration::from_millis(500);
/// How often the tunnel is asked what is due.
const TICK: Duration = Duration::from_millis(50);
/// How long UDP is tried alone.
const BLOCKED: Duration = Duration::from_secs(5);
/// Bytes of the longest datagram.
const LONGEST: usize = 2_048;
/// Seconds of silence after which the cloud gets a keepalive.
const KEEPALIVE: u16 = 25;
/// What the cloud, or the directory alone, is called among peers.
const CLOUD: &str = "cloud";
/// What an authority is called that is another process.
const AUTHORITY: &str = "authority";

/// `tamis tunnel join`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command line is what tamis-cloud enrol prints. Exit codes: 0 joined, 2 usage error, or the authority refuses or is silent.
Examples:
  tamis tunnel join tamis://203.0.113.1:51900/CzBVep_E6Q4zWH2ix-wRNluApcrvFDleg6jN8hc8YYY.SsxVTCi7f9jgn-3dZUQU5F2uU9nLUNwBgxSCwI1aYqE CD1yp9wRRnuw5RpPhLnuI1iNwvcsYZbLADVqn9QJPnM=")]
pub(crate) struct JoinArgs {
    /// Where the network is, and its keys
    #[arg(value_name = "URL")]
    pub url: JoinUrl,
    /// The one-time key
    #[arg(value_name = "KEY")]
    pub key: PrivateKey,
    /// The TCP port of the servers, for where UDP is blocked
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub tcp: Option<u16>,
    /// What the tunnel is called here: its device and its files
    #[arg(long, default_value = "tamis0")]
    pub name: String,
    /// The folder where NAME.toml and NAME.key are written
    #[arg(long, value_name = "FOLDER", default_value = "/etc/tamis")]
    pub out: PathBuf,
}

/// Joins, and writes the configuration.
pub(crate) fn run(args: &JoinArgs) -> Result<ExitCode> {
    if !live::config::tunnel::is_name(&args.name) {
        bail!("--name: expected 1 to 15 letters, digits and _ = + . -, found \"{}\"", args.name);
    }
    let file = args.out.join(format!("{}.toml", args.name));
    if file.exists() {
        bail!("{}: it is there already, and nothing is written over", file.display());
    }
    fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let key_file = args.out.join(format!("{}.key", args.name));
    let key = own_key(&key_file)?;
    let (membership, at) = enrolled(args, &key)?;
    let settings = settings(args, &file, (key, key_file), (&membership, at))?;
    let text = settings.to_toml();
    let shown = file.display().to_string();
    let mut open = OpenOptions::new();
    let mut written = open.write(true).create_new(true).open(&file).context(shown.clone())?;
    written.write_all(text.as_bytes()).context(shown.clone())?;
    TunnelSettings::read(&file)?;
    let claims = &membership.identity.claims;
    screen::print(&visible::text(&format!(
        "this host is {}.{}: {}, {}\nwrote {shown}\nnext: tamis tunnel up {shown}\n",
        claims.name, membership.domain, claims.v4, claims.v6,
    )))?;
    Ok(ExitCode::SUCCESS)
}

/// The node's key: made now, or by a try before.
fn own_key(file: &Path) -> Result<PrivateKey> {
    if file.exists() {
        return private_key(file).map_err(|what| anyhow!(what));
    }
    let key = PrivateKey::generate(&mut SystemEntropy::new())?;
    write_secret(file, &key.text())?;
    Ok(key)
}

/// Asks the authority at each of its places until it answers; returns the place that did, too.
fn enrolled(args: &JoinArgs, own: &PrivateKey) -> Result<(Membership, usize)> {
    let mut silent = Vec::new();
    for (number, place) in args.url.endpoints.iter().enumerate() {
        let mut found = place.to_socket_addrs().with_context(|| place.clone())?;
        let endpoint = found.next().with_context(|| format!("{place}: no address"))?;
        match enrolled_at(endpoint, args, own)? {
            Ok(membership) => return Ok((membership, number)),
            Err(why) => silent.push(why),
        }
    }
    bail!("{}", silent.join("; "))
}

/// Asks the authority at one place until it answers, or says why it does not.
fn enrolled_at(
    endpoint: SocketAddr,
    args: &JoinArgs,
    own: &PrivateKey,
) -> Result<std::result::Result<Membership, String>> {
    let JoinArgs { url, key: one_time, tcp, .. } = args;
    let any: IpAddr = match endpoint {
        SocketAddr::V4(_) => [0; 4].into(),
        SocketAddr::V6(_) => [0; 16].into(),
    };
    let mut socket = UdpSocket::bind((any, 0)).context("UDP")?;
    socket.connect(endpoint).with_context(|| endpoint.to_string())?;
    socket.set_read_timeout(Some(TICK)).context("UDP")?;
    let mut number = [0; 8];
    SystemEntropy::new().fill(&mut number)?;
    let enrolment = Enrolment::new(u64::from_le_bytes(number), own.public(), url.signer);
    let mut carrier = Carrier::new(guest(url, one_time, endpoint)?);
    let from = SocketAddr::new(guest_address(&one_time.public()).into(), PORT);
    let to = SocketAddr::new(GUESTS_DIRECTORY.into(), PORT);
    let (start, mut asked, mut buffer) = (Instant::now(), None, [0; LONGEST]);
    let mut bridge = None;
    while start.elapsed() < PATIENCE {
        let now = start.elapsed().as_nanos() as u64;
        if let Some(tcp) = tcp.filter(|_| bridge.is_none() && start.elapsed() >= BLOCKED) {
            let (there, by_it) = bridged(tcp, endpoint)?;
            (bridge, socket) = (Some(there), by_it);
        }
        if asked.is_none_or(|at: Instant| at.elapsed() >= AGAIN) {
            asked = Some(Instant::now());
            carrier.send(from, to, &enrolment.question(), now);
        }
        carrier.tick(now);
        while let Some((_, datagram)) = carrier.take() {
            // What is lost is sent again.
            let _ = socket.send(&datagram);
        }
        bridge.iter_mut().for_each(|bridge: &mut Bridge| bridge.turn(now));
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && tcp.is_none() => {
                return Ok(Err(format!("{endpoint}: nobody is there (is tamis-cloud running?)")));
            }
            Err(_) => continue,
        };
        let carried = carrier.receive(&mut buffer[..length], endpoint, now).message();
        let answer = carried.and_then(|carried| enrolment.answered(buffer.get(carried.payload)?));
        if let Some(answer) = answer {
            return answer.map(Ok).map_err(|why| anyhow!("{endpoint}: {why}"));
        }
    }
    let by = if tcp.is_some() { "neither UDP nor TCP reaches it" } else { "UDP does not reach it" };
    Ok(Err(format!("{endpoint}: no answer: {by}, or it does not know the one-time key")))
}

/// A bridge to a server by this TCP port, and the socket that speaks by it.
fn bridged(tcp: u16, server: SocketAddr) -> Result<(Bridge, UdpSocket)> {
    let shown = || format!("TCP port {tcp} of {}", server.ip());
    let mut bridge = Bridge::open(tcp, server.is_ipv4()).with_context(shown)?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).with_context(shown)?;
    bridge.set_tunnel(socket.local_addr().with_context(shown)?.port());
    let stand = bridge.stand_for(server).with_context(shown)?;
    socket.connect(stand).with_context(shown)?;
    socket.set_read_timeout(Some(TICK)).with_context(shown)?;
    Ok((bridge, socket))
}

/// The tunnel's end that has the one-time key.
fn guest(url: &JoinUrl, one_time: &PrivateKey, endpoint: SocketAddr) -> Result<Tunnel> {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let config = Config {
        key: one_time.clone(),
        offer: Offer::of_this_machine(),
        started: 0,
        started_unix: unix.as_nanos() as u64,
        mtu: MTU.into(),
    };
    let mut tunnel = Tunnel::new(config, Box::new(SystemEntropy::new()))?;
    let cloud = PeerConfig {
        endpoint: Some(endpoint),
        allowed: Prefix::new(GUESTS_DIRECTORY.into(), 128).into_iter().collect(),
        ..PeerConfig::new(url.key)
    };
    tunnel.add_peer(&cloud).map_err(|_| anyhow!("the URL's key is the one-time key"))?;
    Ok(tunnel)
}

/// The tunnel of a node, with one peer, the cloud, or two where the authority is another process than the directory.
fn settings(
    args: &JoinArgs,
    file: &Path,
    (key, key_file): (PrivateKey, PathBuf),
    (membership, at): (&Membership, usize),
) -> Result<TunnelSettings> {
    let Membership { identity, domain, bits, directory, authority, directory_at } = membership;
    let claims = &identity.claims;
    let parsed = |place: &String| place.parse().map_err(|error| anyhow!("{place}: {error}"));
    let mut places = args.url.endpoints.iter().map(parsed).collect::<Result<Vec<Endpoint>>>()?;
    let joined = places.remove(at);
    let server = |name: &str, key, endpoint, (v4, v6): (Ipv4Addr, Ipv6Addr)| {
        let allowed = [Prefix::new(v4.into(), 32), Prefix::new(v6.into(), 128)];
        PeerSettings {
            endpoint: Some(endpoint),
            allowed: allowed.into_iter().flatten().collect(),
            ..PeerSettings::new(name.to_owned(), key, AT)
        }
    };
    let keepalive = Some(KEEPALIVE);
    let (peers, also) = match directory_at {
        None => {
            let cloud = server(CLOUD, args.url.key, joined, *directory);
            let also = places.iter().filter_map(Endpoint::address).collect();
            (vec![PeerSettings { keepalive, ..cloud }], also)
        }
        Some((all, key)) => {
            let (first, also) = all.split_first().context("a directory without a place")?;
            let cloud = server(CLOUD, *key, (*first).into(), *directory);
            // It is spoken to twice a day.
            let authority = server(AUTHORITY, args.url.key, joined, *authority);
            (vec![PeerSettings { keepalive, ..cloud }, authority], also.to_vec())
        }
    };
    Ok(TunnelSettings {
        file: file.display().to_string(),
        addresses: vec![(claims.v4.into(), bits.0), (claims.v6.into(), bits.1)],
        dns: vec![claims.v4.into()],
        search: vec![domain.clone()],
        cloud: Some(CloudSettings {
            name: claims.name.clone(),
            domain: domain.clone(),
            directory: directory.0,
            also,
            authority: directory_at.is_some().then_some(authority.0),
            signer: args.url.signer,
            tcp: args.tcp,
        }),
        peers,
        ..TunnelSettings::usual(&args.name, (key, Named { path: key_file, at: AT }))
    })
}
