//! Matches that hang on the clock, put among the tests of a drawn ruleset's rules: connections counted, rates, lists.

use super::Draw;
use crate::generate::Piece;
use crate::generate::ruleset::{RuleText, TableText};

/// Gives some rules of filter and mangle such a test. How packets are tracked hangs on none; raw gets a rule that only
/// counts. No helper: what one foretells while its packet may be dropped is not doubted.
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
    }
}

fn test(draw: &mut Draw) -> String {
    match draw.rng.u8(..6) {
        0 => limit(draw),
        1 => recent(draw),
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

/// Entering is certain, and so is what was never entered.
fn recent(draw: &mut Draw) -> String {
    let action = draw.pick(&["--set", "--rcheck", "--update", "--remove", "--rcheck --seconds 5"]);
    let list = if action == "--set" { "entered" } else { draw.pick(&["entered", "empty"]) };
    let bang = draw.bang();
    format!("-m recent {bang}{action} --name {list} --{}", draw.pick(&["rsource", "rdest"]))
}
