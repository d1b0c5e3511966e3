//! Tables and chains: what a ruleset is to packets of one family.

use std::sync::Arc;

use super::rule;
use super::scope::Scope;
use super::unknown::Unknown;
use crate::family::Position;
use crate::model;
use crate::stmt::Stmt;
use rules::model::{Base, Chain, Counters, FallThrough, Family, Hook, Policy, Ruleset, Table};
use rules::{Backend, Role};

/// A ruleset as walks read it, for packets of one family.
#[derive(Debug)]
pub struct Lowered {
    /// The rules.
    pub ruleset: Ruleset,
    /// What is not evaluated.
    pub unknown: Vec<Unknown>,
}

/// Lowers a ruleset for packets of a family. Packets of IPv4 and of IPv6 both meet tables of family inet.
pub fn lower(ruleset: &model::Ruleset, family: Family) -> Lowered {
    let mut unknown = Vec::new();
    let tables = ruleset.tables.iter().filter(|table| concerns(table.family, family));
    let tables = tables.map(|of| table(of, family, &mut unknown)).collect();
    let mut ruleset = Ruleset { family, backend: Backend::Nft, tables };
    ruleset.number();
    Lowered { ruleset, unknown }
}

/// Lists what is not evaluated of a ruleset, for IPv4 and IPv6; of tables of other families every rule is.
pub fn unknown(ruleset: &model::Ruleset) -> Vec<Unknown> {
    let mut all = lower(ruleset, Family::Ipv4).unknown;
    for other in lower(ruleset, Family::Ipv6).unknown {
        let same = |one: &&mut Unknown| {
            (one.family, &one.table, &one.chain, one.rule)
                == (other.family, &other.table, &other.chain, other.rule)
        };
        match all.iter_mut().find(same) {
            Some(one) => one.add(other.causes),
            None => all.push(other),
        }
    }
    let of_ip = [Family::Ipv4, Family::Ipv6];
    let others = ruleset
        .tables
        .iter()
        .filter(|table| !of_ip.iter().any(|family| concerns(table.family, *family)));
    for table in others {
        for chain in &table.chains {
            let why = format!("family {}", table.family.name());
            all.push(of_chain(table, chain, why));
        }
    }
    all
}

/// Whether packets of a family meet tables of a family.
fn concerns(table: model::Family, packets: Family) -> bool {
    match table {
        model::Family::Ip => packets == Family::Ipv4,
        model::Family::Ip6 => packets == Family::Ipv6,
        model::Family::Inet | model::Family::Netdev => packets.is_ip(),
        model::Family::Arp | model::Family::Bridge => false,
    }
}

fn of_chain(table: &model::Table, chain: &model::Chain, why: String) -> Unknown {
    Unknown {
        family: table.family,
        table: table.name.clone(),
        chain: chain.name.clone(),
        rule: 0,
        handle: chain.handle,
        position: Position::default(),
        text: Box::default(),
        causes: vec![why],
    }
}

fn table(of: &model::Table, family: Family, unknown: &mut Vec<Unknown>) -> Table {
    let scope = Scope::new(of, family);
    let is_dormant = of.flags.iter().any(|flag| &**flag == "dormant");
    let mut chains = Vec::with_capacity(of.chains.len());
    for chain in &of.chains {
        let base = chain.attached.as_ref().filter(|_| !is_dormant).and_then(|attached| {
            let base = base(attached);
            if base.is_none() {
                unknown.push(of_chain(of, chain, format!("a chain at {}", attached.hook)));
            }
            base
        });
        let mut rules = Vec::with_capacity(chain.rules.len());
        let devices = chain.attached.as_ref().map_or(&[][..], |attached| &attached.devices);
        if base.is_some() && !devices.is_empty() {
            rules.push(Arc::new(rule::of_other_devices(devices, &scope)));
        }
        for (at, rule) in chain.rules.iter().enumerate() {
            let number = at as u32 + 1;
            scope.enter(&chain.name, rule.handle.unwrap_or(number.into()));
            let (parts, lacks) = rule::lower(rule, number, &scope);
            if !lacks.is_empty() {
                let text = parts.first().and_then(|part| part.listed.as_ref());
                let mut lacking = Unknown {
                    rule: number,
                    handle: rule.handle,
                    position: rule.position,
                    text: text.map(|listed| listed.text.clone()).unwrap_or_default(),
                    ..of_chain(of, chain, String::new())
                };
                lacking.causes.clear();
                lacking.add(lacks);
                unknown.push(lacking);
            }
            rules.extend(parts.into_iter().map(Arc::new));
        }
        let line = chain.rules.first().map_or(0, |rule| rule.position.line);
        let name = chain.name.clone();
        chains.push(Chain { name, base, fall_through: FallThrough::Return, rules, line });
    }
    if of.objects.iter().any(|object| object.body.tracks()) || of.sets.iter().any(counts_flows) {
        // A chain that nobody calls: one rule anywhere has connections tracked.
        let rules = vec![Arc::new(rule::that_tracks(&scope))];
        let fall_through = FallThrough::Return;
        chains.push(Chain { name: "".into(), base: None, fall_through, rules, line: 0 });
    }
    let name = format!("{} {}", of.family.name(), of.name).into();
    Table { name, backend: Backend::Nft, chains }
}

/// Whether elements of a set count connections.
fn counts_flows(set: &model::Set) -> bool {
    set.stmts.iter().any(|stmt| matches!(stmt, Stmt::CtCount(..)))
}

/// Where a base chain is attached; `None` of hooks that walks have not.
fn base(attached: &model::Attached) -> Option<Base> {
    let hook = match &*attached.hook {
        "prerouting" => Hook::Prerouting,
        "input" => Hook::Input,
        "forward" => Hook::Forward,
        "output" => Hook::Output,
        "postrouting" => Hook::Postrouting,
        "ingress" => Hook::Prerouting,
        _ => return None,
    };
    // What a device receives comes to its own chains before all others.
    let priority = match &*attached.hook {
        "ingress" => i32::MIN / 2 + attached.priority / 4,
        _ => attached.priority,
    };
    let role = match &*attached.kind {
        "nat" => Role::Translate,
        "route" => Role::Mangle,
        _ if matches!(hook, Hook::Prerouting | Hook::Postrouting) => Role::Other,
        _ => Role::Filter,
    };
    let policy = if attached.drop { Policy::Drop } else { Policy::Accept };
    let counters = Counters::default();
    Some(Base { hook, priority, role, policy, counters })
}
