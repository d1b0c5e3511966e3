//! A table that is full, and packets made for its hashes: the views of packets depend on no key.

use crate::net::*;
use conntrack::{Config, CtView, Doubt, Space, States, Status};
use packet::craft::{Addresses, Message};
use proptest::prelude::*;

fn client(port: u16) -> Vec<u8> {
    frame(V4, Message::udp(port, 53), 0)
}

fn full(max: usize) -> Net {
    let mut net = Net::new(Config { max, ..kernel() });
    for port in 0..max as u16 {
        assert_eq!(net.pass_frame(&client(port)).space, Space::Enough);
    }
    net
}

#[test]
fn flows_that_may_have_been_evicted_are_in_doubt() {
    let mut net = full(4);
    let view = net.pass_frame(&client(100));
    assert_eq!((view.state(), view.space), (Some(New), Space::MayBeFull), "or it is dropped");
    for port in 0..4 {
        let view = net.pass_frame(&frame(back(V4), Message::udp(53, port), 0));
        assert_ne!(view.space, Space::Enough, "{port}");
        assert!(view.states.may_be(Established) && view.states.may_be(New), "{:?}", view.states);
    }
}

#[test]
fn assured_flows_stay_and_refuse_others_for_certain() {
    let mut net = full(4);
    let handles: Vec<_> = (0..4).filter_map(|port| net.pass_frame(&client(port)).flow).collect();
    for handle in handles {
        let flow = net.tracker.flow_mut(handle).unwrap();
        assert_eq!(flow.doubt(), Doubt::None);
        assert!(!flow.status().contains(Status::ASSURED));
    }
    // Streams are assured.
    for wait in [1, 3] {
        net.wait(wait);
        for port in 0..4 {
            net.pass_frame(&frame(back(V4), Message::udp(53, port), 0));
            net.pass_frame(&client(port));
        }
    }
    let view = net.with_frame(&client(100), usize::MAX, |_, _, view| view);
    assert_eq!((view.state(), view.space), (Some(Invalid), Space::Full));
    for port in 0..4 {
        let view = net.pass_frame(&client(port));
        assert_eq!((view.state(), view.space), (Some(Established), Space::Enough), "{port}");
    }
}

#[test]
fn a_flow_that_went_here_may_be_there_until_it_would_have_died() {
    let mut net = full(2);
    for port in 10..14 {
        net.pass_frame(&client(port));
    }
    let view = net.pass_frame(&client(0));
    assert_eq!(view.states, States::ANY);
    net.wait(3600);
    let view = net.pass_frame(&client(1));
    assert_eq!((view.state(), view.space), (Some(New), Space::Enough));
}

/// Addresses that a fixed seed multiplied to 0, so that all flows between them had one hash.
#[test]
fn crafted_addresses_find_room() {
    let source = [0x9e37_79b9_7f4a_7c15_u64, 0xe703_7ed1_a0b4_28db].map(u64::to_be_bytes).concat();
    let source: [u8; 16] = source.try_into().unwrap();
    let mut net = Net::kernel();
    for host in 0..1000_u16 {
        let mut destination = [0x20; 16];
        destination[..2].copy_from_slice(&host.to_be_bytes());
        let frame = frame(Addresses::V6 { source, destination }, Message::udp(1, 53), 0);
        let view = net.pass_frame(&frame);
        assert_eq!((view.state(), view.space), (Some(New), Space::Enough), "{host}");
    }
    assert_eq!(net.tracker.living(net.now).count(), 1000);
}

/// The views of packets of a few hosts, with the hashes of one key.
fn said(packets: &[(u8, u8, bool, bool, u8)], max: usize, seed: Option<u64>) -> Vec<CtView> {
    let mut net = Net::new(Config { max, seed, ..kernel() });
    let pass = |(host, port, is_reply, is_tcp, wait): &(u8, u8, bool, bool, u8)| {
        net.wait(u64::from(*wait));
        let there = Addresses::V4 { source: [10, 0, 0, *host], destination: [10, 0, 0, 99] };
        let addresses = if *is_reply { back(there) } else { there };
        let (mut from, mut to) = (u16::from(*port), 80);
        if *is_reply {
            (from, to) = (to, from);
        }
        let flags = if *is_reply { SYN_ACK } else { SYN };
        let message = if *is_tcp { Message::tcp(from, to, flags) } else { Message::udp(from, to) };
        net.visit_frame(&frame(addresses, message, 0), |visit| visit)
    };
    packets.iter().map(pass).collect()
}

proptest! {
    #[test]
    fn keys_change_nothing(
        packets in proptest::collection::vec(
            (0u8..6, 0u8..8, any::<bool>(), any::<bool>(), 0u8..3), 0..200),
        max in 1usize..30,
    ) {
        let one = said(&packets, max, Some(1));
        for seed in [Some(2), Some(u64::MAX), None] {
            prop_assert_eq!(&one, &said(&packets, max, seed));
        }
    }
}
