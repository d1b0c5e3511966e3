//! Every model runs every packet once, within its bound, and the models that promise order keep it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::Duration;

use engines::catalogue::{Built, Choices, Kind};
use engines::{Body, Config, Data, Packet};

use super::*;

fn models() -> [Orchestration; 8] {
    Orchestration::all(20, 1)
}

/// Data packets from 0 to 0; every seventh packet opens or closes the way.
fn packets(count: u32) -> Vec<Packet<u32>> {
    let config = |at: u32| Config {
        address: 0,
        persona_non_grata: at % 2 == 1,
        accept: true,
        begin: 0,
        end: 1,
    };
    let data = |seed| Data { source: 0, destination: 0, body: Body { iterations: 1, seed } };
    (0..count)
        .map(|at| if at % 7 == 0 { Packet::Config(config(at)) } else { Packet::Data(data(at)) })
        .collect()
}

fn engine() -> Box<dyn Engine<u32>> {
    let Ok(Built::Shared(engine)) = Kind::Tamis.build(&Choices::default()) else {
        unreachable!("threads share it")
    };
    engine
}

fn work(body: Body) -> u16 {
    body.seed as u16
}

#[test]
fn every_packet_ends_once_within_the_bound() {
    let packets = packets(20_000);
    for model in models() {
        let threads = if model == Orchestration::Serial { 1 } else { 3 };
        for bins in [Bins::SharedMap, Bins::Atomics, Bins::Shards] {
            let (sink, meter) = (Sink::new(work, bins), Meter::new(true));
            let source = Trace::new(&packets);
            let outcome = run(model, threads, &*engine(), &source, &sink, &meter).unwrap();
            let what = format!("{} {}", model.name(), bins.name());
            assert_eq!(outcome.packets, 20_000, "{what}");
            assert_eq!(sink.histogram().iter().sum::<u64>(), outcome.permitted, "{what}");
            assert!((1..=IN_FLIGHT).contains(&outcome.high_water), "{what}: {outcome:?}");
            let latencies = outcome.latencies.unwrap();
            assert!(latencies.quantile(0.5) <= latencies.quantile(1.0), "{what}");
        }
    }
}

#[test]
fn schedules_without_overtaking_end_as_one_thread_does() {
    let packets = packets(5_000);
    let histogram = |model: Orchestration, threads| {
        let (sink, meter) = (Sink::new(work, Bins::Shards), Meter::new(false));
        let source = Serial::new(packets.iter().copied());
        run(model, threads, &*engine(), &source, &sink, &meter).unwrap();
        sink.histogram()
    };
    let expected = histogram(Orchestration::Serial, 1);
    assert!(expected.iter().sum::<u64>() > 1000);
    for model in models() {
        for threads in 1..=4 {
            if model.refuses(threads).is_none() && !model.may_overtake(threads) {
                assert_eq!(histogram(model, threads), expected, "{} {threads}", model.name());
            }
        }
    }
}

#[test]
fn a_slow_end_holds_up_the_source() {
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    fn slow(_: Body) -> u16 {
        let now = NOW.fetch_add(1, Ordering::SeqCst) + 1;
        MOST.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(Duration::from_micros(20));
        NOW.fetch_sub(1, Ordering::SeqCst);
        0
    }
    let packets = packets(3_000);
    for model in models().into_iter().skip(1) {
        let (sink, meter) = (Sink::new(slow, Bins::Atomics), Meter::new(false));
        let source = Trace::new(&packets);
        let outcome = run(model, 3, &*engine(), &source, &sink, &meter).unwrap();
        assert!(outcome.high_water <= IN_FLIGHT, "{}", model.name());
        assert_eq!(outcome.packets, 3_000, "{}", model.name());
    }
    assert!(MOST.load(Ordering::SeqCst) <= 3, "no more at work than there are workers");
}

/// Counts what was taken, and the most of it that was not worked on yet. Work takes some time.
struct Counted<'p> {
    source: Trace<'p, u32>,
    most: AtomicUsize,
}

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static WORKED: AtomicUsize = AtomicUsize::new(0);

impl Source<u32> for Counted<'_> {
    fn next<'p>(&'p self, room: &'p mut Vec<Packet<u32>>, most: usize) -> &'p [Packet<u32>] {
        let packets = self.source.next(room, most);
        // What others work on meanwhile makes this less than there were, never more.
        let taken = TAKEN.fetch_add(packets.len(), Ordering::SeqCst) + packets.len();
        self.most.fetch_max(taken - WORKED.load(Ordering::SeqCst), Ordering::SeqCst);
        packets
    }
}

#[test]
fn no_more_packets_are_under_way_than_the_bound() {
    fn slow(_: Body) -> u16 {
        sleep(Duration::from_micros(5));
        WORKED.fetch_add(1, Ordering::SeqCst);
        0
    }
    // Each packet is permitted, so it ends where it is worked on.
    let mut packets = packets(4_000);
    let Packet::Config(opens) = packets[0] else { unreachable!("the first one opens the way") };
    packets.retain(|packet| matches!(packet, Packet::Data(_)));
    let engine = engine();
    engine.update(&opens);
    for model in models().into_iter().skip(1) {
        TAKEN.store(0, Ordering::SeqCst);
        WORKED.store(0, Ordering::SeqCst);
        let (sink, meter) = (Sink::new(slow, Bins::Atomics), Meter::new(false));
        let source = Counted { source: Trace::new(&packets), most: AtomicUsize::new(0) };
        run(model, 3, &*engine, &source, &sink, &meter).unwrap();
        assert_eq!(WORKED.load(Ordering::SeqCst), packets.len(), "{}", model.name());
        let most = source.most.into_inner();
        assert!(most <= IN_FLIGHT, "{}: {most}", model.name());
    }
}

