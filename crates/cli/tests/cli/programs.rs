//! A slice of the lab of real programs: what this binary counts, compared with this machine's kernel. `make lab` plays
//! all.
//!
//! Needs root and the programs of the scenes; without them it says so and passes.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use lab::programs::compare::compare;
use lab::programs::counters::{Told, of_json};
use lab::programs::stage::{Size, lacking, play};
use lab::programs::{Act, Comparison, Recording, Scene, Way};

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
    for &way in ways.iter().filter(|&&way| recording.has(way, scene)) {
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
fn rules_that_changed_midway_count_as_the_kernel_does() {
    let ways = [Way::Any, Way::Each, Way::One, Way::Short, Way::Dumpcap, Way::Late];
    agree("changed", &ways).unwrap();
}

#[test]
fn three_kinds_of_rules_at_once_count_as_the_kernel_does() {
    agree("nft-three", &[Way::Any, Way::Each, Way::One]).unwrap();
}

#[test]
fn the_rules_of_a_docker_host_with_nft_count_as_the_kernel_does() {
    agree("nft-docker", &[Way::Any, Way::Each, Way::One]).unwrap();
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

/// A replay of captures of the router that was recorded on each side, and its standard output.
fn one_side(sides: &[&str], options: &[&str]) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/fixtures/one-side");
    let captures = sides.iter().map(|side| format!("{side}={}/{side}.pcap.gz", dir.display()));
    let mut tamis = Command::new(env!("CARGO_BIN_EXE_tamis"));
    tamis.arg("replay").arg(dir.join("host")).args(captures).args(options);
    let ran = tamis.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn of_a_side_that_was_recorded_alone_nothing_certain_is_wrong() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/fixtures/one-side");
    let kernel = Recording::at(&dir).kernel(Act::WHOLE);
    assert_eq!(kernel.len(), 19, "{}", dir.display());
    // A ping of the host's own that OUTPUT dropped: no tap saw it.
    let unseen = ["-A OUTPUT -p icmp -m icmp --icmp-type 8 -j DROP", "nat OUTPUT 0"];
    for (sides, missing) in
        [(&["wan0"][..], "lo, lan0"), (&["lan0"], "lo, wan0"), (&["wan0", "lan0"], "lo")]
    {
        let document: serde_json::Value =
            serde_json::from_str(&one_side(sides, &["--json"])).unwrap();
        let warnings = document["warnings"].to_string();
        assert!(warnings.contains(&format!("not recorded: {missing}: ")), "{warnings}");
        assert_eq!(document["contradictions"]["packets"], 0, "{sides:?}");
        let (told, is_whole) = (of_json(&document), sides.len() == 2);
        let never = one_side(sides, &["--list", "never", "--limit", "99"]);
        for (place, counted) in &kernel {
            let Told { packets, maybe } = told.get(place).copied().unwrap_or_default();
            let what =
                format!("{sides:?} {place}: kernel {}, {packets} + {maybe}", counted.packets);
            assert!(packets <= counted.packets, "{what}");
            let is_unseen =
                unseen.iter().any(|part| format!("{place} {}", counted.text).contains(part));
            assert!(!is_whole || is_unseen || counted.packets <= packets + maybe, "{what}");
            let listed = never.lines().find(|line| line.ends_with(&counted.text));
            let may_hit = listed.is_none_or(|line| line.contains("maybe hit by"));
            assert!(counted.packets == 0 || may_hit, "{what}: {listed:?}");
        }
        let unknown = document["verdicts"]["unknown"]["packets"].as_u64().unwrap();
        assert_eq!(unknown == 0, is_whole, "{unknown}");
    }
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
