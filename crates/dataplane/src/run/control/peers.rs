//! Requests about the peers of tunnels.

use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Value, json};
use tunnel::PublicKey;

use super::super::config::At;
use super::super::config::tunnel::PeerSettings;
use super::super::live::Live;
use super::super::tunnel::Site;
use super::request::{NewPeer, Refusal};

/// How all peers are: `tamis.peers/1`.
pub(super) fn told(live: &Live) -> Value {
    json!({ "schema": "tamis.peers/1", "peers": live.peers() })
}

/// Adds one.
///
/// # Errors
/// Something of it is not read, or it is one already.
pub(super) fn add(new: &NewPeer, live: &Live) -> Result<Value, Refusal> {
    let site = site(new.tunnel.as_deref(), live)?;
    let preshared = new.preshared.as_deref().map(|key| read(key, "a key in base64")).transpose()?;
    let endpoint = new.endpoint.as_deref();
    let endpoint =
        endpoint.map(|it| read(it, "an endpoint such as 192.0.2.1:51900")).transpose()?;
    let allowed = new.allowed.iter().map(|prefix| read(prefix, "a prefix such as 10.77.0.2/32"));
    let settings = PeerSettings {
        name: new.name.clone(),
        key: read::<PublicKey>(&new.key, "a public key in base64")?,
        preshared: preshared.unwrap_or_default(),
        preshared_file: None,
        endpoint,
        allowed: allowed.collect::<Result<_, _>>()?,
        keepalive: new.keepalive,
        at: At { line: 1, column: 1 },
    };
    if settings.endpoint.as_ref().is_some_and(|endpoint| endpoint.name().is_some())
        && !site.asks_for_names()
    {
        let what =
            "expected an address and a port: no peer of the file has a name, so none is looked up";
        return Err(Refusal::refused(what));
    }
    site.add_peer(&settings).map_err(Refusal::refused)?;
    Ok(json!({ "schema": "tamis.peer/1", "added": new.name }))
}

/// Removes one.
///
/// # Errors
/// There is none of that name or key.
pub(super) fn remove(tunnel: Option<&str>, peer: &str, live: &Live) -> Result<Value, Refusal> {
    match site(tunnel, live)?.remove_peer(peer) {
        true => Ok(json!({ "schema": "tamis.peer/1", "removed": peer })),
        false => Err(Refusal::refused(format!("there is no peer {peer}"))),
    }
}

fn site<'l>(name: Option<&str>, live: &'l Live) -> Result<&'l Arc<Site>, Refusal> {
    let names = || live.tunnels.iter().map(|site| site.name()).collect::<Vec<_>>().join(" ");
    let found = match (name, &live.tunnels[..]) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), sites) => sites.iter().find(|site| site.name() == name),
    };
    found.ok_or_else(|| Refusal::refused(format!("expected one of the tunnels {}", names())))
}

fn read<T: FromStr>(text: &str, what: &str) -> Result<T, Refusal> {
    text.parse().map_err(|_| Refusal::refused(format!("expected {what}, found \"{text}\"")))
}
