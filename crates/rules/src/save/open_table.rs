//! The table that is being read: its chains, its rules in their places, and the chains that jumps name before
//! they are declared.
//!
//! Contract: indices of chains do not change while the table is open; a jump forward leads to chain 0 until
//! [`OpenTable::close`] knows better.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::rule::{Position, RuleLine, Setting, Verdict, unevaluated, unknown_target};
use super::warnings::Warnings;
use super::{chain_name, loops, policy};
use crate::backend::Backend;
use crate::error::{LoadError, What};
use crate::family::{Family, Hook};
use crate::header::Header;
use crate::lexer::Word;
use crate::model::{Action, Base, Chain, Counters, FallThrough, Rule, Table};

/// Most rules that `-I` may move along in all: each insertion moves those after it, so a long text of
/// insertions could take hours.
const MAX_MOVED_RULES: usize = 1 << 26;

/// The table being read.
pub(super) struct OpenTable<'a> {
    family: Family,
    pub(super) table: Table,
    chains: HashMap<Cow<'a, str>, usize>,
    /// The chain that the rule before was for.
    last: usize,
    /// Jumps to chains that were not declared yet.
    forward: Vec<ForwardJump<'a>>,
    /// Targets that rules have, with the first line. `-j NAME` means a chain before a target and chains
    /// are printed first, so that no later chain may have such a name.
    targets: HashMap<Box<str>, u32>,
    moved: usize,
    pub(super) line: u32,
    /// Opened by a `*table` line, so that COMMIT must close it.
    pub(super) starred: bool,
}

/// A jump to a chain that was not declared yet: where it stands, and what it names.
struct ForwardJump<'a> {
    chain: usize,
    rule: usize,
    to: Word<'a>,
    line: u32,
}

impl<'a> OpenTable<'a> {
    /// An empty table, opened at a line.
    pub(super) fn new(family: Family, name: &'static str, line: u32, starred: bool) -> Self {
        Self {
            family,
            table: Table { name: name.into(), backend: Backend::default(), chains: Vec::new() },
            chains: HashMap::new(),
            last: 0,
            forward: Vec::new(),
            targets: HashMap::new(),
            moved: 0,
            line,
            starred,
        }
    }

    /// Whether a chain of this name stands already.
    pub(super) fn has_chain(&self, name: &str) -> bool {
        self.chains.contains_key(name)
    }

    /// Declares a chain, or sets again what its end does.
    pub(super) fn declare(
        &mut self,
        line: u32,
        name: &Word<'a>,
        policy: &Word<'_>,
        counters: Counters,
    ) -> Result<(), What> {
        let not_user = || {
            let what = format!("- (user chains have no policy), found \"{}\"", policy.text);
            What::new(policy.column, what)
        };
        let index = self.declared_chain(name, line)?;
        let chain = &mut self.table.chains[index];
        chain.line = line;
        match &mut chain.base {
            Some(base) => *base = Base { policy: policy::built_in(policy)?, counters, ..*base },
            None => {
                chain.fall_through = policy::user(&policy.text, self.family).ok_or_else(not_user)?
            }
        }
        Ok(())
    }

    /// Index of a chain that is being declared.
    fn declared_chain(&mut self, name: &Word<'a>, line: u32) -> Result<usize, What> {
        if let Some(index) = self.chains.get(&*name.text) {
            return Ok(*index);
        }
        chain_name::check(name)?;
        if let Some(line) = self.targets.get(&*name.text) {
            let what = format!("another chain name: line {line} has a target \"{}\"", name.text);
            return Err(What::new(name.column, what));
        }
        Ok(self.push_chain(name, self.hook(&name.text), line))
    }

    /// Index of the chain that a rule is for: declared, or built in.
    pub(super) fn rule_chain(&mut self, name: &Word<'a>) -> Result<usize, What> {
        // Rules of a chain stand together.
        if self.table.chains.get(self.last).is_some_and(|last| *last.name == *name.text) {
            return Ok(self.last);
        }
        if let Some(index) = self.chains.get(&*name.text) {
            self.last = *index;
            return Ok(*index);
        }
        if let Some(hook) = self.hook(&name.text) {
            return Ok(self.push_chain(name, Some(hook), 0));
        }
        let what =
            format!("a chain declared in table {}, found \"{}\"", self.table.name, name.text);
        Err(What::new(name.column, what))
    }

    /// The hook whose built-in chain has this name.
    fn hook(&self, name: &str) -> Option<Hook> {
        let kind = self.family.table(&self.table.name)?;
        kind.hooks().find(|hook| hook.chain_name() == name)
    }

