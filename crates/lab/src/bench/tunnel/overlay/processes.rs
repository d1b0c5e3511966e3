//! Processes and what they have started.
//!
//! Source: proc_pid_stat(5): the state and the parent are the first fields after the name, which is in parentheses.

use std::fs;
use std::io;

/// A process, and all that it has started, and so on.
pub(super) fn with_children(of: u32) -> io::Result<Vec<u32>> {
    let mut pairs = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let id = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        // One that has ended meanwhile is not there.
        if let Some((id, parent)) = id.and_then(|id| Some((id, parent(id)?))) {
            pairs.push((id, parent));
        }
    }
    Ok(below(of, &pairs))
}

/// Whether a process has not ended: one that nobody has waited for has.
pub(super) fn is_alive(id: u32) -> bool {
    fields(id).is_some_and(|fields| !fields.starts_with(['Z', 'X']))
}

fn parent(id: u32) -> Option<u32> {
    fields(id)?.split(' ').nth(1)?.parse().ok()
}

/// What follows a process' name.
fn fields(id: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.to_owned())
}

/// Who is below somebody, of pairs of a process and its parent; they come first themselves.
fn below(of: u32, pairs: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(pairs.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn children_of_children_are_found_and_nobody_else() {
        let pairs = [(2, 1), (3, 2), (4, 2), (5, 1), (6, 4), (7, 5)];
        assert_eq!(below(2, &pairs), [2, 3, 4, 6]);
        assert_eq!(below(9, &pairs), [9]);
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let own = std::process::id();
        assert!(with_children(own).unwrap().contains(&child.id()) && is_alive(child.id()));
        child.kill().unwrap();
        // Ended or not yet, it is nobody's parent.
        assert_eq!(with_children(child.id()).unwrap(), [child.id()]);
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }
}
