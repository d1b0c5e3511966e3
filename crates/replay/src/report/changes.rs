//! What `--vs` found, as text and as JSON.

use std::fmt::Write;

use packet::visible::word;
use rules::model::Family;
use serde_json::{Value, json};

use super::text::{fit, number, plural};
use super::{Listed, Report};
use crate::changes::VerdictChange;
use crate::decider::{Decider, DeciderPlace};
use crate::rules_file::RulesFile;

/// Groups shown before "and N more".
const GROUPS: usize = 8;
/// Width of a screen line.
const WIDTH: usize = 100;

impl Report {
    /// The rules that evaluate a family under `--vs`.
    fn new_file(&self, family: Family) -> Option<&RulesFile> {
        self.changes.as_ref()?.file(family).or_else(|| self.file(family))
    }

    /// Where a decider stands in the first rules.
    #[must_use]
    pub fn old_place(&self, decider: Decider) -> DeciderPlace<'_> {
        decider.place(&self.config.host, |family| self.file(family))
    }

    /// Where a decider stands in the rules of `--vs`.
    #[must_use]
    pub fn new_place(&self, decider: Decider) -> DeciderPlace<'_> {
        decider.place(&self.config.host, |family| self.new_file(family))
    }

    pub(super) fn changes_text(&self, out: &mut String) -> std::fmt::Result {
        let Some(changes) = &self.changes else { return Ok(()) };
        let names: Vec<_> = changes.files.iter().map(|file| word(&file.file)).collect();
        let heading = format!("CHANGES{} vs {}", self.change_of_semantics(), names.join(", "));
        writeln!(out, "\n{}{:>12}   example", fit(&heading, WIDTH - 39), "packets")?;
        if changes.by.is_empty() {
            return writeln!(out, "  {}", self.unchanged());
        }
        let rows = self.rows.unwrap_or(GROUPS);
        for change in changes.by.iter().take(rows) {
            self.change_text(out, change)?;
        }
        let all = changes.by.len();
        if all > rows {
            writeln!(out, "  and {} more (--top {all} shows all)", all - rows)?;
        }
        if changes.ungrouped > 0 {
            let packets = plural(changes.ungrouped, "packet");
            writeln!(out, "  and {packets} in groups too many to keep apart")?;
        }
        let (changed, packets) = (number(changes.packets), plural(self.evaluated(), "packet"));
        writeln!(out, "  in all {changed} of {packets} evaluated")
    }

    /// What there is to say where no verdict changes: what is unknown under both is no proof that they agree.
    fn unchanged(&self) -> String {
        let (evaluated, unknown) = (self.evaluated(), self.verdicts.unknown.packets);
        let packets = plural(evaluated, "packet");
        match unknown {
            0 => format!("none: {packets} evaluated, every verdict the same"),
            _ if unknown == evaluated => {
                format!("cannot tell: {packets} evaluated, all unknown under both")
            }
            _ => format!(
                "none known: {packets} evaluated, {} unknown under both, every other verdict the same",
                number(unknown)
            ),
        }
    }

    /// Packets that were evaluated.
    fn evaluated(&self) -> u64 {
        self.packets.saturating_sub(self.verdicts.skip.packets)
    }

    /// `, legacy to nft,` where the new rules have another backend.
    pub(super) fn change_of_semantics(&self) -> String {
        let new = self.changes.iter().flat_map(|changes| &changes.files).find_map(|new| {
            let old = self.file(new.ruleset.family)?.ruleset.backend;
            (old != new.ruleset.backend).then_some((old, new.ruleset.backend))
        });
        new.map_or_else(String::new, |(old, new)| format!(", {} to {},", old.name(), new.name()))
    }

    fn change_text(&self, out: &mut String, change: &VerdictChange) -> std::fmt::Result {
        let what = fit(&format!("  {} -> {}", change.from, change.to), WIDTH - 39);
        writeln!(
            out,
            "{what}{:>12}   #{}",
            number(change.packets),
            self.numbers.words(change.first())
        )?;
        for (side, place) in
            [("old", self.old_place(change.old)), ("new", self.new_place(change.new))]
        {
            let line = place.line.map_or_else(String::new, |line| format!("L{line}"));
            let text = format!("    {side}  {line:<6} {}", place.text);
            writeln!(out, "{}", fit(&text, WIDTH))?;
        }
        let Some(example) = change.examples.first() else { return Ok(()) };
        let text = format!("    e.g. #{} {}", self.numbers.words(example.frame), example.packet);
        writeln!(out, "{}", fit(&text, WIDTH))
    }

    /// The words of a listed packet whose verdict changes.
    pub(super) fn listed_new(&self, listed: &Listed) -> Option<(&'static str, DeciderPlace<'_>)> {
        let (end, decider) = listed.new?;
        Some((end.verdict.word(), self.new_place(decider)))
    }

    pub(super) fn changes_json(&self) -> Option<Value> {
        let changes = self.changes.as_ref()?;
        let by: Vec<Value> = changes
            .by
            .iter()
            .map(|change| {
                json!({
                    "old": self.old_place(change.old),
                    "new": self.new_place(change.new),
                    "from": change.from,
                    "to": change.to,
                    "packets": change.packets,
                    "bytes": change.bytes,
                    "example_frame": self.numbers.json(change.first()),
                    "example_frames": change
                        .examples
                        .iter()
                        .map(|example| self.numbers.json(example.frame))
                        .collect::<Vec<_>>(),
                    "example": change.examples.first().map(|example| &example.packet),
                })
            })
            .collect();
        let files: Vec<Value> = changes
            .files
            .iter()
            .map(|file| {
                json!({
                    "file": file.file,
                    "family": file.ruleset.family.name(),
                    "semantics": file.ruleset.backend.name(),
                })
            })
            .collect();
        Some(json!({
            "packets": changes.packets,
            "rules": files,
            "by": by,
            "ungrouped": changes.ungrouped,
        }))
    }
}
