//! The snapshot of the RustSec advisory database: of each advisory on a crate its id, package and versions, nothing of
//! its text. All crates of the database are in it, so that it also knows those that are added later.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};

use crate::date::Day;
use crate::deny::Deny;
use crate::lock::Locked;

/// After so many days a snapshot is called old.
const OLD: i64 = 90;

const HEAD: &str = "\
# Advisories of the RustSec advisory database (https://github.com/rustsec/advisory-db) on crates, without those withdrawn:
# id, package, what kind it is if no vulnerability, versions that are patched, versions that never were affected. Every
# other version is affected. Texts: https://rustsec.org/advisories/ID.html. The database is dedicated to the public domain
# (CC0-1.0); what it has from GitHub's (CC-BY-4.0) is named with its url.
# Written by `make advisories`; do not edit.
";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// The day of the database's last change that is in it.
    pub(crate) date: Day,
    commit: String,
    advisories: BTreeMap<String, Advisory>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Advisory {
    package: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    patched: Vec<VersionReq>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unaffected: Vec<VersionReq>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl Advisory {
    /// A pre-release is affected unless a range names it, as `VersionReq` has it: rather once too often.
    fn affects(&self, name: &str, version: &Version) -> bool {
        let spares = |ranges: &[VersionReq]| ranges.iter().any(|range| range.matches(version));
        self.package == name && !spares(&self.patched) && !spares(&self.unaffected)
    }
}

impl Snapshot {
    pub(crate) fn read(text: &str) -> Result<Snapshot> {
        let snapshot: Snapshot = toml::from_str(text).context(crate::ADVISORIES)?;
        ensure!(!snapshot.advisories.is_empty(), "{}: no advisories in it", crate::ADVISORIES);
        Ok(snapshot)
    }

    /// The text that [`Snapshot::read`] reads, an advisory a line.
    pub(crate) fn print(&self) -> Result<String> {
        let mut text = format!("{HEAD}\ndate = {}\ncommit = \"{}\"\n", self.date, self.commit);
        text += "\n[advisories]\n";
        for (id, advisory) in &self.advisories {
            text += &format!("{id} = {}\n", toml::Value::try_from(advisory)?);
        }
        ensure!(Snapshot::read(&text)? == *self, "the snapshot does not read as it was written");
        Ok(text)
    }

    pub(crate) fn len(&self) -> usize {
        self.advisories.len()
    }

    /// How old the snapshot is, and what that means.
    pub(crate) fn age(&self, today: i64) -> String {
        let days = today - self.date.number();
        let old = if days > OLD { "; WARNING: it is old (make advisories)" } else { "" };
        format!(
            "{} advisories as of {}, {days} days ago: later ones are not known{old}",
            self.len(),
            self.date
        )
    }

    /// The crates that an advisory affects, and the exceptions that have expired or that nothing needs.
    pub(crate) fn check(&self, deny: &Deny, locked: &[Locked], today: i64) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut needed = Vec::new();
        for (id, advisory) in &self.advisories {
            for one in locked.iter().filter(|one| advisory.affects(&one.name, &one.version)) {
                if deny.exceptions.iter().any(|exception| exception.id == *id) {
                    needed.push(id);
                } else {
                    wrong.push(format!("{}: {}", one.at, advisory.says(id)));
                }
            }
        }
        for exception in &deny.exceptions {
            if !needed.contains(&&exception.id) {
                wrong.push(format!("deny.toml: nothing needs the exception from {}", exception.id));
            } else if exception.until.number() < today {
                let (id, until) = (&exception.id, exception.until);
                wrong.push(format!("deny.toml: the exception from {id} expired on {until}"));
            }
        }
        wrong
    }
}

impl Advisory {
    fn says(&self, id: &str) -> String {
        let kind = self.kind.as_deref().unwrap_or("vulnerable");
        let patched: Vec<String> = self.patched.iter().map(VersionReq::to_string).collect();
        let patched = if patched.is_empty() { "nothing".to_owned() } else { patched.join(" or ") };
        format!("{kind} by {id}, patched: {patched} (https://rustsec.org/advisories/{id}.html)")
    }
}

/// An advisory as the database has it: TOML, fenced, at the head of a file of Markdown.
#[derive(Deserialize)]
struct Entry {
    advisory: Head,
    versions: Versions,
}

#[derive(Deserialize)]
struct Head {
    id: String,
    package: String,
    informational: Option<String>,
    license: Option<String>,
    url: Option<String>,
    withdrawn: Option<toml::Value>,
}

#[derive(Deserialize)]
struct Versions {
    patched: Vec<VersionReq>,
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

/// Reads one file of the database: its id and what is kept of it, or None if it was withdrawn.
fn entry(text: &str) -> Result<Option<(String, Advisory)>> {
    let fenced = text.strip_prefix("```toml\n").and_then(|rest| rest.split_once("\n```"));
    let (fenced, _) = fenced.context("expected TOML between ```toml and ``` at its head")?;
    let Entry { advisory: head, versions } = toml::from_str(fenced)?;
    let credited = head.license.is_some_and(|license| license != "CC0-1.0");
    let advisory = Advisory {
        package: head.package,
        kind: head.informational,
        patched: versions.patched,
        unaffected: versions.unaffected,
        url: head.url.filter(|_| credited),
    };
    Ok(head.withdrawn.is_none().then_some((head.id, advisory)))
}

/// Takes a snapshot from a clone of the database.
pub(crate) fn take(clone: &Path) -> Result<Snapshot> {
    let mut advisories = BTreeMap::new();
    let crates = clone.join("crates");
    for folder in fs::read_dir(&crates).with_context(|| crates.display().to_string())? {
        for file in fs::read_dir(folder?.path())? {
            let file = file?.path();
            let named = || file.display().to_string();
            let text = fs::read_to_string(&file).with_context(named)?;
            advisories.extend(entry(&text).with_context(named)?);
        }
    }
    let mut log = Command::new("git");
    log.arg("-C").arg(clone).args(["log", "-1", "--format=%cs %H"]);
    let output = log.output().context("git")?;
    ensure!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr).trim());
    let last = String::from_utf8(output.stdout)?;
    let (date, commit) =
        last.trim().split_once(' ').context("git log: expected date and commit")?;
    Ok(Snapshot { date: date.parse()?, commit: commit.to_owned(), advisories })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_file_is_read_and_what_was_withdrawn_is_left_out() {
        let file = |more: &str| {
            format!(
                "```toml\n[advisory]\nid = \"RUSTSEC-2000-0001\"\npackage = \"p\"\nurl = \"https://example.org\"\n\
                 {more}\n[versions]\npatched = [\">= 1.2.3, < 2.0.0-0\", \"^ 3\"]\n```\n\n# Text\n```toml\nx\n```\n"
            )
        };
        let (id, read) = entry(&file("")).expect("read").expect("not withdrawn");
        assert_eq!((id.as_str(), read.package.as_str()), ("RUSTSEC-2000-0001", "p"));
        assert_eq!((read.patched.len(), read.url), (2, None));
        let (_, read) = entry(&file("license = \"CC-BY-4.0\"")).expect("read").expect("there");
        assert_eq!(read.url.as_deref(), Some("https://example.org"), "where it is to be credited");
        assert!(entry(&file("withdrawn = \"2001-01-01\"")).expect("read").is_none());
        assert!(entry("# Text\n").is_err());
    }
}
