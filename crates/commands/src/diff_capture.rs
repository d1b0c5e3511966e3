//! `tamis diff --on`: the packets of captures that get another verdict, and the regions that the same rules make.

use anyhow::Result;
use lint::{Difference, Differences, Fate};
use replay::report::Report;
use replay::run::{Wanted, replay};
use replay::walk::Setup;
use replay::{DeciderPlace, RulesFile};
use serde_json::{Value, json};

/// Packets that get another verdict in the same way, by the same two rules.
struct Changed {
    from: &'static str,
    to: &'static str,
    old: (Option<u32>, String),
    new: (Option<u32>, String),
    packets: u64,
    example: String,
    /// Regions with these rules and verdicts, by their place from 0.
    regions: Vec<usize>,
}

/// What captures show of a change.
pub(crate) struct OnCaptures {
    evaluated: u64,
    unknown: u64,
    changed: u64,
    by: Vec<Changed>,
}

impl OnCaptures {
    /// Replays captures under both rulesets.
    pub(crate) fn of(
        [old, new]: [&RulesFile; 2],
        captures: &[String],
        setup: &Setup,
        found: &Differences,
    ) -> Result<Self> {
        let versus = Some(vec![new.clone()]);
        let mut wanted = Wanted { versus, threads: 1, ..Wanted::default() };
        let report = replay(std::slice::from_ref(old), captures, setup, &mut wanted)?;
        let by = report.changes.iter().flat_map(|changes| &changes.by);
        let by = by.map(|change| {
            let place = |it: DeciderPlace<'_>| (it.line, it.text);
            let old = place(report.old_place(change.old));
            let new = place(report.new_place(change.new));
            let regions = (0..).zip(&found.regions).filter(|(_, region)| {
                let sides = [(&old, change.from), (&new, change.to)];
                (0..).zip(sides).all(|(side, ((line, _), verdict))| {
                    is_of(region, side, line.unwrap_or(0), verdict)
                })
            });
            Changed {
                from: change.from,
                to: change.to,
                regions: regions.map(|(place, _)| place).collect(),
                old,
                new,
                packets: change.packets,
                example: change.examples.first().map_or_else(String::new, |it| it.packet.clone()),
            }
        });
        Ok(Self {
            by: by.collect(),
            evaluated: evaluated(&report),
            unknown: report.verdicts.unknown.packets,
            changed: report.changes.as_ref().map_or(0, |changes| changes.packets),
        })
    }

    /// Formats the changes as text for people.
    pub(crate) fn text(&self, found: &Differences) -> String {
        let mut text = format!(
            "on the captures: {} of {} packets get another verdict, {} are unknown under OLD\n",
            self.changed, self.evaluated, self.unknown
        );
        for Changed { from, to, old, new, packets, example, regions } in &self.by {
            text.push_str(&format!("{packets} packets: {from} -> {to}, such as {example}\n"));
            text.push_str(&format!("    old {}\n    new {}\n", words(old), words(new)));
            for region in regions.iter().filter_map(|place| found.regions.get(*place)) {
                text.push_str(&format!("    of {}: {}\n", region.place, region.piece));
            }
            if regions.is_empty() {
                text.push_str("    of no region: what they meet depends on packets before them\n");
            }
        }
        text
    }

    /// Returns the changes as JSON.
    pub(crate) fn json(&self) -> Value {
        let by = self.by.iter().map(|it| {
            json!({
                "from": it.from, "to": it.to, "packets": it.packets, "example": it.example,
                "old_line": it.old.0, "old_by": it.old.1, "new_line": it.new.0, "new_by": it.new.1,
                "regions": it.regions,
            })
        });
        json!({
            "packets": self.evaluated,
            "unknown": self.unknown,
            "changed": self.changed,
            "by": by.collect::<Vec<_>>(),
        })
    }
}

fn evaluated(report: &Report) -> u64 {
    let verdicts = &report.verdicts;
    [&verdicts.accept, &verdicts.drop, &verdicts.reject, &verdicts.unknown]
        .iter()
        .map(|counter| counter.packets)
        .sum()
}

/// Whether a region is of packets that get this verdict by the rule of this line, under the old rules or the new ones.
fn is_of(region: &Difference, side: usize, line: u32, verdict: &str) -> bool {
    match &region.fates[side] {
        // What decides depends on which it is.
        Fate::OneOf(several) => several.iter().any(|fate| name(fate) == verdict),
        fate => region.deciders[side].0 == line && name(fate) == verdict,
    }
}

fn name(fate: &Fate) -> &'static str {
    match fate {
        Fate::Accept | Fate::Translate(_) => "accept",
        Fate::Drop => "drop",
        Fate::Reject(_) => "reject",
        Fate::Open(_) | Fate::OneOf(_) => "unknown",
    }
}

fn words((line, text): &(Option<u32>, String)) -> String {
    line.map_or_else(|| text.clone(), |line| format!("line {line}: {text}"))
}
