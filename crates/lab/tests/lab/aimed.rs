//! What lint and diff say, held to packets that are aimed at it: a slice of `make lint-campaign` and `make diff-campaign`,
//! and that those tell when something wrong is said.

use std::path::Path;

use lab::aimed::edit::{Edited, loaded_as, text_of};
use lab::aimed::findings::Claims;
use lab::aimed::regions::hold_said;
use lab::aimed::{Subject, hold_diff, hold_lint, subjects};
use lint::{Code, Finding, Findings, Severity, diff};
use rules::model::Ruleset;
use rules::save::{LoadOptions, load};

/// A debug build takes minutes for more rules.
const MOST_RULES: usize = 500;

fn of_the_wild() -> Vec<Subject> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/rulesets");
    let (mut found, _) = subjects(&folder);
    if found.is_empty() {
        println!("SKIPPED: no rulesets in {}", folder.display());
    }
    found.retain(|subject| subject.ruleset.rule_count() <= MOST_RULES);
    found
}

fn ruleset(text: &str) -> Ruleset {
    load(text, &LoadOptions::default()).expect("rules").ruleset
}

#[test]
fn regions_of_drawn_edits_hold_exactly_what_changes() {
    let subjects = of_the_wild();
    let found = hold_diff(&subjects, (2, 8_000, 7), 2, |line| println!("{line}"));
    assert_eq!(found.wrong, Vec::<String>::new());
    assert_eq!(found.edits, 2 * subjects.len());
    assert_eq!(found.equal, subjects.len(), "{:?}", found.not_proven);
}

#[test]
fn findings_are_contradicted_by_no_packet() {
    let subjects = of_the_wild();
    let found = hold_lint(&subjects, (60, 7), 2, |line| println!("{line}"));
    assert_eq!((found.wrong, found.unproven), (Vec::new(), Vec::new()));
    assert!(subjects.is_empty() || found.held > 0);
}

const BEFORE: &str = "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n\
    -A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n-A FORWARD -s 10.0.0.0/8 -j ACCEPT\nCOMMIT\n";

fn opened() -> (Ruleset, Edited) {
    let old = ruleset(BEFORE);
    let text = text_of(&old).replace("--dport 22", "--dport 22:23");
    let line = text.lines().position(|line| line.contains("22:23")).expect("the rule") as u32 + 1;
    let ruleset = loaded_as(&text, &old).expect("rules");
    let lines = [vec![line], vec![line]];
    (old, Edited { ruleset, what: "one port more".to_owned(), lines })
}

#[test]
fn a_region_that_is_not_told_is_missed() {
    let (old, new) = opened();
    let mut found = diff(&old, &new.ruleset).expect("one family");
    let packets = hold_said(&old, &new, &found, 400, 1).expect("nothing is wrong");
    assert!(packets.inside > 20 && packets.inside < packets.walked, "{packets:?}");
    found.regions.clear();
    let wrong = hold_said(&old, &new, &found, 400, 1).expect_err("a region is missing");
    assert!(wrong.contains("it is in no region"), "{wrong}");
    assert!(wrong.contains("by the policy of INPUT") && wrong.contains("22:23"), "{wrong}");
}

#[test]
fn a_region_that_is_too_wide_is_told() {
    let (old, new) = opened();
    let text = text_of(&old).replace("--dport 22", "--dport 22:24");
    let wider = diff(&old, &loaded_as(&text, &old).expect("rules")).expect("one family");
    let wrong = hold_said(&old, &new, &wider, 400, 1).expect_err("port 24 stays closed");
    assert!(wrong.contains("it is in a region\n"), "{wrong}");
}

#[test]
fn false_alarms_are_told() {
    let rules = ruleset(
        "*filter\n:INPUT DROP [0:0]\n-A INPUT -s 10.0.0.0/9 -j ACCEPT\n-A INPUT -s 10.0.0.0/8 -j ACCEPT\n\
         -A INPUT -p tcp -m tcp --dport 22 -j DROP\nCOMMIT\n",
    );
    let said = |code: Code, line: u32| {
        let finding = Finding {
            code,
            severity: Severity::Error,
            table: "filter".to_owned(),
            chain: "INPUT".to_owned(),
            line,
            rule: String::new(),
            text: String::new(),
            about: String::new(),
            by: vec![3],
            witness: None,
        };
        let found = Findings { findings: vec![finding], ..Findings::default() };
        Claims::said(&rules, &found).hold(0, 2_000, 1)
    };
    assert!(said(Code::Redundant, 3).is_ok());
    assert!(said(Code::Redundant, 5).is_ok());
    for (code, line) in
        [(Code::Shadowed, 4), (Code::Redundant, 4), (Code::Duplicate, 4), (Code::AcceptsAll, 4)]
    {
        let wrong = said(code, line).expect_err("a false alarm");
        assert!(wrong.starts_with(&format!("line {line}: {code}")), "{wrong}");
    }
}
