//! [`chains`]: the base chains of a ruleset that may do anything to a packet, and what they may do, where no walk evaluates
//! them.
//!
//! Contract: [`Effects`] err to more than a chain does, never to less. Chains and maps that a ruleset lacks may do anything.

use std::collections::{HashMap, HashSet};

use crate::expr::{Element, Expr, Field, Part, Space};
use crate::lower::read::{is_key, tracks};
use crate::model::{Chain, Ruleset, Table};
use crate::stmt::{Nat, Stmt, Verdict};
use host::foreign::{Effects, ForeignChain, ForeignFamily, ForeignHook, ForeignProgram};

/// What a chain or a verdict map does itself, and what it calls.
#[derive(Debug, Default)]
struct Body<'r> {
    effects: Effects,
    calls: HashSet<Callee<'r>>,
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Callee<'r> {
    Chain(&'r str),
    Map(&'r str),
}

/// Finds the base chains of a ruleset that may do anything, in its order, each with the effects of all that it calls.
#[must_use]
pub fn chains(ruleset: &Ruleset) -> Vec<ForeignChain> {
    let is_dormant = |table: &&Table| table.flags.iter().any(|flag| &**flag == "dormant");
    ruleset.tables.iter().filter(|table| !is_dormant(table)).flat_map(of_table).collect()
}

fn of_table(table: &Table) -> Vec<ForeignChain> {
    let Some(family) = ForeignFamily::named(table.family.name()) else { return Vec::new() };
    let mut bodies: HashMap<Callee<'_>, Body<'_>> = HashMap::new();
    for chain in &table.chains {
        bodies.insert(Callee::Chain(&chain.name), of_chain(chain));
    }
    for set in &table.sets {
        let mut body = Body::default();
        body.elements(&set.elements);
        bodies.insert(Callee::Map(&set.name), body);
    }
    let effects = effects_of(&bodies);
    let bases = table.chains.iter().filter_map(|chain| {
        let attached = chain.attached.as_ref()?;
        let found = ForeignChain {
            program: ForeignProgram::Nft,
            family,
            table: table.name.clone(),
            name: chain.name.clone(),
            hook: ForeignHook::named(&attached.hook)?,
            priority: attached.priority,
            is_nat: &*attached.kind == "nat",
            reroutes: &*attached.kind == "route",
            devices: attached.devices.clone(),
            effects: effects.get(&Callee::Chain(&chain.name)).copied().unwrap_or(Effects::ALL),
        };
        Some(found).filter(|found| found.effects != Effects::default())
    });
    bases.collect()
}

/// Returns the effects of each chain and map, with all that it calls. Effects are handed from callees to callers, each
/// once for every bit, so time is linear in calls.
fn effects_of<'r>(bodies: &HashMap<Callee<'r>, Body<'r>>) -> HashMap<Callee<'r>, Effects> {
    let mut callers: HashMap<Callee<'r>, Vec<Callee<'r>>> = HashMap::new();
    let mut effects: HashMap<Callee<'r>, Effects> = HashMap::new();
    for (caller, body) in bodies {
        let mut own = body.effects;
        for callee in &body.calls {
            match bodies.contains_key(callee) {
                true => callers.entry(*callee).or_default().push(*caller),
                false => own.add(Effects::ALL),
            }
        }
        effects.insert(*caller, own);
    }
    let mut open: Vec<Callee<'r>> = effects.keys().copied().collect();
    while let Some(callee) = open.pop() {
        let has = effects.get(&callee).copied().unwrap_or_default();
        for caller in callers.get(&callee).into_iter().flatten() {
            let known = effects.entry(*caller).or_default();
            if !known.has(has) {
                known.add(has);
                open.push(*caller);
            }
        }
    }
    effects
}

fn of_chain(chain: &Chain) -> Body<'_> {
    let mut body = Body::default();
    if chain.attached.as_ref().is_some_and(|attached| attached.drop) {
        body.effects.add(Effects::DROPS);
    }
    for stmt in chain.rules.iter().flat_map(|rule| &rule.stmts) {
        body.statement(stmt);
    }
    body
}

