//! The two tools that load rules of a bridge into the kernel, and what their rules have counted.
//!
//! ebtables-nft is there wherever nf_tables is; the legacy one needs `CONFIG_BRIDGE_NF_EBTABLES_LEGACY`, and prints
//! counters in its listing alone (its save command also asks for tables that are not there). Both take the same text.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;

use rules::Backend;
use rules::model::Counters;

use super::netns::feed;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ebtables {
    /// ebtables-nft.
    Nft,
    /// ebtables-legacy.
    Legacy,
}

/// Rule counters by table and chain.
pub(super) type Found = BTreeMap<(String, String), Vec<Counters>>;

impl Ebtables {
    /// Reads `nft` or `legacy`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Nft, Self::Legacy].into_iter().find(|tool| tool.backend().name() == name)
    }

    /// What applies its rules.
    #[must_use]
    pub fn backend(self) -> Backend {
        match self {
            Self::Nft => Backend::Nft,
            Self::Legacy => Backend::Legacy,
        }
    }

    /// The rules that it takes: the legacy one wants the bridge group's address beside tests of STP, and does not know
    /// the protocol `all`; the other does not know `--string`.
    pub(super) fn taken(self, text: &str) -> String {
        let is_taken = |line: &&str| match self {
            Self::Nft => !line.contains("--string"),
            Self::Legacy => !line.contains("--stp-") && !line.contains("-proto all"),
        };
        text.lines().filter(is_taken).map(|line| format!("{line}\n")).collect()
    }

    /// Replaces the tables that `text` names, in the calling thread's namespace.
    pub(super) fn restore(self, text: &str) -> io::Result<()> {
        feed(&mut Command::new(format!("ebtables-{}-restore", self.backend().name())), text)
    }
}

/// What the rules of a bridge have counted.
pub(super) fn nft_counters() -> io::Result<Found> {
    saved_counters("ebtables-nft-save")
}

/// `[packets:bytes] -A CHAIN …` lines of a save tool.
pub(super) fn saved_counters(tool: &str) -> io::Result<Found> {
    let output = Command::new(tool).arg("-c").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut found, mut table) = (Found::new(), String::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            name.clone_into(&mut table);
        }
        let Some((counters, rule)) = line.strip_prefix('[').and_then(|l| l.split_once("] -A "))
        else {
            continue;
        };
        let chain = rule.split(' ').next().unwrap_or_default().to_owned();
        found.entry((table.clone(), chain)).or_default().push(parse_counters(counters, ":"));
    }
    Ok(found)
}

/// `… , pcnt = 3 -- bcnt = 84` lines after one that names the chain.
pub(super) fn legacy_counters() -> io::Result<Found> {
    let mut found = Found::new();
    for table in ["nat", "filter"] {
        let output = Command::new("ebtables-legacy").args(["-t", table, "-L", "--Lc"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut chain = String::new();
        for line in text.lines() {
            if let Some((name, _)) =
                line.strip_prefix("Bridge chain: ").and_then(|l| l.split_once(','))
            {
                name.clone_into(&mut chain);
            }
            if let Some((_, counters)) = line.rsplit_once("pcnt = ") {
                let counters = parse_counters(counters, "-- bcnt = ");
                found.entry((table.to_owned(), chain.clone())).or_default().push(counters);
            }
        }
    }
    Ok(found)
}

/// Packets and bytes with this between them.
pub(super) fn parse_counters(text: &str, between: &str) -> Counters {
    let (packets, bytes) = text.split_once(between).unwrap_or((text, "0"));
    let number = |text: &str| text.trim().parse().unwrap_or(0);
    Counters { packets: number(packets), bytes: number(bytes) }
}
