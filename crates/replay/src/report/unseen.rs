//! [`Unseen`]: which rules packets may have hit that no capture shows: they came or went by links that were not recorded, or
//! they were the host's own, and OUTPUT or POSTROUTING dropped them before any tap.

use std::collections::BTreeSet;

use host::Host;
use host::foreign::{Effects, ForeignFamily, ForeignHook};
use rules::eval::RuleRef;
use rules::model::{Action, Chain, FallThrough, Family, Hook, Policy, Rule, Table};

use super::Report;

/// What no capture of a report shows.
pub(super) struct Unseen<'r> {
    report: &'r Report,
    /// Of each file, tables and chains that own packets may have met which were dropped there.
    dropped: Vec<BTreeSet<(usize, usize)>>,
}

impl<'r> Unseen<'r> {
    pub(super) fn of(report: &'r Report) -> Self {
        let dropped = report.files.iter().map(|file| {
            let (family, tables) = (file.ruleset.family, &file.ruleset.tables);
            let may_drop = |hook| report.is_tapped && may_drop(family, tables, hook, report);
            let (made, leaves) = (may_drop(Hook::Output), may_drop(Hook::Postrouting));
            let hooks = [(Hook::Output, made || leaves), (Hook::Postrouting, leaves)];
            let hooks = hooks.into_iter().filter(|(_, may_end)| *may_end);
            let chains = hooks.flat_map(|(hook, _)| {
                let met = move |table| met(table, hook);
                tables
                    .iter()
                    .enumerate()
                    .flat_map(move |(t, table)| met(table).into_iter().map(move |chain| (t, chain)))
            });
            chains.collect()
        });
        Self { report, dropped: dropped.collect() }
    }

    /// Which packets may have hit a rule, if any.
    pub(super) fn may_hit(&self, file: usize, at: RuleRef, rule: &Rule) -> Option<&'static str> {
        let input = rule.header.as_ref().and_then(|header| header.input());
        let input = input.filter(|test| !test.invert);
        // Every packet that arrived on a recorded link was seen.
        let is_seen = input.is_some_and(|test| !test.prefix && !self.is_unrecorded(&test.name));
        if !self.report.unrecorded.is_empty() && !is_seen {
            return Some("packets that were not recorded");
        }
        let chain = (at.table as usize, at.chain as usize);
        let is_met = self.dropped.get(file).is_some_and(|met| met.contains(&chain));
        (is_met && input.is_none()).then_some("own packets that were dropped")
    }

    /// Whether packets may have arrived on a link, or on one of its ports, that no capture shows.
    fn is_unrecorded(&self, name: &str) -> bool {
        let links = self.report.config.host.links();
        self.report.unrecorded.iter().any(|link| {
            let master = links.named(link).and_then(|link| link.master.as_deref());
            link == name || master == Some(name)
        })
    }
}

/// Whether packets may end at a hook: by rules, or by chains of the host that are not evaluated.
fn may_drop(family: Family, tables: &[Table], hook: Hook, report: &Report) -> bool {
    let by_rules = |table: &Table| met(table, hook).into_iter().any(|at| drops(table, at));
    tables.iter().any(by_rules) || drops_beside(&report.config.host, family, hook)
}

/// Whether chains of the host that are not evaluated may end packets at a hook.
fn drops_beside(host: &Host, family: Family, hook: Hook) -> bool {
    host.foreign.met().any(|(_, chain)| {
        let is_met = match chain.family {
            ForeignFamily::Ip => family == Family::Ipv4,
            ForeignFamily::Ip6 => family == Family::Ipv6,
            ForeignFamily::Inet => family.is_ip(),
            ForeignFamily::Arp => family == Family::Arp,
            ForeignFamily::Bridge | ForeignFamily::Netdev => true,
        };
        let is_there = match chain.hook {
            ForeignHook::Output => hook == Hook::Output,
            ForeignHook::Postrouting | ForeignHook::Egress => hook == Hook::Postrouting,
            _ => false,
        };
        is_met && is_there && chain.effects.has(Effects::DROPS)
    })
}

/// Chains of a table that packets may meet at a hook.
fn met(table: &Table, hook: Hook) -> BTreeSet<usize> {
    let mut met = BTreeSet::new();
    let is_base = |chain: &Chain| chain.base.is_some_and(|base| base.hook == hook);
    let bases = table.chains.iter().enumerate().filter(|(_, chain)| is_base(chain));
    let mut open: Vec<usize> = bases.map(|(at, _)| at).collect();
    while let Some(at) = open.pop() {
        let Some(chain) = table.chains.get(at).filter(|_| met.insert(at)) else { continue };
        open.extend(chain.rules.iter().flat_map(|rule| rule.leads_to()).map(|to| to as usize));
    }
    met
}

/// Whether a chain may end a packet's way.
fn drops(table: &Table, chain: usize) -> bool {
    let Some(chain) = table.chains.get(chain) else { return false };
    let by_rule = chain.rules.iter().any(|rule| match &rule.action {
        Action::Drop => true,
        Action::Target(target) if rule.listed.is_some() => !target.body.only_watches(),
        Action::Target(target) => matches!(&*target.name, "REJECT" | "NFQUEUE" | "QUEUE"),
        _ => false,
    });
    let is_drop = |policy| policy == Policy::Drop;
    by_rule
        || chain.base.is_some_and(|base| is_drop(base.policy))
        || chain.fall_through == FallThrough::Policy(Policy::Drop)
}
