//! Who can reach an address, and where packets of a network can go: all of them at once through every table of their
//! way, the translation of their destination followed.
//!
//! Contract: a region that is said to be let through is so for every packet of it that has its headers whole, whatever
//! tests say that can only be asked; what depends on such a test, on a target whose effect depends on the packet, or on
//! an address that is drawn from several, is told apart. Both are told of packets as they come in, with the packet that
//! a walk along the whole way has judged; a region that no walk lets a packet of through is not said to be let through.

mod question;
mod report;
mod translation;
mod way;

use conntrack::CtState;
use rules::TableKind;
use rules::eval::{By, RuleRef};
use rules::model::{Hook, Ruleset};
use rules::predicate::Field;
use rules::save::print_rule;

use crate::diagram::{Region, TooLarge};
use crate::diff::{Through, cause, sent_on_elsewhere, through};
use crate::packet::spec;
use crate::space::{Part, Piece, Preferred, Space};

pub use question::{Question, To};
pub use report::Asked;
pub(crate) use translation::sent_on;

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
    let ways = question.ways();
    let both = ways.contains(&Hook::Input) && ways.contains(&Hook::Forward);
    let either_way = question.own.is_none() && both;
    let mut all = Reach { either_way, ..Reach::default() };
    for is_sent in [false, true] {
        let hooks: Vec<Hook> =
            ways.iter().copied().filter(|hook| (*hook == Hook::Output) == is_sent).collect();
        if hooks.is_empty() {
            continue;
        }
        let mut space = Space::on(&[ruleset], &question.host, question.sets.as_ref());
        let groups = match space.is_tracked() {
            true => &[States::New, States::Established][..],
            false => &[States::Any],
        };
        let (space, all) = (&mut space, &mut all);
        let mut asking = Asking { ruleset, question, space, judge: &mut *judge, all, hooks };
        let done = groups.iter().try_for_each(|states| asking.of(is_sent, *states));
        if done == Err(TooLarge) {
            let hooks = std::mem::take(&mut asking.hooks);
            all.too_large.extend(hooks);
        }
    }
    all
}

struct Asking<'a, 'j> {
    ruleset: &'a Ruleset,
    question: &'a Question,
    space: &'a mut Space,
    judge: &'a mut Judge<'j>,
    all: &'a mut Reach,
    /// Those of the filter table that are asked for.
    hooks: Vec<Hook>,
}

/// What is said of packets.
#[derive(Clone, Copy)]
struct About {
    hook: Hook,
    states: States,
    /// All that come by the way.
    within: Region,
    is_certain: bool,
    by: Option<By>,
    sent_on: Option<By>,
}

impl Asking<'_, '_> {
    fn of(&mut self, is_sent: bool, states: States) -> Result<(), TooLarge> {
        let come = way::packets(self.space, self.question, is_sent, states)?;
        let asked = self.question.arriving(self.space)?;
        let through = through(self.space, self.ruleset, is_sent, come, asked)?;
        // Those that arrive where it is asked for, and those that were sent there.
        let sent_there = self.space.diagrams.and(through.accepted, asked)?;
        let accepted = self.space.diagrams.or(through.arriving, sent_there)?;
        let all = sent_on_elsewhere(self.space, accepted)?;
        let sure = self.space.for_all_answers(all)?;
        let mut may = self.space.for_some_answers(all)?;
        for (_, region) in &through.open {
            let open = self.space.diagrams.and(*region, asked)?;
            let open = self.space.for_some_answers(open)?;
            may = self.space.diagrams.or(may, open)?;
        }
        may = self.space.diagrams.without(may, sure)?;
        for (is_certain, left) in [(true, sure), (false, may)] {
            for hook in self.hooks.clone() {
                let within = self.within(come, hook)?;
                let about = About { hook, states, within, is_certain, by: None, sent_on: None };
                self.list(&through, (accepted, left), &about)?;
            }
        }
        for hook in self.hooks.clone() {
            let here = |it: &Reaching| it.way == hook && it.states == states;
            if !self.all.regions.iter().any(here) {
                let within = self.within(come, hook)?;
                let asked = self.space.diagrams.and(within, asked)?;
                let probe = self.probe((hook, states), asked);
                // Nobody asks for what cannot come this way.
                self.all.closed.extend(probe.map(|probe| Closed {
                    way: hook,
                    states,
                    probe: Some(probe),
                }));
            }
        }
        Ok(())
    }

    /// Of packets that come, those whose own destination is this way.
    fn within(&mut self, come: Region, hook: Hook) -> Result<Region, TooLarge> {
        if hook == Hook::Output {
            return Ok(come);
        }
        let way = u128::from(hook == Hook::Forward);
        let way = self.space.range(Part::Way, way, way)?;
        self.space.diagrams.and(come, way)
    }
    /// Lists packets of `left` that come by a way, by what lets them through and where they are sent on to.
    fn list(
        &mut self,
        through: &Through,
        (all, mut left): (Region, Region),
        about: &About,
    ) -> Result<(), TooLarge> {
        let deciders = through.filtered.iter().filter(|(hook, ..)| *hook == about.hook);
        for (_, by, region) in deciders {
            let here = self.space.diagrams.and(all, *region)?;
            let mut here = sent_on_elsewhere(self.space, here)?;
            for (sent_on, region) in &through.sent_on {
                let part = self.space.diagrams.and(here, *region)?;
                here = self.space.diagrams.without(here, *region)?;
                let which = About { by: Some(*by), sent_on: Some(*sent_on), ..*about };
                self.part(through, &which, part, &mut left)?;
            }
            self.part(through, &About { by: Some(*by), ..*about }, here, &mut left)?;
        }
        // Where the filter has no chain, or a target on the way decides.
        let mut rest = self.space.diagrams.and(left, about.within)?;
        let filter = self.ruleset.table(TableKind::FILTER);
        if filter.is_some_and(|filter| filter.base_chain(about.hook).is_some()) {
            let mut open = Region::NONE;
            for (_, region) in through.open.iter().filter(|_| !about.is_certain) {
                let some = self.space.for_some_answers(*region)?;
                open = self.space.diagrams.or(open, some)?;
            }
            rest = self.space.diagrams.and(rest, open)?;
        }
        self.part(through, about, rest, &mut left)
    }

