//! Which rules packets reached: those that none hit were never reached, or reached and did not match, or it is not
//! known.

use std::fmt::Write;

use rules::eval::RuleRef;

use super::Report;
use super::text::{number, plural};
use super::unseen::Unseen;
use crate::list::List;
use crate::reach::{Reach, Reached};

/// Rules that no packet is known to have hit, by why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NeverHit {
    /// All rules.
    pub rules: u64,
    /// No packet reached them.
    pub not_reached: u64,
    /// Packets reached them, and did not match.
    pub not_matched: u64,
    /// Packets may have reached them, and did not match if they did.
    pub maybe_reached: u64,
    /// Packets may have hit them.
    pub maybe_hit: u64,
}

impl NeverHit {
    /// Those that no packet can have hit.
    #[must_use]
    pub fn never(&self) -> u64 {
        self.not_reached + self.not_matched + self.maybe_reached
    }

    /// `2 not reached, 3 reached and not matched, 1 maybe reached`.
    #[must_use]
    pub fn words(&self) -> String {
        let parts = [
            (self.not_reached, "not reached"),
            (self.not_matched, "reached and not matched"),
            (self.maybe_reached, "maybe reached"),
        ];
        let parts = parts.into_iter().filter(|(rules, _)| *rules > 0);
        let parts: Vec<String> =
            parts.map(|(rules, what)| format!("{} {what}", number(rules))).collect();
        parts.join(", ")
    }
}

impl Report {
    /// What was reached of a file's chains.
    pub(crate) fn reach(&self, file: usize) -> Reach {
        let hot_drops = self.refused_by.keys().copied();
        let (file, counters, ends) = (&self.files[file], &self.counters[file], &self.ends[file]);
        Reach::new(file, counters, ends, hot_drops, self.unknown_because.keys().copied())
            .with_unseen(!self.unrecorded.is_empty())
    }

    /// How many rules no packet is known to have hit, by why not.
    #[must_use]
    pub fn never_hit(&self) -> NeverHit {
        let mut found = NeverHit::default();
        let unseen = Unseen::of(self);
        for (index, file) in self.files.iter().enumerate() {
            let reach = self.reach(index);
            for (at, .., rule) in file.rules() {
                let tally = self.counters[index].rule(at);
                found.rules += 1;
                match reach.of(at) {
                    _ if tally.packets > 0 => {}
                    _ if tally.maybe > 0 || unseen.may_hit(index, at, rule).is_some() => {
                        found.maybe_hit += 1
                    }
                    Reached::Yes => found.not_matched += 1,
                    Reached::No => found.not_reached += 1,
                    Reached::Maybe => found.maybe_reached += 1,
                }
            }
        }
        found
    }

    /// `never hit 5 of 20 rules: …`.
    pub(super) fn never_text(&self, out: &mut String) -> std::fmt::Result {
        let never = self.never_hit();
        let (count, rules) = (number(never.never()), plural(never.rules, "rule"));
        let why = match never.never() {
            0 => String::new(),
            _ => format!(": {}", never.words()),
        };
        let maybe = match never.maybe_hit {
            0 => String::new(),
            maybe => format!("; maybe hit: {}", number(maybe)),
        };
        writeln!(out, "\nnever hit {count} of {rules}{why}{maybe}")
    }

    /// The rules themselves, if `--list never` asks for them.
    pub(super) fn never_list(&self, out: &mut String) -> std::fmt::Result {
        let Some(listing) = self.listing.as_ref().filter(|l| l.lists.has(List::Never)) else {
            return Ok(());
        };
        let never = self.never_hit();
        let all = never.never() + never.maybe_hit;
        let (shown, rules) = (all.min(listing.limit as u64), plural(all, "rule"));
        let more = match shown < all {
            true => format!(" (--limit {all} shows all)"),
            false => String::new(),
        };
        writeln!(out, "\nLIST never: {} of {rules}{more}", number(shown))?;
        let mut left = shown;
        let unseen = Unseen::of(self);
        for (index, file) in self.files.iter().enumerate() {
            let reach = self.reach(index);
            for (at, .., rule) in file.rules().filter(|(at, ..)| self.is_never(index, *at)) {
                let Some(rest) = left.checked_sub(1) else { return Ok(()) };
                left = rest;
                let why = self.why_never(index, &reach, at, unseen.may_hit(index, at, rule));
                let line = file.line(rule.line).1;
                writeln!(out, "  L{line:<5} {why}: {}", file.rule_text(at))?;
            }
        }
        Ok(())
    }

    fn is_never(&self, file: usize, at: RuleRef) -> bool {
        self.counters[file].rule(at).packets == 0
    }

    /// Why no packet is known to have hit a rule.
    fn why_never(&self, file: usize, reach: &Reach, at: RuleRef, unseen: Option<&str>) -> String {
        let maybe = self.counters[file].rule(at).maybe;
        match (reach.of(at), unseen) {
            _ if maybe > 0 => format!("maybe hit by {}", plural(maybe, "packet")),
            (_, Some(packets)) => format!("maybe hit by {packets}"),
            (Reached::Yes, _) => "reached, not matched".to_owned(),
            (Reached::No, _) => "not reached".to_owned(),
            (Reached::Maybe, _) => "maybe reached".to_owned(),
        }
    }
}
