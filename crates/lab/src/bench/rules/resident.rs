//! What layouts take of a machine's memory: pages that become resident, with what the allocator adds to the bytes asked
//! for.
//!
//! Each layout is laid out in a process of its own, [`COPIES`] times and all kept; the first copy's growth is not counted,
//! since it may use what reading the rules left free. Pages are of 4 KiB, so one copy's share is right to a page.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::layouts::{Kind, Laid};
use rules::model::{Family, Ruleset};
use serde_json::json;

use super::fan::SMALL;
use super::plan::{params, row};
use super::workload::Linear;
use crate::bench::document::{Row, Runs};

/// Copies whose growth is counted.
const COPIES: usize = 4;

/// Rulesets by the names that the rows of asked-for bytes have.
const SHAPES: [&str; 3] = ["100 x 1000 v6", "100 x 1000 v4", "fan 68k"];

fn ruleset(shape: &str) -> Ruleset {
    match shape {
        "100 x 1000 v6" => Linear::study(Family::Ipv6, true).ruleset(),
        "100 x 1000 v4" => Linear::study(Family::Ipv4, true).ruleset(),
        _ => SMALL.tree().ruleset(),
    }
}

/// A row for each layout and shape, each measured by `program`, which is asked as [`child`] expects.
///
/// # Errors
/// The program cannot be run, or does not answer with a number.
pub(super) fn rows(program: &Path) -> io::Result<Vec<Row>> {
    let mut found = Vec::new();
    for (number, shape) in SHAPES.iter().enumerate() {
        let rules = count(&ruleset(shape));
        for kind in Kind::ALL {
            let asked = format!("{}:{number}", kind.name());
            let ran = Command::new(program).args(["rules", "--resident", &asked]).output()?;
            let said = String::from_utf8_lossy(&ran.stdout).trim().parse::<f64>();
            let bytes = said.map_err(|_| {
                let why = String::from_utf8_lossy(&ran.stderr);
                io::Error::other(format!("{}: expected bytes: {why}", program.display()))
            })?;
            let values = params(json!({ "shape": shape, "rules": rules }));
            let each = Runs::of(vec![bytes / rules as f64]);
            found.push(row("rules.resident", kind.name(), values, each, "B/rule"));
        }
    }
    Ok(found)
}

fn count(ruleset: &Ruleset) -> usize {
    ruleset.tables[0].chains.iter().map(|chain| chain.rules.len()).sum()
}

/// Bytes by which this process grows for one layout of a shape, which `asked` names as `LAYOUT:NUMBER`; `None` where
/// it names none, or the machine does not tell.
#[must_use]
pub fn child(asked: &str) -> Option<usize> {
    let (layout, number) = asked.split_once(':')?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == layout)?;
    let shape = SHAPES.get(number.parse::<usize>().ok()?)?;
    let ruleset = ruleset(shape);
    let lay = || Laid::encode(kind, &ruleset.tables[0], ruleset.family);
    let mut kept = vec![lay()];
    let before = resident()?;
    kept.extend((0..COPIES).map(|_| lay()));
    let after = resident()?;
    drop(kept);
    Some(after.saturating_sub(before) / COPIES)
}

/// Bytes of this process in memory.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_laid_out() {
        assert_eq!([child("linked"), child("nothing:1"), child("linked:9")], [None; 3]);
    }
}
