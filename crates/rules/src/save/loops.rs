//! Refuses a ruleset in which a built-in chain can reach a loop of jumps.
//!
//! The kernel refuses these too (`mark_source_chains`). A loop that nothing reaches is harmless.

use crate::error::LoadError;
use crate::model::Table;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    No,
    OnPath,
    Done,
}

/// Checks that no base chain leads to a loop of jumps.
///
/// # Errors
/// The line of the jump that closes a loop, with the chains on it.
pub fn check(table: &Table) -> Result<(), LoadError> {
    let mut seen = vec![Mark::No; table.chains.len()];
    for (index, chain) in table.chains.iter().enumerate() {
        if chain.base.is_some() {
            walk(table, index, &mut seen)?;
        }
    }
    Ok(())
}

fn walk(table: &Table, start: usize, seen: &mut [Mark]) -> Result<(), LoadError> {
    // The path of chains from `start`, each with the rule at which it goes on, and which of its chains is next: no machine
    // stack.
    let mut path = vec![(start, 0, 0)];
    seen[start] = Mark::OnPath;
    while let Some((chain, next, nth)) = path.last_mut() {
        let Some(rule) = table.chains[*chain].rules.get(*next) else {
            seen[*chain] = Mark::Done;
            path.pop();
            continue;
        };
        let Some(to) = rule.leads_to().nth(*nth) else {
            (*next, *nth) = (*next + 1, 0);
            continue;
        };
        *nth += 1;
        let to = to as usize;
        match seen[to] {
            Mark::Done => {}
            Mark::No => {
                seen[to] = Mark::OnPath;
                path.push((to, 0, 0));
            }
            Mark::OnPath => {
                let what = format!("no loop of chains, found {}", names(table, &path, to));
                return Err(LoadError { line: rule.line, column: 1, what });
            }
        }
    }
    Ok(())
}

/// `A -> B -> A`, shortened in the middle when it is long.
fn names(table: &Table, path: &[(usize, usize, usize)], to: usize) -> String {
    let from = path.iter().position(|(chain, ..)| *chain == to).unwrap_or(0);
    let mut names: Vec<&str> =
        path[from..].iter().map(|(chain, ..)| &*table.chains[*chain].name).collect();
    if names.len() > 8 {
        names.splice(4..names.len() - 3, ["…"]);
    }
    names.push(&table.chains[to].name);
    names.join(" -> ")
}
