//! Where jumps lead: no chain may be reached from itself.

use super::{Refused, TableRevision};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    No,
    OnPath,
    Done,
}

/// Looks for a loop in a whole table.
pub(super) fn check(table: &TableRevision) -> Result<(), Refused> {
    let mut seen = vec![Mark::No; table.heads.len()];
    for start in 0..seen.len() as u32 {
        walk(table, start, &mut seen)?;
    }
    Ok(())
}

fn walk(table: &TableRevision, start: u32, seen: &mut [Mark]) -> Result<(), Refused> {
    if seen[start as usize] != Mark::No {
        return Ok(());
    }
    let jumps = |chain: u32| {
        table.chains.chains.get(chain as usize).map(|chain| chain.jumps()).unwrap_or_default()
    };
    // The path of chains from `start`, each with the jumps that are left: no machine stack.
    let mut path = vec![(start, jumps(start))];
    seen[start as usize] = Mark::OnPath;
    while let Some((chain, left)) = path.last_mut() {
        let Some(to) = left.pop() else {
            seen[*chain as usize] = Mark::Done;
            path.pop();
            continue;
        };
        match seen[to as usize] {
            Mark::Done => {}
            Mark::OnPath => return Err(Refused::looped(table.name_of(*chain), table.name_of(to))),
            Mark::No => {
                seen[to as usize] = Mark::OnPath;
                path.push((to, jumps(to)));
            }
        }
    }
    Ok(())
}

/// Whether `to` is reached from `from`, which it is from itself; `jumps` gives what a chain jumps to.
pub(super) fn reaches(from: u32, to: u32, jumps: impl Fn(u32) -> Vec<u32>) -> bool {
    let mut seen = std::collections::HashSet::from([from]);
    let mut left = vec![from];
    while let Some(chain) = left.pop() {
        if chain == to {
            return true;
        }
        left.extend(jumps(chain).into_iter().filter(|next| seen.insert(*next)));
    }
    false
}
