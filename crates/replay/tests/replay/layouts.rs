//! Rules and captures of the wild: of rules as they are packed a replay says what it says of them as they are read.
//!
//! Needs the shared data next to the checkout, and tar with xz; says so and passes without.

use std::path::{Path, PathBuf};
use std::process::Command;

use dataplane::Config;
use replay::RulesFile;
use replay::report::Style;
use replay::run::{self, Wanted};
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

/// The report, its counters and the verdict of every packet; `None` where captures cannot be read.
fn outcome(
    rules: &[RulesFile],
    captures: &[String],
    reference: bool,
) -> Option<(Vec<u8>, String, String, Vec<u8>)> {
    let config = Config { reference, ..Config::default() };
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
