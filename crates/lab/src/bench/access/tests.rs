//! Every combination runs, small; what must be the recorded outcome is.

use std::thread::sleep;

use engines::Packet;

use super::*;
use crate::bench::{Recorded, Rows};
use crate::workload::PRESETS;

fn models(threads: usize) -> Vec<Orchestration> {
    let all = Orchestration::all(16, 1);
    all.into_iter().filter(|model| model.refuses(threads).is_none()).collect()
}

#[test]
fn every_engine_with_every_model_on_every_track() {
    // Few addresses, so that the many warm-ups are short.
    let preset = Preset { addresses_log: 7, trains_log: 6, ..PRESETS[0] };
    for (variant, default_accept) in [(Variant::A, false), (Variant::C, true)] {
        let prepared = Prepared::new(variant, &preset, default_accept, 3_000);
        for (engine, threads) in Kind::ALL.into_iter().flat_map(|kind| [(kind, 1), (kind, 3)]) {
            for orchestration in models(threads) {
                let track = if threads == 1 { Track::C } else { Track::A };
                let setting = Setting { orchestration, ..Setting::pool(engine, threads).on(track) };
                let (figures, missing) = contest::contest(&[setting], &prepared, 1).unwrap();
                let alone = !engine.is_shared() && orchestration != Orchestration::Serial;
                let laid_out = [Kind::Matrix, Kind::MatrixAsPublished, Kind::MatrixUnlocked];
                let refused = alone || (variant == Variant::C && laid_out.contains(&engine));
                assert_eq!(missing.len(), usize::from(refused), "{setting:?} {missing:?}");
                assert!(figures.iter().all(|figures| figures.high_water <= 256));
            }
        }
    }
}

#[test]
fn deterministic_schedules_leave_the_recorded_histogram() {
    let prepared = Prepared::new(Variant::A, &PRESETS[0], false, 1_000_000);
    let mut engines = [Kind::Serial, Kind::Tamis, Kind::Optimistic].into_iter();
    let settings = models(1).into_iter().chain([Orchestration::Ordered]).filter_map(|model| {
        let engine = if model == Orchestration::Serial { engines.next()? } else { Kind::Tamis };
        let threads = if model == Orchestration::Ordered { 3 } else { 1 };
        let setting = Setting { orchestration: model, ..Setting::pool(engine, threads) };
        Some(setting.on(Track::C))
    });
    let (figures, missing) = contest::contest(&settings.collect::<Vec<_>>(), &prepared, 0).unwrap();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(figures.iter().all(|figures| figures.golden == Some(true)), "{figures:?}");
}

#[test]
fn all_sources_yield_the_stream() {
    let prepared = Prepared::new(Variant::A, &PRESETS[1], false, 5_000);
    let mut permitted = Vec::new();
    for origin in [Origin::Trace, Origin::Generator, Origin::Ahead, Origin::PerWorker] {
        let setting = Setting { origin, ..Setting::pool(Kind::Tamis, 1).on(Track::C) };
        let mut engine = prepared.engine(Kind::Tamis, Tuning::default()).unwrap();
        permitted.push(run_once(&setting, &prepared, &mut engine).unwrap().outcome.permitted);
    }
    assert!(permitted[0] > 0 && permitted.iter().all(|count| *count == permitted[0]));
}

/// Addresses that the warm-up names, by the bytes that they take in an engine with an entry for each.
fn warmed(variant: Variant, warm_up: WarmUp) -> usize {
    let accept = variant == Variant::C;
    let prepared = Prepared::from(Start::Warm(warm_up), variant, &PRESETS[0], accept, 0);
    let Ok(Built::Shared(engine)) = prepared.engine(Kind::Fine, Tuning::default()) else {
        unreachable!("threads share it")
    };
    engine.bytes()
}

#[test]
fn a_mended_warm_up_names_as_many_addresses_as_a_stream_does() {
    for variant in [Variant::C, Variant::D] {
        let [published, mended] =
            [WarmUp::AsPublished, WarmUp::Mended].map(|of| warmed(variant, of));
        assert!(mended > 200 * published, "{variant:?}: {published} B as published, {mended} B");
    }
    let [published, mended] =
        [WarmUp::AsPublished, WarmUp::Mended].map(|of| warmed(Variant::A, of));
    assert_eq!(published, mended, "variant A names a new one every time");
}

#[test]
fn a_source_for_each_worker_yields_the_mix_of_one_stream() {
    let configs = |packets: &[Packet<u32>]| {
        packets.iter().filter(|packet| matches!(packet, Packet::Config(_))).count() as f64
    };
    for variant in Variant::ALL {
        let prepared = Prepared::new(variant, &PRESETS[1], variant == Variant::C, 20_000);
        let one = configs(prepared.packets()) / 20_000.0;
        for workers in [1, 3, 10] {
            let all: Vec<_> = prepared.generators(workers).flatten().collect();
            assert_eq!(all.len(), 20_000, "{variant:?} {workers}");
            let share = configs(&all) / 20_000.0;
            assert!((share - one).abs() < 0.02, "{variant:?} {workers}: {share} of {one}");
        }
    }
}

