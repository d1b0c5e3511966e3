//! What is counted of frames that are known.

use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, parse};
use pktio::FrameMeta;

use super::*;

/// Frames of hosts to port 443, by the last byte of each source, and their headers.
fn burst(sources: &[u8]) -> (Burst, Vec<(Link, Headers)>) {
    let mut burst = Burst::new();
    let mut headers = Vec::new();
    for last in sources {
        let addresses = Addresses::V4 { source: [10, 0, 0, *last], destination: [10, 0, 1, 1] };
        let frame = Craft::new(addresses, Message::udp(40_000, 443)).frame();
        headers.push((Link::Wire, parse(Link::Wire, &frame, frame.len(), Checksums::Ignore)));
        burst.push(&frame, FrameMeta::default());
    }
    (burst, headers)
}

fn sample(sampler: &mut Sampler, sources: &[u8]) {
    let (mut burst, headers) = burst(sources);
    if sampler.is_asked() {
        sampler.sample(&mut burst, |at| headers.get(at));
    }
}

#[test]
fn nothing_is_counted_before_somebody_asks_nor_long_after() {
    let talkers = Arc::new(Talkers::of(1));
    let mut sampler = Sampler::of(&talkers, 0);
    let start = Instant::now();
    sample(&mut sampler, &[1; 1000]);
    talkers.look(start + WINDOW);
    assert!(!sampler.is_asked());
    assert_eq!(talkers.ask(start).frames, 0);
    sample(&mut sampler, &[1; 1000]);
    talkers.look(start + WINDOW / 2);
    assert_eq!(talkers.ask(start).frames, 0, "the window has not ended");
    talkers.look(start + WINDOW);
    assert!(talkers.ask(start + WINDOW).frames > 0);
    talkers.look(start + WINDOW + PATIENCE);
    assert!(!sampler.is_asked());
    assert_eq!(talkers.ask(start + WINDOW + PATIENCE).frames, 0);
}

#[test]
fn few_frames_are_counted_exactly_from_the_second_window_on() {
    let talkers = Arc::new(Talkers::of(2));
    let mut samplers = [0, 1].map(|worker| Sampler::of(&talkers, worker));
    let start = Instant::now();
    talkers.ask(start);
    sample(&mut samplers[0], &[9; 200]);
    talkers.look(start + WINDOW);
    for _ in 0..10 {
        sample(&mut samplers[0], &[1, 1, 1, 2]);
        sample(&mut samplers[1], &[1, 3]);
    }
    talkers.look(start + WINDOW * 2);
    let told = talkers.ask(start + WINDOW * 2).answer();
    assert_eq!((told.every, told.frames), (1, 60));
    let each = burst(&[1]).0.bytes();
    let source = |who: &answers::Source| (who.address.clone(), who.frames, who.bytes / each);
    let sources: Vec<_> = told.sources.iter().map(source).collect();
    let expected = [("10.0.0.1", 40), ("10.0.0.2", 10), ("10.0.0.3", 10)];
    assert_eq!(sources, expected.map(|(who, frames)| (who.to_owned(), frames, frames)));
    let services = [answers::Service {
        protocol: "udp".to_owned(),
        port: Some(443),
        frames: 60,
        bytes: 60 * each,
    }];
    assert_eq!(told.services, services);
}

/// Traffic whose pattern is as long as the gap between two samples: counting each 64th frame would see one host alone.
#[test]
fn a_pattern_in_step_with_the_samples_is_seen_in_its_shares() {
    let talkers = Arc::new(Talkers::of(1));
    let mut sampler = Sampler::of(&talkers, 0);
    let start = Instant::now();
    talkers.ask(start);
    let pattern: Vec<u8> =
        (0..FIRST).map(|at| if at % FIRST < FIRST / 4 { 1 } else { 2 }).collect();
    for _ in 0..4_000 {
        sample(&mut sampler, &pattern);
    }
    talkers.look(start + WINDOW);
    let told = talkers.ask(start + WINDOW);
    let all = 4_000 * u64::from(FIRST);
    // About 4,000 are drawn: five deviations are 8 %.
    assert!(told.frames.abs_diff(all) < all / 12, "{} of {all}", told.frames);
    let of = |last: u8| {
        let address = IpAddr::from([10, 0, 0, last]);
        told.sources.iter().find(|(source, _)| *source == address).map_or(0, |(_, v)| v.frames)
    };
    assert!(of(1).abs_diff(all / 4) < all / 20, "{} of {}", of(1), all / 4);
    // One in 64 was looked at, and 256,000 frames are more than a window has: next time fewer are.
    assert_eq!(talkers.every.load(Ordering::Relaxed), (told.frames / LOOKED_AT) as u32);
}

#[test]
fn replies_count_for_the_same_service_and_icmp_has_no_port() {
    let key = |source_port, destination_port, protocol| FlowKey {
        source: IpAddr::from([10, 0, 0, 1]),
        destination: IpAddr::from([10, 0, 0, 2]),
        protocol,
        source_port,
        destination_port,
    };
    let of = |key: FlowKey| {
        let answer = Service::of(&key).answer(Volume::default());
        (answer.protocol, answer.port)
    };
    assert_eq!(of(key(443, 40_000, 6)), ("tcp".to_owned(), Some(443)));
    assert_eq!(of(key(443, 40_000, 6)), of(key(40_000, 443, 6)));
    assert_eq!(of(key(7, 7, 1)), ("icmp".to_owned(), None));
    assert_eq!(of(key(0, 0, 99)), ("99".to_owned(), None));
}
