//! What `tamis diff` says of two rulesets, held to packets: of a region all get another verdict, the one that it says;
//! outside of all regions none does.

use fastrand::Rng;
use lint::{Difference, Differences, Fate, Region, Sample, Space, TooLarge, diff};
use rules::model::{Rule, Ruleset};

use super::edges::{Edges, preferred};
use super::edit::Edited;
use super::walk::{End, Walker};

/// What came of packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Packets {
    /// Walked through both rulesets, with a verdict that is certain.
    pub walked: u64,
    /// Of a region: all of them got another verdict.
    pub inside: u64,
    /// Of a region that depends on what packets do not tell: some of those may get another verdict.
    pub depends: u64,
    /// Got another verdict where the comparison says that it is not known whether some do.
    pub unknown: u64,
    /// A walk gave no certain verdict, or no such packet can be made.
    pub open: u64,
}

impl Packets {
    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.walked += other.walked;
        self.inside += other.inside;
        self.depends += other.depends;
        self.unknown += other.unknown;
        self.open += other.open;
    }
}

/// How a comparison went.
#[derive(Debug, Clone)]
pub struct Held {
    /// What it said.
    pub found: Differences,
    /// It said that it is too large.
    pub too_large: bool,
    /// The packets that it was held to.
    pub packets: Packets,
}

/// Compares rulesets before and after an edit, and holds what is said to so many packets.
///
/// # Errors
/// A packet contradicts what was said, or the rulesets cannot be sampled: in words.
pub fn hold(old: &Ruleset, new: &Edited, packets: u64, seed: u64) -> Result<Held, String> {
    let found = diff(old, &new.ruleset).map_err(|error| format!("{error:?}"))?;
    let too_large = found.unknown.iter().any(|what| what.contains("too large"));
    let packets = hold_said(old, new, &found, packets, seed)?;
    Ok(Held { found, too_large, packets })
}

/// Holds to packets what was said of an edit, by whomever.
///
/// # Errors
/// As [`hold`].
pub fn hold_said(
    old: &Ruleset,
    new: &Edited,
    found: &Differences,
    packets: u64,
    seed: u64,
) -> Result<Packets, String> {
    let rulesets = [old, &new.ruleset];
    let space = Space::of(&rulesets);
    let walkers = rulesets.map(Walker::of);
    let rng = Rng::with_seed(seed);
    Holding { rulesets, found, space, walkers, rng }.packets(&new.lines, packets)
}

