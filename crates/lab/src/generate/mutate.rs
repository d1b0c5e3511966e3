//! Breaks one thing in a packet: a field while it is a draft, or bytes of the finished frame.

use super::draft::{Draft, set_checksum, set_lengths};
use super::{Draw, v6};
use crate::scene::{Scene, Wire};

/// Changes one field.
pub(super) fn draft(draw: &mut Draw, p: &mut Draft) {
    match draw.rng.u8(..16) {
        0 => p.source = draw.address(),
        1 => p.destination = draw.address(),
        2 => p.tos = draw.rng.u8(..),
        3 => p.ttl = draw.byte(),
        4 => p.ports.0 = near(draw, p.ports.0),
        5 => p.ports.1 = near(draw, p.ports.1),
        6 => p.flags = draw.rng.u8(..),
        7 => p.icmp = (draw.byte(), draw.byte()),
        8 => p.protocol = draw.byte(),
        9 => p.fragment = fragment(draw),
        10 => p.payload = vec![draw.rng.u8(..); draw.pick(&[0, 1, 7, 8, 100, 1000, 1400])],
        11 => p.tcp_options = tcp_options(draw),
        12 => p.reserved = draw.rng.u8(..16),
        13 => macs(draw, p),
        14 if p.ipv6() => {
            let kind = draw.pick(&[0, 43, 44, 51, 60, 59, 50, 135]);
            let at = draw.rng.usize(..=p.extensions.len());
            let body = v6::extension(draw, kind);
            p.extensions.insert(at, (kind, body));
        }
        _ => p.total_len = Some(draw.pick(&[20, 28, 40, 41, 48, 60, 64, 576, 1500])),
    }
}

fn near(draw: &mut Draw, port: u16) -> u16 {
    match draw.rng.u8(..3) {
        0 => port.wrapping_add(1),
        1 => port.wrapping_sub(1),
        _ => draw.port(),
    }
}

fn fragment(draw: &mut Draw) -> u16 {
    let offset = draw.pick(&[0, 0, 1, 2, 5, 185, 0x1fff]);
    if draw.ipv6() {
        offset << 3 | draw.rng.u16(..2)
    } else {
        offset | draw.pick(&[0, 0x2000, 0x4000, 0x8000, 0x6000])
    }
}

fn tcp_options(draw: &mut Draw) -> Vec<u8> {
    let mut options = Vec::new();
    while options.len() < 30 && !draw.one_in(4) {
        let kind = draw.pick(&[0, 1, 1, 2, 3, 4, 5, 8, 30, 253, 255]);
        options.push(kind);
        if kind > 1 {
            options.push(draw.pick(&[0, 1, 2, 3, 4, 4, 10, 40, 255]));
            options.extend([5, 0xb4]);
        }
    }
    options
}

fn macs(draw: &mut Draw, p: &mut Draft) {
    match draw.rng.u8(..6) {
        0 => p.macs[0] = [0xff; 6],
        1 => p.macs[0] = [1, 0, 0x5e, 0, 0, 1],
        2 => p.macs[0] = [2, 0, 0, 0, 0, 0x77],
        3 => p.vlan = Some(draw.pick(&[0, 7, 8, 0x6007, 0x6000])),
        _ => p.macs[1][5] = draw.byte(),
    }
}

/// Numbers the frame, and now and then breaks it below what a draft can say.
pub(super) fn frame(draw: &mut Draw, frame: &mut Vec<u8>, number: u16) {
    let network = network_offset(draw.scene, frame);
    let ipv6 = draw.ipv6();
    let mut checksum = true;
    match draw.rng.u8(..32) {
        // Cut at any byte, the header telling the truth about it.
        0..=3 => {
            cut(draw, frame, network);
            set_lengths(&mut frame[network..], ipv6);
        }
        // Cut, the header not knowing of it.
        4 => cut(draw, frame, network),
        // Padding after the packet.
        5 | 6 => frame.extend(vec![0xee; draw.rng.usize(1..20)]),
        // A length that lies.
        7 => {
            let at = network + if ipv6 { 4 } else { 2 };
            let room = draw.pick(&[0, 1, 19, 20, 24, 39, 65535]);
            put(frame, at, &u16::to_be_bytes(room));
        }
        // Any byte of the network header.
        8 | 9 => {
            let at = network + draw.rng.usize(..if ipv6 { 40 } else { 20 });
            let value = draw.rng.u8(..);
            put(frame, at, &[value]);
        }
        // Any byte after it.
        10..=12 if frame.len() > network + 20 => {
            let at = draw.rng.usize(network + 20..frame.len());
            let value = draw.byte();
            put(frame, at, &[value]);
        }
        13 => checksum = false,
        14 => {
            // Header length without the options to go with it.
            let first = if ipv6 { 0x60 } else { 0x40 | draw.rng.u8(..16) };
            put(frame, network, &[first]);
        }
        _ => {}
    }
    let at = if frame.get(network).is_some_and(|first| first >> 4 == 6) { 2 } else { 4 };
    put(frame, network + at, &number.to_be_bytes());
    if checksum {
        set_checksum(frame.get_mut(network..).unwrap_or_default());
    }
}

/// Where the network header of a frame begins.
#[must_use]
pub fn network_offset(scene: Scene, frame: &[u8]) -> usize {
    match scene.wire {
        Wire::Tun => 0,
        _ if frame.get(12..14) == Some(&[0x81, 0]) => 18,
        Wire::Tap | Wire::Veth => 14,
    }
}

fn cut(draw: &mut Draw, frame: &mut Vec<u8>, network: usize) {
    let fixed = network + if draw.ipv6() { 40 } else { 20 };
    let least = if draw.one_in(10) { network + 1 } else { fixed };
    if least < frame.len() {
        frame.truncate(draw.rng.usize(least..frame.len()));
    }
}

fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = frame.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}
