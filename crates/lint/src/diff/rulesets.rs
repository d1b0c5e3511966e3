//! Compares two rulesets: what of them is sent through both, and again with more rules where tests remember packets.

use host::Host;
use rules::Backend;
use rules::ipset::Sets;
use rules::model::{Family, Hook, Ruleset};

use super::altered::Alterations;
use super::apart::Apart;
use super::changed::Changed;
use super::compare::Comparison;
use super::differences::Differences;
use super::stage::Origin;
use super::unequal::Unequal;
use super::way::Both;
use crate::diagram::{Region, TooLarge};
use crate::meeting::Meeting;
use crate::space::{Part, Piece, Space};

/// What is known of the host, and which packets are meant.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The host that the rules stand on.
    pub host: Host,
    /// Sets of the host, if they are known.
    pub sets: Option<Sets>,
    /// The input interface of packets.
    pub input: Option<String>,
    /// The output interface of packets.
    pub output: Option<String>,
    /// The way that they take: INPUT, FORWARD or OUTPUT.
    pub way: Option<Hook>,
}

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

/// Compares rules, with at most `for_others` nodes for all packets that tests which remember packets are asked about.
pub(super) fn diff_within(
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
/// others then, sends all packets that those tests are asked about, too; if that is too much, reports rule by rule what
/// may become of them.
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

/// Says what is proven all the same: which packets meet no changed rule.
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
    /// What tests that remember packets may say of others is reported elsewhere.
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

    /// Settles again with all rules whose tests are apart, until no rule is added.
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

    /// Compares once; `None` where more tests are apart than were known to be.
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
            let decided = [0, 1].map(|side: usize| {
                let regions = passed[side].decided.iter().map(|it| it.packets.region);
                Meeting::of(&mut space.diagrams, regions.collect())
            });
            let comparison = Comparison {
                space,
                alterations,
                rulesets,
                origin,
                all,
                passed,
                unequal,
                found,
                decided,
                unshown: 0,
            };
            comparison.compare()?;
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