/// An engine that takes its time over every burst, now more and now less.
struct Stumbling(Box<dyn Engine<u32>>);

impl Engine<u32> for Stumbling {
    fn decide(&self, source: u32, destination: u32) -> bool {
        self.0.decide(source, destination)
    }

    fn update(&self, config: &Config<u32>) {
        self.0.update(config);
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn burst(&self, packets: &[Packet<u32>], permits: &mut engines::Permits) {
        static BURSTS: AtomicUsize = AtomicUsize::new(0);
        let number = BURSTS.fetch_add(1, Ordering::Relaxed);
        sleep(Duration::from_micros(number.wrapping_mul(37) as u64 % 60));
        self.0.burst(packets, permits);
    }
}

#[test]
fn ordered_lets_out_in_order_what_was_decided_in_order() {
    fn stumbling(body: Body) -> u16 {
        if body.seed.is_multiple_of(97) {
            sleep(Duration::from_micros(200));
        }
        body.seed as u16
    }
    let packets = packets(6_000);
    let sequence = |model: Orchestration, threads| {
        let (sink, meter) = (Sink::sequence(stumbling), Meter::new(false));
        let (engine, source) = (Stumbling(engine()), Trace::new(&packets));
        run(model, threads, &engine, &source, &sink, &meter).unwrap();
        sink.into_sequence()
    };
    let expected = sequence(Orchestration::Serial, 1);
    assert!(expected.len() > 1000);
    for threads in 2..=4 {
        assert!(sequence(Orchestration::Ordered, threads) == expected, "{threads} threads");
    }
}

/// Panics at a decision, at a change, in the work or at the source.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Planted {
    Decision,
    Change,
    Work,
    Source,
}

struct Panicking {
    at: Planted,
    engine: Box<dyn Engine<u32>>,
    left: AtomicUsize,
}

impl Panicking {
    fn reaches(&self, place: Planted) {
        let is_last = || self.left.fetch_sub(1, Ordering::SeqCst) == 1;
        assert!(self.at != place || !is_last(), "planted at {place:?}");
    }
}

impl Engine<u32> for Panicking {
    fn decide(&self, source: u32, destination: u32) -> bool {
        self.reaches(Planted::Decision);
        self.engine.decide(source, destination)
    }

    fn update(&self, config: &Config<u32>) {
        self.reaches(Planted::Change);
        self.engine.update(config);
    }

    fn bytes(&self) -> usize {
        self.engine.bytes()
    }
}

/// Packets without an end, as a source; or whose end is a panic. The place of the next one in some that repeat.
struct Endless(Arc<Panicking>, AtomicUsize);

impl Source<u32> for Endless {
    fn next<'p>(&'p self, room: &'p mut Vec<Packet<u32>>, most: usize) -> &'p [Packet<u32>] {
        self.0.reaches(Planted::Source);
        let from = self.1.fetch_add(most, Ordering::Relaxed) % 70;
        *room = packets((from + most) as u32).split_off(from);
        room
    }
}

/// What a run comes to that would go on for ever.
fn ends(model: Orchestration, at: Planted) -> Result<Outcome, String> {
    fn panicking(body: Body) -> u16 {
        assert!(body.seed != 5, "planted at Work");
        0
    }
    let (told, tells) = channel();
    spawn(move || {
        let threads = if model == Orchestration::Serial { 1 } else { 3 };
        let left = AtomicUsize::new(40);
        let engine = Arc::new(Panicking { at, engine: engine(), left });
        let work = if at == Planted::Work { panicking } else { work };
        let (sink, meter) = (Sink::new(work, Bins::Shards), Meter::new(false));
        let source = Endless(Arc::clone(&engine), AtomicUsize::new(0));
        let _ = told.send(run(model, threads, &*engine, &source, &sink, &meter));
    });
    tells.recv_timeout(Duration::from_secs(60)).expect("the run ends")
}

#[test]
fn a_panic_ends_the_run_with_its_message() {
    for model in models() {
        for at in [Planted::Decision, Planted::Change, Planted::Work, Planted::Source] {
            let error = ends(model, at).expect_err("a panic was planted");
            let expected = format!("a thread of the run panicked: planted at {at:?}");
            assert_eq!(error, expected, "{}", model.name());
        }
    }
}

#[test]
fn the_bound_makes_others_wait() {
    let in_flight = InFlight::new(4);
    assert!(in_flight.enter(3));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            assert!(in_flight.enter(2));
            in_flight.leave(2);
        });
        std::thread::sleep(Duration::from_millis(30));
        assert!(!waits.is_finished(), "5 of 4");
        in_flight.leave(1);
    });
    assert_eq!(in_flight.high_water(), 4);
}

#[test]
fn a_generator_ahead_yields_the_same() {
    let packets = packets(3_000);
    std::thread::scope(|scope| {
        let ahead = Ahead::start(scope, packets.iter().copied());
        assert_eq!(ahead.collect::<Vec<_>>(), packets);
        drop(Ahead::start(scope, packets.iter().copied().cycle()));
    });
}

#[test]
fn thread_counts_that_do_not_go_are_refused() {
    let refuses = |model: Orchestration, threads| model.refuses(threads).is_some();
    assert!(refuses(Orchestration::TaskPool { packets: 123 }, 3));
    assert!(!refuses(Orchestration::TaskPool { packets: 123 }, 2));
    assert!(refuses(Orchestration::TaskPool { packets: 0 }, 1));
    assert!(refuses(Orchestration::PartialPipeline { config: 2 }, 2));
    assert!(refuses(Orchestration::PhasedPipeline { control: 0 }, 2));
    assert!(refuses(Orchestration::Serial, 2) && refuses(Orchestration::WorkerPool, 0));
}
