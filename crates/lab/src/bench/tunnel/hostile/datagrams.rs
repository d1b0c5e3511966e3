//! What is sent: noise; messages of the right form and length that nobody made; recorded messages, as they were, cut, or
//! changed in a bit; and initiations of ours by somebody whom nobody knows, who has the far end's public key.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use pktio::{AfPacketConfig, AfPacketPort, Burst, Pool, Port};
use tunnel::{
    Config, Due, Offer, PeerConfig, Prefix, PrivateKey, PublicKey, SystemEntropy, Tunnel,
};

use crate::bench::tunnel::namespace::Namespace;
use crate::bench::tunnel::site::{PORT, UNDER};

/// Of each kind.
const EACH: usize = 256;
/// Bytes of the longest noise: what an outer packet holds.
const LONGEST: usize = 1472;
/// Bytes of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
/// Recorded datagrams that are kept: those of the handshake are the first.
const KEPT: usize = 64;
/// Until what was sent has been seen.
const SETTLE: Duration = Duration::from_millis(300);

/// A recording of what a host sends and gets.
pub(super) struct Recording(AfPacketPort);

impl Recording {
    /// Begins.
    pub(super) fn start(place: &Namespace) -> io::Result<Self> {
        let open = || {
            let config = AfPacketConfig::new(UNDER);
            AfPacketPort::open(&config, &Pool::new(64, 2048, 0)).map_err(io::Error::other)
        };
        place.run(open).map(Self)
    }

    /// Ends, and gives the tunnel's datagrams.
    pub(super) fn finish(mut self) -> io::Result<Vec<Vec<u8>>> {
        let (since, mut burst) = (Instant::now(), Burst::new());
        let mut datagrams = Vec::new();
        while since.elapsed() < SETTLE && datagrams.len() < KEPT {
            if self.0.rx_burst(&mut burst).map_err(io::Error::other)? == 0 {
                thread::sleep(Duration::from_millis(1));
            }
            datagrams
                .extend(burst.iter().filter_map(|frame| of_tunnel(frame.bytes)).map(Vec::from));
        }
        match datagrams.is_empty() {
            true => Err(io::Error::other("no datagram of the tunnel was seen")),
            false => Ok(datagrams),
        }
    }
}

/// What a frame carries to the tunnel's port.
fn of_tunnel(frame: &[u8]) -> Option<&[u8]> {
    let is_udp = frame.get(12..15)? == [8, 0, 0x45] && *frame.get(23)? == 17;
    let to = u16::from_be_bytes(*frame.get(36..)?.first_chunk()?);
    let length = u16::from_be_bytes(*frame.get(38..)?.first_chunk()?);
    let datagram = frame.get(HEADERS..HEADERS + usize::from(length).checked_sub(8)?)?;
    (is_udp && to == PORT).then_some(datagram)
}

/// All that is sent in turn, mixed, to the holder of a key.
pub(super) fn pool(recorded: &[Vec<u8>], to: &PublicKey) -> Vec<Vec<u8>> {
    let mut rng = Rng::with_seed(22);
    let mut all = strangers(to);
    for _ in 0..EACH {
        let (noise, of) = (noise(&mut rng), rng.choice(recorded));
        all.push(noise);
        if let Some(recorded) = of {
            all.push(recorded.clone());
            all.push(recorded[..rng.usize(..recorded.len().max(1))].to_vec());
            all.push(changed(recorded, &mut rng));
            all.push(imitated(recorded, &mut rng));
        }
    }
    rng.shuffle(&mut all);
    all
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    let length = rng.usize(..=LONGEST);
    std::iter::repeat_with(|| rng.u8(..)).take(length).collect()
}

/// With another bit.
fn changed(datagram: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut datagram = datagram.to_vec();
    if !datagram.is_empty() {
        let at = rng.usize(..datagram.len());
        datagram[at] ^= 1 << rng.u8(..8);
    }
    datagram
}

/// Of the same type and length.
fn imitated(datagram: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut datagram = datagram.to_vec();
    datagram.iter_mut().skip(4).for_each(|byte| *byte = rng.u8(..));
    datagram
}

/// Initiations of ours, each of a key of its own, as good as those of a peer but for whom they are from.
fn strangers(to: &PublicKey) -> Vec<Vec<u8>> {
    (0..EACH).filter_map(|_| initiation(to)).collect()
}

/// One initiation of somebody.
pub(super) fn initiation(to: &PublicKey) -> Option<Vec<u8>> {
    let key = PrivateKey::generate(&mut SystemEntropy::new()).ok()?;
    let mut stranger = Tunnel::new(config(key), Box::new(SystemEntropy::new())).ok()?;
    let inner = Prefix::new([10, 0, 0, 1].into(), 32).ok()?;
    let endpoint = SocketAddr::from(([192, 0, 2, 1], PORT));
    let peer =
        PeerConfig { endpoint: Some(endpoint), allowed: vec![inner], ..PeerConfig::new(*to) };
    stranger.add_peer(&peer).ok()?;
    let mut packet = [0; 20];
    (packet[0], packet[3], packet[16], packet[19]) = (0x45, 20, 10, 1);
    // It has no session: that is what the initiation is for.
    let _ = stranger.stage(&packet, 0);
    match stranger.due(0)? {
        Due::Send(outgoing) => Some(outgoing.bytes().to_vec()),
        _ => None,
    }
}

/// An end of this machine.
pub(super) fn config(key: PrivateKey) -> Config {
    let started_unix = 1_700_000_000_000_000_000;
    Config { key, offer: Offer::of_this_machine(), started: 0, started_unix, mtu: 1420 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tunnel::message::INITIATION;

    #[test]
    fn the_pool_has_every_kind_and_is_the_same_each_time_but_for_keys() {
        let to = PrivateKey::new([7; 32]).public();
        let recorded = vec![vec![1; 148], vec![4; 64]];
        let all = pool(&recorded, &to);
        assert_eq!(all.len(), 6 * EACH);
        assert!(all.iter().all(|datagram| datagram.len() <= LONGEST));
        let count = |is: &dyn Fn(&[u8]) -> bool| all.iter().filter(|one| is(one)).count();
        assert!(count(&|one| one == recorded[0] || one == recorded[1]) >= EACH);
        assert!(count(&|one| one.len() == INITIATION && one[..2] == [0x81, 1]) >= EACH);
        let bits = |one: &[u8], other: &[u8]| -> u32 {
            one.iter().zip(other).map(|(one, other)| (one ^ other).count_ones()).sum()
        };
        let one_bit = |one: &[u8]| {
            recorded.iter().any(|other| one.len() == other.len() && bits(one, other) == 1)
        };
        assert_eq!(count(&one_bit), EACH);
        // Without a recording there is noise, and strangers.
        assert_eq!(pool(&[], &to).len(), 2 * EACH);
    }

    #[test]
    fn only_what_goes_to_the_tunnel_is_recorded() {
        let mut frame = vec![0; HEADERS + 10];
        (frame[12], frame[14], frame[23], frame[39]) = (8, 0x45, 17, 12);
        frame[36..38].copy_from_slice(&PORT.to_be_bytes());
        frame[HEADERS] = 9;
        assert_eq!(of_tunnel(&frame), Some(&[9, 0, 0, 0][..]));
        for (at, other) in [(12, 0x86), (23, 6), (37, 1), (39, 90)] {
            let mut frame = frame.clone();
            frame[at] = other;
            assert_eq!(of_tunnel(&frame), None);
        }
        assert_eq!(of_tunnel(&frame[..40]), None);
    }
}
