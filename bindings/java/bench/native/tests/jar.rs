//! Every technique of the jar leaves in memory what Rust leaves there.
//!
//! Needs `java`, and the jar that `mvn -f bindings/java/bench package` makes: a plain build has neither.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use tamis_java_bench::frames::Frames;
use tamis_java_bench::pool::Pool;

/// Packets of each check, as in `dev.tamis.bench.Check`.
const PACKETS: u64 = 24_577;

/// What the jar prints, a line for each technique; nothing if it cannot be run here.
fn checked() -> Option<String> {
    let jar = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/benchmarks.jar");
    let program = std::env::current_exe().expect("this program's file");
    let library = program.with_file_name("libtamis_java_bench.so");
    if !jar.is_file() || Command::new("java").arg("-version").output().is_err() {
        eprintln!("SKIPPED: no java, or no benchmarks.jar (mvn -f bindings/java/bench package)");
        return None;
    }
    let option = format!("-Dbench.library={}", library.display());
    let mut java = Command::new("java");
    java.arg(option).arg("-cp").arg(jar).arg("dev.tamis.bench.Check");
    let output = java.output().expect("java runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("lines in UTF-8"))
}

#[test]
fn every_technique_leaves_the_bytes_that_rust_leaves() {
    let Some(lines) = checked() else { return };
    let mut techniques: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [job, _, number, hash] = words[..] else { panic!("{line}") };
        let number: usize = number.parse().unwrap();
        let expected = match job {
            "study" => {
                let mut pool = Pool::new(number, false);
                pool.floor(PACKETS);
                pool.hash()
            }
            _ => {
                let mut frames = Frames::new();
                frames.floor(PACKETS, number);
                frames.hash()
            }
        };
        assert_eq!(hash, format!("{expected:016x}"), "{line}");
        *techniques.entry(job).or_default() += 1;
    }
    // Two rings and four bursts, by no fewer techniques than JDK 17 has.
    assert!(techniques["study"] >= 2 * 21 && techniques["realistic"] >= 4 * 7, "{techniques:?}");
}
