//! The same packets under two rulesets: which ones come to another verdict, and by which rules.
//!
//! Contract: both rulesets evaluate every packet as it was captured, each with a handler and a memory of its
//! own, so stateful matches and connections run apart. Packets that keep their verdict but are decided by
//! another rule are no change. Memory is bounded: groups past 4,096 are counted in one sum.

use std::collections::HashMap;

use dataplane::{Counters, Disposition};
use rules::model::Family;

use crate::decider::Decider;
use crate::reach::Reach;
use crate::report::examples::{EACH, Example};
use crate::rules_file::RulesFile;

/// Most groups kept apart.
const MOST_GROUPS: usize = 1 << 12;

/// Packets that change verdict in the same way, by the same two deciders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictChange {
    /// What decides under the first rules.
    pub old: Decider,
    /// What decides under the new ones.
    pub new: Decider,
    /// The verdict under the first rules, as `--verdicts` spells it.
    pub from: &'static str,
    /// The verdict under the new ones.
    pub to: &'static str,
    /// How many packets.
    pub packets: u64,
    /// Their bytes, as the kernel counts them.
    pub bytes: u64,
    /// The first of them.
    pub examples: Vec<Example>,
}

impl VerdictChange {
    /// The number of the first packet.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.examples.first().map_or(0, |example| example.frame)
    }
}

/// What `--vs` found.
#[derive(Debug)]
pub struct Changes {
    /// The new rules.
    pub files: Vec<RulesFile>,
    /// Packets that change verdict.
    pub packets: u64,
    /// Groups, the largest first.
    pub by: Vec<VerdictChange>,
    /// Packets that change verdict in groups that were too many to keep.
    pub ungrouped: u64,
    /// What was counted on the new rules, in the order of their files.
    pub counters: Vec<Counters>,
    /// Which of them were reached.
    pub(crate) reach: Vec<Reach>,
}

impl Changes {
    /// The new rules of a family.
    #[must_use]
    pub fn file(&self, family: Family) -> Option<&RulesFile> {
        self.files.iter().find(|file| file.ruleset.family == family)
    }
}

/// The two deciders and the two verdicts.
type Key = (Decider, Decider, &'static str, &'static str);

/// The groups of packets that change verdict.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: HashMap<Key, VerdictChange>,
    packets: u64,
    ungrouped: u64,
}

impl Groups {
    /// Counts a packet if its verdict changed; `example` shows it.
    pub(crate) fn compare(
        &mut self,
        old: &Disposition,
        old_by: Decider,
        new: &Disposition,
        new_by: Decider,
        example: impl FnOnce() -> Example,
    ) -> bool {
        let (from, to) = (old.verdict.word(), new.verdict.word());
        if from == to {
            return false;
        }
        self.packets += 1;
        let key = (old_by, new_by, from, to);
        if self.groups.len() >= MOST_GROUPS && !self.groups.contains_key(&key) {
            self.ungrouped += 1;
            return true;
        }
        let group = self.groups.entry(key).or_insert_with(|| VerdictChange {
            old: old_by,
            new: new_by,
            from,
            to,
            packets: 0,
            bytes: 0,
            examples: Vec::new(),
        });
        group.packets += 1;
        group.bytes += old.bytes;
        if group.examples.len() < EACH {
            group.examples.push(example());
        }
        true
    }

    /// Returns what was found under these rules, with what was counted for each file.
    pub(crate) fn finish(self, files: Vec<RulesFile>, counted: Vec<(Counters, Reach)>) -> Changes {
        let mut by: Vec<VerdictChange> = self.groups.into_values().collect();
        by.sort_by_key(|change| (std::cmp::Reverse(change.packets), change.first()));
        let (counters, reach) = counted.into_iter().unzip();
        Changes { files, packets: self.packets, by, ungrouped: self.ungrouped, counters, reach }
    }
}
