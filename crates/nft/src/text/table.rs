//! What stands between the braces of a table: chains, sets, objects, flowtables; and rules.

use super::lexer::Kind as Token;
use super::{Parser, Result, exact};
use crate::json::Json;
use crate::model::{Attached, Chain, Family, Flowtable, Rule, Table, priority};
use crate::stmt::{Stmt, Verdict};

/// Words that begin an object of a table.
pub(super) const OBJECTS: [&str; 7] =
    ["counter", "quota", "limit", "ct", "synproxy", "secmark", "tunnel"];

/// Whether nft takes no statement after this one.
fn ends(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Verdict(Verdict::Continue) => false,
        // After a chain without a name it takes others.
        Stmt::Verdict(Verdict::Jump(chain)) => !chain.starts_with(NAMELESS),
        Stmt::Verdict(_) | Stmt::Reject(_) | Stmt::Nat(_) | Stmt::Queue(_) => true,
        _ => false,
    }
}

/// Hooks: of chains that route again the first, of chains that translate the first four.
const HOOKS: [&str; 7] =
    ["output", "prerouting", "input", "postrouting", "forward", "ingress", "egress"];

/// What the names of chains without a name begin with.
const NAMELESS: &str = "__chain";

impl Parser<'_> {
    /// The table that is read.
    pub(super) fn here(&mut self) -> &mut Table {
        let at = self.table.min(self.ruleset.tables.len() - 1);
        &mut self.ruleset.tables[at]
    }

    /// Reads what stands between the braces of a table.
    pub(super) fn table_block(&mut self) -> Result<()> {
        self.handle();
        self.expect("{")?;
        if let Some(handle) = self.handle() {
            self.here().handle = Some(handle);
        }
        loop {
            self.ends();
            if self.eat("}") {
                return Ok(());
            }
            if self.directive()? {
                continue;
            }
            let word = self.word("a chain, a set, an object or }")?;
            match word.as_str() {
                "flags" => {
                    let at = self.lex.at;
                    let flags = self.words()?;
                    if flags.iter().any(|flag| !["dormant", "owner", "persist"].contains(&&**flag))
                    {
                        return Err(self.lex.error_at(at, "expected dormant, owner or persist"));
                    }
                    self.here().flags = flags;
                }
                "comment" => {
                    let comment = self.word("a comment")?;
                    self.here().comment = Some(comment.into());
                }
                "chain" => {
                    let name = self.word("the name of a chain")?;
                    let chain = self.chain_entry(&name);
                    self.chain_block(chain)?;
                }
                "set" | "map" => {
                    let name = self.word("the name of a set")?;
                    self.set_block(&name, word == "map")?;
                }
                "flowtable" => {
                    let name = self.word("the name of a flowtable")?;
                    self.flowtable_block(&name)?;
                }
                _ if OBJECTS.contains(&word.as_str()) => self.object(&word)?,
                _ => {
                    return Err(self.refused(&format!(
                        "expected a chain, a set, an object or }} instead of {word}"
                    )));
                }
            }
            self.separator()?;
        }
    }

    fn words(&mut self) -> Result<Vec<Box<str>>> {
        let mut words = vec![self.word("a word")?.into_boxed_str()];
        while self.eat(",") {
            words.push(self.word("a word")?.into());
        }
        Ok(words)
    }

    /// Finds a chain of this table.
    pub(super) fn chain_of(&mut self, name: &str) -> Option<usize> {
        let key = (self.table, Box::from(name));
        if let Some(at) = self.chains.get(&key) {
            return Some(*at);
        }
        let known = self.chains.len();
        // After a chain was removed all others are found again.
        if known == 0 {
            for (table, of) in self.ruleset.tables.iter().enumerate() {
                let names = of.chains.iter().enumerate();
                self.chains.extend(names.map(|(at, chain)| ((table, chain.name.clone()), at)));
            }
        }
        self.chains.get(&key).copied()
    }

    /// Finds a chain of this table, or makes it.
    pub(super) fn chain_entry(&mut self, name: &str) -> usize {
        if let Some(at) = self.chain_of(name) {
            return at;
        }
        let chains = &mut self.here().chains;
        let rules = Vec::new();
        chains.push(Chain {
            name: name.into(),
            handle: None,
            comment: None,
            attached: None,
            rules,
        });
        let at = chains.len() - 1;
        self.chains.insert((self.table, name.into()), at);
        at
    }

    /// Reads `{ type …; rules }` of a chain.
    pub(super) fn chain_block(&mut self, chain: usize) -> Result<()> {
        self.deeper()?;
        self.handle();
        self.expect("{")?;
        if let Some(handle) = self.handle() {
            self.here().chains[chain].handle = Some(handle);
        }
        loop {
            self.ends();
            if self.eat("}") {
                self.shallower();
                let rules = &mut self.here().chains[chain].rules;
                *rules = exact(std::mem::take(rules));
                return Ok(());
            }
            if self.lex.kind == Token::End {
                return Err(self.wanted("a rule or }"));
            }
            if self.directive()? {
                continue;
            }
            if !self.chain_line(chain)? {
                let rule = self.rule()?;
                self.here().chains[chain].rules.push(rule);
            }
            self.separator()?;
        }
    }

    fn chain_line(&mut self, chain: usize) -> Result<bool> {
        match self.peek() {
            "type" => {
                let attached = self.attached()?;
                self.here().chains[chain].attached = Some(attached);
            }
            "policy" => {
                self.next();
                let drop = self.one_of(&["accept", "drop"], "accept or drop")? == "drop";
                if let Some(attached) = &mut self.here().chains[chain].attached {
                    attached.drop = drop;
                }
            }
            "comment" => {
                self.next();
                let comment = self.word("a comment")?;
                self.here().chains[chain].comment = Some(comment.into());
            }
            "flags" => {
                self.next();
                self.words()?;
            }
            "devices" | "device" => {
                let devices = self.devices()?;
                if let Some(attached) = &mut self.here().chains[chain].attached {
                    attached.devices.extend(devices);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn attached(&mut self) -> Result<Attached> {
        self.next();
        let kind = self.one_of(&["filter", "nat", "route"], "filter, nat or route")?;
        self.expect("hook")?;
        let (hooks, names) = match kind {
            "nat" => (&HOOKS[..4], "prerouting, input, output or postrouting"),
            "route" => (&HOOKS[..1], "output"),
            _ => (&HOOKS[..], "a hook"),
        };
        let (kind, hook) = (kind.into(), self.one_of(hooks, names)?.into());
        let mut devices = Vec::new();
        while self.is("device") || self.is("devices") {
            devices.extend(self.devices()?);
        }
        let priority = self.priority()?;
        Ok(Attached { kind, hook, priority, drop: false, devices })
    }

    fn priority(&mut self) -> Result<i32> {
        self.expect("priority")?;
        let mut base = 0i64;
        let mut sign = 1;
        if self.lex.kind != Token::Sign
            && let Some(named) = priority(self.peek(), self.family)
        {
            base = i64::from(named);
            self.next();
            if self.at_end() || !self.is("+") && !self.is("-") {
                return Ok(named);
            }
        }
        if self.eat("-") {
            sign = -1;
        } else {
            self.eat("+");
        }
        let word = self.peek();
        let Ok(apart) = word.parse::<i64>() else { return Err(self.wanted("a priority")) };
        match i32::try_from(apart.saturating_mul(sign).saturating_add(base)) {
            Ok(value) => {
                self.next();
                Ok(value)
            }
            Err(_) => Err(self.wanted("a priority that fits in 32 bits")),
        }
    }

    fn devices(&mut self) -> Result<Vec<Box<str>>> {
        self.next();
        self.eat("=");
        if !self.is("{") {
            return Ok(vec![self.word("a device")?.into()]);
        }
        self.open()?;
        let mut devices = Vec::new();
        while !self.is("}") {
            devices.push(self.word("a device")?.into());
            self.lines();
            if !self.eat(",") {
                break;
            }
            self.lines();
        }
        self.close()?;
        Ok(devices)
    }

    /// Reads a chain without a name, the target of a jump.
    pub fn nameless_chain(&mut self) -> Result<String> {
        let name = format!("{NAMELESS}{}", self.nameless);
        self.nameless += 1;
        if self.ruleset.tables.is_empty() {
            return Err(self.refused("a chain without a name needs a table"));
        }
        let chain = self.chain_entry(&name);
        self.chain_block(chain)?;
        Ok(name)
    }

    /// Reads a rule to the end of its line.
    pub(super) fn rule(&mut self) -> Result<Rule> {
        self.handle();
        self.lex.hidden = None;
        let mut rule =
            Rule { handle: None, comment: None, stmts: Vec::new(), position: self.lex.at };
        while !self.at_end() {
            if self.eat("comment") {
                rule.comment = Some(self.word("a comment")?.into());
                break;
            }
            if rule.stmts.last().is_some_and(ends) {
                return Err(self.wanted("the end of the rule after what ends it"));
            }
            rule.stmts.push(Stmt::parse(self)?);
        }
        if !self.at_end() {
            return Err(self.wanted("the end of the rule"));
        }
        if let Some(hidden) = self.lex.hidden.take() {
            rule.stmts.push(Stmt::Unknown(Json::object(vec![("xt", Json::Text(hidden))])));
        }
        rule.handle = self.handle();
        if rule.stmts.is_empty() {
            return Err(self.wanted("a statement"));
        }
        crate::normal::rule(&mut rule, self.family);
        rule.stmts = exact(rule.stmts);
        Ok(rule)
    }

    /// Reads `{ hook …; devices = … }` of a flowtable.
    pub(super) fn flowtable_block(&mut self, name: &str) -> Result<()> {
        self.handle();
        self.expect("{")?;
        let mut table = Flowtable {
            name: name.into(),
            handle: self.handle(),
            hook: "ingress".into(),
            priority: 0,
            devices: Vec::new(),
            offload: false,
            counter: false,
        };
        loop {
            self.ends();
            if self.eat("}") {
                break;
            }
            match self.peek() {
                "hook" => {
                    self.next();
                    table.hook = self.word("a hook")?.into();
                    let family = std::mem::replace(&mut self.family, Family::Netdev);
                    let priority = self.priority();
                    self.family = family;
                    table.priority = priority?;
                }
                "devices" | "device" => table.devices.extend(self.devices()?),
                "flags" => {
                    self.next();
                    table.offload = self.words()?.iter().any(|flag| &**flag == "offload");
                }
                "counter" => {
                    self.next();
                    table.counter = true;
                }
                _ => return Err(self.wanted("hook, devices, flags, counter or }")),
            }
        }
        let tables = &mut self.here().flowtables;
        tables.retain(|other| other.name != table.name);
        tables.push(table);
        Ok(())
    }
}
