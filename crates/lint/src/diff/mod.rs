//! Rules against rules: which packets get another verdict, all tables of their way taken together.
//!
//! Packets are as they come: what targets make of them on the way, marks and other destinations, is followed. What cannot
//! be told without a packet at hand is said to be unknown: a test that can only be asked, a target whose effect depends on
//! the packet, whether an address is the host's own, another mark where routing sees it.
//!
//! Only packets that may match a changed rule are sent through the rules (`changed`), so that most comparisons are small
//! however many rules there are; `paths` says which get to a chain at all. `altered` is what was made of packets, `send` a chain, `way` all chains of a way,
//! `compare` the two rulesets, `witness` the packets that walks confirm. `apart` and `unequal` are of tests that remember
//! packets.

mod after;
mod altered;
mod apart;
mod cases;
mod causes;
mod changed;
mod compare;
mod paths;
mod remember;
mod send;
mod stage;
#[cfg(test)]
mod tests;
mod through;
mod translate;
mod unequal;
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
use apart::Apart;
use changed::Changed;
use compare::Comparison;
use stage::Origin;
use unequal::Unequal;
use way::Both;
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
/// Pieces that are named of what is too large.
const MOST_PIECES_TOO_LARGE: usize = 4;
/// Nodes for all packets that tests are asked about which remember others.
const MOST_NODES_OF_OTHERS: usize = 1_500_000;

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
    diff_within(old, new, given, MOST_NODES_OF_OTHERS)
}

/// The same, with so many nodes for all packets that tests which remember packets are asked about.
fn diff_within(
    old: &Ruleset,
    new: &Ruleset,
    given: &Given,
    for_others: usize,
) -> Result<Differences, Incomparable> {
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
    let rulesets = [old, new];
    let is_same = changed.is_nothing();
    if !is_same && of_changed(rulesets, given, &changed, (&mut found, for_others)).is_err() {
        found.unknown.push(too_large([old, new], given, &changed));
    }
    Ok(found)
}

/// Sends packets that may match changed rules through both rulesets. Where tests that remember packets are asked about
/// others then, so are all that those tests are asked about; if that is too much, what may become of them is told rule by
/// rule.
fn of_changed(
    rulesets: [&Ruleset; 2],
    given: &Given,
    changed: &Changed,
    (found, for_others): (&mut Differences, usize),
) -> Result<(), TooLarge> {
    let mut apart = Apart::default();
    let most = Attempting { rulesets, given, most: None, is_told: false };
    let differences = most.settled(changed, &mut apart)?;
    let wider = apart.widened(rulesets, changed);
    if wider == *changed {
        found.take(differences);
        return Ok(());
    }
    let less = Attempting { most: Some(for_others), ..most };
    if let Ok(differences) = less.widened(wider, apart.clone()) {
        found.take(differences);
        return Ok(());
    }
    let told = Attempting { is_told: true, ..most };
    found.take(told.settled(changed, &mut apart)?);
    found.unknown.extend(apart.followed(rulesets).words(rulesets, changed));
    Ok(())
}

/// What is proven all the same: which packets meet no changed rule.
fn too_large(rulesets: [&Ruleset; 2], given: &Given, changed: &Changed) -> String {
    let mut space = Space::on(&rulesets, &given.host, given.sets.as_ref());
    let mut words = Vec::new();
    for origin in [Origin::Arriving, Origin::Sent] {
        let Ok(Some(all)) = universe(&mut space, origin, given) else { continue };
        let Ok(meant) = changed.packets(&mut space, rulesets, origin) else { continue };
        let Ok(meant) = space.diagrams.and(all, meant) else { continue };
        let pieces = space.pieces(meant, all, MOST_PIECES_TOO_LARGE);
        let more = if pieces.more { " and more" } else { "" };
        let pieces: Vec<String> = pieces.pieces.iter().map(Piece::to_string).collect();
        let from = if origin == Origin::Sent { "sent by the host" } else { "coming in" };
        if !pieces.is_empty() {
            words.push(format!("{from}: {}{more}", pieces.join("; ")));
        }
    }
    format!(
        "too large to compare; no other packets come to changed rules than these: {}",
        words.join("; ")
    )
}

/// How packets are sent through both.
#[derive(Clone, Copy)]
struct Attempting<'a> {
    rulesets: [&'a Ruleset; 2],
    given: &'a Given,
    /// Nodes that regions may have, if fewer than all.
    most: Option<usize>,
    /// What tests that remember packets may say of others is told elsewhere.
    is_told: bool,
}

impl Attempting<'_> {
    /// What packets that may match these rules come to, where all tests are apart that have to be.
    fn settled(&self, changed: &Changed, apart: &mut Apart) -> Result<Differences, TooLarge> {
        loop {
            if let Some(differences) = self.once(changed, apart)? {
                return Ok(differences);
            }
        }
    }

    /// The same, where all rules count with tests that are apart.
    fn widened(&self, mut changed: Changed, mut apart: Apart) -> Result<Differences, TooLarge> {
        loop {
            let differences = self.settled(&changed, &mut apart)?;
            let wider = apart.widened(self.rulesets, &changed);
            if wider == changed {
                return Ok(differences);
            }
            changed = wider;
        }
    }

    /// Nothing, where more tests are apart than were known to be.
    fn once(&self, changed: &Changed, apart: &mut Apart) -> Result<Option<Differences>, TooLarge> {
        let (rulesets, given) = (self.rulesets, self.given);
        let mut space = Space::on(&rulesets, &given.host, given.sets.as_ref());
        self.most.into_iter().for_each(|most| space.diagrams.limit(most));
        let mut alterations = Alterations::default();
        let mut passed = Vec::new();
        for origin in [Origin::Arriving, Origin::Sent] {
            let Some(all) = universe(&mut space, origin, given)? else { continue };
            let meant = changed.packets(&mut space, rulesets, origin)?;
            let entry = space.diagrams.and(all, meant)?;
            let mut both = Both { space: &mut space, alterations: &mut alterations, apart };
            let old = both.pass(rulesets[0], 0, origin, entry)?;
            let new = both.pass(rulesets[1], 1, origin, entry)?;
            passed.push((origin, all, [old, new]));
        }
        if apart.note(passed.iter().map(|(.., sides)| sides)) {
            return Ok(None);
        }
        let mut differences = Differences::default();
        for (origin, all, passed) in &passed {
            let unequal = Unequal::of(&mut space, passed, self.is_told)?;
            let (origin, all, unequal) = (*origin, *all, &unequal);
            let (space, alterations, found) = (&mut space, &alterations, &mut differences);
            Comparison { space, alterations, rulesets, origin, all, passed, unequal, found }
                .compare()?;
        }
        Ok(Some(differences))
    }
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
