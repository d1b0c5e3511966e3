//! A host whose clock is years behind what it was after it restarts, as one without a battery is: its peer hears it at
//! once all the same. Needs root and `ping`; without, it says so and skips.

use std::net::UdpSocket;
use std::time::{Duration, SystemTime};

use ::tunnel::{
    Config, Due, Offer, PeerConfig, PrivateKey, PublicKey, Received, SystemEntropy, Tunnel,
};

use super::hosts::{Hosts, INSIDE, OUTSIDE, PORT, allowed};

const YEAR: u64 = 365 * 24 * 3_600;

/// The first host makes a session while its clock is `years` years ahead, and then ends as a crash does: the second host
/// takes no initiation that is not later.
fn ahead(hosts: &Hosts, years: u64) {
    let key = std::fs::read_to_string(hosts.folder.file("a.key")).unwrap();
    let key: PrivateKey = key.trim_end().parse().unwrap();
    let peer: PublicKey = hosts.public("b.key").parse().unwrap();
    let place = format!("{}:{PORT}", OUTSIDE[1]).parse().unwrap();
    let unix = SystemTime::UNIX_EPOCH.elapsed().unwrap() + Duration::from_secs(years * YEAR);
    let started_unix = unix.as_nanos() as u64;
    let config =
        Config { key, offer: Offer::of_this_machine(), started: 0, started_unix, mtu: 1_420 };
    let mut tunnel = Tunnel::new(config, Box::new(SystemEntropy::new())).unwrap();
    let keepalive = Some(1_000_000_000);
    tunnel
        .add_peer(&PeerConfig { endpoint: Some(place), keepalive, ..PeerConfig::new(peer) })
        .unwrap();
    let socket = hosts.within(0, || UdpSocket::bind((OUTSIDE[0], PORT)).unwrap());
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut bytes = [0; 2_048];
    let mut now = 0;
    loop {
        now += 1;
        while let Some(Due::Send(due)) = tunnel.due(now) {
            socket.send_to(due.bytes(), due.to()).unwrap();
        }
        let (len, from) = socket.recv_from(&mut bytes).unwrap();
        if let Received::Established { reply, .. } = tunnel.receive(&bytes[..len], from, now) {
            socket.send_to(reply.bytes(), reply.to()).unwrap();
            return;
        }
    }
}

#[test]
fn a_host_whose_clock_was_reset_is_back_at_once() {
    let Some(mut hosts) = Hosts::with_tools("tunnel-clock", &["ping"]) else { return };
    hosts.write(0, "", &format!("endpoint = \"{}:{PORT}\"\n{}", OUTSIDE[1], allowed(1)));
    hosts.write(1, "", &allowed(0));
    hosts.up(1);
    for years in [10, 30] {
        ahead(&hosts, years);
        hosts.up(0);
        // The first packet waits until there is a session. Without what is tested there is none for years, so a machine
        // that is busy gets its time.
        assert!(hosts.pings(0, INSIDE[1], &["-W", "10"]), "{years} years later: {}", hosts.peer(0));
        assert!(hosts.pings(1, INSIDE[0], &["-W", "10"]), "{years} years later, back");
        hosts.kill(0);
    }
}
