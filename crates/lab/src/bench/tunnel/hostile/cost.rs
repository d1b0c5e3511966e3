//! What a hostile datagram costs in this process: [`Tunnel::receive`] alone, without a socket.

use std::net::SocketAddr;
use std::time::Instant;

use tunnel::{Dropped, PeerConfig, Prefix, PrivateKey, PublicKey, Received, SystemEntropy, Tunnel};

use super::datagrams::{config, initiation};
use crate::bench::document::Row;
use crate::bench::limit;
use crate::bench::tunnel::rounds::OURS;

/// Peers of the end, as many as a hub has.
const PEERS: u8 = 100;
/// Datagrams of a run.
const EACH: u32 = 200_000;

/// Nanoseconds for each datagram, by what is wrong with it.
///
/// # Errors
/// There is no randomness, or a datagram is not dropped for the reason that it is made for.
pub(in crate::bench::tunnel) fn rows(runs: usize) -> Result<Vec<Row>, String> {
    let key = PrivateKey::generate(&mut SystemEntropy::new()).map_err(|error| error.to_string())?;
    let to = key.public();
    let mut tunnel = Tunnel::new(config(key), Box::new(SystemEntropy::new()))
        .map_err(|error| error.to_string())?;
    for number in 0..PEERS {
        let allowed = Prefix::new([10, 0, 0, number].into(), 32).into_iter().collect();
        let peer = PeerConfig { allowed, ..PeerConfig::new(PublicKey::new([number; 32])) };
        tunnel.add_peer(&peer).map_err(|error| format!("{error:?}"))?;
    }
    let datagrams = datagrams(&to).ok_or("no initiation could be made")?;
    let mut rows = Vec::new();
    for (wrong, datagram, is_reason) in datagrams {
        let figures: Vec<f64> = limit::rounds(runs).map(|_| cost(&mut tunnel, &datagram)).collect();
        match tunnel.receive(&datagram, from(0), 0) {
            Received::Dropped(reason) if is_reason(&reason) => (),
            Received::Dropped(reason) => return Err(format!("{wrong}: dropped as {reason:?}")),
            _ => return Err(format!("{wrong}: it is not dropped")),
        }
        rows.push(Row::new("tunnel.hostile_cost", OURS, "ns", &figures).with("wrong", wrong));
    }
    Ok(rows)
}

/// What is wrong, the datagram, and whether that is why it was dropped.
type Wrong = (&'static str, Vec<u8>, fn(&Dropped) -> bool);

fn datagrams(to: &PublicKey) -> Option<Vec<Wrong>> {
    let good = initiation(to)?;
    let mut forged = good.clone();
    *forged.get_mut(120)? ^= 1;
    let mut data = vec![0; 1452];
    data[..4].copy_from_slice(&[0x84, 1, 0, 0]);
    Some(vec![
        ("mac1", forged, |reason| matches!(reason, Dropped::BadMac)),
        ("index", data, |reason| matches!(reason, Dropped::UnknownIndex)),
        ("type", vec![0xff; 1452], |reason| matches!(reason, Dropped::Malformed(_))),
        ("length", good[..151].to_vec(), |reason| matches!(reason, Dropped::Malformed(_))),
    ])
}

/// Nanoseconds for each of many.
fn cost(tunnel: &mut Tunnel, datagram: &[u8]) -> f64 {
    let since = Instant::now();
    for number in 0..EACH {
        let received =
            tunnel.receive(std::hint::black_box(datagram), from(number), u64::from(number));
        drop(std::hint::black_box(received));
    }
    since.elapsed().as_nanos() as f64 / f64::from(EACH)
}

/// Ever other sources.
fn from(number: u32) -> SocketAddr {
    SocketAddr::from((number.to_be_bytes(), 1 + (number % 60_000) as u16))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_datagram_is_dropped_for_its_own_reason() {
        let rows = super::rows(1).unwrap();
        let wrong: Vec<_> = rows.iter().map(|row| row.params["wrong"].clone()).collect();
        assert_eq!(wrong, ["mac1", "index", "type", "length"]);
        assert!(rows.iter().all(|row| row.runs.value > 0.0));
    }
}
