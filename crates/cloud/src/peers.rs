//! What the servers have in common: the tunnel's end, and its peers, as a state machine wants them.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Result, anyhow};
use overlay::{Carrier, GUESTS_DIRECTORY, Now, PORT, guest_address};
use tunnel::{Config, Offer, PeerConfig, Prefix, PrivateKey, PublicKey, SystemEntropy, Tunnel};

/// Bytes of the longest packet inside the tunnel.
const MTU: usize = 1_420;

/// The tunnel's end, without peers.
pub(crate) fn end(key: PrivateKey, now: Now) -> Result<Tunnel> {
    let config = Config {
        key,
        offer: Offer::of_this_machine(),
        started: now.nanos,
        started_unix: now.unix.saturating_mul(overlay::limits::SECOND),
        mtu: MTU,
    };
    Ok(Tunnel::new(config, Box::new(SystemEntropy::new()))?)
}

/// Adds a peer with these addresses. A peer that is there already stays as it is.
pub(crate) fn admit(carrier: &mut Carrier, key: PublicKey, addresses: &[IpAddr]) {
    let whole =
        |address: &IpAddr| Prefix::new(*address, if address.is_ipv4() { 32 } else { 128 }).ok();
    let allowed = addresses.iter().filter_map(whole).collect();
    let _ = carrier.tunnel_mut().add_peer(&PeerConfig { allowed, ..PeerConfig::new(key) });
}

/// Removes a peer, if there is such a one.
pub(crate) fn dismiss(carrier: &mut Carrier, key: &PublicKey) {
    if let Some(peer) = carrier.tunnel().find(key) {
        carrier.tunnel_mut().remove_peer(peer);
    }
}

/// Makes the directory of a server apart a peer, without a session, at the first of its places, which is the last one from then on.
pub(crate) fn call(carrier: &mut Carrier, nms: &mut (Vec<SocketAddr>, PublicKey)) -> Result<()> {
    let (places, key) = nms;
    dismiss(carrier, key);
    let allowed = vec![Prefix::new(GUESTS_DIRECTORY.into(), 128)?];
    let endpoint = places.first().copied();
    let peer = PeerConfig { endpoint, allowed, ..PeerConfig::new(*key) };
    let added = carrier.tunnel_mut().add_peer(&peer);
    added.map_err(|error| anyhow!("the directory as a peer: {error:?}"))?;
    places.rotate_left(1);
    Ok(())
}

/// Whether a peer has this address for the link alone: with a one-time key it is no node yet, else it is a server.
pub(crate) fn is_guest(key: &PublicKey, at: IpAddr) -> bool {
    at == IpAddr::from(guest_address(key))
}

/// Sends a message to a peer: from this address to a node, and from that for guests to others.
pub(crate) fn send(
    carrier: &mut Carrier,
    own: IpAddr,
    (to, at): (&PublicKey, IpAddr),
    message: &[u8],
    now: Now,
) {
    let from = if is_guest(to, at) { GUESTS_DIRECTORY.into() } else { own };
    carrier.send(SocketAddr::new(from, PORT), SocketAddr::new(at, PORT), message, now.nanos);
}

/// Seconds after 1970 as RFC 3339 writes them.
pub(crate) fn time(unix: u64) -> String {
    let time = i64::try_from(unix).ok().and_then(|unix| jiff::Timestamp::from_second(unix).ok());
    time.map_or_else(|| unix.to_string(), |time| time.to_string())
}
