//! Small rulesets over a small universe: a rule is found dead exactly if no packet of all hits it, and without a rule
//! that is redundant every packet has the same verdict.

use std::collections::BTreeSet;

use conntrack::CtState;
use lint::{Code, lint, walked};
use proptest::prelude::*;
use rules::model::{Hook, Ruleset};
use rules::predicate::{Field, Form, Values};

use super::ruleset;

const TESTS: &[&str] = &[
    "",
    "-s 10.0.0.0/31",
    "-s 10.0.0.2/31",
    "! -s 10.0.0.1",
    "-m iprange --src-range 10.0.0.1-10.0.0.2",
    "-i eth0",
    "-i eth+",
    "! -i eth+",
    "-p tcp",
    "! -p tcp",
    "-p udp",
    "-p tcp -m tcp --dport 1:65535",
    "-p tcp -m tcp --dport 0:21",
    "-p tcp -m multiport ! --dports 0:21",
    "-p tcp -m tcp --syn",
    "-p tcp -m tcp ! --syn",
    "-f",
    "! -f",
];
const STATES: &[&str] = &["", "", "", "-m state --state NEW", "-m conntrack ! --ctstate NEW"];
const ACTIONS: &[&str] =
    &["-j ACCEPT", "-j DROP", "-j REJECT", "-j RETURN", "-j LOG", "-j A", "-g A", "-j B", ""];

/// A line of a chain: jumps lead on only.
fn rule(chain: &'static str) -> impl Strategy<Value = String> {
    let actions = match chain {
        "FORWARD" => ACTIONS.to_vec(),
        "A" => ACTIONS.iter().copied().filter(|it| !it.ends_with(" A")).collect(),
        _ => ACTIONS.iter().copied().filter(|it| !it.ends_with([' ', 'A', 'B'])).collect(),
    };
    let select = proptest::sample::select;
    (select(TESTS.to_vec()), select(STATES.to_vec()), select(actions))
        .prop_map(move |(test, state, action)| format!("-A {chain} {test} {state} {action}\n"))
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    let rules = |chain, most| prop::collection::vec(rule(chain), 0..most);
    let policy = prop_oneof![Just("ACCEPT"), Just("DROP")];
    (policy, rules("FORWARD", 6), rules("A", 4), rules("B", 3)).prop_map(|(policy, f, a, b)| {
        let rules = [f, a, b].concat().concat();
        format!("*filter\n:FORWARD {policy} [0:0]\n:A - [0:0]\n:B - [0:0]\n{rules}COMMIT\n")
    })
}

/// Every packet that the tests tell apart.
pub(crate) fn universe(tracks: bool) -> Vec<Values> {
    let mut all = Vec::new();
    let states = if tracks { &CtState::ALL[..] } else { &[CtState::New] };
    let forms = if tracks { &[Form::Whole][..] } else { &[Form::Whole, Form::LaterFragment] };
    for source in 0..5_u128 {
        for (protocol, port, flags) in [
            (6, 0, 2),
            (6, 1, 2),
            (6, 21, 2),
            (6, 22, 2),
            (6, 65_535, 2),
            (6, 0, 16),
            (6, 1, 16),
            (6, 21, 16),
            (6, 22, 16),
            (6, 65_535, 16),
            (17, 0, 0),
            (1, 0, 0),
        ] {
            for input in ["eth0", "eth1", "lo"] {
                for state in states {
                    for form in forms {
                        let mut values = Values::default();
                        (values.state, values.form) = (*state, *form);
                        (values.input, values.output) = (input.to_owned(), "eth9".to_owned());
                        values.set(Field::Source, (10 << 24) + source);
                        values.set(Field::Destination, 0x0a00_0009);
                        values.set(Field::Protocol, protocol);
                        values.set(Field::DestinationPort, port);
                        values.set(Field::TcpFlags, flags);
                        all.push(values);
                    }
                }
            }
        }
    }
    all
}

fn hit_lines(ruleset: &Ruleset, packets: &[Values]) -> BTreeSet<u32> {
    let walks = packets.iter().flat_map(|it| walked(ruleset, 0, Hook::Forward, it));
    let hits = walks.flat_map(|walked| walked.hits);
    hits.map(|hit| ruleset.tables[0].chains[hit.chain as usize].rules[hit.rule as usize].line)
        .collect()
}

/// Lines of rules in chains that are entered by some packet.
fn entered(ruleset: &Ruleset, hit: &BTreeSet<u32>) -> BTreeSet<u32> {
    let chains = &ruleset.tables[0].chains;
    let jumps =
        chains.iter().flat_map(|chain| &chain.rules).filter(|rule| hit.contains(&rule.line));
    let to: BTreeSet<usize> = jumps
        .filter_map(|rule| match rule.action {
            rules::model::Action::Jump(to) | rules::model::Action::Goto(to) => Some(to as usize),
            _ => None,
        })
        .chain([0])
        .collect();
    to.into_iter().flat_map(|chain| &chains[chain].rules).map(|rule| rule.line).collect()
}

fn verdicts(ruleset: &Ruleset, packets: &[Values]) -> Vec<Option<rules::eval::Verdict>> {
    let verdict = |it: &Values| walked(ruleset, 0, Hook::Forward, it)?.verdict.map(|(v, _)| v);
    packets.iter().map(verdict).collect()
}

fn without_line(text: &str, line: u32) -> String {
    let lines = text.lines().zip(1..).filter(|(_, number)| *number != line);
    lines.map(|(text, _)| format!("{text}\n")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn dead_rules_are_found_and_no_other_is(text in text()) {
        let ruleset = ruleset(&text);
        let packets = universe(text.contains("state"));
        let hit = hit_lines(&ruleset, &packets);
        let dead: BTreeSet<u32> = entered(&ruleset, &hit).difference(&hit).copied().collect();
        let report = lint(&ruleset, None);
        prop_assert_eq!(report.contradicted, 0);
        let found: BTreeSet<u32> = report.findings.iter().filter(|it| match it.code {
            Code::Shadowed | Code::Unreachable | Code::NeverMatches => true,
            Code::Duplicate => !hit.contains(&it.line),
            _ => false,
        }).map(|it| it.line).collect();
        prop_assert_eq!(found, dead, "{}", text);
        let before = verdicts(&ruleset, &packets);
        for finding in report.findings.iter().filter(|it| it.code == Code::Redundant) {
            let less = super::ruleset(&without_line(&text, finding.line));
            prop_assert!(verdicts(&less, &packets) == before, "line {}\n{}", finding.line, text);
        }
    }
}
