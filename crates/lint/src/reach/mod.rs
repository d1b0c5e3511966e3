//! Who can reach an address, and where packets of a network can go: all of them at once through every table of their
//! way, the translation of their destination followed.
//!
//! Contract: a region that is said to be let through is so for every packet of it that has its headers whole, whatever
//! tests say that can only be asked; what depends on such a test, on a target whose effect depends on the packet, or on
//! an address that is drawn from several, is told apart. Both are told of packets as they come in, with the packet that
//! a walk along the whole way has judged; a region that no walk lets a packet of through is not said to be let through.

mod lanes;
mod question;
mod report;
mod translation;
mod way;

use conntrack::CtState;
use rules::eval::{By, RuleRef};
use rules::model::{Hook, Ruleset};
use rules::predicate::Field;
use rules::save::print_rule;

use crate::diagram::{Region, TooLarge};
use crate::packet::spec;
use crate::space::{Part, Piece, Preferred, Space};

use lanes::Lane;
pub(crate) use lanes::Lanes;
pub use question::{Question, To};
pub use report::Asked;
pub(crate) use translation::Change;
pub(crate) use way::Way;

/// Regions that are listed of one way and group of states.
const MOST_REGIONS: usize = 100;
/// Packets of a region that are judged until one is let through.
const TRIED: u64 = 8;

/// What a walk along the whole way said of a packet spec.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// Its verdict, as one word: `accept` is what is looked for.
    pub verdict: String,
    /// What decided, as text, and its line; 0 for none.
    pub by: Option<(u32, String)>,
    /// The same as people name it in cases: `filter/FORWARD/12`.
    pub place: Option<String>,
    /// What the verdict depends on, where it is unknown.
    pub because: Vec<String>,
}

/// Walks a packet spec along its whole way; of a connection that stands, whatever translates it is left out: it is told of
/// the addresses that the filter sees.
pub type Judge<'j> = dyn FnMut(States, &str) -> Judged + 'j;

/// Which states of connections packets are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum States {
    /// They open a connection, or are not tracked.
    New,
    /// They are part of one, or belong to one.
    Established,
    /// The rules make the kernel track none.
    Any,
}

impl States {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Established => "established",
            Self::Any => "any",
        }
    }
}

/// Packets that are let through, or that may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaching {
    /// The hook of the filter table on their way.
    pub way: Hook,
    /// The states of their connections.
    pub states: States,
    /// All of them are, whatever depends on what is not known.
    pub is_certain: bool,
    /// Which they are, as they come in.
    pub piece: Piece,
    /// What makes another destination of theirs, and which.
    pub translated: Option<Translated>,
    /// What makes another source of some of them as they leave.
    pub leaves_as: Vec<(u32, String)>,
    /// The rule of the filter table that accepts them, or its policy: line and text.
    pub by: Option<(u32, String)>,
    /// What it depends on.
    pub depends: Vec<String>,
    /// One of them, as `tamis why --packet` takes it, and what a walk says of it.
    pub witness: Option<(String, Judged)>,
}

/// Another destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    /// Line of the rule.
    pub line: u32,
    /// The rule.
    pub by: String,
    /// Where packets go: `10.0.0.5:80`, `this host:3128`.
    pub to: String,
}

/// A way that nothing comes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The hook of the filter table on it.
    pub way: Hook,
    /// The states of connections.
    pub states: States,
    /// A packet that asks, and what a walk says of it.
    pub probe: Option<(String, Judged)>,
}

/// All that reaches, or goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Way after way.
    pub regions: Vec<Reaching>,
    /// Ways that are closed.
    pub closed: Vec<Closed>,
    /// There are more regions.
    pub more: bool,
    /// Ways that were too large to follow.
    pub too_large: Vec<Hook>,
    /// Whose addresses are the host's is not known, so that packets to it and through it are both told.
    pub either_way: bool,
}

/// What it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Something reaches.
    Yes,
    /// Nothing is known to, but something may.
    Perhaps,
    /// Nothing does.
    No,
}

impl Reach {
    /// What it comes to, of packets that open connections: that others go on does not reach anything.
    #[must_use]
    pub fn reached(&self) -> Reached {
        let mut opening = self.regions.iter().filter(|it| it.states != States::Established);
        if opening.any(|it| it.is_certain) {
            return Reached::Yes;
        }
        let may = self.regions.iter().any(|it| it.states != States::Established);
        if may || !self.too_large.is_empty() { Reached::Perhaps } else { Reached::No }
    }
}

/// Asks rules of one family; `judge` walks packet specs along their whole way.
pub fn reach(ruleset: &Ruleset, question: &Question, judge: &mut Judge<'_>) -> Reach {
    let mut all = Reach { either_way: question.own.is_none(), ..Reach::default() };
    for hook in question.ways() {
        let mut space = Space::of(&[ruleset]);
        let groups = match space.is_tracked() {
            true => &[States::New, States::Established][..],
            false => &[States::Any],
        };
        let mut asking = Asking { ruleset, question, space: &mut space, judge, all: &mut all };
        let done = groups.iter().try_for_each(|states| asking.of_way(hook, *states));
        if done == Err(TooLarge) {
            all.too_large.push(hook);
        }
    }
    all.either_way &= all.regions.iter().any(|it| it.way == Hook::Input)
        || all.closed.iter().any(|it| it.way == Hook::Input);
    all
}

struct Asking<'a, 'j> {
    ruleset: &'a Ruleset,
    question: &'a Question,
    space: &'a mut Space,
    judge: &'a mut Judge<'j>,
    all: &'a mut Reach,
}

/// What is said of packets of a lane.
struct About<'a> {
    lane: &'a Lane,
    way: Way,
    /// All that come by the way.
    within: Region,
    is_certain: bool,
}

