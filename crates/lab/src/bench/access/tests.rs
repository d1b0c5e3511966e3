//! Every combination runs, small; what must be the recorded outcome is.

use super::*;
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
        let mut engine = prepared.engine(Kind::Tamis, None).unwrap();
        permitted.push(run_once(&setting, &prepared, &mut engine).unwrap().outcome.permitted);
    }
    assert!(permitted[0] > 0 && permitted.iter().all(|count| *count == permitted[0]));
}