    fn push_chain(&mut self, name: &Word<'a>, hook: Option<Hook>, line: u32) -> usize {
        let kind = self.family.table(&self.table.name);
        let base = kind.and_then(|kind| Base::built_in(kind, hook?));
        let index = self.table.chains.len();
        self.table.chains.push(Chain {
            name: name.text.as_ref().into(),
            base,
            fall_through: FallThrough::Return,
            rules: Vec::new(),
            line,
        });
        self.chains.insert(name.text.clone(), index);
        index
    }

    /// Adds the rule that a line makes with one of its headers.
    pub(super) fn add_rule(
        &mut self,
        index: usize,
        line: u32,
        parsed: &RuleLine<'a>,
        header: Option<Header>,
        counters: Counters,
        strict: bool,
    ) -> Result<(), What> {
        let chain = &self.table.chains[index];
        let at = Setting {
            family: self.family,
            table: &self.table.name,
            hook: chain.base.map(|base| base.hook),
            chain: &chain.name,
            strict,
        };
        parsed.check(at)?;
        let built = parsed.build(at)?;
        let place = place(parsed, chain.rules.len())?;
        let action = match built.target {
            Some(target) => {
                self.note_target(&target.name, line);
                Action::Target(target)
            }
            None => self.action(parsed, index, place, line),
        };
        let rule = Rule {
            header,
            matches: built.matches,
            action,
            counters,
            line,
            slot: 0,
            id: 0,
            listed: None,
        };
        self.put(index, place, rule)
    }

    /// Puts a rule in its place; those after it move along.
    fn put(&mut self, chain: usize, place: usize, rule: Rule) -> Result<(), What> {
        let rules = &mut self.table.chains[chain].rules;
        if place == rules.len() {
            rules.push(Arc::new(rule));
            return Ok(());
        }
        self.moved += rules.len() - place + self.forward.len();
        if self.moved > MAX_MOVED_RULES {
            return Err(What::new(1, format!("-A: -I moved over {MAX_MOVED_RULES} rules so far")));
        }
        let behind = |jump: &&mut ForwardJump<'_>| jump.chain == chain && jump.rule >= place;
        self.forward.iter_mut().filter(behind).for_each(|jump| jump.rule += 1);
        rules.insert(place, Arc::new(rule));
        Ok(())
    }

    fn note_target(&mut self, name: &str, line: u32) {
        if !self.targets.contains_key(name) {
            self.targets.insert(name.into(), line);
        }
    }

    /// What the rule does, but for targets.
    fn action(&mut self, parsed: &RuleLine<'a>, chain: usize, rule: usize, line: u32) -> Action {
        let (name, goto) = match &parsed.verdict {
            None => return Action::None,
            Some(Verdict::Accept) => return Action::Accept,
            Some(Verdict::Drop) => return Action::Drop,
            Some(Verdict::Return) => return Action::Return,
            Some(Verdict::Jump(name)) => (name, false),
            Some(Verdict::Goto(name)) => (name, true),
        };
        let to = self.chains.get(&*name.text).copied();
        if to.is_none() {
            self.forward.push(ForwardJump { chain, rule, to: name.clone(), line });
        }
        let to = to.unwrap_or(0) as u32;
        if goto { Action::Goto(to) } else { Action::Jump(to) }
    }

    /// The table, whose jumps all lead somewhere and in no circle.
    pub(super) fn close(mut self, warnings: &mut Warnings) -> Result<Table, LoadError> {
        let (table, family) = (&*self.table.name, self.family);
        for ForwardJump { chain, rule, to, line } in self.forward {
            let found = self.chains.get(&*to.text).map(|found| *found as u32);
            let Some(rule) = Arc::get_mut(&mut self.table.chains[chain].rules[rule]) else {
                continue;
            };
            rule.action = match (&rule.action, found) {
                (Action::Goto(_), Some(found)) => Action::Goto(found),
                (_, Some(found)) => Action::Jump(found),
                (Action::Goto(_), None) => {
                    let what = format!("a chain of table {table}, found \"{}\"", to.text);
                    return Err(What::new(to.column, what).at_line(line));
                }
                (_, None) => {
                    let target = unknown_target(&to, Vec::new(), table, family);
                    let target = target.map_err(|what| what.at_line(line))?;
                    warnings.add(line, unevaluated("-j", &to.text));
                    Action::Target(Box::new(target))
                }
            };
        }
        loops::check(&self.table)?;
        Ok(self.table)
    }
}

/// Where the rule goes among the `len` rules of its chain.
fn place(parsed: &RuleLine<'_>, len: usize) -> Result<usize, What> {
    match parsed.position {
        Position::Append => Ok(len),
        Position::Insert(at) if (1..=len + 1).contains(&at) => Ok(at - 1),
        Position::Insert(_) => {
            let what = format!("a rule number from 1 to {}", len + 1);
            Err(What::new(parsed.chain.column, what))
        }
    }
}
