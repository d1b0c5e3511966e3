//! Rulesets of the wild as the oracle compares them: without the rules that depend on more than one packet.
//!
//! A ruleset's built-in chains hold rules for packets to, from and through the host. Each of them with its
//! rules in turn stands in at FORWARD ([`View`]), of filter or of mangle, where a packet has both
//! interfaces; so every rule meets packets whatever hook it was written for.

mod craft;
mod header;
mod strip;
pub mod whole;

use std::collections::{BTreeMap, BTreeSet};

use rules::ext::{MatchUse, Printer, TargetUse};
use rules::model::{Action, Rule, Ruleset, Table};

use crate::failure::Failure;
use crate::generate::Piece;
use crate::generate::ruleset::{ChainText, RuleText, RulesetText, TableText};
use strip::OF_PACKETS;

/// One built-in chain of a ruleset, standing in at FORWARD.
#[derive(Debug, Clone)]
pub struct View {
    /// Table and built-in chain that it was, `filter INPUT`.
    pub name: String,
    /// The rules that are left, the chains that they can reach, callers first.
    pub rules: RulesetText,
    /// For each chain its index in the table.
    pub origins: Vec<usize>,
    /// Interfaces that the rules name for packets coming in, and going out; a wildcard is given an end.
    pub devices: [BTreeSet<String>; 2],
}

/// A ruleset taken apart.
#[derive(Debug, Clone, Default)]
pub struct Stripped {
    /// Its built-in chains that have rules left.
    pub views: Vec<View>,
    /// Rules that some view holds.
    pub kept: usize,
    /// Rules that no built-in chain outside nat leads to.
    pub unreached: usize,
    /// Rules left out, by what they depend on.
    pub left_out: BTreeMap<String, usize>,
}

/// What came of one file.
#[derive(Debug, Clone, Default)]
pub struct RealFile {
    /// Its name.
    pub name: String,
    /// Rules that were compared.
    pub kept: usize,
    /// Of these, rules that some packet matched.
    pub hit: usize,
    /// Rules that no built-in chain outside nat leads to.
    pub unreached: usize,
    /// Rules left out, by what they depend on.
    pub left_out: BTreeMap<String, usize>,
    /// Packets compared.
    pub packets: u64,
    /// Differences, at most one for each chain and pair of devices.
    pub failures: Vec<Failure>,
}

/// Takes a ruleset apart.
#[must_use]
pub fn strip(ruleset: &Ruleset) -> Stripped {
    let mut stripped = Stripped::default();
    for table in &ruleset.tables {
        if table.name == "nat" {
            let rules = table.chains.iter().map(|chain| chain.rules.len()).sum::<usize>();
            if rules > 0 {
                *stripped.left_out.entry("table nat".to_owned()).or_default() += rules;
            }
            continue;
        }
        let mut reached = BTreeSet::new();
        for base in 0..table.chains.len() {
            let view = view(ruleset, table, base);
            reached.extend(view.iter().flat_map(|view| view.origins.iter().copied()));
            stripped.views.extend(view);
        }
        for (index, chain) in table.chains.iter().enumerate() {
            for rule in &chain.rules {
                match OF_PACKETS.reason(rule) {
                    Some(reason) => *stripped.left_out.entry(reason).or_default() += 1,
                    None if reached.contains(&index) => stripped.kept += 1,
                    None => stripped.unreached += 1,
                }
            }
        }
    }
    stripped
}

fn kept(table: &Table, chain: usize) -> impl Iterator<Item = &Rule> {
    table.chains[chain]
        .rules
        .iter()
        .map(AsRef::as_ref)
        .filter(move |rule| OF_PACKETS.reason(rule).is_none())
}

fn view(ruleset: &Ruleset, table: &Table, base: usize) -> Option<View> {
    let policy = table.chains[base].base?.policy;
    kept(table, base).next()?;
    let origins = callers_first(table, base);
    let mut devices = [BTreeSet::new(), BTreeSet::new()];
    let mut chains = Vec::new();
    for chain in &origins {
        let is_base = *chain == base;
        let mut rules = Vec::new();
        for rule in kept(table, *chain) {
            if let Some(header) = &rule.header {
                header::devices(header, &mut devices);
            }
            rules.push(rule_text(ruleset, table, rule, &origins));
        }
        let name = if is_base { "FORWARD" } else { &table.chains[*chain].name };
        let policy = match (is_base, policy) {
            (false, _) => "-",
            (true, rules::model::Policy::Accept) => "ACCEPT",
            (true, rules::model::Policy::Drop) => "DROP",
        };
        chains.push(ChainText { name: name.to_owned(), policy, rules });
    }
    let name = if table.name == "filter" { "filter" } else { "mangle" };
    Some(View {
        name: format!("{} {}", table.name, table.chains[base].name),
        rules: RulesetText { tables: vec![TableText { name, chains }] },
        origins,
        devices,
    })
}

