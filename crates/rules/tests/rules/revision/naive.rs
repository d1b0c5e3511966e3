//! Chains as lists of texts, and random commands that change them.

use proptest::prelude::*;
use proptest::sample::Index;

/// Rules of the test, in canonical form without the chain.
const RULES: [&str; 9] = [
    "-s 10.0.0.1/32",
    "-s 10.0.0.1/32 -j ACCEPT",
    "! -s 10.0.0.0/8 -d 10.0.0.2/32 -j DROP",
    "-p udp -m udp --dport 0 -j RETURN",
    "-p udp -m comment --comment x",
    "-s 10.0.0.1/32 -d 10.0.0.2/32",
    "-m conntrack --ctstate NEW -j ACCEPT",
    "-m physdev --physdev-in eth0",
    "-m limit --limit 3/sec",
];

/// Names that user chains have, get and lose.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
pub(crate) enum Edit {
    Append(Index, What),
    Insert(Index, usize, What),
    Replace(Index, usize, What),
    Delete(Index, usize),
    DeleteText(Index, What),
    Flush(Option<Index>),
    New(Index),
    DeleteChain(Index),
    Rename(Index, Index),
    Policy(bool),
}

/// What a rule says.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Plain(Index),
    Jump(Index),
    Goto(Index),
}

pub(crate) fn changes() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(change(), 0..40)
}

fn change() -> impl Strategy<Value = Edit> {
    let index = any::<Index>;
    prop_oneof![
        4 => (index(), what()).prop_map(|(chain, what)| Edit::Append(chain, what)),
        4 => (index(), 0..7_usize, what()).prop_map(|(chain, at, what)| Edit::Insert(chain, at, what)),
        2 => (index(), 0..5_usize, what()).prop_map(|(chain, at, what)| Edit::Replace(chain, at, what)),
        2 => (index(), 0..5_usize).prop_map(|(chain, at)| Edit::Delete(chain, at)),
        2 => (index(), what()).prop_map(|(chain, what)| Edit::DeleteText(chain, what)),
        1 => proptest::option::weighted(0.8, index()).prop_map(Edit::Flush),
        1 => index().prop_map(Edit::New),
        1 => index().prop_map(Edit::DeleteChain),
        1 => (index(), index()).prop_map(|(old, new)| Edit::Rename(old, new)),
        1 => any::<bool>().prop_map(Edit::Policy),
    ]
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        4 => any::<Index>().prop_map(What::Plain),
        2 => any::<Index>().prop_map(What::Jump),
        1 => any::<Index>().prop_map(What::Goto),
    ]
}

/// A jump names its chain by what never changes: where it stood when it was made.
#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Plain(&'static str),
    Jump(&'static str, usize),
}

#[derive(Debug)]
struct Chain {
    id: usize,
    name: &'static str,
    rules: Vec<Rule>,
}

/// The table; chains in the order in which their indices are used, a deleted one with an empty name.
#[derive(Debug)]
pub(crate) struct Naive {
    drops: bool,
    chains: Vec<Chain>,
    next: usize,
    unused: Vec<usize>,
}

impl Naive {
    pub(crate) fn start() -> Self {
        let chain = |(id, name)| Chain { id, name, rules: Vec::new() };
        let names = ["INPUT", "FORWARD", "OUTPUT", "a", "b"];
        let chains = names.into_iter().enumerate().map(chain).collect();
        Self { drops: false, chains, next: names.len(), unused: Vec::new() }
    }

