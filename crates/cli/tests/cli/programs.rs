//! A slice of the lab of real programs: what this binary counts beside this machine's kernel. `make lab` plays all.
//!
//! Needs root and the programs of the scenes; without them it says so and passes.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use lab::programs::compare::compare;
use lab::programs::stage::{Size, lacking, play};
use lab::programs::{Comparison, Recording, Scene, Way};

fn agree(name: &str, ways: &[Way]) -> io::Result<()> {
    let scene = Scene::named(name).expect("a scene of this name");
    let lacks = scene.lacks();
    if let Some(reason) = lacking().or((!lacks.is_empty()).then(|| lacks.join(" "))) {
        eprintln!("SKIPPED: {name}: {reason}");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let recording = play(scene, dir.path(), Size::Whole)?;
    if !recording.losses().is_empty() {
        eprintln!("SKIPPED: {name}: a capture lost frames: {:?}", recording.losses());
        return Ok(());
    }
    let first = std::panic::catch_unwind(|| compare_all(scene, &recording, ways));
    if let Ok(told) = first {
        return told;
    }
    // The kernel's own reports to groups may fall between the start of a capture and that of the counters: what is
    // really wrong is so twice.
    let again = tempfile::tempdir()?;
    compare_all(scene, &play(scene, again.path(), Size::Whole)?, ways)
}

fn compare_all(scene: Scene, recording: &Recording, ways: &[Way]) -> io::Result<()> {
    for &way in ways.iter().filter(|&&way| recording.has(way)) {
        let found = compare(scene, recording, way, Path::new(env!("CARGO_BIN_EXE_tamis")))?;
        let Comparison { wrong, because, .. } = &found;
        let wrong: String = wrong.iter().map(|wrong| format!("\n{wrong}")).collect();
        let name = recording.dir().display();
        assert!(found.counters > 10, "{name} {}: {found}", way.name());
        assert!(found.is_good(scene, way), "{name} {}: {found}{wrong}\n{because:?}", way.name());
    }
    Ok(())
}

#[test]
fn two_uplinks_count_as_the_kernel_does() {
    agree("policy", &Way::ALL).unwrap();
}

#[test]
fn flows_from_before_the_capture_count_as_the_kernel_does() {
    agree("midstream", &Way::ALL).unwrap();
}

#[test]
fn recordings_that_were_kept_count_as_the_kernel_did() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/fixtures/programs");
    let mut compared = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let dir = entry.unwrap().path();
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        compare_all(Scene::named(&name).unwrap_or(Scene::FOREIGN), &Recording::at(dir), &Way::ALL)
            .unwrap();
        compared += 1;
    }
    assert!(compared > 0, "{}", folder.display());
}

/// The kept docker host with one rule changed, and what a replay of its capture says of contradictions.
fn contradicted(from: &str, to: &str, option: &[&str]) -> (Option<i32>, u64) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/fixtures/programs/docker");
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(kept.join("host")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, dir.path().join(path.file_name().unwrap_or_default())).unwrap();
    }
    let rules = dir.path().join("iptables.save");
    let text = fs::read_to_string(&rules).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&rules, text.replace(from, to)).unwrap();
    let capture = kept.join("any.pcap.gz");
    let ran = Command::new(env!("CARGO_BIN_EXE_tamis"))
        .arg("replay")
        .args([dir.path(), &capture])
        .args(["--json", "--fail-on", "contradiction"])
        .args(option)
        .output()
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    (ran.status.code(), document["contradictions"]["packets"].as_u64().unwrap())
}

#[test]
fn what_a_capture_contradicts_is_told() {
    let dnat = "-j DNAT --to-destination 172.17.0.2:80";
    let drops = "-A FORWARD -j DOCKER-USER";
    assert_eq!(contradicted(dnat, dnat, &[]), (Some(0), 0), "as it was");
    let (code, packets) =
        contradicted(drops, &format!("-A FORWARD -i docker0 -j DROP\n{drops}"), &[]);
    assert!(code == Some(3) && packets > 20, "{packets} were dropped and left");
    let (code, packets) = contradicted(dnat, "-j DNAT --to-destination 172.17.0.3:80", &[]);
    assert!(code == Some(3) && packets > 2, "{packets} left with another destination");
    let (code, packets) =
        contradicted(dnat, "-j DNAT --to-destination 172.17.0.3:80", &["--no-pair"]);
    assert_eq!((code, packets), (Some(0), 0), "nothing is held to what left");
}
