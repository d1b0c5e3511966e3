//! Chunks on their way through the rings: each comes back once, and what finds no room is counted.

use std::fs;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use pktio::{AfXdpConfig, Burst, FrameBuf, FrameMeta, Port, Umem, XdpMode};

use super::port::{drain, moved, open, small, umem_for};
use crate::af_packet::wire::{PATIENCE, Wire, frame, number, read, receive, rest, write};

/// Bytes of this process's memory that are not on a disk.
fn resident() -> usize {
    let said = fs::read_to_string("/proc/self/statm").unwrap();
    4096 * said.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
}

/// Whether this is a process of its own for this test, whose memory nobody else adds to; else it is run in one.
fn is_alone(test: &str) -> bool {
    const ALONE: &str = "TAMIS_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let ran = Command::new(program).args([test, "--exact"]).env(ALONE, "1").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    false
}

/// A million frames in circles between two ports of one UMEM, every seventh dropped, by another thread, and replaced.
#[test]
fn every_chunk_comes_back_once() {
    if !is_alone("af_xdp::rings::every_chunk_comes_back_once") {
        return;
    }
    const FRAMES: u64 = 1_000_000;
    const IN_CIRCLES: u32 = 48;
    let Some(wire) = Wire::new() else { return };
    let umem = umem_for(&small("e0", XdpMode::Native), 2);
    let mut ports = [
        open(&wire.ours, &small("e0", XdpMode::Native), &umem).unwrap(),
        open(&wire.theirs, &small("p0", XdpMode::Native), &umem).unwrap(),
    ];
    let (frames, received) = mpsc::sync_channel::<FrameBuf>(16);
    let drops = thread::spawn(move || {
        received.into_iter().inspect(|frame| assert_eq!(frame.bytes().len(), 60)).count()
    });
    let mut burst = Burst::new();
    (0..IN_CIRCLES).for_each(|count| burst.push(&frame(count, 60), FrameMeta::default()));
    assert_eq!(ports[0].tx_burst(&mut burst).unwrap(), IN_CIRCLES as usize);
    let (mut passed, mut dropped, mut before) = (0, 0, 0);
    let mut out = Burst::new();
    let mut last = Instant::now();
    while passed < FRAMES {
        for from in 0..2 {
            let count = ports[from].rx_burst(&mut burst).unwrap();
            if count > 0 {
                last = Instant::now();
            }
            let is_stuck = || last.elapsed() >= PATIENCE;
            assert!(!is_stuck(), "stuck at {passed}: {:?}", ports[from].losses());
            for moved in moved(&mut burst) {
                passed += 1;
                if passed % 7 == 0 {
                    out.push(moved.bytes(), FrameMeta::default());
                    frames.send(moved).unwrap();
                    dropped += 1;
                } else {
                    out.push_frame(moved);
                }
            }
            while !out.is_empty() {
                assert!(!is_stuck(), "stuck at {passed}: {} chunks are free", umem.free());
                ports[1 - from].tx_burst(&mut out).unwrap();
            }
        }
        if before == 0 && passed > FRAMES / 10 {
            before = resident();
        }
    }
    drop(frames);
    assert_eq!(drops.join().unwrap(), dropped);
    assert!(resident() < before + (4 << 20), "{before} bytes, then {}", resident());
    for port in &ports {
        assert_eq!((port.stats().rx_lost, port.losses()), (0, Default::default()));
    }
    assert_eq!(umem.lent(), 0);
}

/// Chunks that frames have are not there to receive into; once they are back, it goes on.
#[test]
fn without_chunks_frames_are_lost_and_counted() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Native);
    let umem = Umem::new(32, 2048).unwrap();
    let (mut port, peer) = (open(&wire.ours, &config, &umem).unwrap(), wire.peer());
    (0..100).for_each(|count| write(&peer, &frame(count, 60)));
    let mut held = Vec::new();
    let mut burst = Burst::with_capacity(0);
    while held.len() < 32 {
        rest(&port);
        port.rx_burst(&mut burst).unwrap();
        held.extend(moved(&mut burst));
    }
    assert!(held.iter().map(|frame| number(frame.bytes())).eq(0..32));
    assert!(drain(&mut port).is_empty());
    let (losses, stats) = (port.losses(), port.stats());
    assert_eq!((losses.rx_dropped, losses.rx_fill_ring_empty), (68, 68), "{losses:?}");
    assert_eq!((stats.rx_lost, umem.lent(), umem.free()), (68, 32, 0), "{stats:?}");
    held.clear();
    assert_eq!(umem.free(), 32);
    assert_eq!(port.rx_burst(&mut burst).unwrap(), 0, "it has chunks again");
    write(&peer, &frame(7, 60));
    assert_eq!(number(&receive(&mut port, 1)[0].0), 7);
}

