//! Requests about the peers of tunnels.

use std::str::FromStr;
use std::sync::Arc;

use tunnel::PublicKey;

use crate::answers::{PeerChanged, Refusal};
use crate::api::request::NewPeer;
use crate::config::At;
use crate::config::tunnel::PeerSettings;
use crate::devices::owner::Devices;
use crate::ports::tunnel::Site;

/// Adds a peer.
///
/// # Errors
/// Some field cannot be read, or there is such a peer already.
pub(super) fn add(new: &NewPeer, devices: &Devices) -> Result<PeerChanged, Refusal> {
    let site = site(new.tunnel.as_deref(), devices)?;
    let preshared = new.preshared.as_deref().map(|key| read(key, "a key in base64")).transpose()?;
    let endpoint = new.endpoint.as_deref();
    let endpoint =
        endpoint.map(|it| read(it, "an endpoint such as 192.0.2.1:51900")).transpose()?;
    let allowed = new.allowed.iter().map(|prefix| read(prefix, "a prefix such as 10.77.0.2/32"));
    let key = read::<PublicKey>(&new.key, "a public key in base64")?;
    let settings = PeerSettings {
        preshared: preshared.unwrap_or_default(),
        endpoint,
        allowed: allowed.collect::<Result<_, _>>()?,
        keepalive: new.keepalive,
        ..PeerSettings::new(new.name.clone(), key, At { line: 1, column: 1 })
    };
    if settings.endpoint.as_ref().is_some_and(|endpoint| endpoint.name().is_some())
        && !site.asks_for_names()
    {
        let what =
            "expected an address and a port: no peer of the file has a name, so none is looked up";
        return Err(Refusal::refused(what));
    }
    site.add_peer(&settings).map_err(Refusal::refused)?;
    Ok(PeerChanged { added: Some(new.name.clone()), removed: None })
}

/// Removes a peer.
///
/// # Errors
/// There is no peer of that name or key.
pub(super) fn remove(
    tunnel: Option<&str>,
    peer: &str,
    devices: &Devices,
) -> Result<PeerChanged, Refusal> {
    match site(tunnel, devices)?.remove_peer(peer) {
        true => Ok(PeerChanged { added: None, removed: Some(peer.to_owned()) }),
        false => Err(Refusal::refused(format!("there is no peer {peer}"))),
    }
}

fn site<'l>(name: Option<&str>, devices: &'l Devices) -> Result<&'l Arc<Site>, Refusal> {
    let names = || devices.tunnels().iter().map(|site| site.name()).collect::<Vec<_>>().join(" ");
    let found = match (name, devices.tunnels()) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), sites) => sites.iter().find(|site| site.name() == name),
    };
    found.ok_or_else(|| Refusal::refused(format!("expected one of the tunnels {}", names())))
}

fn read<T: FromStr>(text: &str, what: &str) -> Result<T, Refusal> {
    text.parse().map_err(|_| Refusal::refused(format!("expected {what}, found \"{text}\"")))
}
