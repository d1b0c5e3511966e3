//! Which rules logged a packet: those whose target has the prefix of a line of the kernel's log, or the group and prefix of
//! an NFLOG record, and which a packet at that hook can come to.
//!
//! Contract: several may; all are named. The kernel cuts NFLOG's prefixes at 64 bytes, and so are those compared. Blanks at
//! the end of a prefix do not tell rules apart: programs that print lines cut them.

use packet::nflog::Record;
use rules::eval::RuleRef;
use rules::model::{Action, Family, Hook, Table};

use crate::rules_file::RulesFile;

/// Bytes that the kernel keeps of a prefix.
const PREFIX: usize = 63;

/// Rules that log packets.
#[derive(Debug, Default)]
pub(crate) struct Loggers(Vec<Logger>);

/// A rule that logs packets.
#[derive(Debug)]
pub(crate) struct Logger {
    pub(crate) family: Family,
    pub(crate) at: RuleRef,
    /// Hooks from which packets come to its chain.
    pub(crate) hooks: Vec<Hook>,
    /// Group of an NFLOG rule.
    group: Option<u16>,
    prefix: String,
    /// Line and text.
    pub(crate) shown: String,
}

/// What stands in a line of the log before the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The text.
    pub text: String,
    /// The text is the prefix, and nothing else; otherwise it ends with the prefix.
    pub is_whole: bool,
}

impl Prefix {
    /// Whether the kernel writes lines of itself so: tracking of broken packets, `-j TRACE`.
    fn is_of_the_kernel(&self) -> bool {
        self.text.contains("nf_ct_") || self.text.contains("TRACE: ")
    }
}

impl Loggers {
    /// Finds the rules among these that log.
    pub(crate) fn of(files: &[RulesFile]) -> Self {
        let logs = |table: &&Table| {
            let mut rules = table.chains.iter().flat_map(|chain| &chain.rules);
            rules.any(|rule| log_prefix(&rule.action).is_some())
        };
        let tables = files.iter().flat_map(|file| {
            let tables = file.ruleset.tables.iter().enumerate();
            tables.filter(move |(_, table)| logs(table)).map(move |(number, _)| (file, number))
        });
        Self(tables.flat_map(|(file, table)| of_table(file, table)).collect())
    }

    /// Whether no rule logs.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `L12 -A FORWARD … -j NFLOG …` for each that may have written this record.
    pub(crate) fn of_frame(&self, bytes: &[u8]) -> Vec<&str> {
        let Some(record) = Record::read(bytes) else { return Vec::new() };
        let may = self.0.iter().filter(|logger| logger.may_have_written(&record));
        may.map(|logger| &*logger.shown).collect()
    }

    /// Returns the rules of a family that may have written a line with this prefix at one of these hooks; `None` where
    /// no rule of the family logs at all, or the line is one of the kernel's own.
    pub(crate) fn of_line(
        &self,
        prefix: &Prefix,
        family: Family,
        hooks: &[Hook],
    ) -> Option<Vec<&Logger>> {
        let of_family = || self.0.iter().filter(|logger| logger.family == family);
        if of_family().next().is_none() || prefix.is_of_the_kernel() {
            return None;
        }
        let text = prefix.text.trim_end();
        let fits = |logger: &&Logger| {
            let own = logger.prefix.trim_end();
            if prefix.is_whole { own == text } else { text.ends_with(own) }
        };
        let longest = of_family().filter(fits).map(|logger| logger.prefix.trim_end().len()).max();
        let is_longest = |logger: &&Logger| Some(logger.prefix.trim_end().len()) == longest;
        let at_hook = |logger: &&Logger| logger.hooks.iter().any(|hook| hooks.contains(hook));
        Some(of_family().filter(fits).filter(is_longest).filter(at_hook).collect())
    }
}

fn log_prefix(action: &Action) -> Option<&str> {
    let Action::Target(target) = action else { return None };
    target.body.log_prefix()
}

/// The rules of a table that log.
fn of_table(file: &RulesFile, number: usize) -> Vec<Logger> {
    let table = &file.ruleset.tables[number];
    let hooks = hooks_of_chains(table);
    let mut all = Vec::new();
    for (at, of, chain, rule) in file.rules() {
        let (Some(prefix), true) = (log_prefix(&rule.action), std::ptr::eq(of, table)) else {
            continue;
        };
        debug_assert!(std::ptr::eq(chain, &table.chains[at.chain as usize]));
        let text = file.rule_text(at);
        let group = text
            .rsplit_once("--nflog-group ")
            .and_then(|(_, rest)| rest.split(' ').next().and_then(|group| group.parse().ok()));
        let is_nflog = matches!(&rule.action, Action::Target(target) if target.name == "NFLOG");
        all.push(Logger {
            family: file.ruleset.family,
            at,
            hooks: hooks[at.chain as usize].clone(),
            group: is_nflog.then_some(group.unwrap_or(0)),
            prefix: prefix.to_owned(),
            shown: format!("L{} {text}", rule.line),
        });
    }
    all
}

/// For each chain of a table the hooks from which packets may come to it.
fn hooks_of_chains(table: &Table) -> Vec<Vec<Hook>> {
    let mut hooks = vec![Vec::new(); table.chains.len()];
    for (index, chain) in table.chains.iter().enumerate() {
        let Some(base) = &chain.base else { continue };
        let mut next = vec![index];
        while let Some(at) = next.pop() {
            if hooks[at].contains(&base.hook) {
                continue;
            }
            hooks[at].push(base.hook);
            let rules = table.chains[at].rules.iter();
            next.extend(rules.flat_map(|rule| rule.leads_to()).map(|to| to as usize));
        }
    }
    hooks
}

impl Logger {
    fn may_have_written(&self, record: &Record<'_>) -> bool {
        let family = match record.family {
            2 => Family::Ipv4,
            10 => Family::Ipv6,
            _ => return false,
        };
        let at = [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting];
        let hook = record.hook.and_then(|hook| at.get(usize::from(hook)).copied());
        let prefix = self.prefix.as_bytes();
        self.family == family
            && self.group == Some(record.group)
            && hook.is_none_or(|hook| self.hooks.contains(&hook))
            && prefix.get(..PREFIX).unwrap_or(prefix) == record.prefix
    }
}

#[cfg(test)]
mod tests;
