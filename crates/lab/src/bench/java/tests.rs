//! What is read from the JVM, and what is made of it, on figures made up here.

use super::*;
use crate::bench::java::jmh::COUNTED;
use expectations::NAME;

fn measured(technique: &str, varied: u32, nanos: f64) -> Measured {
    let warm = std::iter::repeat_n(nanos, COUNTED);
    let rounds = [nanos * 9.0, nanos * 3.0].into_iter().chain(warm).collect();
    Measured { technique: technique.to_owned(), varied, rounds, allocated: None }
}

fn jvm() -> Jvm {
    Jvm::named(17)
}

#[test]
fn rounds_and_bytes_of_jmh_are_per_packet() {
    let text = r#"[{"benchmark": "dev.tamis.bench.RealisticBenchmark.round",
        "params": {"packets": "1000", "burst": "32", "technique": "unsafe"},
        "primaryMetric": {"score": 1.0, "rawData": [[30000.0, 12000.0, 10000.0]]},
        "secondaryMetrics": {"gc.alloc.rate.norm": {"score": 700.0, "rawData": [[1100.0, 500.0, 500.0]]}}}]"#;
    let expected = Measured {
        technique: "unsafe".to_owned(),
        varied: 32,
        rounds: vec![30.0, 12.0, 10.0],
        allocated: Some(0.5),
    };
    assert_eq!(jmh::parse(text, "burst"), Ok(vec![expected]));
    assert!(jmh::parse(text, "structs").is_err());
    assert!(jmh::parse("[{}]", "burst").is_err());
}

#[test]
fn rounds_that_warm_up_are_shown_but_do_not_count() {
    let all: Vec<_> = [("floor", 4.0), ("direct", 10.0)]
        .into_iter()
        .map(|(name, nanos)| (0, measured(name, 1, nanos)))
        .chain(
            [("floor", 5.0), ("direct", 15.0)].map(|(name, nanos)| (1, measured(name, 1, nanos))),
        )
        .collect();
    let rows = rows(&jvm(), Job::Study, &all);
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].engine, rows[0].runs.runs), ("floor", 2 * COUNTED));
    assert_eq!(rows[0].peer, None);
    let peer = rows[1].peer.as_ref().unwrap();
    // The median of 2.5 and 3.
    assert_eq!((peer.peer, peer.value, peer.ratio), ("rust", 4.5, 2.75));
    assert_eq!(rows[1].runs.max, 15.0);
    assert_eq!(rows[1].params["rounds"][0], 90.0);
}

#[test]
fn one_technique_that_leaves_other_bytes_in_memory_is_found() {
    let mut hashes = jvm::Hashes::default();
    let there = jvm::compare("study floor 1 ab\nstudy direct 1 ab\n", &mut hashes).unwrap();
    let names: Vec<_> = there.iter().map(|(job, one)| (*job, one.name)).collect();
    assert_eq!(names, [(Job::Study, "floor"), (Job::Study, "direct")]);
    // Of the same JDK, and of the next one.
    let error = jvm::compare("study direct 1024 cd\nstudy jna_pointer 1 ac", &mut hashes);
    assert_eq!(error.unwrap_err(), "study jna_pointer 1 ac: floor leaves ab in memory");
    for bad in ["", "study floor 1", "study none 1 ab", "other floor 1 ab", "study floor x ab"] {
        assert!(jvm::compare(bad, &mut hashes).is_err(), "{bad}");
    }
}

#[test]
fn what_a_first_packet_took_is_read() {
    assert_eq!(jvm::first_packet("1500000 303\n"), Ok((1.5e6, 303)));
    for bad in ["", "1500000", "x 303", "1500000 303 1"] {
        assert!(jvm::first_packet(bad).is_err(), "{bad}");
    }
}

/// The answers of expectations by what is compared.
fn answers(figures: &[(&str, f64)]) -> Vec<(&'static str, String, f64)> {
    let all: Vec<_> = figures.iter().map(|(name, nanos)| (0, measured(name, 1, *nanos))).collect();
    let found = expectations::rows(&rows(&jvm(), Job::Study, &all));
    let answer =
        |row: &Row| (row.engine, row.params["held"].as_str().unwrap().to_owned(), row.runs.value);
    assert!(found.iter().all(|row| row.name == NAME && row.params["jdk"] == 17));
    found.iter().map(answer).collect()
}