impl<'r> Body<'r> {
    fn statement(&mut self, stmt: &'r Stmt) {
        match stmt {
            Stmt::Compare(compare) => self.tracks(&[&compare.left, &compare.right]),
            Stmt::Vmap(key, map) => {
                self.tracks(&[key]);
                self.map(map);
            }
            Stmt::Verdict(verdict) => self.verdict(verdict),
            Stmt::Mangle(key, value) => {
                self.tracks(&[key, value]);
                self.effects.add(of_setting(key));
            }
            Stmt::CtCount(..) => self.effects.add(Effects::TRACKS),
            Stmt::Named(named) => self.effects.add(of_object(named.kind.name)),
            Stmt::Nat(nat) => self.effects.add(of_nat(nat)),
            Stmt::Reject(_) | Stmt::Synproxy(_) => self.effects.add(Effects::DROPS),
            Stmt::Forward(forward) if forward.kind == "fwd" => self.effects.add(Effects::DROPS),
            Stmt::Reset(_) => self.effects.add(Effects::OPTIONS),
            Stmt::Update(update) => self.tracks(&[&update.element.key]),
            Stmt::Counter(_) | Stmt::Limit(_) | Stmt::Quota(_) | Stmt::Last(_) | Stmt::Log(_) => {}
            Stmt::Forward(_)
            | Stmt::Queue(_)
            | Stmt::Notrack
            | Stmt::Flow(_)
            | Stmt::Xt(..)
            | Stmt::Unknown(_) => self.effects.add(Effects::ALL),
        }
    }

    fn tracks(&mut self, exprs: &[&Expr]) {
        if exprs.iter().any(|expr| tracks(expr)) {
            self.effects.add(Effects::TRACKS);
        }
    }

    fn verdict(&mut self, verdict: &'r Verdict) {
        match verdict {
            Verdict::Accept | Verdict::Continue | Verdict::Return => {}
            Verdict::Drop => self.effects.add(Effects::DROPS),
            Verdict::Jump(chain) | Verdict::Goto(chain) => {
                self.calls.insert(Callee::Chain(chain));
            }
        }
    }

    fn map(&mut self, map: &'r Expr) {
        match map {
            Expr::Set(elements) => self.elements(elements),
            Expr::Named(name) => {
                self.calls.insert(Callee::Map(name));
            }
            _ => self.effects.add(Effects::ALL),
        }
    }

    fn elements(&mut self, elements: &'r [Element]) {
        for element in elements {
            match &element.data {
                Some(Expr::Verdict(verdict)) => self.verdict(verdict),
                Some(Expr::Unknown(_)) => self.effects.add(Effects::ALL),
                _ => {}
            }
        }
    }
}

/// What setting this does: not all, where packets only carry it.
fn of_setting(key: &Expr) -> Effects {
    let is = |of, name| is_key(key, of, name);
    let is_option = matches!(key, Expr::Field(field) if is_tcp_option(field));
    match () {
        () if is("meta", "nftrace") || is("meta", "priority") => Effects::default(),
        () if is("meta", "mark") || is("ct", "mark") => Effects::MARKS,
        () if is_option => Effects::OPTIONS,
        () => Effects::ALL,
    }
}

fn is_tcp_option(field: &Field) -> bool {
    matches!(field, Field::Part(Part::Field(Space::Tcp, ..)))
}

fn of_object(kind: &str) -> Effects {
    match kind {
        "counter" | "quota" | "limit" => Effects::default(),
        "synproxy" => Effects::DROPS,
        kind if kind.starts_with("ct ") => both(Effects::ALL, Effects::TRACKS),
        _ => Effects::ALL,
    }
}

fn of_nat(nat: &Nat) -> Effects {
    let side = match nat.kind {
        "snat" | "masquerade" => Effects::SOURCE,
        _ => Effects::DESTINATION,
    };
    both(side, Effects::TRACKS)
}

fn both(mut one: Effects, other: Effects) -> Effects {
    one.add(other);
    one
}

#[cfg(test)]
mod tests;