    /// Lists packets of one decider, unless they were before.
    fn part(
        &mut self,
        through: &Through,
        about: &About,
        part: Region,
        left: &mut Region,
    ) -> Result<(), TooLarge> {
        let some = self.space.for_some_answers(part)?;
        let some = self.space.diagrams.and(some, *left)?;
        if some.is_empty() {
            return Ok(());
        }
        *left = self.space.diagrams.without(*left, some)?;
        let mut depends: Vec<String> = Vec::new();
        if !about.is_certain {
            let names = self.space.asked_in(part);
            depends.extend(names.iter().map(|name| cause(name)));
            if about.by.is_none() {
                depends.extend(through.open.iter().map(|(target, _)| target.clone()));
            }
            depends.sort_unstable();
            depends.dedup();
        }
        self.add(through, about, some, &depends)
    }

    fn add(
        &mut self,
        through: &Through,
        about: &About,
        part: Region,
        depends: &[String],
    ) -> Result<(), TooLarge> {
        let (hook, states) = (about.hook, about.states);
        let of_group = |it: &&Reaching| it.way == hook && it.states == states;
        let room = MOST_REGIONS.saturating_sub(self.all.regions.iter().filter(of_group).count());
        let mut within = about.within;
        if about.sent_on.is_none() {
            let asked = self.question.arriving(self.space)?;
            within = self.space.diagrams.and(within, asked)?;
        }
        let [shown, within] = [self.without_ways(part)?, self.without_ways(within)?];
        let pieces = self.space.pieces(shown, within, room);
        self.all.more |= pieces.more;
        for piece in pieces.pieces {
            let inside = self.space.of_piece(&piece)?;
            let region = self.space.diagrams.and(inside, part)?;
            let witness = self.witness((hook, states), region);
            let is_shown = witness.as_ref().is_some_and(|(_, judged)| judged.verdict == "accept");
            let mut depends = depends.to_vec();
            if let Some((_, judged)) = witness.as_ref().filter(|_| about.is_certain && !is_shown) {
                depends.extend(judged.because.iter().cloned());
            }
            let leaves = through.leaving.iter();
            let leaves: Vec<By> = leaves
                .filter(|(_, leaves)| self.space.diagrams.meet(region, *leaves))
                .map(|(by, _)| *by)
                .collect();
            self.all.regions.push(Reaching {
                way: hook,
                states,
                is_certain: about.is_certain && is_shown,
                piece,
                translated: about.sent_on.map(|by| translation::shown(self.ruleset, by)),
                leaves_as: leaves.into_iter().map(|by| decider(self.ruleset, by)).collect(),
                by: about.by.map(|by| decider(self.ruleset, by)),
                depends,
                witness,
            });
        }
        Ok(())
    }

    /// A region without what follows from its addresses: the way, and the types that the host tells.
    fn without_ways(&mut self, region: Region) -> Result<Region, TooLarge> {
        let region = self.space.with_any(region, Part::Way)?;
        if self.question.own.is_none() {
            return Ok(region);
        }
        let region = self.space.with_any(region, Part::Field(Field::SourceType))?;
        self.space.with_any(region, Part::Field(Field::DestinationType))
    }

    /// A packet of a region that a walk lets through, or the first that it judges.
    fn witness(&mut self, way: (Hook, States), region: Region) -> Option<(String, Judged)> {
        let mut first = None;
        for seed in 0..TRIED {
            let Some(words) = self.sample(way, region, seed) else { continue };
            let judged = (self.judge)(way.1, &words);
            if judged.verdict == "accept" {
                return Some((words, judged));
            }
            first.get_or_insert((words, judged));
        }
        first
    }

    fn probe(&mut self, way: (Hook, States), region: Region) -> Option<(String, Judged)> {
        let words = self.sample(way, region, 0)?;
        let judged = (self.judge)(way.1, &words);
        Some((words, judged))
    }

    fn sample(&self, (hook, states): (Hook, States), region: Region, seed: u64) -> Option<String> {
        let family = self.space.family();
        let preferred = match seed {
            0 => Preferred::usual(family),
            _ => Preferred::drawn(family, seed),
        };
        let preferred = match states {
            States::Established => {
                const ACK: u128 = 0x10;
                let preferred = preferred.with(Part::Field(Field::TcpFlags), ACK);
                preferred.with_state(CtState::Established)
            }
            States::New | States::Any => preferred,
        };
        let mut values = self.space.sample(region, &preferred)?.values;
        if hook == Hook::Input {
            values.output.clear();
        }
        self.question.name_interfaces(self.space, &mut values);
        spec(family, hook, &values)
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
