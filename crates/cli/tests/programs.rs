//! A slice of the lab of real programs: what this binary counts beside this machine's kernel. `make lab` plays all.
//!
//! Needs root and the programs of the scenes; without them it says so and passes.
#![cfg(target_os = "linux")]

use std::path::Path;

use lab::oracle::load::lacking;
use lab::programs::compare::compare;
use lab::programs::stage::play;
use lab::programs::{Scene, Way};

fn agree(name: &str) {
    let scene = Scene::named(name).expect("a scene of this name");
    let lacks = scene.lacks();
    if let Some(reason) = lacking().or((!lacks.is_empty()).then(|| lacks.join(" "))) {
        eprintln!("SKIPPED: {name}: {reason}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let recording = play(scene, dir.path()).unwrap();
    if !recording.losses().is_empty() {
        eprintln!("SKIPPED: {name}: a capture lost frames: {:?}", recording.losses());
        return;
    }
    for way in Way::ALL.into_iter().filter(|&way| recording.has(way)) {
        let found =
            compare(scene, &recording, way, Path::new(env!("CARGO_BIN_EXE_tamis"))).unwrap();
        let wrong: String = found.wrong.iter().map(|wrong| format!("\n{wrong}")).collect();
        assert!(found.counters > 10, "{name} {}: {found}", way.name());
        assert!(found.is_good(way), "{name} {}: {found}{wrong}\n{:?}", way.name(), found.because);
    }
}

#[test]
fn a_docker_host_counts_as_the_kernel_does() {
    agree("docker");
}

#[test]
fn a_node_of_a_cluster_counts_as_the_kernel_does() {
    agree("kube");
}

#[test]
fn flows_from_before_the_capture_count_as_the_kernel_does() {
    agree("midstream");
}
