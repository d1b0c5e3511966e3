//! Misses of the D-cache while rules are walked: what the study took for the reason why lists are slow, and could not count.
//!
//! Cachegrind runs a process for each layout that walks the study's rules, and one that walks them [`TIMES`] more often; what
//! the second has more is the walks'. It models two levels of caches, a core's own of today ([`CACHES`]), and fetches nothing
//! ahead: counts are those of programs, on whatever machine and whatever else it does. What the walks take on this one stands
//! with them, of all rules and of so few that they stay in near caches: the difference is waiting for memory.

use std::io;
use std::path::Path;
use std::process::{Command, Output};

use crate::layouts::Kind;
use rules::model::Family;
use serde_json::json;

use super::count::Counting;
use super::plan::{params, row};
use super::walk::{IN_CACHE, Laying};
use super::workload::Linear;
use crate::bench::document::{Row, Runs};
use crate::bench::limit;

/// Walks whose counts are kept.
const TIMES: usize = 4;
/// Times that a walk is timed.
const RUNS: usize = 7;
/// 48 KiB of 12 ways, and 1 MiB of 16, in lines of 64 bytes.
const CACHES: [&str; 2] = ["--D1=49152,12,64", "--LL=1048576,16,64"];
/// What is counted: its line of cachegrind's summary, and the name of its rows.
const COUNTS: [(&str, &str); 4] = [
    ("D refs:", "rules.walked.accesses"),
    ("D1 misses:", "rules.walked.first_level_misses"),
    ("LLd misses:", "rules.walked.second_level_misses"),
    ("I refs:", "rules.walked.instructions"),
];

fn linear() -> Linear {
    Linear::study(Family::Ipv6, true)
}

/// Walks a layout so often, as `asked` says by `LAYOUT:TIMES`; whether it names one.
#[must_use]
pub fn child(asked: &str) -> bool {
    let Some((layout, times)) = asked.split_once(':') else { return false };
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == layout);
    let (Some(kind), Ok(times)) = (kind, times.parse()) else { return false };
    Laying::new(linear(), kind).walk(times);
    true
}

/// A row for each layout and count, by `program`, which is asked as [`child`] expects.
///
/// # Errors
/// There is no valgrind, or it does not answer with counts.
pub(super) fn rows(program: &Path) -> io::Result<Vec<Row>> {
    let walked = linear().run_per_packet() * TIMES;
    let mut found = Vec::new();
    for kind in Kind::ALL {
        let of = |Linear { chains, rules, .. }: Linear| {
            params(json!({ "rules": chains * rules, "counters": "none" }))
        };
        let [once, often] = [1, 1 + TIMES].map(|times| counts(program, kind, times));
        let (once, often) = (once?, often?);
        for ((_, name), (once, often)) in COUNTS.into_iter().zip(once.into_iter().zip(often)) {
            let each = Runs::of(vec![often.saturating_sub(once) as f64 / walked as f64]);
            found.push(row(name, kind.name(), of(linear()), each, "1/rule"));
        }
        let near = Linear { chains: 1, rules: IN_CACHE, ..linear() };
        for (name, linear) in [("rules.walked.time", linear()), ("rules.walked.time_near", near)] {
            let laying = Laying::new(linear, kind);
            let nanos = limit::rounds(RUNS).map(|_| laying.nanos(Counting::None)).collect();
            found.push(row(name, kind.name(), of(linear), Runs::of(nanos), "ns/rule"));
        }
    }
    Ok(found)
}

fn counts(program: &Path, kind: Kind, times: usize) -> io::Result<[u64; COUNTS.len()]> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"]);
    command.args(CACHES);
    let asked = format!("{}:{times}", kind.name());
    let ran = command.arg(program).args(["rules", "--walked", &asked]).output()?;
    read(&ran)
}

/// The counts of cachegrind's summary.
fn read(ran: &Output) -> io::Result<[u64; COUNTS.len()]> {
    let said = String::from_utf8_lossy(&ran.stderr);
    let mut counts = [0; COUNTS.len()];
    for ((line, _), count) in COUNTS.into_iter().zip(&mut counts) {
        let words = |said: &str| said.split_whitespace().collect::<Vec<_>>().join(" ");
        let of = |said: &str| {
            Some(words(said).split_once(line)?.1.split_whitespace().next()?.replace(',', ""))
        };
        let number = said.lines().find_map(of).and_then(|number| number.parse().ok());
        *count = number
            .ok_or_else(|| io::Error::other(format!("expected {line} of cachegrind: {said}")))?;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn said(text: &str) -> Output {
        let status = std::process::ExitStatus::from_raw(0);
        Output { status, stdout: Vec::new(), stderr: text.into() }
    }

    #[test]
    fn a_summary_of_cachegrind_is_read() {
        let text = "==7== I refs:        1,300,123\n==7== D refs:          400,001  (300,000 rd + 100,001 wr)\n\
            ==7== D1  misses:       12,345  ( 12,000 rd + 345 wr)\n==7== LLd misses:        2,345  ( 2,000 rd + 345 wr)\n";
        assert_eq!(read(&said(text)).unwrap(), [400_001, 12_345, 2_345, 1_300_123]);
        assert!(read(&said("valgrind: not found")).is_err());
    }

    #[test]
    fn what_is_not_known_is_not_walked() {
        assert!(["linked", "nothing:1", "linked:some"].into_iter().all(|asked| !child(asked)));
    }
}
