//! What cargo says of crates, and `THIRD-PARTY.md`: those that are linked into `tamis`.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::licences::Licences;

/// The licence of a crate that declares none; `deny.toml` never allows it.
const UNKNOWN: &str = "UNKNOWN";

/// A crate of another's, as cargo describes it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    /// Name and version.
    pub(crate) name: String,
    /// As an SPDX expression, or [`UNKNOWN`].
    pub(crate) licence: String,
    pub(crate) repository: String,
}

const HEAD: &str = "\
# Third-party crates in tamis

What is linked into `tamis` on Linux (x86-64 and ARM64), besides Rust's own library (MIT OR Apache-2.0): name, version,
licence and source as each crate declares them. `zstd-sys` carries the C library zstd (BSD-3-Clause). A build that finds
DPDK links the system's (BSD-3-Clause). Written by `make licences`; do not edit.

| crate | licence | source |
|---|---|---|
";

/// What `cargo metadata` says of a crate.
#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Every crate of both lock files, those for other systems and of features that are off as well, which
/// `cargo tree` does not show.
pub(crate) fn everything() -> Result<BTreeSet<Node>> {
    let mut nodes = BTreeSet::new();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let arguments = ["metadata", "--format-version", "1", "--manifest-path", manifest];
        let metadata: Metadata = serde_json::from_str(&cargo(&arguments)?)?;
        let foreign = metadata.packages.into_iter().filter(|package| package.source.is_some());
        nodes.extend(foreign.map(|package| Node {
            name: format!("{} {}", package.name, package.version),
            licence: package.license.unwrap_or_else(|| UNKNOWN.to_owned()),
            repository: package.repository.unwrap_or_default(),
        }));
    }
    Ok(nodes)
}

/// What is linked into `tamis`; procedural macros are not.
pub(crate) fn linked() -> Result<BTreeSet<Node>> {
    read(&cargo(&[
        "tree",
        "--package",
        "tamis",
        "--edges",
        "normal,no-proc-macro",
        "--target",
        "x86_64-unknown-linux-gnu",
        "--target",
        "aarch64-unknown-linux-gnu",
        "--prefix",
        "none",
        "--format",
        "{p}\t{l}\t{r}",
    ])?)
}

fn cargo(arguments: &[&str]) -> Result<String> {
    let output = Command::new("cargo").args(arguments).arg("--locked").output().context("cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// Reads what `cargo tree` prints, without what lies in the repository.
pub(crate) fn read(text: &str) -> Result<BTreeSet<Node>> {
    let mut nodes = BTreeSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        // `name vVERSION`, then `(proc-macro)` or a folder; after the last column `(*)` where it came before.
        let mut columns = line.trim_end_matches(" (*)").split('\t');
        let mut package = columns.next().unwrap_or_default().split(' ');
        let (Some(name), Some(version)) = (package.next(), package.next()) else {
            anyhow::bail!("cargo tree: expected name and version, found `{line}`");
        };
        if package.any(|more| more.starts_with("(/")) {
            continue;
        }
        let column = |text: Option<&str>| text.map(str::trim).unwrap_or_default().to_owned();
        let licence = Some(column(columns.next())).filter(|licence| !licence.is_empty());
        nodes.insert(Node {
            name: format!("{name} {}", version.trim_start_matches('v')),
            licence: licence.unwrap_or_else(|| UNKNOWN.to_owned()),
            repository: column(columns.next()),
        });
    }
    Ok(nodes)
}

/// The text of `THIRD-PARTY.md`.
pub(crate) fn third_party(linked: &BTreeSet<Node>) -> String {
    let row = |node: &Node| format!("| {} | {} | {} |\n", node.name, node.licence, node.repository);
    HEAD.to_owned() + &linked.iter().map(row).collect::<String>()
}

/// Where `THIRD-PARTY.md` is not what is linked, and `licences.txt` not what the crates declare.
pub(crate) fn compare(text: &str, linked: &BTreeSet<Node>, licences: &Licences) -> Vec<String> {
    let file = crate::THIRD_PARTY;
    let expected = third_party(linked);
    let (now, then): (BTreeSet<_>, BTreeSet<_>) =
        (expected.lines().collect(), text.lines().collect());
    let lacking =
        now.difference(&then).map(|line| format!("{file}: lacks `{line}` (make licences)"));
    let old = then.difference(&now).map(|line| format!("{file}: stale: `{line}` (make licences)"));
    let mut wrong: Vec<String> = lacking.chain(old).collect();
    if wrong.is_empty() && text != expected {
        wrong.push(format!(
            "{file}: its lines are not each there once and in order (make licences)"
        ));
    }
    for node in linked {
        // One that is missing is told of by its lock file.
        if let Some(listed) = licences.of(&node.name).filter(|listed| *listed != node.licence) {
            let (name, declared) = (&node.name, &node.licence);
            let list = crate::LICENCES;
            wrong.push(format!("{list}: {name} is under {declared}, not {listed} (make licences)"));
        }
    }
    wrong
}
