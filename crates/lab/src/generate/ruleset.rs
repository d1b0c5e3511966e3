//! Draws rulesets: several user chains that jump and go to later ones, base chains with either policy.

use std::fmt::Write;

use rules::ext::{Support, find_match};

use super::matches::{GENERATORS, MatchGen, header};
use super::{Craft, Draw, Piece, targets};
use crate::scene::Scene;

/// A ruleset as the generator holds it and the shrinker takes it apart.
#[derive(Debug, Clone)]
pub struct RulesetText {
    /// Tables in order.
    pub tables: Vec<TableText>,
}

/// One table.
#[derive(Debug, Clone)]
pub struct TableText {
    /// `raw`, …
    pub name: &'static str,
    /// The built-in chain first.
    pub chains: Vec<ChainText>,
}

/// One chain.
#[derive(Debug, Clone)]
pub struct ChainText {
    /// As rules jump to it.
    pub name: String,
    /// Its policy; `-` for a user chain.
    pub policy: &'static str,
    /// In order.
    pub rules: Vec<RuleText>,
}

/// One rule.
#[derive(Clone)]
pub struct RuleText {
    /// Its tests, in order.
    pub tests: Vec<Piece>,
    /// What it does, with its edit.
    pub action: Piece,
    /// Index of the chain that it jumps or goes to.
    pub to: Option<usize>,
}

impl std::fmt::Debug for RuleText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for test in &self.tests {
            write!(f, "{test:?} ")?;
        }
        write!(f, "{:?}", self.action)
    }
}

impl RulesetText {
    /// Save text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for table in &self.tables {
            let _ = writeln!(text, "*{}", table.name);
            for chain in &table.chains {
                let _ = writeln!(text, ":{} {} [0:0]", chain.name, chain.policy);
            }
            for chain in &table.chains {
                for rule in &chain.rules {
                    let _ = writeln!(text, "{}", format!("-A {} {rule:?}", chain.name).trim_end());
                }
            }
            text.push_str("COMMIT\n");
        }
        text
    }

    /// The crafts that bring a packet to a rule: those of the jumps on the way, and its own.
    #[must_use]
    pub fn way_to(&self, table: usize, chain: usize, rule: usize) -> Vec<Craft> {
        let chains = &self.tables[table].chains;
        let mut crafts = Vec::new();
        let mut here = Some((chain, rule));
        while let Some((chain, rule)) = here {
            let rule = &chains[chain].rules[rule];
            crafts.extend(rule.tests.iter().map(|test| test.craft.clone()));
            crafts.push(rule.action.craft.clone());
            here = chains[..chain].iter().enumerate().find_map(|(from, caller)| {
                let jump = caller.rules.iter().position(|rule| rule.to == Some(chain))?;
                Some((from, jump))
            });
        }
        crafts.reverse();
        crafts
    }

    /// Number of rules.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.tables.iter().flat_map(|table| &table.chains).map(|chain| chain.rules.len()).sum()
    }
}

/// Draws a ruleset for the scene of `draw`.
pub fn draw(draw: &mut Draw) -> RulesetText {
    let scene = draw.scene;
    let tables = scene.tables().iter().map(|name| table(draw, scene, name)).collect();
    RulesetText { tables }
}

fn table(draw: &mut Draw, scene: Scene, name: &'static str) -> TableText {
    draw.table = name;
    let count = 2 + draw.rng.usize(..5);
    let policy = if draw.one_in(3) { "DROP" } else { "ACCEPT" };
    let base = scene.hook().chain_name().to_owned();
    let mut chains = vec![ChainText { name: base, policy, rules: Vec::new() }];
    for index in 1..=count {
        chains.push(ChainText { name: format!("c{index}"), policy: "-", rules: Vec::new() });
    }
    for index in 0..=count {
        if index == 0 {
            // Counts every packet that gets past the stack's own tests.
            let all = RuleText { tests: Vec::new(), action: Piece::plain(""), to: None };
            chains[0].rules.push(all);
        }
        let rules = if index == 0 { 4 + draw.rng.usize(..6) } else { 1 + draw.rng.usize(..7) };
        for _ in 0..rules {
            let rule = rule(draw, index, count);
            chains[index].rules.push(rule);
        }
    }
    TableText { name, chains }
}

fn rule(draw: &mut Draw, chain: usize, last: usize) -> RuleText {
    // Jumps have fewer tests, so that the chains that they lead to are reached.
    let jumps = chain < last && draw.rng.u8(..100) < if chain == 0 { 55 } else { 30 };
    let most = if jumps { 2 } else { 4 };
    let mut tests = Vec::new();
    let (protocol, test) = header::protocol(draw, jumps);
    draw.protocol = protocol;
    tests.extend(test);
    for _ in 0..draw.rng.usize(..most) {
        if let Some(piece) = header::draw(draw, &tests) {
            tests.push(piece);
        }
    }
    let matches = draw.rng.usize(..if jumps { 2 } else { 4 });
    let mut names: Vec<&str> = Vec::new();
    for _ in 0..matches {
        if let Some(kind) = pick_match(draw)
            && !names.contains(&kind.name)
        {
            names.push(kind.name);
            tests.push(piece(draw, kind));
        }
    }
    let (action, to) = if jumps {
        let to = chain + 1 + draw.rng.usize(..last - chain);
        let word = if draw.one_in(3) { "-g" } else { "-j" };
        (Piece::plain(format!("{word} c{to}")), Some(to))
    } else {
        (targets::draw(draw), None)
    };
    RuleText { tests, action, to }
}

/// A small raw ruleset all about one match: every rule has it and only counts.
pub fn sample(draw: &mut Draw, kind: &MatchGen) -> RulesetText {
    let mut rules = Vec::new();
    for index in 0..4 {
        let mut tests = Vec::new();
        draw.protocol = None;
        if !kind.protocols.is_empty() {
            let number = draw.pick(kind.protocols);
            draw.protocol = Some(number);
            tests.push(Piece::new(format!("-p {number}"), move |p| p.protocol = number));
        }
        tests.push(piece(draw, kind));
        let action = if index == 3 { "-j DROP" } else { "" };
        rules.push(RuleText { tests, action: Piece::plain(action), to: None });
    }
    let name = draw.scene.hook().chain_name().to_owned();
    let chains = vec![ChainText { name, policy: "ACCEPT", rules }];
    RulesetText { tables: vec![TableText { name: draw.scene.tables()[0], chains }] }
}

/// A match with its `-m`.
fn piece(draw: &mut Draw, kind: &MatchGen) -> Piece {
    let Piece { text, craft } = (kind.draw)(draw);
    Piece { text: format!("-m {} {text}", kind.name).trim_end().into(), craft }
}

/// A match that may stand beside the rule's protocol. Those that need one are preferred where it is.
fn pick_match(draw: &mut Draw) -> Option<&'static MatchGen> {
    let may = |kind: &&MatchGen, protocol: Option<u8>| {
        kind.families.contains(&draw.scene.family)
            && (!kind.ethernet || draw.ethernet())
            && find_match(kind.name, draw.scene.family)
                .is_some_and(|known| known.support == Support::Evaluated)
            && (kind.protocols.is_empty() || protocol.is_some_and(|p| kind.protocols.contains(&p)))
    };
    let all: Vec<&MatchGen> = GENERATORS.iter().filter(|kind| may(kind, draw.protocol)).collect();
    let own: Vec<&MatchGen> =
        all.iter().copied().filter(|kind| !kind.protocols.is_empty()).collect();
    let list = if !own.is_empty() && draw.one_in(2) { own } else { all };
    (!list.is_empty()).then(|| draw.pick(&list))
}
