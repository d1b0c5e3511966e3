//! tamis's side: what it does with a packet, with counters as the kernel keeps them.

use std::collections::BTreeMap;

use crate::layouts::{Kind, Laid};
use host::Host;
use packet::{Checksums, Packet, Read};
use rules::eval::{self, Alive, Memories, Observer, RuleRef, Verdict, Verdicts};
use rules::model::{Action, Family, Ruleset};
use rules::save::{LoadError, LoadOptions, load};
use rules::{BridgeNote, Iface, Outcome, Transit};

use crate::rule_counters::{ChainCounters, RuleCounters, step};
use crate::scene::{Placement, Scene, forwards};

/// The verdict on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The stack refuses it before its hooks.
    Stack,
    /// It passes.
    Accept,
    /// A rule, a policy or a hot drop ends it.
    Drop,
    /// tamis cannot tell, which is a failure on generated rules.
    Unknown,
}

impl Fate {
    /// The word for it in cases.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::Accept => "accept",
            Self::Drop => "drop",
            Self::Unknown => "unknown",
        }
    }
}

/// What came of a packet; its bytes are rewritten in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluated {
    /// The verdict.
    pub fate: Fate,
    /// Its mark at the end.
    pub mark: u32,
    /// Offset of the network header in the frame.
    pub network: usize,
}

/// How often a match was asked, and what it answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// Packets that it was asked about.
    pub asked: u64,
    /// It answered yes.
    pub yes: u64,
    /// It answered hot drop.
    pub hot_drops: u64,
}

/// One step of a packet's path: a rule that matched (number from 1), or a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step(pub String);

/// A ruleset with the state that packets leave in it.
#[derive(Debug)]
pub struct Evaluator {
    scene: Scene,
    ruleset: Ruleset,
    host: Host,
    /// As the rules were read: which rules and matches a packet meets.
    memories: Memories,
    observed: Observed,
    /// As they are laid out: what is evaluated and counted, where the scene has a layout.
    laid: Option<LaidOut>,
}

/// Rules laid out, and walked as a replay walks them: nobody sees single rules.
#[derive(Debug)]
struct LaidOut {
    tables: Vec<Laid>,
    memories: Memories,
    counts: Counted,
}

/// Counters by slot.
#[derive(Debug)]
struct Counted {
    counters: RuleCounters,
    /// The rule of each slot.
    rules: Vec<RuleRef>,
    unknown: Option<String>,
}

/// What the walks add up.
#[derive(Debug)]
struct Observed {
    counters: RuleCounters,
    /// By table, chain, rule and match.
    asked: Vec<Vec<Vec<Vec<Asked>>>>,
    unknown: Option<String>,
    path: Option<Vec<(RuleRef, bool)>>,
}

impl Evaluator {
    /// Loads the rules as tamis reads them.
    pub fn new(scene: Scene, rules: &str) -> Result<Self, LoadError> {
        let options = LoadOptions { family: Some(scene.family), ..LoadOptions::default() };
        let ruleset = load(rules, &options)?.ruleset;
        let memories = Memories::of(&ruleset);
        let observed = Observed::of(&ruleset);
        let laid = scene.layout.map(|kind| LaidOut::of(kind, &ruleset));
        Ok(Self { scene, host: scene.host(), ruleset, memories, observed, laid })
    }

    /// The same rules on another host than the scene's.
    pub fn stand_on(&mut self, host: Host) {
        self.host = host;
    }

    /// The rules as they were read.
    #[must_use]
    pub fn ruleset(&self) -> &Ruleset {
        &self.ruleset
    }

    /// Whether what a packet meets depends on the packets before it.
    #[must_use]
    pub fn remembers(&self) -> bool {
        let chains = self.ruleset.tables.iter().flat_map(|table| &table.chains);
        let mut matches = chains.flat_map(|chain| &chain.rules).flat_map(|rule| &rule.matches);
        matches.any(|used| used.memory.is_some())
    }

