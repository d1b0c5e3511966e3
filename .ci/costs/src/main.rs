//! `tamis-costs seal|open N`: seals N packets of 100 bytes for a peer; `open` has the peer open each of them, too.
//!
//! `make costs` counts the instructions of it under valgrind. Packets are short, so that what the protocol itself
//! does for a packet is not hidden by its cipher; keys are the same every time.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, bail};
use tunnel::limits::SECOND;
use tunnel::{
    Config, Due, Entropy, HEADROOM, NoEntropy, Offer, PeerConfig, Prefix, PrivateKey, Received,
    Staged, TAILROOM, Tunnel,
};

const LEN: usize = 100;
const NOW: u64 = 1_000 * SECOND;

/// The entropy of an end: bytes that count upwards.
struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        for byte in bytes {
            self.0 = self.0.wrapping_add(1);
            *byte = self.0;
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, count] = &arguments[..] else { bail!("expected: seal|open N") };
    let opens = what == "open";
    let count: u32 = count.parse()?;
    let [mut a, mut b] = [end(1)?, end(2)?];
    let mut packet = [0x5a; LEN];
    packet[..4].copy_from_slice(&[0x45, 0, 0, LEN as u8]);
    packet[12..16].copy_from_slice(&overlay(1).octets());
    packet[16..20].copy_from_slice(&overlay(2).octets());
    shake(&mut a, &mut b, &packet)?;
    let mut room = [0; HEADROOM + LEN + TAILROOM];
    for _ in 0..count {
        room[HEADROOM..HEADROOM + LEN].copy_from_slice(&packet);
        let Staged::Seal(sealing) = a.stage(&packet, NOW) else { bail!("not sealed") };
        let sealed = sealing.seal(&mut room, HEADROOM..HEADROOM + LEN);
        let datagram = &mut room[sealed.ok().context("not sealed")?];
        if opens {
            let Received::Opening(opening) = b.receive(datagram, place(1), NOW) else {
                bail!("not opened")
            };
            let opened = opening.open(datagram).ok().context("not opened")?;
            b.release(opened, datagram, NOW).ok().context("not released")?;
        }
    }
    Ok(())
}

/// The end of a number, whose peer is the other one.
fn end(number: u8) -> Result<Tunnel> {
    let key = |number| PrivateKey::generate(&mut Counting(number)).ok().context("no key");
    let other = 3 - number;
    let offer = Offer::BOTH;
    let config = Config { key: key(number)?, offer, started: NOW, started_unix: NOW, mtu: 1_420 };
    let mut tunnel = Tunnel::new(config, Box::new(Counting(number))).ok().context("no tunnel")?;
    let peer = PeerConfig {
        endpoint: Some(place(other)),
        allowed: vec![Prefix::new(overlay(other).into(), 32).context("no prefix")?],
        ..PeerConfig::new(key(other)?.public())
    };
    tunnel.add_peer(&peer).ok().context("no peer")?;
    Ok(tunnel)
}

/// The handshake that a packet of the first end's brings about.
fn shake(a: &mut Tunnel, b: &mut Tunnel, packet: &[u8]) -> Result<()> {
    let Staged::Wait(_) = a.stage(packet, NOW) else { bail!("a session before its handshake") };
    let Some(Due::Send(initiation)) = a.due(NOW) else { bail!("no initiation") };
    let answered = b.receive(initiation.bytes(), place(1), NOW);
    let Received::Answered { reply, .. } = answered else { bail!("no answer") };
    let established = a.receive(reply.bytes(), place(2), NOW);
    let Received::Established { .. } = established else { bail!("no session") };
    Ok(())
}

fn place(number: u8) -> SocketAddr {
    ([192, 0, 2, number], 51_820).into()
}

fn overlay(number: u8) -> Ipv4Addr {
    [10, 0, 0, number].into()
}
