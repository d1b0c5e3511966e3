//! [`Differences`]: what differs, as text and as JSON.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::causes;
use crate::flow::Fate;
use crate::space::Piece;

/// Packets that get another verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Table and built-in chain.
    pub place: String,
    /// What becomes of them under the old rules, and under the new ones.
    pub fates: [Fate; 2],
    /// What decides, as text, and its line; 0 for a policy that no line gives.
    pub deciders: [(u32, String); 2],
    /// Which packets they are.
    pub piece: Piece,
    /// What the difference also depends on, beyond the packet: the packets differ for some of the answers.
    pub depends: Vec<String>,
    /// One of the packets, as `tamis why --packet` takes it.
    pub witness: String,
    /// Options that have to be given with the witness.
    pub given: Vec<String>,
}

/// All that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// Disjoint at each place.
    pub regions: Vec<Difference>,
    /// More regions differ than are listed.
    pub more: bool,
    /// What may differ, or not.
    pub unknown: Vec<String>,
    /// What to give to know more.
    pub to_know: BTreeSet<String>,
}

/// What a comparison came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compared {
    /// Every packet gets the same verdict.
    Same,
    /// Some packets get another verdict.
    Different,
    /// No packet is known to get another verdict, but some may.
    Unknown,
}

/// Regions that are listed at one place.
pub(super) const MOST_REGIONS: usize = 100;

/// Unknown ones.
pub(super) const MOST_UNKNOWN: usize = 20;

impl Differences {
    pub(super) fn take(&mut self, others: Self) {
        self.regions.extend(others.regions);
        self.more |= others.more;
        self.unknown.extend(others.unknown);
        self.to_know.extend(others.to_know);
    }

    /// What it comes to.
    #[must_use]
    pub fn compared(&self) -> Compared {
        match (self.regions.is_empty(), self.unknown.is_empty()) {
            (false, _) => Compared::Different,
            (true, false) => Compared::Unknown,
            (true, true) => Compared::Same,
        }
    }

    /// Formats the differences as text for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for region in &self.regions {
            let Difference { place, fates: [from, to], deciders: [old, new], piece, .. } = region;
            let depends = causes::words(&region.depends);
            text.push_str(&format!("{place}: {from} -> {to}: {piece}{depends}\n"));
            text.push_str(&format!("    old {}\n    new {}\n", decider(old), decider(new)));
            text.push_str(&format!("    such as {}\n", region.witness));
            if !region.given.is_empty() {
                text.push_str(&format!("    under {}\n", region.given.join(" ")));
            }
        }
        if self.more {
            text.push_str("there are more than these\n");
        }
        self.unknown.iter().for_each(|what| text.push_str(&format!("unknown: {what}\n")));
        self.to_know.iter().for_each(|what| text.push_str(&format!("to know it, {what}\n")));
        text.push_str(match self.compared() {
            Compared::Same => "same: every packet gets the same verdict\n",
            Compared::Different => "different\n",
            Compared::Unknown => {
                "unknown: no packet is known to get another verdict, but some may\n"
            }
        });
        text
    }

    /// Returns the differences as JSON (`tamis.diff/1`).
    #[must_use]
    pub fn json(&self) -> Value {
        let regions: Vec<Value> = self.regions.iter().map(region_json).collect();
        json!({
            "schema": "tamis.diff/1",
            "result": self.compared(),
            "regions": regions,
            "more": self.more,
            "unknown": self.unknown,
            "to_know": self.to_know,
        })
    }
}

fn decider((line, text): &(u32, String)) -> String {
    if *line == 0 { text.clone() } else { format!("line {line}: {text}") }
}

fn region_json(region: &Difference) -> Value {
    let Difference {
        place,
        fates: [from, to],
        deciders: [old, new],
        piece,
        depends,
        witness,
        given,
    } = region;
    let fields: Map<String, Value> =
        piece.fields.iter().map(|(part, words)| (part.name().to_owned(), json!(words))).collect();
    json!({
        "place": place,
        "from": from.to_string(),
        "to": to.to_string(),
        "old_line": Some(old.0).filter(|line| *line > 0),
        "old_by": old.1,
        "new_line": Some(new.0).filter(|line| *line > 0),
        "new_by": new.1,
        "fields": fields,
        "depends": depends,
        "witness": witness,
        "given": given,
    })
}