    /// Walks one frame and counts it.
    pub fn evaluate(&mut self, frame: &mut [u8]) -> Evaluated {
        let Self { scene, ruleset, host, memories, observed, laid } = self;
        let scene = *scene;
        let Some(LaidOut { tables, memories: own, counts }) = laid else {
            return evaluate(scene, host, ruleset, frame, |table, transit| {
                eval::walk(ruleset, table, transit, Alive::Certain, memories, observed)
            });
        };
        evaluate(scene, host, ruleset, &mut frame.to_vec(), |table, transit| {
            eval::walk(ruleset, table, transit, Alive::Certain, memories, observed)
        });
        evaluate(scene, host, ruleset, frame, |table, transit| {
            tables[table].walk(table, transit, Alive::Certain, own, counts)
        })
    }

    /// Walks one frame and says which rules it matches on its way.
    pub fn path(&mut self, frame: &mut [u8]) -> (Evaluated, Vec<Step>) {
        self.observed.path = Some(Vec::new());
        let evaluated = self.evaluate(frame);
        let steps = self.observed.path.take().unwrap_or_default();
        (
            evaluated,
            steps.into_iter().map(|(at, policy)| Step(step(&self.ruleset, at, policy))).collect(),
        )
    }

    /// The first thing that some packet left unknown since the load.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        let laid = self.laid.as_ref().and_then(|laid| laid.counts.unknown.as_deref());
        laid.or(self.observed.unknown.as_deref())
    }

    /// Counters of every chain since the load.
    #[must_use]
    pub fn counters(&self) -> Vec<ChainCounters> {
        let laid = self.laid.as_ref().map(|laid| &laid.counts.counters);
        laid.unwrap_or(&self.observed.counters).chains(&self.ruleset)
    }

    /// Packets that rules with each target matched since the load, by its name.
    pub fn targets(&self, into: &mut BTreeMap<String, u64>) {
        for (t, table) in self.ruleset.tables.iter().enumerate() {
            for (c, chain) in table.chains.iter().enumerate() {
                for (r, rule) in chain.rules.iter().enumerate() {
                    if let Action::Target(target) = &rule.action {
                        let counters = self.observed.counters.at(t, c, r);
                        *into.entry(target.name.to_string()).or_default() += counters.packets;
                    }
                }
            }
        }
    }

    /// How often each match was asked since the load, by its name.
    pub fn asked(&self, into: &mut BTreeMap<String, Asked>) {
        for (table, asked) in self.ruleset.tables.iter().zip(&self.observed.asked) {
            for (chain, asked) in table.chains.iter().zip(asked) {
                for (rule, asked) in chain.rules.iter().zip(asked) {
                    for (used, asked) in rule.matches.iter().zip(asked) {
                        let sum = into.entry(used.name.to_string()).or_default();
                        sum.asked += asked.asked;
                        sum.yes += asked.yes;
                        sum.hot_drops += asked.hot_drops;
                    }
                }
            }
        }
    }
}

/// The result for one frame; `walk` walks a table.
fn evaluate(
    scene: Scene,
    host: &Host,
    ruleset: &Ruleset,
    frame: &mut [u8],
    walk: impl FnMut(usize, &mut Transit<'_, '_>) -> Verdicts,
) -> Evaluated {
    let len = frame.len();
    let mut packet = Packet::parse(frame, len, scene.link(), Checksums::Verify);
    let network = packet.network_offset();
    let mut evaluated = Evaluated { fate: Fate::Stack, mark: 0, network };
    let Some(input) = scene.input(&packet) else { return evaluated };
    if !scene.enters(packet.headers()) {
        return evaluated;
    }
    if scene.placement == Placement::Forward {
        if !forwards(&packet) {
            return evaluated;
        }
        lower_ttl(&mut packet, scene.family);
    }
    let mut transit = Transit {
        input: Iface::Named(input),
        output: scene.output().map_or(Iface::Absent, Iface::Named),
        bridge: BridgeNote::Nothing,
        ..Transit::new(&mut packet, scene.family, scene.hook(), host)
    };
    evaluated.fate = through_tables(scene, ruleset, &mut transit, walk);
    evaluated.mark = transit.mark.value;
    evaluated
}

