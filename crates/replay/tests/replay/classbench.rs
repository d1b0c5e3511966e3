//! ClassBench's rulesets, as rules of FORWARD: of rules that are looked up a replay says what it says of the rules as they were read.
//!
//! Needs the shared data next to the checkout; says so and passes without. The sets of 1,000 rules are compared with 2,000 headers each; the
//! others, and more headers, by `make classbench`.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use dataplane::{Config, Path as Way};
use flate2::read::MultiGzDecoder;
use replay::RulesFile;
use rules::save::LoadOptions;
use tempfile::TempDir;

use crate::layouts::outcome_on;

const SETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/classbench");

fn text(name: &str) -> Option<String> {
    let path = Path::new(SETS).join(format!("{name}.gz"));
    let mut text = String::new();
    let Ok(file) = std::fs::File::open(&path) else {
        eprintln!("SKIPPED: no {}", path.display());
        return None;
    };
    MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(text)
}

/// A set's filters as rules; every third only counts, and every seventh has to be asked.
fn save_text(set: &str) -> String {
    let mut rules = "*filter\n:FORWARD DROP [0:0]\n".to_owned();
    for (number, line) in set.lines().enumerate() {
        let fields: Vec<&str> = line.trim_start_matches('@').split('\t').collect();
        let (protocol, mask) = fields[4].split_once('/').unwrap();
        let protocol = u8::from_str_radix(protocol.trim_start_matches("0x"), 16).unwrap();
        let is_any = u8::from_str_radix(mask.trim_start_matches("0x"), 16) == Ok(0);
        write!(rules, "-A FORWARD -s {} -d {}", fields[0], fields[1]).unwrap();
        if !is_any {
            write!(rules, " -p {protocol}").unwrap();
        }
        if !is_any && [6, 17].contains(&protocol) {
            let ports = |field: &str| field.replace(' ', "");
            let [source, destination] = [ports(fields[2]), ports(fields[3])];
            let name = if protocol == 6 { "tcp" } else { "udp" };
            write!(rules, " -m {name} --sport {source} --dport {destination}").unwrap();
        }
        if number % 7 == 0 {
            rules += " -m mark --mark 1";
        }
        rules += ["", " -j ACCEPT", " -j DROP"][number % 3];
        rules += "\n";
    }
    rules + "COMMIT\n"
}

/// Headers of a trace as a capture of IPv4 packets.
fn capture(trace: &str, most: usize) -> Vec<u8> {
    let mut capture: Vec<u8> = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    capture.extend([0_u32, 0, 65_535, 101].into_iter().flat_map(u32::to_le_bytes));
    for (number, line) in (0_u32..).zip(trace.lines().take(most)) {
        let fields: Vec<u32> = line.split_whitespace().map_while(|it| it.parse().ok()).collect();
        let [source, destination, sport, dport, protocol, ..] = fields[..] else {
            panic!("{line}")
        };
        let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol as u8, 0, 0];
        packet.extend([source, destination].into_iter().flat_map(u32::to_be_bytes));
        packet.extend([sport as u16, dport as u16].into_iter().flat_map(u16::to_be_bytes));
        // A length that UDP takes, and an offset that TCP does.
        packet.extend([0, 20, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
        capture.extend([number, 0, 40, 40].into_iter().flat_map(u32::to_le_bytes));
        capture.extend(packet);
    }
    capture
}

/// Compares a set with the headers of the trace that is made for it, or for one of its kind.
fn compare(name: &str, trace: &str, most: usize) {
    let (Some(set), Some(trace)) = (text(name), text(trace)) else { return };
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("capture");
    std::fs::write(&path, capture(&trace, most)).unwrap();
    let rules = [RulesFile::from_text(name, save_text(&set), &LoadOptions::default()).unwrap()];
    let captures = [path.to_str().unwrap().to_owned()];
    let [looked_up, read] = [false, true].map(|reference| {
        let config = Config { reference, path: Some(Way::Forward), ..Config::default() };
        outcome_on(&rules, &captures, config)
    });
    assert!(looked_up.unwrap() == read.unwrap(), "{name}");
}

#[test]
fn small_sets_are_looked_up_as_they_are_walked() {
    for kind in ["acl1", "fw1", "ipc1"] {
        compare(&format!("{kind}_1k"), &format!("{kind}_1k_trace20k"), 2_000);
    }
    compare("acl2_1k", "acl1_1k_trace20k", 2_000);
    compare("fw2_1k", "fw1_1k_trace20k", 2_000);
}

#[test]
#[ignore = "minutes: make classbench"]
fn all_sets_are_looked_up_as_they_are_walked() {
    for (size, most) in [("1k", 20_000), ("10k", 20_000), ("100k", 20_000)] {
        for kind in ["acl1", "fw1", "ipc1"] {
            let name = format!("{kind}_{size}");
            compare(&name, &format!("{name}_trace20k"), most);
            println!("{name}: {most} headers, no difference");
        }
    }
}
