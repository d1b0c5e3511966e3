//! What tracking costs: nanoseconds for a lookup and update, bytes for a flow, and a flood of SYNs.
//!
//! Timing tests say nothing on a busy machine, so they run only with `TAMIS_TIMING=1`, in release mode:
//! `TAMIS_TIMING=1 cargo test --release -p tamis-conntrack --test conntrack cost -- --nocapture`.

use conntrack::{Certainty, Config, CtState, Mode, Tracker, Visit, Zone};
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{Checksums, Link, Packet, Snap};
use std::time::Instant;

const FLOWS: u32 = 262_144;

fn config() -> Config {
    Config { mode: Mode::Kernel, ..Config::default() }
}

/// A segment of flow `n`, of either direction.
fn segment(n: u32, flags: Flags, is_reply: bool) -> Vec<u8> {
    let client = (0x0a00_0000 + (n.wrapping_mul(2_654_435_761) >> 8)).to_be_bytes();
    let server = [192, 0, 2, 1];
    let port = 1024 + (n % 60_000) as u16;
    let (source, destination) = if is_reply { (server, client) } else { (client, server) };
    let ports = if is_reply { [443, port] } else { [port, 443] };
    let acknowledgement = u32::from(flags.contains(Flags::ACK)) * 2;
    let sequence = if flags.contains(Flags::SYN) { 1 } else { 2 };
    let message = Message::Tcp {
        source_port: ports[0],
        destination_port: ports[1],
        flags,
        sequence,
        acknowledgement,
        window: 60_000,
    };
    let addresses = Addresses::V4 { source, destination };
    Craft { ethernet: None, ..Craft::new(addresses, message) }.frame()
}

fn pass(tracker: &mut Tracker, frame: &mut [u8], now: u64) -> Option<CtState> {
    let len = frame.len();
    let packet = Packet::parse(frame, len, Link::Raw, Checksums::Ignore);
    let visit = Visit { now, frame: 1, ..Visit::default() };
    let view = tracker.track(&packet, &visit);
    tracker.confirm(&packet, &view, now, Certainty::Certain);
    view.state()
}

#[test]
fn a_full_table_takes_at_most_96_mib() {
    let bytes = Tracker::new(config()).bytes_when_full();
    eprintln!("{} bytes a flow, {} MiB", bytes / FLOWS as usize, bytes >> 20);
    assert!(bytes <= 96 << 20);
}

#[test]
fn lookup_and_update() {
    if std::env::var_os("TAMIS_TIMING").is_none() {
        eprintln!("skipped: TAMIS_TIMING is not set");
        return;
    }
    for (flows, burst) in [(1_000, 1), (FLOWS, 1), (FLOWS, 32)] {
        let best = timed(flows, burst);
        eprintln!("{flows} flows, bursts of {burst}: best {best:.1} ns for track and confirm");
    }
}

/// The best of some rounds, in nanoseconds a packet, with this number of flows in the table.
fn timed(flows: u32, burst: usize) -> f64 {
    let mut tracker = Tracker::new(config());
    for n in 0..flows {
        pass(&mut tracker, &mut segment(n, Flags::SYN, false), 1);
        pass(&mut tracker, &mut segment(n, Flags::SYN.union(Flags::ACK), true), 2);
        pass(&mut tracker, &mut segment(n, Flags::ACK, false), 3);
    }
    assert!(tracker.len() > flows as usize / 100 * 99, "{}", tracker.len());
    // Frames in an order of their own, so that flows are met at random; made and read in advance in
    // pieces that stay in the cache.
    let mut best = f64::MAX;
    for round in 0..80u32 {
        let mut frames: Vec<Vec<u8>> = (0..1024u32)
            .map(|i| {
                let n = (round * 1024 + i).wrapping_mul(2_246_822_519) % flows;
                segment(n, Flags::ACK, i % 2 == 1)
            })
            .collect();
        let packets: Vec<Packet<'_>> = frames
            .iter_mut()
            .map(|frame| {
                let len = frame.len();
                Packet::parse(frame, len, Link::Raw, Checksums::Ignore)
            })
            .collect();
        let visit = Visit { now: 10, frame: 1, ..Visit::default() };
        let start = Instant::now();
        let mut established = 0;
        for burst in packets.chunks(burst) {
            if burst.len() > 1 {
                let found = burst.iter().map(|packet| {
                    let headers = packet.headers();
                    (Snap::new(packet.frame(), headers.end), headers)
                });
                tracker.prefetch(found, Zone::default());
            }
            for packet in burst {
                let view = tracker.track(packet, &visit);
                tracker.confirm(packet, &view, 10, Certainty::Certain);
                established += u32::from(view.state() == Some(CtState::Established));
            }
        }
        let each = start.elapsed().as_nanos() as f64 / packets.len() as f64;
        assert!(established > 1000, "{established}");
        best = best.min(each);
    }
    best
}

#[test]
fn a_flood_of_ten_million_sources() {
    if std::env::var_os("TAMIS_TIMING").is_none() {
        eprintln!("skipped: TAMIS_TIMING is not set");
        return;
    }
    let mut tracker = Tracker::new(config());
    let mut frame = segment(1, Flags::SYN, false);
    let mut slowest = 0.0f64;
    for million in 0..10u32 {
        let start = Instant::now();
        for n in 0..1_000_000u32 {
            let source = (million * 1_000_000 + n).wrapping_mul(2_654_435_761);
            frame[12..16].copy_from_slice(&source.to_be_bytes());
            pass(&mut tracker, &mut frame, u64::from(million * 1_000_000 + n) * 1000);
        }
        let each = start.elapsed().as_nanos() as f64 / 1e6;
        slowest = slowest.max(each);
        eprintln!("million {million}: {each:.0} ns a SYN, {} flows", tracker.len());
        assert!(tracker.len() <= FLOWS as usize);
    }
    eprintln!("slowest {slowest:.0} ns a SYN; {:?}", tracker.stats());
}
