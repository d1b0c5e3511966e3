//! The study's own measure: round trips of `ping6 -A` to loopback, whose request and answer both run INPUT, over the rules of
//! the last table's drivers in the kernel: counters alone, and one and two quotas a rule.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use rules::model::Family;
use serde_json::json;

use super::tool::{BackEnd, Tool, finish};
use crate::bench::document::{Row, Runs};
use crate::bench::rules::plan::{params, row};
use crate::bench::rules::workload::Linear;
use crate::oracle::netns;

/// Echo requests are ignored in the oracle's namespaces.
const IGNORES: &str = "/proc/sys/net/ipv6/icmp/echo_ignore_all";
/// A quota that nothing uses up.
const QUOTA: &str = " -m quota --quota 1000000000000000";

/// Rows of each driver that this tool has; rules are written into `scratch`.
pub(super) fn rows(back: BackEnd, is_quick: bool, scratch: &Path) -> io::Result<Vec<Row>> {
    let linear = Linear::study(Family::Ipv6, true);
    let times = if is_quick { 50 } else { 500 };
    let quotas: &[usize] = if back.tool == Tool::Legacy { &[0, 1, 2] } else { &[0] };
    let mut found = Vec::new();
    for quotas in quotas {
        let file = scratch.join(format!("quotas-{quotas}"));
        fs::write(&file, with_quotas(&back.text(linear), *quotas))?;
        let [without, with] = netns::in_fresh(|| {
            fs::write(IGNORES, "0")?;
            let without = ping(times)?;
            finish(&mut back.load(&file, false), scratch)?;
            Ok([without, ping(times)?])
        })?;
        for (rules, times) in [(0, without), (linear.chains * linear.rules, with)] {
            let of = params(json!({ "rules": rules, "quotas": quotas }));
            found.push(row("rules.ping", back.name(), of, Runs::of(times), "ms"));
        }
    }
    Ok(found)
}

/// The rules of chains, each with so many quotas.
fn with_quotas(text: &str, quotas: usize) -> String {
    let line = |line: &str| match line.starts_with("-A c") {
        true => format!("{line}{}\n", QUOTA.repeat(quotas)),
        false => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Milliseconds of each answer.
fn ping(times: usize) -> io::Result<Vec<f64>> {
    let mut ping = Command::new("ping");
    ping.args(["-6", "-n", "-A", "-c", &times.to_string(), "::1"]).stdin(Stdio::null());
    let ran = ping.env("LC_ALL", "C").output()?;
    let found = answers(&String::from_utf8_lossy(&ran.stdout));
    match found.len() * 10 >= times * 9 {
        true => Ok(found),
        false => Err(io::Error::other(format!("ping: {} of {times} answered", found.len()))),
    }
}

fn answers(said: &str) -> Vec<f64> {
    let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse().ok();
    said.lines().filter_map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_of_a_chain_has_its_quotas_and_no_jump_has() {
        let linear = Linear { chains: 2, rules: 3, ..Linear::study(Family::Ipv6, true) };
        let text = with_quotas(&linear.text(), 2);
        assert_eq!(text.matches(QUOTA).count(), 12);
        assert!(
            text.lines().filter(|line| line.contains(QUOTA)).all(|line| line.starts_with("-A c"))
        );
        assert_eq!(with_quotas(&linear.text(), 0), linear.text());
    }

    #[test]
    fn answers_of_ping_are_read() {
        let said = "64 bytes from ::1: icmp_seq=1 ttl=64 time=1.25 ms\nrtt min/avg = 1/2 ms\n";
        assert_eq!(answers(said), [1.25]);
    }
}
