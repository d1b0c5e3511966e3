//! `[[peer]]`: the peers of a tunnel.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use ::tunnel::{Prefix, PresharedKey, PublicKey};
use host::Network;

use super::PeerSettings;
use super::endpoint::Endpoint;
use super::file::{Reader, list};
use dataplane::keys::{Section, Value, Wrong, string};

const PEER: [&str; 6] = ["name", "key", "preshared", "endpoint", "allowed", "keepalive"];

/// Bytes of a peer's name.
const MOST_BYTES: usize = 64;

/// Characters of a peer's key that make up its default name.
const OF_KEY: usize = 8;

/// Names, keys and prefixes that are taken.
pub(super) struct Before {
    /// The key of this end.
    pub(super) own: PublicKey,
    pub(super) names: HashSet<String>,
    pub(super) keys: HashSet<PublicKey>,
    /// The owner of each prefix.
    pub(super) prefixes: HashMap<Prefix, String>,
}

impl Before {
    pub(super) fn none(own: PublicKey) -> Self {
        let (names, keys) = (HashSet::new(), HashSet::new());
        Self { own, names, keys, prefixes: HashMap::new() }
    }
}

pub(super) fn read<'t>(
    reader: &Reader<'t>,
    value: &Value<'t>,
    before: &mut Before,
) -> Result<PeerSettings, Wrong> {
    let section = Section::new("[[peer]]", value, &PEER, &[])?;
    let key = key(section.need("key")?, before)?;
    let name = name(&section, key, before)?;
    let preshared = section.get("preshared").map(|value| reader.secret(value)).transpose()?;
    let (preshared_file, preshared) = preshared.unzip();
    let at = section.get("endpoint").map_or(section.span.0, |value| value.span().start);
    let at = reader.at(at);
    let keepalive = section.number("keepalive", u16::MAX.into())?;
    Ok(PeerSettings {
        preshared: preshared.unwrap_or_else(PresharedKey::default),
        preshared_file,
        endpoint: section.get("endpoint").map(endpoint).transpose()?,
        allowed: allowed(&section, &name, before)?,
        keepalive: keepalive.filter(|seconds| *seconds != 0).map(|seconds| seconds as u16),
        ..PeerSettings::new(name, key, at)
    })
}

fn key(value: &Value<'_>, before: &mut Before) -> Result<PublicKey, Wrong> {
    let text = string(value)?;
    let key: PublicKey = text.parse().map_err(|_| {
        let what = "expected a public key, 44 characters of base64 as tamis tunnel pubkey prints";
        (value.span(), format!("{what}, found \"{text}\""))
    })?;
    if key == before.own {
        let what = "expected the key of another end, found that of this one";
        return Err((value.span(), what.to_owned()));
    }
    match before.keys.insert(key) {
        true => Ok(key),
        false => Err((value.span(), format!("expected a key of its own, found \"{text}\" again"))),
    }
}

/// The given name of a peer, or else the beginning of its key.
fn name(section: &Section<'_, '_>, key: PublicKey, before: &mut Before) -> Result<String, Wrong> {
    let (span, name) = match section.get("name") {
        Some(value) => (value.span(), string(value)?.to_owned()),
        None => (section.span.0..section.span.1, key.to_string()[..OF_KEY].to_owned()),
    };
    let is_bad = |c: char| c.is_whitespace() || c.is_control();
    if name.is_empty() || name.len() > MOST_BYTES || name.contains(is_bad) {
        let what = format!("expected 1 to {MOST_BYTES} bytes without spaces, found \"{name}\"");
        return Err((span, what));
    }
    match before.names.insert(name.clone()) {
        true => Ok(name),
        false => Err((span, format!("expected a name of its own, found \"{name}\" again"))),
    }
}

fn endpoint(value: &Value<'_>) -> Result<Endpoint, Wrong> {
    let text = string(value)?;
    text.parse().map_err(|_| {
        let what = "expected ADDRESS:PORT, [ADDRESS]:PORT or NAME:PORT";
        (value.span(), format!("{what}, found \"{text}\""))
    })
}

fn allowed(
    section: &Section<'_, '_>,
    name: &str,
    before: &mut Before,
) -> Result<Vec<Prefix>, Wrong> {
    let what = "a list of prefixes such as \"10.77.0.2/32\"";
    let prefixes = list(section, "allowed", what, |value| Ok((value.span(), prefix(value)?)))?;
    for (span, prefix) in &prefixes {
        match before.prefixes.entry(*prefix) {
            Entry::Vacant(free) => drop(free.insert(name.to_owned())),
            Entry::Occupied(taken) => {
                let (network, whose) = (super::print::prefix(prefix), taken.get());
                let what = format!("expected each prefix once, and {network} is \"{whose}\"'s");
                return Err((span.clone(), what));
            }
        }
    }
    Ok(prefixes.into_iter().map(|(_, prefix)| prefix).collect())
}

fn prefix(value: &Value<'_>) -> Result<Prefix, Wrong> {
    let text = string(value)?;
    let network = Network::parse(text);
    let prefix = network.and_then(|network| Prefix::new(network.addr, network.bits).ok());
    prefix.ok_or_else(|| {
        let what = "expected a prefix such as 10.77.0.2/32 or fd77::/64";
        (value.span(), format!("{what}, found \"{text}\""))
    })
}