    /// A chain that a command names: any, there or not.
    fn name(index: &Index) -> &'static str {
        ["INPUT", "FORWARD", "OUTPUT", "a", "b", "c", "d"][index.index(7)]
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.chains.iter().position(|chain| chain.name == name)
    }

    fn says(what: &What) -> String {
        match what {
            What::Plain(index) => RULES[index.index(RULES.len())].into(),
            What::Jump(to) => format!("-j {}", NAMES[to.index(4)]),
            What::Goto(to) => format!("-g {}", NAMES[to.index(4)]),
        }
    }

    /// The command.
    pub(crate) fn line(&self, change: &Edit) -> String {
        let name = Self::name;
        match change {
            Edit::Append(chain, what) => format!("-A {} {}", name(chain), Self::says(what)),
            Edit::Insert(chain, at, what) => {
                format!("-I {} {at} {}", name(chain), Self::says(what))
            }
            Edit::Replace(chain, at, what) => {
                format!("-R {} {at} {}", name(chain), Self::says(what))
            }
            Edit::Delete(chain, at) => format!("-D {} {at}", name(chain)),
            Edit::DeleteText(chain, what) => format!("-D {} {}", name(chain), Self::says(what)),
            Edit::Flush(Some(chain)) => format!("-F {}", name(chain)),
            Edit::Flush(None) => "-F".into(),
            Edit::New(chain) => format!("-N {}", NAMES[chain.index(4)]),
            Edit::DeleteChain(chain) => format!("-X {}", name(chain)),
            Edit::Rename(old, new) => format!("-E {} {}", name(old), NAMES[new.index(4)]),
            Edit::Policy(drops) => {
                format!("-P INPUT {}", if *drops { "DROP" } else { "ACCEPT" })
            }
        }
    }

    /// The rule, if its chain is there.
    fn rule(&self, what: &What) -> Option<Rule> {
        let jump =
            |how, to: &Index| Some(Rule::Jump(how, self.chains[self.find(NAMES[to.index(4)])?].id));
        match what {
            What::Plain(index) => Some(Rule::Plain(RULES[index.index(RULES.len())])),
            What::Jump(to) => jump("-j", to),
            What::Goto(to) => jump("-g", to),
        }
    }

    /// The chains that are reached from one, by their names that never change, that one among them.
    fn reached(&self, from: usize) -> Vec<usize> {
        let (mut all, mut at) = (vec![from], 0);
        while let Some(id) = all.get(at).copied() {
            at += 1;
            let chain = self.chains.iter().find(|chain| chain.id == id).unwrap();
            for rule in &chain.rules {
                match rule {
                    Rule::Jump(_, next) if !all.contains(next) => all.push(*next),
                    _ => {}
                }
            }
        }
        all
    }

    /// Whether a packet gets to a chain that is reached from itself, if this chain jumps to that one, too.
    fn loops(&mut self, chain: usize, rule: &Rule) -> bool {
        self.chains[chain].rules.push(rule.clone());
        let next = |id: &usize| {
            let chain = self.chains.iter().find(|chain| chain.id == *id).unwrap();
            let jumps = chain.rules.iter().filter_map(|rule| match rule {
                Rule::Jump(_, next) => Some(*next),
                Rule::Plain(_) => None,
            });
            jumps.collect::<Vec<_>>()
        };
        let met: Vec<usize> = (0..3).flat_map(|built_in| self.reached(built_in)).collect();
        let is_looped = |id: &usize| next(id).iter().any(|next| self.reached(*next).contains(id));
        let loops = met.iter().any(is_looped);
        self.chains[chain].rules.pop();
        loops
    }

    /// A rule that may be put into a chain.
    fn fits(&mut self, chain: usize, what: &What) -> Option<Rule> {
        let rule = self.rule(what)?;
        (!self.loops(chain, &rule)).then_some(rule)
    }

    /// Does what the command says; whether it is to be taken.
    pub(crate) fn apply(&mut self, change: &Edit) -> bool {
        self.try_apply(change).is_some()
    }

    fn try_apply(&mut self, change: &Edit) -> Option<()> {
        let name = Self::name;
        match change {
            Edit::Append(chain, what) => {
                let chain = self.find(name(chain))?;
                let rule = self.fits(chain, what)?;
                self.chains[chain].rules.push(rule);
            }
            Edit::Insert(chain, at, what) => {
                let chain = self.find(name(chain))?;
                let rule = self.fits(chain, what)?;
                let rules = &mut self.chains[chain].rules;
                (1..=rules.len() + 1).contains(at).then(|| rules.insert(at - 1, rule))?;
            }
            Edit::Replace(chain, at, what) => {
                let chain = self.find(name(chain))?;
                let rule = self.fits(chain, what)?;
                *self.chains[chain].rules.get_mut(at.checked_sub(1)?)? = rule;
            }
            Edit::Delete(chain, at) => {
                let chain = self.find(name(chain))?;
                let rules = &mut self.chains[chain].rules;
                (1..=rules.len()).contains(at).then(|| rules.remove(at - 1))?;
            }
            Edit::DeleteText(chain, what) => {
                let chain = self.find(name(chain))?;
                let rule = self.rule(what)?;
                let rules = &mut self.chains[chain].rules;
                let at = rules.iter().position(|other| *other == rule)?;
                rules.remove(at);
            }
            Edit::Flush(Some(chain)) => {
                let chain = self.find(name(chain))?;
                self.chains[chain].rules.clear();
            }
            Edit::Flush(None) => self.chains.iter_mut().for_each(|chain| chain.rules.clear()),
            Edit::New(chain) => {
                let name = NAMES[chain.index(4)];
                if self.find(name).is_some() {
                    return None;
                }
                let chain = Chain { id: self.next, name, rules: Vec::new() };
                self.next += 1;
                // Of the places that were left, the last one is taken first.
                match self.unused.pop() {
                    Some(at) => self.chains[at] = chain,
                    None => self.chains.push(chain),
                }
            }
            Edit::DeleteChain(chain) => {
                let at = self.find(name(chain))?;
                let id = self.chains[at].id;
                let mut rules = self.chains.iter().flat_map(|chain| &chain.rules);
                let called = rules.any(|rule| matches!(rule, Rule::Jump(_, to) if *to == id));
                if at < 3 || called || !self.chains[at].rules.is_empty() {
                    return None;
                }
                self.chains[at].name = "";
                self.unused.push(at);
            }
            Edit::Rename(old, new) => {
                let (at, new) = (self.find(name(old))?, NAMES[new.index(4)]);
                if at < 3 || self.find(new).is_some() {
                    return None;
                }
                self.chains[at].name = new;
            }
            Edit::Policy(drops) => self.drops = *drops,
        }
        Some(())
    }

    /// The table as it is printed.
    pub(crate) fn text(&self) -> String {
        let mut text = "*filter\n".to_owned();
        let named = || self.chains.iter().filter(|chain| !chain.name.is_empty());
        for (index, chain) in named().enumerate() {
            let policy = match index {
                0 if self.drops => "DROP",
                0..3 => "ACCEPT",
                _ => "-",
            };
            text += &format!(":{} {policy} [0:0]\n", chain.name);
        }
        let name = |id| self.chains.iter().find(|chain| chain.id == id).unwrap().name;
        for chain in named() {
            for rule in &chain.rules {
                let says = match rule {
                    Rule::Plain(says) => (*says).to_owned(),
                    Rule::Jump(how, to) => format!("{how} {}", name(*to)),
                };
                text += &format!("-A {} {says}\n", chain.name);
            }
        }
        text + "COMMIT\n"
    }
}
