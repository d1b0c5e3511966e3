//! The same packets under two rulesets: which ones come to another verdict, and by which rules.
//!
//! Contract: both rulesets judge every packet as it was captured, each with a handler and a memory of its
//! own, so stateful matches and connections run apart. Packets that keep their verdict but are decided by
//! another rule are no change.

use std::collections::HashMap;

use dataplane::{Arrival, Config, Disposition, Handler, Observer, Path, Why};
use rules::Iface;
use rules::eval::{self, Cause, RuleRef};
use rules::model::Family;

use crate::decider::Decider;
use crate::rules_file::RulesFile;

/// Packets of one group kept as examples.
const EXAMPLES: usize = 5;

/// Packets that change verdict in the same way, by the same two deciders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
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
    /// Numbers of the first of them.
    pub frames: Vec<u64>,
    /// The first one in a line.
    pub example: String,
}

/// What `--vs` found.
#[derive(Debug)]
pub struct Changes {
    /// The new rules.
    pub files: Vec<RulesFile>,
    /// Packets that change verdict.
    pub packets: u64,
    /// Groups, the largest first.
    pub by: Vec<Change>,
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

/// A replay under the new rules, beside the first one.
pub(crate) struct Versus<'n> {
    handler: Handler<'n>,
    groups: HashMap<Key, Change>,
    packets: u64,
}

impl<'n> Versus<'n> {
    /// `old` gives the rules of families that `new` has none for.
    pub(crate) fn new(new: &'n [RulesFile], old: &'n [RulesFile], config: &'n Config) -> Self {
        let replaced = |family: Family| new.iter().any(|file| file.ruleset.family == family);
        let kept = old.iter().filter(|file| !replaced(file.ruleset.family));
        let rulesets = new.iter().chain(kept).map(|file| &file.ruleset);
        Self { handler: Handler::new(rulesets, config), groups: HashMap::new(), packets: 0 }
    }

    /// What becomes of a packet under the new rules; `bytes` are as captured, and may be rewritten.
    pub(crate) fn judge(
        &mut self,
        bytes: &mut [u8],
        arrival: &Arrival<'_>,
    ) -> (Disposition, Decider) {
        let mut first = FirstCause::default();
        let end = self.handler.handle(bytes, arrival, &mut first);
        (end, Decider::of(&end, first.why))
    }

    /// Counts a packet if its verdict changed; `line` puts it in words.
    pub(crate) fn compare(
        &mut self,
        frame: u64,
        (old, old_by): (&Disposition, Decider),
        (new, new_by): (&Disposition, Decider),
        line: impl FnOnce() -> String,
    ) -> bool {
        let (from, to) = (old.judgement.word(), new.judgement.word());
        if from == to {
            return false;
        }
        self.packets += 1;
        let group = self.groups.entry((old_by, new_by, from, to)).or_insert_with(|| Change {
            old: old_by,
            new: new_by,
            from,
            to,
            packets: 0,
            bytes: 0,
            frames: Vec::new(),
            example: line(),
        });
        group.packets += 1;
        group.bytes += old.bytes;
        if group.frames.len() < EXAMPLES {
            group.frames.push(frame);
        }
        true
    }

    /// The packets that changed, and their groups, the largest first.
    pub(crate) fn finish(self) -> (u64, Vec<Change>) {
        let mut by: Vec<Change> = self.groups.into_values().collect();
        by.sort_by_key(|change| {
            (std::cmp::Reverse(change.packets), change.frames.first().copied())
        });
        (self.packets, by)
    }
}

/// Notes the first thing that a verdict may hang on, and counts nothing.
#[derive(Debug, Default)]
struct FirstCause {
    family: Option<Family>,
    why: Option<Why>,
}

impl eval::Observer for FirstCause {
    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        if let (None, Some(family)) = (self.why, self.family) {
            self.why = Some(Why::Rule(family, at, cause));
        }
    }
}

impl Observer for FirstCause {
    fn starts(&mut self, family: Family, _: Path, _: Iface<'_>, _: Iface<'_>) {
        self.family = Some(family);
    }

    fn hangs_on(&mut self, why: Why) {
        self.why = self.why.or(Some(why));
    }
}
