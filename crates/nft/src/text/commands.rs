//! The commands of a file, applied in their order: a ruleset is what they leave.

use std::collections::HashSet;

use super::lexer::Kind;
use super::table::OBJECTS;
use super::{Parser, Result};
use crate::expr::Element;
use crate::model::{Family, Ruleset, Table};

const VERBS: [&str; 7] = ["add", "create", "insert", "replace", "delete", "destroy", "flush"];

/// Elements from which on each is looked for among all by its text, so that time is linear.
const MANY: usize = 64;

/// Reads all commands.
pub(super) fn all(p: &mut Parser) -> Result<()> {
    p.next();
    loop {
        p.ends();
        if p.lex.kind == Kind::End {
            return Ok(());
        }
        if p.directive()? {
            continue;
        }
        let verb = if VERBS.contains(&p.peek()) { p.word("a command")? } else { "add".to_owned() };
        match verb.as_str() {
            "add" | "create" | "insert" | "replace" => p.add(&verb)?,
            "flush" => p.flush()?,
            _ => p.delete(verb == "destroy")?,
        }
        if !p.at_end() {
            return Err(p.wanted("the end of the command"));
        }
    }
}

impl Parser<'_> {
    fn table_of(&mut self, make: bool) -> Result<bool> {
        self.family = if self.is_quoted() { Family::Ip } else { self.family_word() };
        let name = self.word("the name of a table")?;
        match self.ruleset.table(self.family, &name) {
            Some(at) => self.table = at,
            None if make => {
                self.table = self.ruleset.tables.len();
                self.ruleset.tables.push(Table::new(self.family, &name));
            }
            None => return Ok(false),
        }
        Ok(true)
    }

    fn family_word(&mut self) -> Family {
        match Family::find(self.peek()) {
            Some(family) => {
                self.next();
                family
            }
            None => Family::Ip,
        }
    }

    fn known_table(&mut self) -> Result<()> {
        if self.table_of(false)? {
            Ok(())
        } else {
            Err(self.refused("expected a table that exists"))
        }
    }

    fn add(&mut self, verb: &str) -> Result<()> {
        let word = self.peek().to_owned();
        if Family::find(&word).is_some() || verb == "replace" && word != "rule" {
            return self.add_rule(verb);
        }
        self.next();
        match word.as_str() {
            "table" => {
                self.table_of(true)?;
                if self.is("{") { self.table_block() } else { Ok(()) }
            }
            "rule" => self.add_rule(verb),
            "chain" => {
                self.known_table()?;
                let name = self.word("the name of a chain")?;
                let chain = self.chain_entry(&name);
                if self.is("{") { self.chain_block(chain) } else { Ok(()) }
            }
            "set" | "map" => {
                self.known_table()?;
                let name = self.word("the name of a set")?;
                self.set_block(&name, word == "map")
            }
            "element" => self.element(true),
            "flowtable" => {
                self.known_table()?;
                let name = self.word("the name of a flowtable")?;
                self.flowtable_block(&name)
            }
            _ if OBJECTS.contains(&word.as_str()) => self.add_object(&word),
            _ => Err(self.refused(&format!(
                "expected table, chain, rule, set, map, element or an object instead of {word}"
            ))),
        }
    }

    fn add_object(&mut self, word: &str) -> Result<()> {
        let kind =
            if word == "ct" { self.word("helper, timeout or expectation")? } else { String::new() };
        self.known_table()?;
        let of = if kind.is_empty() { word.to_owned() } else { format!("ct {kind}") };
        self.object_of(&of)
    }

    fn add_rule(&mut self, verb: &str) -> Result<()> {
        self.known_table()?;
        let name = self.word("the name of a chain")?;
        let Some(chain) = self.chain_of(&name) else {
            return Err(self.refused(&format!("expected a chain that exists instead of {name}")));
        };
        let mut at = if verb == "insert" { 0 } else { self.here().chains[chain].rules.len() };
        let place = ["handle", "position", "index"].into_iter().find(|word| self.eat(word));
        if let Some(place) = place {
            let number: u64 = self.integer()?;
            let rules = &self.here().chains[chain].rules;
            let found = match place {
                "index" => usize::try_from(number).ok().filter(|at| *at < rules.len()),
                _ => rules.iter().position(|rule| rule.handle == Some(number)),
            };
            let Some(found) = found else {
                return Err(self.refused("expected a rule that exists"));
            };
            at = if verb == "add" { found + 1 } else { found };
        }
        let rule = self.rule()?;
        let rules = &mut self.here().chains[chain].rules;
        match rules.get_mut(at) {
            Some(old) if verb == "replace" => *old = rule,
            _ => rules.insert(at, rule),
        }
        Ok(())
    }

    fn element(&mut self, add: bool) -> Result<()> {
        self.known_table()?;
        let name = self.word("the name of a set")?;
        let Some(at) = self.here().sets.iter().position(|set| *set.name == *name) else {
            return Err(self.refused(&format!("expected a set that exists instead of {name}")));
        };
        let set = &self.here().sets[at];
        let key = set.key.types();
        let data = set.data.as_ref().map(|data| data.types());
        let elements = self.elements(&key, data.as_deref())?;
        let set = &mut self.here().sets[at];
        if add {
            set.elements.extend(elements);
        } else {
            remove_elements(&mut set.elements, &elements);
        }
        crate::normal::set(set);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let what = self.one_of(
            &["ruleset", "table", "chain", "set", "map"],
            "ruleset, table, chain, set or map",
        )?;
        if what == "ruleset" {
            self.chains.clear();
            match Family::find(self.peek()) {
                Some(family) => {
                    self.next();
                    self.ruleset.tables.retain(|table| table.family != family);
                }
                None => self.ruleset = Ruleset::default(),
            }
            return Ok(());
        }
        // A script may flush what a host has and the script does not.
        let known = self.table_of(false)?;
        if what == "table" {
            if known {
                self.here().chains.iter_mut().for_each(|chain| chain.rules.clear());
            }
            return Ok(());
        }
        let name = self.word("a name")?;
        if !known {
            return Ok(());
        }
        let table = self.here();
        if what == "chain" {
            table
                .chains
                .iter_mut()
                .filter(|chain| *chain.name == *name)
                .for_each(|chain| chain.rules.clear());
        } else {
            table
                .sets
                .iter_mut()
                .filter(|set| *set.name == *name)
                .for_each(|set| set.elements.clear());
        }
        Ok(())
    }

    fn delete(&mut self, lenient: bool) -> Result<()> {
        self.chains.clear();
        let mut what = self.word("table, chain, rule, set, map, element or an object")?;
        if what == "element" {
            return self.element(false);
        }
        if what == "ct" {
            what = format!("ct {}", self.word("helper, timeout or expectation")?);
        }
        let missing = self.refused(&format!("expected a {what} that exists"));
        let known = self.table_of(false)?;
        if what == "table" {
            if known {
                self.ruleset.tables.remove(self.table);
            }
            return if known || lenient { Ok(()) } else { Err(missing) };
        }
        let name = self.word("a name")?;
        let handle: Option<u64> =
            if what == "rule" && self.eat("handle") { Some(self.integer()?) } else { None };
        if what == "chain" && self.is("{") {
            // Of devices: the chain stays.
            self.open()?;
            while !self.is("}") && self.lex.kind != Kind::End {
                self.next();
            }
            return self.close();
        }
        let found = known && self.remove(&what, &name, handle);
        if found || lenient { Ok(()) } else { Err(missing) }
    }

    fn remove(&mut self, what: &str, name: &str, handle: Option<u64>) -> bool {
        let table = self.here();
        let before =
            table.chains.len() + table.sets.len() + table.flowtables.len() + table.objects.len();
        match what {
            "chain" => table.chains.retain(|chain| *chain.name != *name),
            "set" | "map" => table.sets.retain(|set| *set.name != *name),
            "flowtable" => table.flowtables.retain(|of| *of.name != *name),
            "rule" => {
                let chain = table.chains.iter_mut().find(|chain| *chain.name == *name);
                let Some(chain) = chain else { return false };
                let rules = chain.rules.len();
                chain.rules.retain(|rule| rule.handle != handle || handle.is_none());
                return chain.rules.len() < rules;
            }
            _ => table.objects.retain(|object| *object.name != *name || object.body.kind() != what),
        }
        table.chains.len() + table.sets.len() + table.flowtables.len() + table.objects.len()
            < before
    }
}

/// Removes the elements of these keys.
fn remove_elements(from: &mut Vec<Element>, removed: &[Element]) {
    if removed.len() < MANY {
        from.retain(|old| removed.iter().all(|removed| removed.key != old.key));
        return;
    }
    let key = |element: &Element| format!("{:?}", element.key);
    let removed: HashSet<String> = removed.iter().map(key).collect();
    from.retain(|old| !removed.contains(&key(old)));
}
