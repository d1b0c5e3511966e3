//! `cargo run -p tamis-supply`: whether every crate in both lock files comes from where `deny.toml` allows, under a
//! licence that it allows, and is in no advisory of the committed snapshot; and whether the lists of licences are those
//! of today. It needs no network once cargo has fetched what `tamis` links on Linux. Prints what is wrong with its file
//! and crate, and exits with 1 if anything is.
//!
//! `… sbom FILE` writes what is linked as a bill of materials.
//! `… licences` writes the two lists anew (it asks the registry for crates that were never downloaded), and
//! `… advisories CLONE` the snapshot, from a clone of <https://github.com/rustsec/advisory-db>.
//!
//! What it cannot see: advisories later than the snapshot, which it says each time; yanked versions; jars and plugins of
//! Maven; Rust's own library; C code that a crate carries under another licence than it declares.

mod advisories;
mod date;
mod deny;
mod licences;
mod lock;
mod sbom;
#[cfg(test)]
mod tests;
mod tree;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use advisories::Snapshot;
use deny::Deny;
use licences::Licences;
use lock::Locked;

const LOCKS: [&str; 2] = ["Cargo.lock", "fuzz/Cargo.lock"];
const DENY: &str = "deny.toml";
const ADVISORIES: &str = ".ci/supply/advisories.toml";
const LICENCES: &str = ".ci/supply/licences.txt";
const THIRD_PARTY: &str = "crates/cli/THIRD-PARTY.md";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => return check(),
        ["licences"] => {
            write(LICENCES, &licences::print(&tree::everything()?))?;
            write(THIRD_PARTY, &tree::third_party(&tree::linked()?))?;
        }
        ["sbom", file] => {
            let locked = lock::read(LOCKS[0], &read(LOCKS[0])?)?;
            let version = env!("CARGO_PKG_VERSION");
            write(file, &sbom::print(version, &tree::linked()?, &locked))?;
        }
        ["advisories", clone] => {
            let snapshot = advisories::take(Path::new(clone))?;
            write(ADVISORIES, &snapshot.print()?)?;
            println!("{ADVISORIES}: {} advisories, as of {}", snapshot.len(), snapshot.date);
        }
        _ => bail!("expected no argument, `sbom FILE`, `licences`, or `advisories CLONE`"),
    }
    Ok(ExitCode::SUCCESS)
}

fn check() -> Result<ExitCode> {
    let deny = Deny::read(&read(DENY)?)?;
    let snapshot = Snapshot::read(&read(ADVISORIES)?)?;
    let licences = Licences::read(&read(LICENCES)?)?;
    let mut locked = Vec::new();
    for file in LOCKS {
        locked.extend(lock::read(file, &read(file)?)?);
    }
    let today = date::today();
    let mut wrong = findings(&deny, &snapshot, &licences, &locked, today);
    match tree::linked() {
        Ok(linked) => wrong.extend(tree::compare(&read(THIRD_PARTY)?, &linked, &licences)),
        Err(why) => wrong.push(format!("{THIRD_PARTY}: cannot say what is linked: {why:#}")),
    }
    wrong.iter().for_each(|line| println!("{line}"));
    println!(
        "supply: {} entries of {}; {}",
        locked.len(),
        LOCKS.join(" and "),
        snapshot.age(today)
    );
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is wrong with the crates of the lock files, and what the lists hold too much.
fn findings(
    deny: &Deny,
    snapshot: &Snapshot,
    licences: &Licences,
    locked: &[Locked],
    today: i64,
) -> Vec<String> {
    let mut wrong: Vec<String> = locked.iter().filter_map(|one| deny.source(one)).collect();
    wrong.extend(licences.check(deny, locked));
    wrong.extend(snapshot.check(deny, locked, today));
    wrong
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("{file} (run in the repository's root)"))
}

fn write(file: &str, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| file.to_owned())
}
