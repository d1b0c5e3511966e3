//! The frames are what their descriptors say, and stay valid whatever the job did to them.

use super::*;
use packet::checksum::{pseudo_v4, sum};

/// The frames as the job has left them.
fn after(packets: u64, burst: usize) -> Frames {
    let mut frames = Frames::new();
    frames.floor(packets, burst);
    frames
}

fn bytes(frames: &Frames, number: usize) -> &[u8] {
    let at = frames.at(number);
    &frames.memory[at..at + frames.ready[number].length as usize]
}

/// The sum over an IPv4 packet's upper layer and pseudo header: 0xffff if its checksum is right.
fn upper_sum(descriptor: &Descriptor, frame: &[u8]) -> u16 {
    let (ip, l4) = (usize::from(descriptor.network), usize::from(descriptor.transport));
    let address = |at: usize| [0, 1, 2, 3].map(|byte| frame[at + byte]);
    let upper = &frame[l4..];
    let pseudo =
        pseudo_v4(address(ip + 12), address(ip + 16), descriptor.protocol, upper.len() as u16);
    add(sum(upper), pseudo)
}

#[test]
fn every_checksum_is_right_after_many_rewrites() {
    let frames = after(20 * COUNT as u64 + 77, 64);
    let (mut without, mut checked) = (0, 0);
    for (number, descriptor) in frames.ready.iter().enumerate() {
        if descriptor.ether_type != 0x0800 {
            continue;
        }
        let frame = bytes(&frames, number);
        let (ip, l4) = (usize::from(descriptor.network), usize::from(descriptor.transport));
        assert_eq!(sum(&frame[ip..ip + 20]), 0xffff, "frame {number}");
        match descriptor.protocol {
            17 if frame[l4 + 6..l4 + 8] == [0, 0] => without += 1,
            6 | 17 => {
                checked += 1;
                assert_eq!(upper_sum(descriptor, frame), 0xffff, "frame {number}");
            }
            _ => {}
        }
    }
    assert!(without > 100 && checked > 5000, "{without}, {checked}");
}

#[test]
fn all_that_the_job_may_do_happens_and_the_rest_is_left_alone() {
    let (before, after) = (after(0, 1), after(COUNT as u64, 32));
    let [passed, dropped] = after.counts;
    assert_eq!(passed + dropped, COUNT as u64);
    assert!(dropped > 500 && passed > 5000, "{passed}, {dropped}");
    let mut changed = 0;
    for number in 0..COUNT {
        let (old, new) = (bytes(&before, number), bytes(&after, number));
        let descriptor = &after.ready[number];
        let is_nat = descriptor.ether_type == 0x0800 && matches!(descriptor.protocol, 6 | 17);
        assert!(is_nat || old == new, "frame {number}");
        changed += u64::from(old != new);
        assert_eq!(old.get(HEAD..), new.get(HEAD..), "frame {number}");
    }
    assert!(changed > 4000 && changed <= passed);
}

#[test]
fn some_datagrams_come_to_a_checksum_of_zero_and_are_sent_with_ones() {
    let frames = after(COUNT as u64, 32);
    let ones = frames.ready.iter().enumerate().filter(|(number, descriptor)| {
        let at = usize::from(descriptor.transport) + 6;
        descriptor.protocol == 17 && bytes(&frames, *number)[at..at + 2] == [0xff, 0xff]
    });
    assert!(ones.count() > 100);
}

#[test]
fn the_size_of_a_burst_changes_nothing() {
    let hashes = [1, 32, 100, 256].map(|burst| after(100_000, burst).hash());
    assert_eq!(hashes, [hashes[0]; 4]);
    assert_ne!(hashes[0], after(100_001, 1).hash());
}

#[test]
fn descriptors_have_the_layout_of_a_run() {
    assert_eq!(size_of::<Descriptor>(), 48);
    let offsets = [
        std::mem::offset_of!(Descriptor, length),
        std::mem::offset_of!(Descriptor, network),
        std::mem::offset_of!(Descriptor, ether_type),
        std::mem::offset_of!(Descriptor, protocol),
        std::mem::offset_of!(Descriptor, verdict),
        std::mem::offset_of!(Descriptor, number),
    ];
    assert_eq!(offsets, [16, 28, 32, 34, 39, 40]);
}
