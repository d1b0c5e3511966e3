//! What packets of each family walk of a listing.

use std::sync::Arc;

use nft::lower::{Lowered, Unknown, lower};
use rules::model::{Family, TableName};
use rules::save::{LoadOptions, Warning};

use super::lines;
use super::listing::Listing;
use crate::error::Error;

/// What of a listing is not evaluated for packets of one family.
pub(crate) type Lacking = Arc<[Unknown]>;

/// What packets of one family walk of a listing.
pub(crate) struct OfFamily {
    /// The rules.
    pub(crate) ruleset: rules::model::Ruleset,
    /// What is not evaluated, rule by rule.
    pub(crate) lacking: Lacking,
    /// What is not evaluated, cause by cause.
    pub(crate) warnings: Vec<Warning>,
}

/// The rules of one family, none if there are no tables for it; `text` is where they are listed.
pub(crate) fn of_family(walked: &nft::model::Ruleset, text: &str, family: Family) -> OfFamily {
    let Lowered { mut ruleset, unknown } = lower(walked, family);
    let lines = lines::of_chains(text);
    for table in &mut ruleset.tables {
        for chain in &mut table.chains {
            let name = (&*table.name, &*chain.name);
            chain.line = lines.get(&name).copied().unwrap_or(0);
        }
    }
    OfFamily { ruleset, warnings: warnings(&unknown), lacking: unknown.into() }
}

/// The rules of each family, or of the family that is asked for: a listing is a whole ruleset, and a family for which it has
/// no table has no rules. With a table only that table is kept, and the families that have it.
pub(crate) fn families(
    file: &str,
    listing: &Listing,
    options: &LoadOptions<'_>,
) -> Result<Vec<OfFamily>, Error> {
    let mut all = Vec::new();
    let mut has: Vec<TableName> = Vec::new();
    for family in [Family::Ipv4, Family::Ipv6] {
        let OfFamily { mut ruleset, lacking, warnings } =
            of_family(&listing.ruleset, &listing.text, family);
        has.extend(ruleset.tables.iter().map(|table| table.name.clone()));
        ruleset.tables.retain(|table| options.table.is_none_or(|name| table.name == name));
        let has_rules = !ruleset.tables.is_empty() || options.table.is_none();
        if has_rules && options.family.is_none_or(|asked| asked == family) {
            all.push(OfFamily { ruleset, lacking, warnings });
        }
    }
    if all.iter().all(|of_family: &OfFamily| of_family.ruleset.tables.is_empty()) {
        all.clear();
    }
    if let (true, Some(table)) = (all.is_empty(), options.table) {
        has.sort_unstable();
        has.dedup();
        return Err(Error::NoTable { file: file.to_owned(), table: table.to_owned(), has });
    }
    if all.is_empty() {
        let what = match options.family {
            Some(family) if family.is_ip() => format!("a table of inet or {}", family.name()),
            _ => "a table of ip, ip6 or inet".to_owned(),
        };
        return Err(Error::Given(format!("{file}: expected {what}, found none")));
    }
    Ok(all)
}

/// What is not evaluated, as warnings: one for each cause, at its first line.
fn warnings(lacking: &[Unknown]) -> Vec<Warning> {
    let mut all: Vec<Warning> = Vec::new();
    for unknown in lacking {
        for cause in &unknown.causes {
            let what = format!("{} is not evaluated{}", cause, hint(cause));
            match all.iter_mut().find(|known| known.what == what) {
                Some(known) => known.count += 1,
                None => all.push(Warning { what, line: unknown.position.line, count: 1 }),
            }
        }
    }
    all
}

/// What would help, where the listing does not say all.
pub(crate) fn hint(cause: &str) -> &'static str {
    match cause.starts_with("xt ") {
        true => {
            ": iptables-nft's tables are listed without their parameters, iptables-save has them"
        }
        false => "",
    }
}