struct Holding<'h> {
    rulesets: [&'h Ruleset; 2],
    found: &'h Differences,
    space: Space,
    walkers: [Walker<'h>; 2],
    rng: Rng,
}

/// Where packets are looked for: of all that come in, or of all that the host sends.
struct Aim {
    region: Region,
    is_sent: bool,
}

impl Holding<'_> {
    fn packets(&mut self, lines: &[Vec<u32>; 2], count: u64) -> Result<Packets, String> {
        let (near, all) = self.edges(lines);
        let aims = self.aims(lines).map_err(|error| format!("aims: {error}"))?;
        let mut packets = Packets::default();
        let mut left = count;
        while left > 0 {
            for aim in &aims {
                let wanted = preferred(self.space.family(), &near, &all, &mut self.rng);
                left = left.saturating_sub(1);
                let Some(sample) = self.space.sample(aim.region, &wanted) else { continue };
                self.one(aim.is_sent, &sample, &mut packets)?;
            }
        }
        Ok(packets)
    }

    /// The edges of what changed and of the regions, and those of all rules.
    fn edges(&self, lines: &[Vec<u32>; 2]) -> (Edges, Edges) {
        let (mut near, mut all) = (Edges::default(), Edges::default());
        for (ruleset, lines) in self.rulesets.iter().zip(lines) {
            for rule in ruleset.rules() {
                all.note_rule(&self.space, rule);
                if lines.contains(&rule.line) {
                    near.note_rule(&self.space, rule);
                }
            }
        }
        self.found.regions.iter().for_each(|region| near.note_piece(&region.piece));
        (near, all)
    }

    /// Everything, what the changed rules ask for, each region, and all that is in none.
    fn aims(&mut self, lines: &[Vec<u32>; 2]) -> Result<Vec<Aim>, TooLarge> {
        let mut wanted = vec![Region::ALL];
        let mut inside = Region::NONE;
        for piece in self.found.regions.iter().map(|region| &region.piece) {
            let region = self.space.of_piece(piece)?;
            wanted.push(region);
            inside = self.space.diagrams.or(inside, region)?;
        }
        for (ruleset, lines) in self.rulesets.into_iter().zip(lines) {
            for rule in ruleset.rules().filter(|rule| lines.contains(&rule.line)) {
                let region = matches(&mut self.space, rule)?;
                wanted.push(region);
                wanted.push(self.space.diagrams.without(region, inside)?);
            }
        }
        if !inside.is_empty() {
            wanted.push(self.space.diagrams.without(Region::ALL, inside)?);
        }
        let mut aims = Vec::new();
        for (universe, is_sent) in [(self.space.arriving()?, false), (self.space.sent()?, true)] {
            for region in &wanted {
                let region = self.space.diagrams.and(universe, *region)?;
                if !region.is_empty() {
                    aims.push(Aim { region, is_sent });
                }
            }
        }
        Ok(aims)
    }

    fn one(&mut self, is_sent: bool, sample: &Sample, packets: &mut Packets) -> Result<(), String> {
        let [old, new] = &mut self.walkers;
        let (Some(before), Some(after)) = (old.whole(is_sent, sample), new.whole(is_sent, sample))
        else {
            packets.open += 1;
            return Ok(());
        };
        packets.walked += 1;
        let differ = !before.is_same(&after);
        let ways = [before.to_host, after.to_host];
        let of = |region: &&Difference| is_of(&self.space, region, is_sent, (sample, ways));
        let regions = self.found.regions.iter().filter(of);
        let regions: Vec<&Difference> = regions.collect();
        let may_differ = !self.found.unknown.is_empty() || self.found.more;
        let wrong = match &*regions {
            [] if differ && !may_differ => Some("it is in no region"),
            [] => {
                packets.unknown += u64::from(differ);
                None
            }
            [only] if !only.depends.is_empty() => {
                packets.depends += 1;
                None
            }
            [only] => {
                packets.inside += 1;
                match (differ, says(&only.fates, &before, &after)) {
                    (false, _) => Some("it is in a region"),
                    (true, false) => Some("it is in a region that says another verdict"),
                    (true, true) => None,
                }
            }
            _ if regions.iter().any(|it| !it.depends.is_empty()) => {
                packets.depends += 1;
                None
            }
            _ => Some("it is in more than one region"),
        };
        match wrong {
            None => Ok(()),
            Some(wrong) => Err(self.wrong(wrong, is_sent, sample)),
        }
    }

    fn wrong(&mut self, wrong: &str, is_sent: bool, sample: &Sample) -> String {
        let origin = if is_sent { "sent" } else { "arriving" };
        let [old, new] = &mut self.walkers;
        let told = [old, new].map(|walker| walker.told(is_sent, sample));
        format!(
            "a packet, {origin}: {wrong}\n  packet {sample:?}\n  old {}\n  new {}\n{}",
            told[0],
            told[1],
            self.found.text()
        )
    }
}

/// The packets that a rule matches, as far as its tests have a form.
pub(super) fn matches(space: &mut Space, rule: &Rule) -> Result<Region, TooLarge> {
    let header = rule.header.as_ref().and_then(|it| it.predicate(space.family()));
    let tests = rule.matches.iter().filter_map(|used| space.predicate_of(used));
    let tests: Vec<_> = header.into_iter().chain(tests).collect();
    tests.iter().try_fold(Region::ALL, |all, one| {
        let one = space.of_predicate(one)?;
        space.diagrams.and(all, one)
    })
}

/// A packet is of a region: of its words, of its origin, and on the way to its place under one of the rulesets.
fn is_of(
    space: &Space,
    region: &Difference,
    is_sent: bool,
    (sample, ways): (&Sample, [bool; 2]),
) -> bool {
    // What is shown by a packet that the host sends is of those.
    if region.witness.contains("path=output") != is_sent {
        return false;
    }
    let to_host = match region.place.split(' ').next_back() {
        Some("INPUT") => Some(true),
        Some("FORWARD" | "POSTROUTING") if !is_sent => Some(false),
        _ => None,
    };
    to_host.is_none_or(|to_host| ways.contains(&to_host)) && space.is_of(sample, &region.piece)
}

/// Whether the verdicts are those that a region says: translations are said where both let the packet through.
fn says(fates: &[Fate; 2], before: &End, after: &End) -> bool {
    let both = before.fate == Fate::Accept && after.fate == Fate::Accept;
    [before, after].into_iter().zip(fates).all(|(end, fate)| match fate {
        Fate::Translate(text) => end.fate == Fate::Accept && end.translations.join(", ") == *text,
        Fate::Accept => end.fate == Fate::Accept && (!both || end.translations.is_empty()),
        fate => end.fate == *fate,
    })
}