#[test]
fn the_clock_stops_before_counts_are_read() {
    let reading = Duration::from_millis(30);
    let started = Instant::now();
    let run = || Ok((Outcome::default(), Sink::none()));
    let read = |sink: Sink| {
        sleep(reading);
        sink.histogram()
    };
    let ran = clocked(run, read).unwrap();
    assert!(started.elapsed() - ran.took >= reading);
}

/// Every figure of both studies is drawn from what little a quick run finds, ours in all of them.
#[test]
fn studies_draw_their_figures_with_ours_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let small = Preset { addresses_log: 7, trains_log: 6, ..PRESETS[0] };
    let plan =
        Plan { packets: 1_000, presets: vec![small], threads: vec![2, 3], runs: 1, only: None };
    let mut out = Rows::kept();
    study1::run(&plan, &mut out).unwrap();
    study2::run(&plan, &mut out).unwrap();
    let recorded = Recorded::of(&out).unwrap();
    crate::bench::pictures::draw(&recorded, dir.path()).unwrap();
    let rows = out.rows();
    let drawn = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let figures = (1..=8).map(|number| format!("study2-figure{number}.svg"));
    let figures =
        figures.chain(["study1-speedup-preset1.svg", "study2-addresses.svg"].map(Into::into));
    for figure in figures {
        assert!(drawn(&figure).contains("tamis"), "{figure}");
    }
    assert!(drawn("study1-stripes.svg").contains("as published"));
    for engine in ["tamis", "cached_exact", "cached_epoch", "split_ordered"] {
        let has = |study: &str| {
            rows.iter().any(|row| row.engine == engine && row.name.starts_with(study))
        };
        assert!(has("access.c.preset1") && has("access.study2.critical"), "{engine}");
    }
}

/// Decisions that are in flight with a change, how many of them a lock for each address has wait for it, and how many stripes.
fn meetings(packets: &[Packet<u32>], stripes: usize) -> [usize; 3] {
    let striped = engines::striped::Striped::<u32>::new(false, stripes);
    let mut counts = [0; 3];
    for in_flight in packets.windows(256) {
        let Packet::Config(config) = in_flight[0] else { continue };
        for packet in &in_flight[1..] {
            let Packet::Data(data) = packet else { continue };
            let both = [data.source, data.destination];
            let on_stripe = both.map(|address| striped.stripe(address));
            counts[0] += 1;
            counts[1] += usize::from(both.contains(&config.address));
            counts[2] += usize::from(on_stripe.contains(&striped.stripe(config.address)));
        }
    }
    counts
}

/// Study 1 expects a lock for each address to gain on stripes where changes and decisions meet often. They meet at the same
/// addresses then, whichever lock they wait at: what stripes have others wait for beside them is not more.
#[test]
fn where_addresses_collide_stripes_wait_as_entries_do() {
    let shares = |addresses_log: u32, stripes| {
        let preset = Preset { addresses_log, trains_log: addresses_log - 1, ..PRESETS[0] };
        let prepared = Prepared::new(Variant::A, &preset, false, 50_000);
        let [all, entries, striped] = meetings(prepared.packets(), stripes);
        let addresses = 1 << addresses_log;
        println!("{addresses} addresses, {stripes} stripes: {entries} and {striped} of {all}");
        [entries, striped].map(|meet| meet as f64 / all as f64)
    };
    let [mut more, mut gain] = [0.0, f64::MAX];
    for log in [12, 9, 6, 4] {
        let [entries, striped] = shares(log, 10_000);
        assert_eq!(entries, striped, "a stripe for each of {} addresses", 1 << log);
        // Stripes that addresses share: the more often they meet, the less is gained.
        let [entries, striped] = shares(log, 10);
        assert!(entries > more && striped / entries < gain, "{entries} {striped}");
        [more, gain] = [entries, striped / entries];
    }
    assert!(more > 0.1 && gain < 2.5, "{more} {gain}");
}

/// Study 1 expects stripes to fall behind as the stream goes on, since ever more addresses share one. But of any two addresses one
/// in 10,000 pairs does, however many there are: in its own setting, whose addresses are numbers of 30 bits, a change holds
/// up two in 10,000 decisions beside its own, in the first half of a million packets and in the second.
#[test]
fn stripes_hold_up_no_more_as_the_stream_goes_on() {
    let prepared = Prepared::new(Variant::C, &PRESETS[0], true, 1_000_000);
    for half in prepared.packets().chunks(500_000) {
        let [all, entries, striped] = meetings(half, 10_000);
        println!("{entries} and {striped} of {all}");
        let beside = (striped - entries) as f64 / all as f64;
        assert!((1e-4..3e-4).contains(&beside), "{beside}");
    }
}
