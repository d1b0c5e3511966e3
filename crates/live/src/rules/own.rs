//! Own tables: tables that a run has besides the rules of its files, such as the policy of a network that its tunnel is a
//! node of.
//!
//! Contract: rules of files and of clients never change an own table: each program that they make takes it over from the program before.
//! Only the program that opened the run changes it ([`Running::change_own`](crate::Running::change_own)). Revisions are
//! without it: going back to one takes nothing of it back.

use rules::model::{Family, Ruleset, Table};
use rules::save::{LoadOptions, load};

use crate::config::OwnTable;
use dataplane::Program;

/// Takes own tables out of rules that somebody gives, with a warning for each.
pub(crate) fn take_out(own: &[OwnTable], ruleset: &mut Ruleset) -> Vec<String> {
    let of_family = own.iter().filter(|own| own.family == ruleset.family);
    let mut warnings = Vec::new();
    for OwnTable { name, .. } in of_family {
        let count = ruleset.tables.len();
        ruleset.tables.retain(|table| table.name != *name);
        if ruleset.tables.len() != count {
            warnings.push(format!("its table {name} is left out: the run has one of its own"));
        }
    }
    warnings
}

/// Adds own tables to rules that a run begins with.
///
/// # Errors
/// An own table is none.
pub(crate) fn begin(own: &[OwnTable], rulesets: &mut Vec<Ruleset>) -> Result<(), String> {
    for OwnTable { family, name, text } in own {
        let options = LoadOptions { family: Some(*family), ..LoadOptions::default() };
        let loaded = load(text, &options);
        let loaded = loaded.map_err(|error| format!("table {name}:{error}"))?;
        loaded.ruleset.tables.into_iter().for_each(|table| put(rulesets, *family, table));
    }
    Ok(())
}

/// Makes rules that replace others keep the own tables that a program has.
pub(crate) fn keep(own: &[OwnTable], rulesets: &mut Vec<Ruleset>, program: &Program) {
    for OwnTable { family, name, .. } in own {
        if !rulesets.iter().any(|ruleset| ruleset.family == *family) {
            continue;
        }
        let tables = program.revision(*family).map(|revision| revision.in_order().tables);
        let kept = tables.into_iter().flatten().find(|table| table.name == *name);
        kept.into_iter().for_each(|table| put(rulesets, *family, table));
    }
}

/// The line at which changes name an own table, and the table.
pub(crate) fn named<'o>(
    own: &'o [OwnTable],
    family: Family,
    text: &str,
) -> Option<(usize, &'o str)> {
    let mut tables = (1..)
        .zip(text.lines())
        .filter_map(|(line, text)| Some((line, text.strip_prefix('*')?.trim_end())));
    tables.find_map(|(line, table)| {
        let found = own.iter().find(|own| own.family == family && own.name == table)?;
        Some((line, found.name))
    })
}

fn put(rulesets: &mut Vec<Ruleset>, family: Family, table: Table) {
    let of_family = |ruleset: &Ruleset| ruleset.family == family;
    let at = rulesets.iter().position(of_family).unwrap_or_else(|| {
        rulesets.push(Ruleset { family, backend: table.backend, tables: Vec::new() });
        rulesets.len() - 1
    });
    let Ruleset { backend, tables, .. } = &mut rulesets[at];
    tables.retain(|there| there.name != table.name);
    tables.push(Table { backend: *backend, ..table });
}