/// Walks the scene's tables in order, until one does not accept.
fn through_tables(
    scene: Scene,
    ruleset: &Ruleset,
    transit: &mut Transit<'_, '_>,
    mut walk: impl FnMut(usize, &mut Transit<'_, '_>) -> Verdicts,
) -> Fate {
    for name in scene.tables() {
        let Some(table) = ruleset.tables.iter().position(|table| table.name == *name) else {
            continue;
        };
        match walk(table, transit).only() {
            Some((Verdict::Accept, _)) => {}
            Some(_) => return Fate::Drop,
            None => return Fate::Unknown,
        }
    }
    Fate::Accept
}

/// What forwarding does before FORWARD.
fn lower_ttl(packet: &mut Packet<'_>, family: Family) {
    let at = if family == Family::Ipv6 { 7 } else { 8 };
    if let Read::Known([ttl]) = packet.net::<1>(at) {
        packet.set_ttl(ttl.saturating_sub(1));
    }
}

impl LaidOut {
    fn of(kind: Kind, ruleset: &Ruleset) -> Self {
        let lay = |table| Laid::encode(kind, table, ruleset.family);
        Self {
            tables: ruleset.tables.iter().map(lay).collect(),
            memories: Memories::of(ruleset),
            counts: Counted::of(ruleset),
        }
    }
}

impl Counted {
    fn of(ruleset: &Ruleset) -> Self {
        let mut rules = BTreeMap::new();
        for (table, tables) in (0..).zip(&ruleset.tables) {
            for (chain, chains) in (0..).zip(&tables.chains) {
                let each = (0..).zip(&chains.rules);
                rules.extend(each.map(|(rule, of)| (of.slot, RuleRef { table, chain, rule })));
            }
        }
        Self {
            counters: RuleCounters::of(ruleset),
            rules: rules.into_values().collect(),
            unknown: None,
        }
    }
}

impl Observer for Counted {
    const SEES_RULES: bool = false;

    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        if certain {
            self.counters.count(self.rules[slot as usize], transit);
        }
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        if certain {
            self.counters.count(self.counters.policy(table, chain), transit);
        }
    }

    fn unknown(&mut self, at: RuleRef, cause: eval::Cause) {
        self.unknown.get_or_insert_with(|| format!("{at:?}: {cause:?}"));
    }
}

impl Observed {
    fn of(ruleset: &Ruleset) -> Self {
        let asked = ruleset.tables.iter().map(|table| {
            let chains = table.chains.iter().map(|chain| {
                let rules = chain.rules.iter();
                rules.map(|rule| vec![Asked::default(); rule.matches.len()]).collect()
            });
            chains.collect()
        });
        Self {
            counters: RuleCounters::of(ruleset),
            asked: asked.collect(),
            unknown: None,
            path: None,
        }
    }

    fn count(&mut self, at: RuleRef, policy: bool, transit: &Transit<'_, '_>) {
        self.counters.count(at, transit);
        if let Some(path) = &mut self.path {
            path.push((at, policy));
        }
    }
}

impl Observer for Observed {
    fn asked(&mut self, at: RuleRef, index: usize, outcome: Outcome) {
        let rules = &mut self.asked[at.table as usize][at.chain as usize];
        let asked = &mut rules[at.rule as usize][index];
        asked.asked += 1;
        asked.yes += u64::from(outcome == Outcome::YES);
        asked.hot_drops += u64::from(outcome == Outcome::HOT_DROP);
        if !outcome.is_known() && self.unknown.is_none() {
            self.unknown = Some(format!("{at:?} match {index}: {outcome:?}"));
        }
    }

    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        if certain {
            self.count(at, false, transit);
        }
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        if certain {
            self.count(self.counters.policy(table, chain), true, transit);
        }
    }

    fn unknown(&mut self, at: RuleRef, cause: eval::Cause) {
        self.unknown.get_or_insert_with(|| format!("{at:?}: {cause:?}"));
    }
}
