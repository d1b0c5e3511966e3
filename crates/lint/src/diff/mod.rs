//! Rules against rules: which packets get another verdict, all tables of their way taken together.
//!
//! Packets are as they come: what targets make of them on the way, marks and other destinations, is followed. What cannot
//! be told without a packet at hand is said to be unknown: a test that can only be asked, a target whose effect depends on
//! the packet, whether an address is the host's own, another mark where routing sees it.
//!
//! Only packets that may match a changed rule are sent through the rules (`changed`), so that most comparisons are small
//! however many rules there are. `altered` is what was made of packets, `send` a chain, `way` all chains of a way,
//! `compare` the two rulesets, `witness` the packets that walks confirm.

mod altered;
mod cases;
mod causes;
mod changed;
mod compare;
mod send;
mod through;
mod translate;
mod way;
mod witness;

use std::collections::BTreeSet;

use host::Host;
use rules::Backend;
use rules::ipset::Sets;
use rules::model::{Family, Hook, Ruleset};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::diagram::{Region, TooLarge};
use crate::flow::Fate;
use crate::space::{Part, Piece, Space};

pub(crate) use through::{Through, cause, sent_on_elsewhere, through};

use altered::Alterations;
use changed::Changed;
use compare::Comparison;
use send::{EVERYTHING, rules_of_lists};
use way::{Both, Origin, Passed};
pub use witness::whole_walk;

/// What is known of the host, and which packets are meant.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The host that the rules stand on.
    pub host: Host,
    /// Its sets, if they are known.
    pub sets: Option<Sets>,
    /// The interface that packets come in by.
    pub input: Option<String>,
    /// The interface that they go out by.
    pub output: Option<String>,
    /// The way that they take: INPUT, FORWARD or OUTPUT.
    pub way: Option<Hook>,
}

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
    /// What it depends on besides, of which a packet does not tell: they are those, for some of the answers.
    pub depends: Vec<String>,
    /// One of them, as `tamis why --packet` takes it.
    pub witness: String,
    /// Options that have to be given beside it.
    pub given: Vec<String>,
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
    /// What to give to know more.
    pub to_know: BTreeSet<String>,
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

/// Compares rules of one family, of whatever host.
///
/// # Errors
/// They are of different families.
pub fn diff(old: &Ruleset, new: &Ruleset) -> Result<Differences, Incomparable> {
    diff_on(old, new, &Given::default())
}

/// Compares rules of one family.
///
/// # Errors
/// They are of different families.
pub fn diff_on(old: &Ruleset, new: &Ruleset, given: &Given) -> Result<Differences, Incomparable> {
    if old.family != new.family {
        return Err(Incomparable(old.family, new.family));
    }
    let mut found = Differences::default();
    if old.backend != new.backend {
        let name = |backend| if backend == Backend::Nft { "nf_tables" } else { "legacy" };
        let (old, new) = (name(old.backend), name(new.backend));
        found.unknown.push(format!("the old rules are for {old}, the new ones for {new}"));
    }
    let changed = Changed::of([old, new]);
    if !changed.is_nothing() && of_changed([old, new], given, changed, &mut found).is_err() {
        found.unknown.push("too large to compare".to_owned());
    }
    Ok(found)
}

/// Sends the packets that are meant through both rulesets, until no test that remembers packets is asked about others
/// that were not looked at. Where that is too much, what those tests say of other packets is left open.
fn of_changed(
    rulesets: [&Ruleset; 2],
    given: &Given,
    changed: Changed,
    found: &mut Differences,
) -> Result<(), TooLarge> {
    let mut apart = BTreeSet::from([EVERYTHING.to_owned()]);
    let mut wider = changed.clone();
    loop {
        match attempt(rulesets, given, &wider, &apart) {
            Ok(Attempt { differences, passed }) => {
                if set_apart(rulesets, &passed, &mut apart, &mut wider) {
                    continue;
                }
                found.take(differences);
                return Ok(());
            }
            Err(TooLarge) if wider == changed => return Err(TooLarge),
            Err(TooLarge) => break,
        }
    }
    found.take(attempt(rulesets, given, &changed, &apart)?.differences);
    let lists: Vec<&str> =
        apart.iter().map(|list| &**list).filter(|it| *it != EVERYTHING).collect();
    let named = if lists.is_empty() { String::new() } else { format!(" ({})", lists.join(", ")) };
    found.unknown.push(format!(
        "tests that remember packets{named} are asked about others than before, and may say otherwise of packets that no changed rule matches: too large to follow"
    ));
    Ok(())
}

