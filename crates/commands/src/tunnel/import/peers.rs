//! `[Peer]` of a configuration of wg-quick.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ::tunnel::{Prefix, PresharedKey, PublicKey};
use host::Network;
use live::config::At;
use live::config::tunnel::PeerSettings;
use zeroize::Zeroizing;

use super::interface::{named, unknown};
use super::lines::{Entry, Lines, Part, Wrong};

/// Keys by which programs note a peer's name in a comment.
const NAMES: [&str; 2] = ["name", "friendly_name"];

/// Bytes of a name.
const MOST_BYTES: usize = 64;

/// The peers, with their secrets.
pub(super) fn read(
    lines: &Lines<'_>,
    name: &str,
    folder: &Path,
    secrets: &mut Vec<(PathBuf, Zeroizing<String>)>,
    lost: &mut Vec<String>,
) -> Result<Vec<PeerSettings>, Wrong> {
    let mut peers: Vec<PeerSettings> = Vec::new();
    // Whose a prefix is: the last one's that says so.
    let mut whose: HashMap<Prefix, usize> = HashMap::new();
    for (number, part) in lines.peers.iter().enumerate() {
        let (name_of, at) = (name_of(part, number, &peers), At { line: part.line, column: 1 });
        let mut peer = PeerSettings::new(name_of, key(part, &peers)?, at);
        let mut secret = None;
        for entry in &part.entries {
            secret = take(&mut peer, *entry, lost)?.or(secret);
        }
        if let Some(secret) = secret {
            let file = folder.join(format!("{name}-{}.psk", number + 1));
            peer.preshared_file = Some(named(file.clone()));
            secrets.push((file, secret));
        }
        for prefix in &peer.allowed {
            let Some(before) = whose.insert(*prefix, number) else { continue };
            if let Some(other) = peers.get_mut(before) {
                let (address, len) = (prefix.address(), prefix.len());
                lost.push(format!(
                    "AllowedIPs {address}/{len} of {}: {} has it after it, so it is not the former's",
                    other.name, peer.name
                ));
                other.allowed.retain(|allowed| allowed != prefix);
            }
        }
        peers.push(peer);
    }
    Ok(peers)
}

/// What a comment calls it (`# home`, `# Name = home`), if that is a name of its own, or else its number.
fn name_of(part: &Part<'_>, number: usize, before: &[PeerSettings]) -> String {
    let comment = part.comment.unwrap_or_default();
    let said = match comment.split_once('=') {
        None => comment,
        Some((key, name)) if NAMES.contains(&&*key.trim().to_ascii_lowercase()) => name,
        // A key that was commented out.
        Some(_) => "",
    };
    let name = said.split_whitespace().collect::<Vec<_>>().join("-");
    let is_taken = |name: &str| before.iter().any(|peer| peer.name == name);
    match name.is_empty() || name.len() > MOST_BYTES || name.contains(char::is_control) {
        false if !is_taken(&name) => name,
        _ => (number + 1..)
            .map(|number| format!("peer{number}"))
            .find(|name| !is_taken(name))
            .unwrap_or_default(),
    }
}

fn key(part: &Part<'_>, before: &[PeerSettings]) -> Result<PublicKey, Wrong> {
    let Some(entry) = part.entries.iter().rfind(|entry| entry.is("PublicKey")) else {
        return Err((part.line, 1, "expected PublicKey = … in this [Peer]".to_owned()));
    };
    let key = entry.value.parse().map_err(|_| entry.wrong("a key, 44 characters of base64"))?;
    match before.iter().any(|peer| peer.key == key) {
        true => Err(entry.wrong("a key of its own")),
        false => Ok(key),
    }
}

/// Takes what an entry says; the text of the secret, if it is one.
fn take(
    peer: &mut PeerSettings,
    entry: Entry<'_>,
    lost: &mut Vec<String>,
) -> Result<Option<Zeroizing<String>>, Wrong> {
    match &*entry.key.to_ascii_lowercase() {
        "publickey" => {}
        "presharedkey" => {
            let what = "PresharedKey: expected a key, 44 characters of base64";
            let key: PresharedKey =
                entry.value.parse().map_err(|_| (entry.line, entry.column, what.to_owned()))?;
            let text = key.text();
            peer.preshared = key;
            return Ok(Some(text));
        }
        "endpoint" => {
            let endpoint = entry.value.parse();
            peer.endpoint = Some(endpoint.map_err(|_| entry.wrong("HOST:PORT or [HOST]:PORT"))?);
        }
        "persistentkeepalive" => peer.keepalive = keepalive(entry)?,
        "allowedips" => {
            for part in entry.parts() {
                let prefix = prefix(part)?;
                if !peer.allowed.contains(&prefix) {
                    peer.allowed.push(prefix);
                }
            }
        }
        _ => lost.push(unknown(entry)),
    }
    Ok(None)
}

fn keepalive(entry: Entry<'_>) -> Result<Option<u16>, Wrong> {
    match entry.value {
        "off" => Ok(None),
        seconds => {
            let seconds: u16 = seconds.parse().map_err(|_| entry.wrong("seconds, or off"))?;
            Ok(Some(seconds).filter(|seconds| *seconds != 0))
        }
    }
}

fn prefix(entry: Entry<'_>) -> Result<Prefix, Wrong> {
    let network = Network::parse(entry.value);
    let prefix = network.and_then(|network| Prefix::new(network.addr, network.bits).ok());
    prefix.ok_or_else(|| entry.wrong("a prefix such as 10.77.0.2/32"))
}
