//! [`Legacy`]: the tables of iptables-legacy on a host whose `iptables.save` is of iptables-nft, and their place among
//! the tables of iptables-nft.
//!
//! Contract: the kernel runs what is attached to a hook by priority, and of equal ones what was registered last. No listing
//! tells that, so `registered.txt` may: names of rules files, those first that were registered first. Without it the
//! tables are evaluated where it does not matter; elsewhere they are [`super::foreign`] to the rules.

use rules::model::{Chain, Family, Hook, Ruleset, Table};
use rules::save::{LoadOptions, load};
use rules::{Backend, TableKind};

use super::files::{Files, Saved, has_tables};
use crate::error::Error;
use crate::rules_file::RulesFile;

/// Families, the files of their rules, and the files of iptables-legacy.
const FILES: [(Family, &str, &str); 2] = [
    (Family::Ipv4, "iptables.save", "iptables-legacy.save"),
    (Family::Ipv6, "ip6tables.save", "ip6tables-legacy.save"),
];

/// The files of tables of nft.
const LISTINGS: [&str; 2] = ["nft.json", "rules.nft"];

/// The names of rules files in the order in which their tables were registered.
const REGISTERED: &str = "registered.txt";

/// Tables of iptables-legacy.
pub(super) enum Legacy {
    /// The rules are in no other file.
    Alone,
    /// The tables see packets before or after the tables of iptables-nft, which are registered later or earlier.
    Beside { file: RulesFile, is_earlier: bool },
    /// They see packets at the turns of tables of iptables-nft, before or after those.
    Unordered(Ruleset),
}

impl Legacy {
    /// The tables of a family in a folder, if there are some that do anything.
    pub(super) fn of(
        files: &Files<'_>,
        family: Family,
        options: &LoadOptions<'_>,
    ) -> Result<Option<Self>, Error> {
        let Some((_, own, name)) = FILES.iter().find(|(of, ..)| *of == family) else {
            return Ok(None);
        };
        let Some(text) = (files.text)(name)?.filter(|text| has_tables(text)) else {
            return Ok(None);
        };
        let Some(own_text) = (files.text)(own)?.filter(|text| has_tables(text)) else {
            return Ok(Some(Self::Alone));
        };
        // Where the tool is xtables' itself, both files have the same tables.
        if Saved::of(&own_text).is_legacy {
            return Ok(None);
        }
        let options = LoadOptions { family: Some(family), ..*options };
        let whole = LoadOptions { table: None, ..options };
        let file = (files.path)(own);
        let rules = load(&own_text, &whole).map_err(|source| Error::Rules { file, source })?;
        let mut file = RulesFile::from_text(&(files.path)(name), text, &whole)?;
        let order = order(files, own, name)?;
        let Some(legacy) = file.rules_mut() else { return Ok(None) };
        legacy.tables.retain(|table| options.table.is_none_or(|name| table.name == name));
        legacy.tables.retain(|table| acts(table) || is_new_nat(table, &rules.ruleset));
        if legacy.tables.is_empty() {
            return Ok(None);
        }
        if rules.ruleset.backend != Backend::Nft {
            return Ok(file.into_rules().map(Self::Unordered));
        }
        if order.is_none() {
            if legacy.tables.iter().any(|table| meets(table, &rules.ruleset)) {
                return Ok(file.into_rules().map(Self::Unordered));
            }
            legacy.tables.iter_mut().for_each(|table| leave_out_idle(table, &rules.ruleset));
        }
        Ok(Some(Self::Beside { file, is_earlier: order == Some(true) }))
    }
}

/// The file of a family's tables in iptables-legacy.
pub(super) fn file(family: Family) -> Option<&'static str> {
    FILES.iter().find(|(of, ..)| *of == family).map(|(.., name)| *name)
}

/// Whether the tables of the second file were registered before the tables of the first, if the folder says so.
pub(super) fn order(files: &Files<'_>, own: &str, name: &str) -> Result<Option<bool>, Error> {
    let Some(text) = (files.text)(REGISTERED)? else { return Ok(None) };
    let at = |file: &str| text.lines().position(|line| line.trim() == file);
    let saved = FILES.iter().flat_map(|(_, own, name)| [*own, *name]);
    let known: Vec<&str> = saved.chain(LISTINGS).collect();
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if !line.is_empty() && !line.starts_with('#') && !known.contains(&line) {
            let what = format!("{}:1: expected {}, found \"{line}\"", number + 1, known.join(", "));
            return Err(Error::Read { file: (files.path)(REGISTERED), what });
        }
    }
    Ok(at(own).zip(at(name)).map(|(own, other)| other < own))
}

/// Whether packets that it sees may leave as others than they came.
fn acts(table: &Table) -> bool {
    table.chains.iter().any(Chain::acts)
}

/// Whether it is a table that translates on a host that has no other.
fn is_new_nat(table: &Table, rules: &Ruleset) -> bool {
    table.name == TableKind::NAT && rules.table(TableKind::NAT).is_none()
}

/// Whether the built-in chain of a table at a hook does anything.
fn acts_in(table: &Table, hook: Hook) -> bool {
    table.base_chain(hook).is_some_and(|at| table.chains[at].acts())
}

/// Whether both a table and the one of its name in other rules act at a hook, which they share a turn at.
fn meets(table: &Table, rules: &Ruleset) -> bool {
    let other = rules.tables.iter().find(|other| other.name == table.name);
    let both =
        |other: &Table| Hook::ALL.iter().any(|at| acts_in(table, *at) && acts_in(other, *at));
    other.is_some_and(both)
}

/// Has built-in chains that let all packets go see none where the other table of the name acts: what they would count depends
/// on who is first.
fn leave_out_idle(table: &mut Table, rules: &Ruleset) {
    let Some(other) = rules.tables.iter().find(|other| other.name == table.name) else { return };
    for chain in table.chains.iter_mut().filter(|chain| !chain.acts()) {
        chain.base.take_if(|base| acts_in(other, base.hook));
    }
}
