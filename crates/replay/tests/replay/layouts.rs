//! Rules and captures of the wild: of rules as they are packed a replay says what it says of them as they are read.
//!
//! Needs the shared data next to the checkout, and tar with xz; says so and passes without.

use std::path::{Path, PathBuf};
use std::process::Command;

use dataplane::{Config, Path as Way};
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use replay::RulesFile;
use replay::report::Style;
use replay::run::{self, Wanted};
use rules::model::Family;
use rules::save::LoadOptions;
use tempfile::TempDir;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");

/// Captures of tcpdump's own tests, in order.
fn captures(scratch: &TempDir) -> Option<Vec<String>> {
    let archive = Path::new(DATA).join("captures/tcpdump-tests-pcaps.tar.xz");
    let unpacked = archive.exists()
        && Command::new("tar")
            .arg("-xJf")
            .arg(&archive)
            .arg("-C")
            .arg(scratch.path())
            .status()
            .is_ok_and(|status| status.success());
    if !unpacked {
        eprintln!("SKIPPED: no {} that tar can unpack", archive.display());
        return None;
    }
    Some(sorted(&scratch.path().join("tests")))
}

fn sorted(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> =
        entries.filter_map(|path: PathBuf| Some(path.to_str()?.to_owned())).collect();
    files.sort();
    files
}

/// The report, its counters and the verdict of every packet.
pub(crate) type Outcome = (Vec<u8>, String, String, Vec<u8>);

/// What a replay says; `None` where captures cannot be read.
fn outcome(rules: &[RulesFile], captures: &[String], reference: bool) -> Option<Outcome> {
    outcome_on(rules, captures, Config { reference, ..Config::default() })
}

pub(crate) fn outcome_on(
    rules: &[RulesFile],
    captures: &[String],
    config: Config,
) -> Option<Outcome> {
    let mut verdicts = Vec::new();
    let mut wanted = Wanted { verdicts: Some(&mut verdicts), ..Wanted::default() };
    let mut report = run::replay(rules, captures, &config.clone().into(), &mut wanted).ok()?;
    drop(wanted);
    report.elapsed_s = 1.0;
    let mut json = Vec::new();
    report.write_json(&mut json).unwrap();
    Some((json, report.text(Style::default()), report.saved_counters(0), verdicts))
}

#[test]
fn packed_rules_say_of_the_wild_what_the_rules_as_read_say() {
    let scratch = TempDir::new().unwrap();
    let Some(captures) = captures(&scratch) else { return };
    let readable: Vec<String> = captures
        .into_iter()
        .filter(|capture| {
            let probe = RulesFile::from_text(
                "none",
                "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n".to_owned(),
                &LoadOptions::default(),
            );
            outcome(&[probe.unwrap()], std::slice::from_ref(capture), false).is_some()
        })
        .collect();
    assert!(readable.len() > 100, "{}", readable.len());
    let files = sorted(&Path::new(DATA).join("rulesets"));
    let mut compared = 0;
    for file in files.iter().filter(|file| file.ends_with(".save")) {
        let Ok(rules) = RulesFile::open(file, &LoadOptions::default()) else { continue };
        let rules = [rules];
        let [packed, read] = [false, true].map(|reference| outcome(&rules, &readable, reference));
        assert!(packed.unwrap() == read.unwrap(), "{file}");
        compared += 1;
    }
    assert!(compared >= 15, "{compared}");
}

/// Rules that ask for addresses, ports and interfaces of which packets have each, some by a match that has to be asked; `of` makes an
/// address of two numbers.
fn long_rules(count: u32, of: impl Fn(u32, u32) -> String, bits: [u32; 3]) -> String {
    let [host, near, far] = bits;
    let rule = |number: u32| {
        let (place, port) = (number % 40, 1 + number % 7);
        let (all, one) = (of(place, 0), of(place, number % 3));
        let tests = match number % 8 {
            0 => format!("-s {all}/{far} -m mark --mark 1 -j DROP"),
            1 => format!("-s {one}/{host} -p tcp -m tcp --dport {port} -j ACCEPT"),
            2 => format!("-d {all}/{near} -p udp -m udp --sport {port}:{} -j DROP", port + 2),
            3 => format!("-p tcp -m tcp --dport {port}"),
            4 => format!("-i b -s {all}/{near} -j DROP"),
            5 => format!("! -d {all}/{far} -p udp -m udp --dport {port}"),
            6 => format!("-s {all}/{near} -d {one}/{host}"),
            _ => format!("-i a -o b -d {one}/{host} -p udp -m udp --dport {port} -j RETURN"),
        };
        format!("-A FORWARD {tests}\n")
    };
    let rules: String = (0..count).map(rule).collect();
    format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n")
}

/// A capture of messages between these addresses, each with ports of its own.
fn messages(of: impl Fn(u32, u32) -> String, count: u32) -> Vec<u8> {
    let mut capture: Vec<u8> = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    capture.extend([0_u32, 0, 65_535, 1].into_iter().flat_map(u32::to_le_bytes));
    for number in 0..count {
        let address = |text: String| text.parse().unwrap();
        let (from, to) = (of(number % 41, number % 4), of(number * 7 % 43, number % 3));
        let (source, destination) = (1 + number % 5, 1 + number * 3 % 9);
        let (source, destination) = (source as u16, destination as u16);
        let message = match number % 3 {
            0 => Message::tcp(source, destination, Flags::SYN),
            _ => Message::udp(source, destination),
        };
        let addresses = Addresses::new(address(from), address(to)).unwrap();
        let mut frame = Craft::new(addresses, message).frame();
        // Of some not all was captured.
        let whole = frame.len() as u32;
        frame.truncate(if number % 13 == 0 { 36 } else { frame.len() });
        let header = [number, 0, frame.len() as u32, whole];
        capture.extend(header.into_iter().flat_map(u32::to_le_bytes));
        capture.extend(frame);
    }
    capture
}

#[test]
fn rules_that_are_looked_up_say_what_the_rules_as_read_say() {
    let scratch = TempDir::new().unwrap();
    let v4 = |a: u32, b: u32| format!("10.{}.{a}.{b}", a % 3);
    let v6 = |a: u32, b: u32| format!("2001:db8:{}:{a:x}::{b:x}", a % 3);
    let texts = [
        (Family::Ipv4, long_rules(900, v4, [32, 24, 13]), messages(v4, 2_000)),
        (Family::Ipv6, long_rules(900, v6, [128, 64, 45]), messages(v6, 2_000)),
    ];
    for (family, rules, capture) in texts {
        let path = scratch.path().join(family.name());
        std::fs::write(&path, capture).unwrap();
        let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
        let rules = [RulesFile::from_text("long", rules, &options).unwrap()];
        let captures = [path.to_str().unwrap().to_owned()];
        for input in ["a", "b"] {
            let [looked_up, read] = [false, true].map(|reference| {
                let (input, output) = (Some(input.into()), Some("b".into()));
                let path = Some(Way::Forward);
                let config = Config { reference, path, input, output, ..Config::default() };
                outcome_on(&rules, &captures, config)
            });
            assert!(looked_up.unwrap() == read.unwrap(), "{} {input}", family.name());
        }
    }
}
