//! The same middlebox in Rust and in Java, between two `net_null` devices: `crates/cli/examples/mac_swap.rs`, and the class
//! `dev.tamis.bench.MacSwap`. Each writes to every frame.
//!
//! Contract: as that of `dpdk`; the thread that counts is the worker's, which in Java is the one that runs the handler. Both
//! programs, and the library, lie where `cargo build` and `make java-bench` put them.

use std::io;
use std::path::Path;
use std::process::Command;

use super::dpdk::Forwarding;
use super::plan::Plan;
use crate::bench::document::Row;
use crate::bench::limit;
use crate::bench::rows::Rows;

const JAR: &str = "bindings/java/bench/target/benchmarks.jar";

/// Measures both in turn.
pub(super) fn rows(tamis: &Path, plan: Plan, out: &mut Rows) -> io::Result<()> {
    let (mut rust, mut java) = (Vec::new(), Vec::new());
    for _ in limit::rounds(plan.runs()) {
        rust.push(Forwarding::by(in_rust(tamis)?, tamis, "worker 0")?.rate(plan.seconds())?);
        java.push(Forwarding::by(in_java(tamis)?, tamis, "tamis-worker-0")?.rate(plan.seconds())?);
    }
    let unit = "packets/s of processor time";
    let row = Row::new("live.handler.null", "java", unit, &java).with("size", 64);
    out.push(row.beside("rust", &java, &rust));
    Ok(())
}

fn in_rust(tamis: &Path) -> io::Result<Command> {
    let program = tamis.with_file_name("examples").join("mac_swap");
    let how = "cargo build --release -p tamis --example mac_swap";
    Ok(Command::new(there(&program, how)?))
}

fn in_java(tamis: &Path) -> io::Result<Command> {
    let library = tamis.with_file_name("libtamis_java.so");
    there(&library, "cargo build --release -p tamis-java --features dpdk")?;
    let mut java = Command::new("java");
    java.arg(format!("-Dtamis.library={}", library.display()))
        .args(["-Xms64m", "-Xmx64m", "-XX:+UseSerialGC", "-XX:+AlwaysPreTouch", "-cp"])
        .arg(there(Path::new(JAR), "make java-bench")?)
        .arg("dev.tamis.bench.MacSwap");
    Ok(java)
}

/// A file that is there.
fn there<'f>(file: &'f Path, how: &str) -> io::Result<&'f Path> {
    let missing = || io::Error::other(format!("{}: not there; {how} makes it", file.display()));
    file.exists().then_some(file).ok_or_else(missing)
}
