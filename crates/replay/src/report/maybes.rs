//! Why rules may have been hit, and which packet shows it, as reports say it.

use std::cmp::Reverse;
use std::fmt::Write;

use dataplane::Why;
use serde_json::{Value, json};

use super::Report;
use super::text::{WIDTH, fit, number};
use crate::rules_file::RulesFile;
use rules::eval::RuleRef;

/// What leaves it open whether packets hit a rule.
pub(super) struct MaybeReason {
    /// Index of the rules file and line, if a rule's.
    place: Option<(usize, u32)>,
    /// In the words of that rule.
    what: String,
    /// How to make it known, if anything tells it.
    how: Option<String>,
    /// The number of the first packet.
    pub(super) first: u64,
}

impl MaybeReason {
    /// `L4 -m geoip`.
    pub(super) fn words(&self) -> String {
        let line = self.place.map_or_else(String::new, |(_, line)| format!("L{line} "));
        line + &self.what
    }
}

impl Report {
    /// Why a rule may have been hit, if it may.
    pub(super) fn maybe_reason(&self, file: usize, at: RuleRef) -> Option<MaybeReason> {
        let (.., rule) = self.files.get(file)?.rule(at);
        let hit = self.maybes.of(file, rule.slot)?;
        let (place, what, how) = match hit.why {
            Some(why) => {
                let (place, what) = self.why_text(&why);
                (place, what, self.how(&why))
            }
            None => (None, "a copy that no capture shows".to_owned(), None),
        };
        Some(MaybeReason { place, what, how, first: hit.number })
    }

    /// `maybe_because` of a rule in the JSON report.
    pub(super) fn maybe_json(&self, file: usize, at: RuleRef) -> Option<Value> {
        let reason = self.maybe_reason(file, at)?;
        Some(json!({
            "line": reason.place.map(|(_, line)| line),
            "what": reason.what,
            "how": reason.how,
            "example_frame": self.numbers.frame(reason.first),
            "example_capture": self.numbers.file(reason.first),
            "command": self.why_command(self.numbers.show(reason.first)),
        }))
    }

    /// The rules that most packets may have hit, each with the first of them and why.
    pub(super) fn maybes_text(&self, out: &mut String) -> std::fmt::Result {
        let rules = |(index, file): (usize, &'_ RulesFile)| {
            let found = file.rules().map(move |(at, .., rule)| (index, at, rule.line));
            found.collect::<Vec<_>>()
        };
        let all = self.files.iter().enumerate().flat_map(rules);
        let packets = |index: usize, at| self.counters[index].rule(at).maybe;
        let counted = all.map(|(index, at, line)| (Reverse(packets(index, at)), index, line, at));
        let mut counted: Vec<_> = counted.filter(|(Reverse(packets), ..)| *packets > 0).collect();
        counted.sort();
        let shown = counted.iter().take(self.rows());
        let shown: Vec<_> = shown
            .filter_map(|(Reverse(packets), index, line, at)| {
                Some((*packets, *line, self.maybe_reason(*index, *at)?))
            })
            .collect();
        let Some((.., first)) = shown.first() else { return Ok(()) };
        let heading = fit("MAYBE HIT BECAUSE", WIDTH - 39);
        writeln!(out, "\n{heading}{:>12}   example", "packets")?;
        for (packets, line, reason) in &shown {
            let label = fit(&format!("  L{line:<5} by {}", reason.words()), WIDTH - 39);
            let example = self.numbers.words(reason.first);
            writeln!(out, "{label}{:>12}   #{example}", number(*packets))?;
        }
        if counted.len() > shown.len() {
            let (more, all) = (counted.len() - shown.len(), counted.len());
            writeln!(out, "  and {more} more (--top {all} shows all)")?;
        }
        writeln!(out, "  to see it: {}", self.why_command(self.numbers.show(first.first)))
    }

    /// How to make known what a verdict depends on.
    fn how(&self, why: &Why) -> Option<String> {
        let file = match why {
            Why::Rule(family, ..) => self.file(*family),
            _ => None,
        };
        super::known::how(why, file)
    }
}
