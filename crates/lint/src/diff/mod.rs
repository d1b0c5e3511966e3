//! Rules against rules: which packets get another verdict, table by table and hook by hook.
//!
//! The packets of a region are as the chain sees them: after translation of their destination, before that of their
//! source. What cannot be told without a packet at hand is said to be unknown: a test that can only be asked, a target
//! whose effect depends on the packet, another translation or another mark on the way.

mod ends;

use std::collections::BTreeSet;

use rules::Backend;
use rules::model::{Family, Hook, Ruleset};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::diagram::{Region, TooLarge};
use crate::flow::{Altered, Fate, Flow, Remembering, Sent, flow};
use crate::space::{Piece, Space};

use ends::{Ends, Side};

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
    /// One of them, as `tamis why --packet` takes it.
    pub witness: String,
}

/// All that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// Disjoint at each place.
    pub regions: Vec<Difference>,
    /// There are more than are listed.
    pub more: bool,
    /// What may differ, or not.
    pub unknown: Vec<String>,
}

/// What a comparison came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compared {
    /// Every packet gets the same verdict.
    Same,
    /// Some come to another one.
    Different,
    /// None that is known of.
    Unknown,
}

/// Regions that are listed at one place.
const MOST_REGIONS: usize = 100;
/// Unknown ones.
const MOST_UNKNOWN: usize = 20;

/// Two rulesets cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incomparable(pub Family, pub Family);

/// Compares rules of one family.
///
/// # Errors
/// They are of different families.
pub fn diff(old: &Ruleset, new: &Ruleset) -> Result<Differences, Incomparable> {
    if old.family != new.family {
        return Err(Incomparable(old.family, new.family));
    }
    let mut found = Differences::default();
    if old.backend != new.backend {
        let name = |backend| if backend == Backend::Nft { "nf_tables" } else { "legacy" };
        let (old, new) = (name(old.backend), name(new.backend));
        found.unknown.push(format!("the old rules are for {old}, the new ones for {new}"));
    }
    let tables: BTreeSet<&str> =
        [old, new].into_iter().flat_map(|it| it.tables.iter().map(|table| table.name)).collect();
    for table in tables {
        if of_table([old, new], table, &mut found).is_err() {
            found.unknown.push(format!("table {table}: too large to compare"));
        }
    }
    Ok(found)
}

impl Differences {
    /// What it comes to.
    #[must_use]
    pub fn compared(&self) -> Compared {
        match (self.regions.is_empty(), self.unknown.is_empty()) {
            (false, _) => Compared::Different,
            (true, false) => Compared::Unknown,
            (true, true) => Compared::Same,
        }
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Difference { place, fates: [from, to], deciders: [old, new], piece, witness } in
            &self.regions
        {
            text.push_str(&format!("{place}: {from} -> {to}: {piece}\n"));
            text.push_str(&format!("    old {}\n    new {}\n", decider(old), decider(new)));
            text.push_str(&format!("    such as {witness}\n"));
        }
        if self.more {
            text.push_str("there are more than these\n");
        }
        self.unknown.iter().for_each(|what| text.push_str(&format!("unknown: {what}\n")));
        text.push_str(match self.compared() {
            Compared::Same => "same: every packet gets the same verdict\n",
            Compared::Different => "different\n",
            Compared::Unknown => {
                "unknown: no packet is known to get another verdict, but some may\n"
            }
        });
        text
    }

    /// As JSON (`tamis.diff/1`).
    #[must_use]
    pub fn json(&self) -> Value {
        let regions: Vec<Value> = self.regions.iter().map(region_json).collect();
        json!({
            "schema": "tamis.diff/1",
            "result": self.compared(),
            "regions": regions,
            "more": self.more,
            "unknown": self.unknown,
        })
    }
}

fn decider((line, text): &(u32, String)) -> String {
    if *line == 0 { text.clone() } else { format!("line {line}: {text}") }
}

fn region_json(region: &Difference) -> Value {
    let Difference { place, fates: [from, to], deciders: [old, new], piece, witness } = region;
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
        "witness": witness,
    })
}

/// The flows of a table under both rulesets, hook by hook.
type Pair = (Hook, [Option<Flow>; 2]);

fn of_table(rulesets: [&Ruleset; 2], table: &str, found: &mut Differences) -> Result<(), TooLarge> {
    let mut space = Space::of(&rulesets);
    let together = [Remembering::Together; 2];
    let mut pairs = flows(&mut space, rulesets, table, together)?;
    if !remember_alike(&pairs) {
        let apart = [Remembering::Apart("old"), Remembering::Apart("new")];
        pairs = flows(&mut space, rulesets, table, apart)?;
    }
    for (hook, pair) in &pairs {
        let sides = [0, 1].map(|side| Side {
            ruleset: rulesets[side],
            table: index(rulesets[side], table),
            flow: pair[side].as_ref(),
        });
        let place = format!("{table} {}", hook_name(*hook));
        Ends { space: &mut space, hook: *hook, place, sides, found }.compare()?;
    }
    Ok(())
}

fn flows(
    space: &mut Space,
    rulesets: [&Ruleset; 2],
    table: &str,
    remembering: [Remembering<'_>; 2],
) -> Result<Vec<Pair>, TooLarge> {
    let mut pairs = Vec::new();
    for hook in Hook::ALL {
        let mut pair = [None, None];
        for side in [0, 1] {
            let sent = Sent { remembering: remembering[side], altered: Altered::IsOpen };
            if let Some(index) = index(rulesets[side], table) {
                pair[side] = flow(space, rulesets[side], index, hook, sent)?;
            }
        }
        if pair.iter().any(Option::is_some) {
            pairs.push((hook, pair));
        }
    }
    Ok(pairs)
}

fn index(ruleset: &Ruleset, table: &str) -> Option<usize> {
    ruleset.tables.iter().position(|one| one.name == table)
}

/// Both rulesets ask the same tests that remember packets, each about the same packets.
fn remember_alike(pairs: &[Pair]) -> bool {
    let of = |side: usize| {
        let asked = pairs.iter().flat_map(|(hook, pair)| {
            let tests = pair[side].iter().flat_map(|flow| &flow.remembering);
            tests.map(move |(text, about)| (*hook as usize, text, *about))
        });
        let mut asked: Vec<(usize, &String, Region)> = asked.collect();
        asked.sort_unstable();
        asked
    };
    of(0) == of(1)
}

fn hook_name(hook: Hook) -> String {
    format!("{hook:?}").to_uppercase()
}
