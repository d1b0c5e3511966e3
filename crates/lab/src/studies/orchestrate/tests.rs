//! Every model runs every packet once, within its bound, and the models that promise order keep it.

use std::sync::atomic::{AtomicUsize, Ordering};

use access::{Body, Config, Data};
use engines::catalogue::{Built, Choices, Kind};

use super::*;

fn models() -> [Orchestration; 7] {
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

#[test]
fn the_bound_makes_others_wait() {
    let in_flight = InFlight::new(4);
    in_flight.enter(3);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            in_flight.enter(2);
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