#[test]
fn an_expectation_is_held_or_not_by_its_figures() {
    let study = [("direct", 10.0), ("object_lookup", 4000.0), ("unsafe_object", 11.0)];
    let yes = |engine, factor| (engine, "yes".to_owned(), factor);
    let no = |engine, factor| (engine, "no".to_owned(), factor);
    let expected =
        [yes("object_lookup", 400.0), yes("unsafe_object", 1.1), yes("unsafe_object", 1.1)];
    assert_eq!(answers(&study), expected);
    let other = [("direct", 10.0), ("object_lookup", 2990.0), ("unsafe_object", 13.0)];
    let expected =
        [no("object_lookup", 299.0), no("unsafe_object", 1.3), yes("unsafe_object", 1.3)];
    assert_eq!(answers(&other), expected);
    // What a first packet takes is no time of another packet.
    let millis = |name, millis| {
        Row::new(expectations::SET_UP, name, "ms", &[millis]).with("jdk", 17).with("structs", 1)
    };
    let first = [millis("javolution_struct", 40.0), millis("direct", 4.5)];
    let found = expectations::rows(&first);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].engine, &found[0].params["held"]), ("javolution_struct", &"no".into()));
    // Without figures there is no answer.
    assert_eq!(answers(&[("direct", 1.0)]), []);
}

/// A technique's row of the realistic job beside Rust's 10 ns and 4 bytes.
fn realistic(release: u32, name: &str, burst: u32, nanos: f64, bytes: f64) -> Vec<Row> {
    let of = |name, nanos, bytes| {
        (0, Measured { allocated: Some(bytes), ..measured(name, burst, nanos) })
    };
    rows(&Jvm::named(release), Job::Realistic, &[of(FLOOR, 10.0, 4.0), of(name, nanos, bytes)])
}

#[test]
fn aims_are_those_of_bursts_of_32_and_more() {
    let held = |results: &[Row]| {
        let found = expectations::rows(results);
        assert!(found.iter().all(|row| row.params["burst"] == 32));
        let held = |row: &Row| (row.unit, row.runs.value, row.params["held"] == "yes");
        found.iter().map(held).collect::<Vec<_>>()
    };
    assert_eq!(held(&realistic(17, "tamis", 1, 13.0, 4.5)), []);
    assert_eq!(held(&realistic(17, "mapped", 32, 13.0, 4.5)), []);
    let slow = realistic(17, "tamis", 32, 13.0, 4.5);
    assert_eq!(held(&slow), [("x", 1.3, false), ("B", 0.5, false)]);
    let fast = realistic(17, "tamis", 32, 10.0, 4.0625);
    assert_eq!(held(&fast), [("x", 1.0, true), ("B", 0.0625, true)]);
    // A later JDK is held to the earlier one, too.
    let later = [fast, realistic(25, "tamis", 32, 16.5, 4.0)].concat();
    let expected = [("x", 1.65, false), ("B", 0.0, true), ("x", 1.65, false)];
    assert_eq!(held(&later)[2..], expected);
}

#[test]
fn techniques_of_other_options_have_jvms_of_their_own() {
    let there: Vec<_> =
        Job::Realistic.techniques().iter().map(|one| (Job::Realistic, one)).collect();
    let plan = Plan {
        quick: true,
        only: None,
        jdks: Vec::new(),
        jar: PathBuf::new(),
        library: PathBuf::new(),
    };
    let sweeps = sweeps(&plan, Job::Realistic, &there);
    let all: usize = sweeps.iter().map(|one| one.names.len()).sum();
    assert_eq!((sweeps.len(), all), (4, there.len()));
    for sweep in sweeps {
        let has = |name: &&str| Job::Realistic.technique(name).unwrap().options == sweep.options;
        assert!(sweep.names.iter().all(has) && sweep.varied == [32]);
    }
}
