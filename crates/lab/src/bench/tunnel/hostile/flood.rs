//! Initiations by whoever has the far end's public key, from a million forged sources: what they leave of a session, and
//! whether a peer that has none gets one.
//!
//! Contract: a fixed rate, by a raw socket of the third host, to which all sources are routed, so cookies leave as they
//! would anywhere. It is compared with the same datagrams to a closed port.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use packet::craft::{Addresses, Craft, Message};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use tunnel::message::INITIATION;
use tunnel::{Config, Due, PeerConfig, Prefix, PrivateKey, Received, SystemEntropy, Tunnel};

use super::beside::{CLOSED, rate};
use super::datagrams::{config, initiation};
use super::sender::Sender;
use crate::bench::tunnel::overlay::{Overlay, Peer};
use crate::bench::tunnel::plan::Plan;
use crate::bench::tunnel::rounds::{Better, Figure, Measure, Sheet};
use crate::bench::tunnel::site::{PORT, Pair};

/// Initiations a second, and sources that they say they are from, in turn.
const RATE: f64 = 90_000.0;
const SOURCES: u32 = 1_000_000;
const FIRST: u32 = 0x2d00_0000;
/// Initiations that are sent in a row.
const ROW: u32 = 64;
/// Handshakes of a peer, each by an end that has just started.
const HANDSHAKES: usize = 10;
/// Who has no session after as long has none.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often an end is asked what is due.
const LOOK: Duration = Duration::from_millis(20);

/// All of a round.
pub(super) fn measure(
    pair: &mut Pair,
    overlay: &dyn Overlay,
    plan: &Plan,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    let key = PrivateKey::generate(&mut SystemEntropy::new()).map_err(io::Error::other)?;
    let address = Ipv4Addr::new(10, 77, 0, 3);
    pair.far.end.peers.push(Peer { key: key.public(), endpoint: None, address, keepalive: 0 });
    pair.far.start(overlay)?;
    pair.far.place.ip("route add default via 198.51.100.1\n")?;
    pair.near.reach(pair.far.end.address)?;
    let beside = |port| {
        let flood = start(pair, port)?;
        let arrived = rate(pair, plan);
        Ok::<_, io::Error>((arrived?, flood.stop()?))
    };
    let (closed, _) = beside(CLOSED)?;
    let before = pair.far.daemon()?.resident()? as f64;
    let (open, sent) = beside(PORT)?;
    let kept = Measure::new("tunnel.flood_kept", "x", Better::More);
    let figure = Figure::new(open / closed).seen("sent", sent).seen("open", open);
    sheet.note(kept, Ok(figure.seen("closed", closed)));
    let flood = start(pair, PORT)?;
    let tries = (0..HANDSHAKES).map(|_| handshake(pair, &key)).collect::<io::Result<Vec<_>>>();
    let sent = flood.stop()?;
    let most = tries.map(|tries| tries.into_iter().max().unwrap_or_default());
    let measure = Measure::new("tunnel.flood_tries", "initiations", Better::Less);
    sheet.note(measure, most.map(|most| Figure::new(most as f64).seen("sent", sent)));
    let grown = pair.far.daemon()?.resident()? as f64 - before;
    let memory = Measure::new("tunnel.flood_memory", "bytes", Better::Less);
    sheet.note(memory, Ok(Figure::new(grown).seen("before", before)));
    Ok(())
}

/// Begins to send to a port of the far host.
fn start(pair: &Pair, port: u16) -> io::Result<Sender> {
    let message = initiation(&pair.far.end.key.public());
    let payload = message.ok_or_else(|| io::Error::other("no initiation could be made"))?;
    let target = pair.target();
    let raw =
        pair.third.run(|| Ok(socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW))?))?;
    let udp = Message::Udp { source_port: PORT, destination_port: port };
    let addresses = Addresses::V4 { source: [0; 4], destination: target.octets() };
    let mut packet = Craft { ethernet: None, payload, ..Craft::new(addresses, udp) }.frame();
    // The kernel writes the header's checksum; that of UDP would be another one for each source.
    packet[26..28].fill(0);
    let (since, mut sent) = (Instant::now(), 0_u32);
    Sender::of(move || {
        let due = since.elapsed().as_secs_f64() * RATE;
        if f64::from(sent) > due {
            std::thread::yield_now();
            return 0;
        }
        let mut taken = 0;
        for _ in 0..ROW {
            let source = FIRST + sent.wrapping_mul(2_654_435_761) % SOURCES;
            packet[12..16].copy_from_slice(&source.to_be_bytes());
            let to = SocketAddr::from((target, 0));
            taken += usize::from(sendto(&raw, &packet, SendFlags::empty(), &to).is_ok());
            sent += 1;
        }
        taken
    })
}

/// Initiations of a peer until it has a session.
fn handshake(pair: &Pair, key: &PrivateKey) -> io::Result<usize> {
    let target = SocketAddr::from((pair.target(), PORT));
    let socket = pair.third.run(|| UdpSocket::bind(("198.51.100.1", 0)))?;
    socket.set_read_timeout(Some(LOOK))?;
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
    let own = Config { started_unix: unix.as_nanos() as u64, ..config(key.clone()) };
    let mut end = Tunnel::new(own, Box::new(SystemEntropy::new())).map_err(io::Error::other)?;
    let inner = Prefix::new(pair.far.end.address.into(), 32).map_err(io::Error::other)?;
    let far = pair.far.end.key.public();
    let far = PeerConfig { endpoint: Some(target), allowed: vec![inner], ..PeerConfig::new(far) };
    end.add_peer(&far).map_err(|error| io::Error::other(format!("{error:?}")))?;
    let mut packet = [0; 20];
    (packet[0], packet[3]) = (0x45, 20);
    packet[16..].copy_from_slice(&pair.far.end.address.octets());
    let (since, mut tries, mut bytes) = (Instant::now(), 0, [0; 2048]);
    let _ = end.stage(&packet, 0);
    while since.elapsed() < PATIENCE {
        let now = since.elapsed().as_nanos() as u64;
        while let Some(due) = end.due(now) {
            let Due::Send(sent) = due else { continue };
            tries += usize::from(sent.bytes().len() == INITIATION);
            socket.send_to(sent.bytes(), target)?;
        }
        let came = match socket.recv_from(&mut bytes) {
            Ok((came, _)) => came,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        let now = since.elapsed().as_nanos() as u64;
        if let Received::Established { reply, .. } = end.receive(&bytes[..came], target, now) {
            socket.send_to(reply.bytes(), target)?;
            return Ok(tries);
        }
    }
    Err(io::Error::other(format!("no session after {tries} initiations")))
}