/// With chunks enough, and nobody who reads, it is the receive ring that has no room.
#[test]
fn a_full_receive_ring_is_counted() {
    let Some(wire) = Wire::new() else { return };
    let config = AfXdpConfig { ring_frames: 64, ..small("e0", XdpMode::Native) };
    let umem = umem_for(&config, 1);
    let (mut port, peer) = (open(&wire.ours, &config, &umem).unwrap(), wire.peer());
    (0..64).for_each(|count| write(&peer, &frame(count, 60)));
    let mut burst = Burst::with_capacity(0);
    // Takes 16 of them, and fills as many chunks in; then more come than there is room for.
    assert_eq!(receive_once(&mut port, &mut burst), 16);
    assert_eq!(umem.lent(), 16);
    (64..100).for_each(|count| write(&peer, &frame(count, 60)));
    let numbers: Vec<u32> = drain(&mut port).iter().map(|bytes| number(bytes)).collect();
    let lost = port.stats().rx_lost;
    assert!(lost > 0 && numbers.len() as u64 + 16 + lost == 100, "{numbers:?}, lost {lost}");
    assert_eq!(port.stats().rx_lost, lost, "a loss is counted once");
    drop(burst);
    write(&peer, &frame(7, 60));
    assert_eq!(number(&receive(&mut port, 1)[0].0), 7, "it goes on");
}

fn receive_once(port: &mut pktio::AfXdpPort, burst: &mut Burst) -> usize {
    let began = Instant::now();
    while port.rx_burst(burst).unwrap() == 0 {
        assert!(began.elapsed() < PATIENCE);
        rest(port);
    }
    burst.len()
}

/// While the interface is down the kernel takes nothing out of the ring.
#[test]
fn a_full_transmit_ring_is_counted_and_empties() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Native);
    let umem = umem_for(&config, 1);
    let mut port = open(&wire.ours, &config, &umem).unwrap();
    wire.ours.command("ip link set e0 down");
    let mut burst = Burst::new();
    (0..100).for_each(|count| burst.push(&frame(count, 60), FrameMeta::default()));
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 64);
    assert_eq!((burst.len(), port.stats().tx_full, port.stats().tx_frames), (36, 36, 64));
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 0);
    assert_eq!(port.stats().tx_full, 72);
    assert_eq!(number(burst.get(0).unwrap().bytes), 64, "those that stay are in order");
    wire.ours.command("ip link set e0 up");
    while !wire.ours.command("ip link show dev e0").contains("state UP") {}
    let peer = wire.peer();
    let mut nothing = Burst::with_capacity(0);
    port.rx_burst(&mut nothing).unwrap();
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 36);
    for count in 0..100 {
        assert_eq!(number(&read(&peer)), count);
    }
}

/// With no chunk to copy into, frames stay; frames of the UMEM before them leave.
#[test]
fn what_there_is_no_memory_for_stays_in_the_burst() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Native);
    let umem = Umem::new(64, 2048).unwrap();
    let (mut port, peer) = (open(&wire.ours, &config, &umem).unwrap(), wire.peer());
    assert_eq!(umem.free(), 0, "all of them are in the fill ring");
    write(&peer, &frame(0, 60));
    let mut burst = Burst::new();
    receive_once(&mut port, &mut burst);
    (1..3).for_each(|count| burst.push(&frame(count, 60), FrameMeta::default()));
    assert_eq!(port.tx_burst(&mut burst).unwrap(), 1);
    assert_eq!((burst.len(), port.stats().tx_full), (2, 2));
    assert_eq!(number(&read(&peer)), 0);
}

#[test]
fn memory_outlives_its_port_and_another_can_be_opened() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Native);
    let (umem, peer) = (umem_for(&config, 1), wire.peer());
    let mut port = open(&wire.ours, &config, &umem).unwrap();
    (0..5).for_each(|count| write(&peer, &frame(count, 60)));
    let mut burst = Burst::with_capacity(0);
    receive_once(&mut port, &mut burst);
    drop((port, umem));
    let umem = umem_for(&config, 1);
    let mut port = open(&wire.ours, &config, &umem).unwrap();
    (5..8).for_each(|count| write(&peer, &frame(count, 60)));
    assert_eq!(receive(&mut port, 3).len(), 3);
    let numbers: Vec<u32> = burst.iter().map(|frame| number(frame.bytes)).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u32) && !numbers.is_empty());
}