/// What packets that may match changed rules come to.
struct Attempt {
    differences: Differences,
    passed: Vec<(Origin, Region, [Passed; 2])>,
}

fn attempt(
    rulesets: [&Ruleset; 2],
    given: &Given,
    changed: &Changed,
    apart: &BTreeSet<String>,
) -> Result<Attempt, TooLarge> {
    let mut space = Space::on(&rulesets, &given.host, given.sets.as_ref());
    let mut alterations = Alterations::default();
    let meant = changed.packets(&mut space, rulesets)?;
    let mut passed = Vec::new();
    for origin in [Origin::Arriving, Origin::Sent] {
        let Some(all) = universe(&mut space, origin, given)? else { continue };
        let entry = space.diagrams.and(all, meant)?;
        let mut both = Both { space: &mut space, alterations: &mut alterations, apart };
        let old = both.pass(rulesets[0], 0, origin, entry)?;
        let new = both.pass(rulesets[1], 1, origin, entry)?;
        passed.push((origin, all, [old, new]));
    }
    let mut differences = Differences::default();
    for (origin, all, passed) in &passed {
        let (origin, all) = (*origin, *all);
        let (space, alterations, found) = (&mut space, &alterations, &mut differences);
        Comparison { space, alterations, rulesets, origin, all, passed, found }.compare()?;
    }
    Ok(Attempt { differences, passed })
}

/// Every packet that is meant, whatever the rules.
fn universe(space: &mut Space, origin: Origin, given: &Given) -> Result<Option<Region>, TooLarge> {
    let mut all = match (origin, given.way) {
        (Origin::Arriving, None | Some(Hook::Input | Hook::Forward)) => space.arriving()?,
        (Origin::Sent, None | Some(Hook::Output)) => space.sent()?,
        _ => return Ok(None),
    };
    let interfaces = [(Part::Input, &given.input), (Part::Output, &given.output)];
    for (part, name) in interfaces {
        let is_there = part == Part::Output || origin == Origin::Arriving;
        if let Some(name) = name.as_ref().filter(|_| is_there) {
            let number = space.interface(name);
            let one = space.range(part, number, number)?;
            all = space.diagrams.and(all, one)?;
        }
    }
    if let Some(way @ (Hook::Input | Hook::Forward)) = given.way {
        let way = u128::from(way == Hook::Forward);
        let one = space.range(Part::Way, way, way)?;
        all = space.diagrams.and(all, one)?;
    }
    Ok(Some(all))
}

/// Sets those tests apart that remember packets and are asked about others than on the other side, with all that share
/// their memory; whether there were any that were not apart, or not looked at, before.
fn set_apart(
    rulesets: [&Ruleset; 2],
    passed: &[(Origin, Region, [Passed; 2])],
    apart: &mut BTreeSet<String>,
    changed: &mut Changed,
) -> bool {
    let mut is_new = false;
    let keys = |side: usize| -> BTreeSet<&str> {
        let asked = passed.iter().flat_map(move |(_, _, sides)| &sides[side].asked);
        asked.map(|asked| &*asked.key).collect()
    };
    let sides = [keys(0), keys(1)];
    let both: BTreeSet<&str> = sides[0].intersection(&sides[1]).copied().collect();
    let all = || passed.iter().flat_map(|(_, _, sides)| sides.iter().flat_map(|it| &it.asked));
    for asked in all().filter(|asked| !both.contains(&*asked.key)) {
        let list = asked.list.iter().filter(|list| !apart.contains(*list));
        let lists: Vec<String> = list.cloned().collect();
        is_new |= !lists.is_empty();
        apart.extend(lists);
    }
    if changed.is_everything() {
        return is_new;
    }
    for asked in all().filter(|asked| !both.contains(&*asked.key)) {
        let (side, rule) = asked.rule;
        is_new |= changed.note(side, rule);
    }
    for (side, ruleset) in rulesets.into_iter().enumerate() {
        for rule in rules_of_lists(ruleset, apart) {
            is_new |= changed.note(side, rule);
        }
    }
    is_new
}

impl Differences {
    fn take(&mut self, others: Self) {
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

    /// For people.
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

fn hook_name(hook: Hook) -> String {
    format!("{hook:?}").to_uppercase()
}
