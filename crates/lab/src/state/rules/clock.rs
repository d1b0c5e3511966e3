//! Matches that depend on the clock, put among the tests of a drawn ruleset's rules: connections counted, rates, lists.

use super::Draw;
use crate::generate::Piece;
use crate::generate::ruleset::{RuleText, TableText};

/// Gives some rules of filter and mangle such a test. How packets are tracked depends on none; raw gets a rule that only
/// counts. No helper: what one expects while its packet may be dropped is not doubted.
pub(super) fn sprinkle(draw: &mut Draw, tables: &mut [TableText]) {
    for table in tables.iter_mut().filter(|table| table.name != "nat") {
        if table.name == "raw" {
            let test = vec![Piece::plain(test(draw))];
            let rule = RuleText { tests: test, action: Piece::plain(String::new()), to: None };
            let rules = &mut table.chains[0].rules;
            rules.retain(|rule| !rule.action.text.contains("--helper"));
            rules.insert(draw.rng.usize(..=rules.len()), rule);
            continue;
        }
        for rule in table.chains.iter_mut().flat_map(|chain| &mut chain.rules) {
            if draw.one_in(3) {
                let test = test(draw);
                // Behind it, a `--set` would be its own.
                let least = if test.contains("recent") { rule.tests.len() } else { 0 };
                let at = draw.rng.usize(least..=rule.tests.len());
                rule.tests.insert(at, Piece::plain(test));
            }
        }
        if draw.one_in(2) {
            lists(draw, table);
        }
    }
}

/// Rules that only look into lists, so that every packet of a chain comes by.
fn lists(draw: &mut Draw, table: &mut TableText) {
    for chain in table.chains.iter_mut().filter(|chain| chain.policy != "-") {
        for _ in 0..draw.rng.usize(..4) {
            let tests = vec![Piece::plain(recent(draw))];
            let action = if draw.one_in(12) { "-j DROP" } else { "" };
            let rule = RuleText { tests, action: Piece::plain(action.to_owned()), to: None };
            chain.rules.insert(draw.rng.usize(..=chain.rules.len()), rule);
        }
    }
}

fn test(draw: &mut Draw) -> String {
    match draw.rng.u8(..6) {
        0 => limit(draw),
        1 | 2 => recent(draw),
        _ => connlimit(draw),
    }
}

fn connlimit(draw: &mut Draw) -> String {
    let bang = draw.bang();
    let option = draw.pick(&["above", "above", "upto"]);
    let mask = match draw.ipv6() {
        true => draw.pick(&["128", "128", "64", "32", "0"]),
        false => draw.pick(&["32", "32", "24", "8", "0"]),
    };
    let side = draw.pick(&["saddr", "daddr"]);
    let limit = draw.rng.u8(..7);
    format!(
        "-m connlimit {bang}--connlimit-{option} {limit} --connlimit-mask {mask} --connlimit-{side}"
    )
}

/// Slow against the packets and fast against the pauses, or slow against both.
fn limit(draw: &mut Draw) -> String {
    let rate = draw.pick(&["100/sec", "50/sec", "20/sec", "1/sec", "2/min"]);
    format!("-m limit --limit {rate} --limit-burst {}", draw.pick(&[1, 3, 5, 20]))
}

/// Lists that several rules share, and one that nothing enters.
fn recent(draw: &mut Draw) -> String {
    let action = draw.pick(&["--set", "--set", "--rcheck", "--update", "--update", "--remove"]);
    let list = match action {
        "--set" => draw.pick(&["one", "two"]),
        _ => draw.pick(&["one", "one", "two", "two", "empty"]),
    };
    let mut text = format!("-m recent {}{action}", draw.bang());
    if matches!(action, "--rcheck" | "--update") {
        if draw.one_in(2) {
            text += &format!(" --seconds {}", draw.pick(&[1, 1, 2, 5]));
            text += if draw.one_in(3) { " --reap" } else { "" };
        }
        if draw.one_in(2) {
            text += &format!(" --hitcount {}", draw.pick(&[1, 2, 3, 5, 20, 40]));
        }
        text += if draw.one_in(4) { " --rttl" } else { "" };
    }
    if draw.one_in(4) {
        let mask = match draw.ipv6() {
            true => draw.pick(&["ffff:ffff:ffff:ffff::", "ffff::"]),
            false => draw.pick(&["255.255.255.0", "255.0.0.0"]),
        };
        text += &format!(" --mask {mask}");
    }
    format!("{text} --name {list} --{}", draw.pick(&["rsource", "rdest"]))
}
