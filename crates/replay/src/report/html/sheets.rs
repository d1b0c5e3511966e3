//! The rules texts on the page: those of the replay, and under `--vs` the new ones, with the lines that only
//! one of the two has and the changes that a line makes.
//!
//! A new text that says what the old one says (`--vs-semantics` alone differs) is not shown twice: what it
//! decides is linked to the old one.

use std::collections::HashMap;
use std::fmt::{Result, Write};

use dataplane::Counters;
use rules::eval::By;
use rules::model::Family;

use super::coverage::{Coverage, Effect, Revision};
use super::edits::edits;
use super::markup::escape;
use crate::decider::Decider;
use crate::report::Report;
use crate::rules_file::RulesFile;

/// The two sides of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Old,
    New,
}

impl Report {
    /// Every rules file of the replay.
    pub(super) fn write_rules(&self, out: &mut String) -> Result {
        for (index, file) in self.files.iter().enumerate() {
            let new = self.new_text(file.ruleset.family);
            let lines = new.map(|(_, new)| edits(&file.text, &new.text).0);
            let revision = lines.map(|lines| Revision { class: " gone", lines });
            self.write_sheet(out, index, file, &self.counters[index], revision)?;
        }
        Ok(())
    }

    /// Every rules file of `--vs` that says something else.
    pub(super) fn write_new_rules(&self, out: &mut String) -> Result {
        let Some(changes) = &self.changes else { return Ok(()) };
        for (new, counters) in changes.files.iter().zip(&changes.counters) {
            let family = new.ruleset.family;
            let (Some((index, _)), Some(old)) = (self.new_text(family), self.file(family)) else {
                continue;
            };
            let lines = edits(&old.text, &new.text).1;
            let revision = Some(Revision { class: " came", lines });
            self.write_sheet(out, index, new, counters, revision)?;
        }
        Ok(())
    }

    fn write_sheet(
        &self,
        out: &mut String,
        index: usize,
        file: &RulesFile,
        counters: &Counters,
        revision: Option<Revision>,
    ) -> Result {
        if self.files.len() > 1 || revision.is_some() {
            writeln!(out, "<h3>{}</h3>", escape(&file.file))?;
        }
        let rows = self.lines_with_rows(index);
        let maybes = self.maybe_lines(index);
        let effects = self.effects(index);
        let coverage = Coverage::of(index, file, counters, revision, effects, rows, maybes);
        coverage.write(out, &file.text)
    }

    /// Why lines of a text may have been hit, and the command that shows it; the new texts have none.
    fn maybe_lines(&self, text: usize) -> HashMap<u32, String> {
        let file = self.files.get(text);
        let rules = file.into_iter().flat_map(|file| file.rules());
        let lines = rules.filter_map(|(at, .., rule)| {
            let reason = self.maybe_reason(text, at)?;
            let command = self.why_command(self.numbers.show(reason.first));
            Some((rule.line, format!("by {}\n{command}", reason.words())))
        });
        lines.collect()
    }

    /// The new text of a family, if it is shown, and its index among the texts of the page.
    fn new_text(&self, family: Family) -> Option<(usize, &RulesFile)> {
        let changes = self.changes.as_ref()?;
        let at = changes.files.iter().position(|file| file.ruleset.family == family)?;
        let (new, old) = (&changes.files[at], self.file(family)?);
        (new.text != old.text).then_some((self.files.len() + at, new))
    }

    /// Where a decider stands on the page: index of its text, and line.
    pub(super) fn line_of(&self, decider: Decider, side: Side) -> Option<(usize, u32)> {
        let (family, by): (Family, By) = decider.rules()?;
        let old = || Some((self.file_index(family)?, self.file(family)?));
        let (index, file) = match side {
            Side::Old => old()?,
            Side::New => self.new_text(family).or_else(old)?,
        };
        Some((index, file.by_line(by)))
    }

    /// The packets that change verdict by the lines of a text.
    fn effects(&self, text: usize) -> HashMap<u32, Effect> {
        let mut effects: HashMap<u32, Effect> = HashMap::new();
        let changes = self.changes.iter().flat_map(|changes| &changes.by);
        for (group, change) in changes.enumerate() {
            let lines = [(change.old, Side::Old), (change.new, Side::New)]
                .map(|(decider, side)| self.line_of(decider, side));
            // A line may decide both before and now.
            let lines = if lines[0] == lines[1] { &lines[..1] } else { &lines[..] };
            for (index, line) in lines.iter().flatten() {
                if *index == text {
                    let effect =
                        effects.entry(*line).or_insert(Effect { first: group, packets: 0 });
                    effect.packets += change.packets;
                }
            }
        }
        effects
    }
}