impl Asking<'_, '_> {
    fn of_way(&mut self, hook: Hook, states: States) -> Result<(), TooLarge> {
        let way = Way { hook, states };
        let Some(come) = way.packets(self.space, self.ruleset, self.question)? else {
            return Ok(());
        };
        let mut lanes = Lanes::of(self.ruleset, self.question, way, come);
        lanes.follow(self.space)?;
        let before = self.all.regions.len();
        for is_certain in [true, false] {
            for lane in &lanes.lanes {
                let within = match lane.change {
                    None => self.question.asked(self.space, come)?,
                    Some(_) => come,
                };
                let about = About { lane, way, within, is_certain };
                self.list(&about)?;
            }
        }
        if self.all.regions.len() == before {
            let asked = self.question.asked(self.space, come)?;
            let here = way.arriving(self.space, self.question)?;
            let asked = self.space.diagrams.and(asked, here)?;
            let probe = self.probe(way, asked);
            // Nobody asks for what cannot come this way.
            if probe.is_some() {
                self.all.closed.push(Closed { way: hook, states, probe });
            }
        }
        Ok(())
    }

    /// Lists what a lane lets through, by what decides.
    fn list(&mut self, about: &About<'_>) -> Result<(), TooLarge> {
        let lane = about.lane;
        let mut left = match about.is_certain {
            true => lane.sure,
            false => self.space.diagrams.without(lane.may, lane.sure)?,
        };
        for (by, region) in &lane.by {
            let part = self.space.diagrams.and(left, *region)?;
            left = self.space.diagrams.without(left, part)?;
            self.add(about, Some(*by), part)?;
        }
        self.add(about, None, left)
    }

    fn add(&mut self, about: &About<'_>, by: Option<By>, part: Region) -> Result<(), TooLarge> {
        let (hook, states) = (about.way.hook, about.way.states);
        let of_group = |it: &&Reaching| it.way == hook && it.states == states;
        let here = self.all.regions.iter().filter(of_group).count();
        let pieces = self.space.pieces(part, about.within, MOST_REGIONS.saturating_sub(here));
        self.all.more |= pieces.more;
        for piece in pieces.pieces {
            let within = self.space.of_piece(&piece)?;
            let region = self.space.diagrams.and(within, part)?;
            let witness = self.witness(about.way, region);
            let is_shown = witness.as_ref().is_some_and(|(_, judged)| judged.verdict == "accept");
            let mut depends: Vec<String> = match about.is_certain {
                true => Vec::new(),
                false => about.lane.depends.iter().cloned().collect(),
            };
            if let Some((_, judged)) = witness.as_ref().filter(|_| about.is_certain && !is_shown) {
                depends.extend(judged.because.iter().cloned());
            }
            let leaves_as = self.leaves_as(about.lane, region);
            self.all.regions.push(Reaching {
                way: hook,
                states,
                is_certain: about.is_certain && is_shown,
                piece,
                translated: about.lane.change.as_ref().map(|change| change.shown.clone()),
                leaves_as,
                by: by.map(|by| decider(self.ruleset, by)),
                depends,
                witness,
            });
        }
        Ok(())
    }

    fn leaves_as(&mut self, lane: &Lane, region: Region) -> Vec<(u32, String)> {
        let mut all: Vec<(u32, String)> = Vec::new();
        for (by, leaves) in &lane.leaves_as {
            if self.space.diagrams.meet(region, *leaves) {
                all.push(decider(self.ruleset, *by));
            }
        }
        all
    }

    /// A packet of a region that a walk lets through, or the first that it judges.
    fn witness(&mut self, way: Way, region: Region) -> Option<(String, Judged)> {
        let mut first = None;
        for seed in 0..TRIED {
            let Some(words) = self.sample(way, region, seed) else { continue };
            let judged = (self.judge)(way.states, &words);
            if judged.verdict == "accept" {
                return Some((words, judged));
            }
            first.get_or_insert((words, judged));
        }
        first
    }

    fn probe(&mut self, way: Way, region: Region) -> Option<(String, Judged)> {
        let words = self.sample(way, region, 0)?;
        let judged = (self.judge)(way.states, &words);
        Some((words, judged))
    }

    fn sample(&self, way: Way, region: Region, seed: u64) -> Option<String> {
        let family = self.space.family();
        let preferred = match seed {
            0 => Preferred::usual(family),
            _ => Preferred::drawn(family, seed),
        };
        let preferred = match way.states {
            States::Established => {
                const ACK: u128 = 0x10;
                let preferred = preferred.with(Part::Field(Field::TcpFlags), ACK);
                preferred.with_state(CtState::Established)
            }
            States::New | States::Any => preferred,
        };
        let mut values = self.space.sample(region, &preferred)?.values;
        self.question.name_interfaces(self.space, &mut values);
        spec(family, way.hook, &values)
    }
}

fn rule_text(ruleset: &Ruleset, at: RuleRef) -> (u32, String) {
    let table = &ruleset.tables[at.table as usize];
    let chain = &table.chains[at.chain as usize];
    let rule = &chain.rules[at.rule as usize];
    (rule.line, print_rule(ruleset.family, table, chain, rule))
}

/// What decides, with its line.
fn decider(ruleset: &Ruleset, by: By) -> (u32, String) {
    match by {
        By::Rule(at) | By::HotDrop(at) => rule_text(ruleset, at),
        By::Policy { table, chain } => {
            let chain = &ruleset.tables[table as usize].chains[chain as usize];
            let policy = chain.base.map_or_else(String::new, |base| base.policy.to_string());
            (chain.line, format!("policy {policy} of {}", chain.name))
        }
    }
}