/// The chains that `base` leads to, each after all that jump to it. Loaded rules have no loops.
fn callers_first(table: &Table, base: usize) -> Vec<usize> {
    let (mut seen, mut order) = (BTreeSet::from([base]), Vec::new());
    // A chain is left for good once its jumps have been followed: depth first, without recursion.
    let mut path = vec![(base, jumps(table, base))];
    while let Some((chain, rest)) = path.last_mut() {
        match rest.pop() {
            Some(next) if seen.insert(next) => path.push((next, jumps(table, next))),
            Some(_) => {}
            None => {
                order.push(*chain);
                path.pop();
            }
        }
    }
    order.reverse();
    order
}

fn jumps(table: &Table, chain: usize) -> Vec<usize> {
    let target = |rule: &Rule| match rule.action {
        Action::Jump(to) | Action::Goto(to) => Some(to as usize),
        _ => None,
    };
    kept(table, chain).filter_map(target).collect()
}

fn rule_text(ruleset: &Ruleset, table: &Table, rule: &Rule, origins: &[usize]) -> RuleText {
    let mut tests = Vec::new();
    if let Some(header) = &rule.header {
        header::pieces(header, ruleset.family, &mut tests);
    }
    tests.extend(rule.matches.iter().map(match_piece));
    let chain = |index: u32| table.chains[index as usize].name.to_string();
    let position = |index: u32| origins.iter().position(|origin| *origin == index as usize);
    let (action, to) = match &rule.action {
        Action::None => (String::new(), None),
        Action::Accept => ("-j ACCEPT".to_owned(), None),
        Action::Drop => ("-j DROP".to_owned(), None),
        Action::Return => ("-j RETURN".to_owned(), None),
        Action::Jump(to) => (format!("-j {}", chain(*to)), position(*to)),
        Action::Goto(to) => (format!("-g {}", chain(*to)), position(*to)),
        Action::Target(used) => (target_text(used), None),
    };
    RuleText { tests, action: Piece::plain(action), to }
}

fn match_piece(used: &MatchUse) -> Piece {
    let mut to = Printer::new("-m");
    to.word(&used.name);
    used.body.print(&mut to);
    let text = to.finish();
    let crafts = craft::of(&text);
    Piece::new(text, move |draft| crafts.iter().for_each(|craft| craft(draft)))
}

fn target_text(used: &TargetUse) -> String {
    let mut to = Printer::new("-j");
    to.word(&used.name);
    used.body.print(&mut to);
    to.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::save::{LoadOptions, load};

    fn stripped(text: &str) -> Stripped {
        strip(&load(text, &LoadOptions::default()).unwrap().ruleset)
    }

    #[test]
    fn what_depends_on_state_is_left_out_and_named() {
        let stripped = stripped(
            "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n\
             *filter\n:INPUT DROP [0:0]\n:lost - [0:0]\n:far - [0:0]\n:near - [0:0]\n\
             -A INPUT -m state --state ESTABLISHED -j ACCEPT\n-A INPUT -i ppp+ -j near\n\
             -A near -p tcp -m tcp --dport 22 -j far\n-A far -m limit --limit 1/sec -j DROP\n\
             -A far -s 192.0.2.0/24 -j ACCEPT\n-A lost -j DROP\nCOMMIT\n",
        );
        let left: Vec<_> = stripped.left_out.iter().map(|(why, n)| (why.as_str(), *n)).collect();
        assert_eq!(left, [("-m limit", 1), ("-m state", 1), ("table nat", 1)]);
        assert_eq!((stripped.kept, stripped.unreached), (3, 1));
        let [view] = stripped.views.as_slice() else { panic!("{:?}", stripped.views) };
        assert_eq!(
            view.rules.text(),
            "*filter\n:FORWARD DROP [0:0]\n:near - [0:0]\n:far - [0:0]\n\
             -A FORWARD -i ppp+ -j near\n-A near -p 6 -m tcp --dport 22 -j far\n\
             -A far -s 192.0.2.0/24 -j ACCEPT\nCOMMIT\n"
        );
        assert_eq!(view.devices, [BTreeSet::from(["ppp0".to_owned()]), BTreeSet::new()]);
    }
}
