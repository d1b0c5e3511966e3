//! A packet whose connection may be in several states, through random rules: what the walk says of it holds for a
//! packet in each of them.

use std::collections::HashMap;

use conntrack::{CtState, CtView, States};
use host::Host;
use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, Link, Packet};
use proptest::collection::vec;
use proptest::prelude::*;
use rules::eval::{self, Alive, By, Memories, Nobody, RuleRef, Verdict, Verdicts, walk};
use rules::model::{Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};
use rules::{Connection, Transit};

const CHAINS: [&str; 4] = ["FORWARD", "one", "two", "three"];

/// Certain and possible hits.
#[derive(Default)]
struct Hits(HashMap<RuleRef, [u32; 2]>);

impl eval::Observer for Hits {
    fn hit(&mut self, at: RuleRef, certain: bool, _: &Transit<'_, '_>) {
        let [surely, maybe] = self.0.entry(at).or_default();
        *(if certain { surely } else { maybe }) += 1;
    }
}

fn matches() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "-p udp",
        "-p tcp",
        "-m conntrack --ctstate NEW",
        "-m conntrack --ctstate ESTABLISHED",
        "-m conntrack ! --ctstate NEW",
        "-m conntrack --ctstate RELATED,ESTABLISHED",
        "-m state --state INVALID",
        "-m state ! --state INVALID,NEW",
        "-m conntrack --ctstate NEW -m connmark --mark 1",
        "-m conntrack --ctstate NEW -m state --state NEW,INVALID",
        "-m connmark --mark 1",
    ])
}

fn action(chain: usize) -> impl Strategy<Value = String> {
    let mut actions: Vec<String> =
        ["", "-j ACCEPT", "-j DROP", "-j RETURN", "-j MARK --set-mark 1", "-j LOG"]
            .map(str::to_owned)
            .into();
    for deeper in CHAINS.iter().skip(chain + 1) {
        actions.push(format!("-j {deeper}"));
        actions.push(format!("-g {deeper}"));
    }
    prop::sample::select(actions)
}

fn chain(index: usize) -> impl Strategy<Value = String> {
    let rule = (matches(), action(index))
        .prop_map(move |(matches, action)| format!("-A {} {matches} {action}\n", CHAINS[index]));
    vec(rule, 0..6).prop_map(|rules| rules.concat())
}

fn text() -> impl Strategy<Value = String> {
    (chain(0), chain(1), chain(2), chain(3)).prop_map(|(a, b, c, d)| {
        format!("*mangle\n:FORWARD ACCEPT [0:0]\n:one -\n:two -\n:three -\n{a}{b}{c}{d}COMMIT\n")
    })
}

fn pass(ruleset: &Ruleset, states: States) -> (Verdicts, Hits) {
    let mut hits = Hits::default();
    (pass_as(ruleset, states, None, &mut hits), hits)
}

/// What a packet of these states meets, which is taken for one of them.
fn pass_as(
    ruleset: &Ruleset,
    states: States,
    walks_as: Option<CtState>,
    observer: &mut impl eval::Observer,
) -> Verdicts {
    let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, Message::udp(1, 2)) }.frame();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let ct = Connection { view: CtView::without_flow(states), walks_as, ..Connection::default() };
    let base = Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &host);
    let mut transit = Transit { ct, ..base };
    let mut memories = Memories::of(ruleset);
    let found = walk(ruleset, 0, &mut transit, Alive::Certain, &mut memories, observer);
    assert_eq!(transit.ct.view.states, states, "the states are what they were");
    found
}

fn read(text: &str) -> Ruleset {
    load(text, &LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() })
        .unwrap()
        .ruleset
}

#[test]
fn a_walk_tells_what_one_state_alone_leads_to() {
    let rules = "*filter\n:FORWARD DROP [0:0]\n:in -\n:new -\n-A FORWARD -p udp -j in\n\
                 -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
                 -A in -m conntrack --ctstate NEW -j new\n\
                 -A in -m conntrack --ctstate ESTABLISHED -j RETURN\n-A in -j DROP\n\
                 -A new -m connmark --mark 1 -j ACCEPT\n-A new -m limit --limit 1/hour -j DROP\n\
                 COMMIT\n";
    let both = States::of(CtState::New).or(CtState::Established.into());
    let at = |state| pass_as(&read(rules), both, state, &mut Nobody).as_taken();
    let by = By::Rule(RuleRef { table: 0, chain: 0, rule: 1 });
    assert_eq!(at(Some(CtState::Established)), Some((Verdict::Accept, by)));
    assert_eq!(at(Some(CtState::New)), None, "that hangs on more than its state");
    assert_eq!(at(None), None, "nobody asks");
}

/// Whom a rule leaves has another state, and whom it leads into a chain has one of its own.
#[test]
fn past_a_rule_of_one_state_the_packet_has_another() {
    let both = States::of(CtState::New).or(CtState::Established.into());
    let (new, established) = ("-m conntrack --ctstate NEW", "-m state --state ESTABLISHED");
    let rules = format!(
        "*filter\n:FORWARD ACCEPT [0:0]\n:in -\n-A FORWARD {established} -j ACCEPT\n\
         -A FORWARD {new} -j DROP\n-A FORWARD -j REJECT\nCOMMIT\n"
    );
    let (verdicts, hits) = pass(&read(&rules), both);
    assert_eq!((verdicts.or_by(Verdict::Accept), verdicts.may_be(Verdict::Reject)), (None, false));
    assert_eq!(hits.0.len(), 2, "the last rule is not reached");
    let rules = format!(
        "*filter\n:FORWARD ACCEPT [0:0]\n:in -\n-A FORWARD {new} -j in\n\
         -A FORWARD {new} -j REJECT\n-A in {new} -j DROP\n-A in -j REJECT\nCOMMIT\n"
    );
    let (verdicts, hits) = pass(&read(&rules), both);
    assert_eq!(hits.0.keys().filter(|at| at.chain == 1).count(), 1, "nor the last one in there");
    assert_eq!(verdicts.or_by(Verdict::Drop), None);
}

/// A reset may end its connection, and what a program does nobody knows: more than states is open.
#[test]
fn what_a_target_leaves_open_is_open_in_one_state_as_well() {
    let both = States::of(CtState::New).or(CtState::Established.into());
    for (target, met) in [("DROP", true), ("ACCEPT", true), ("REJECT", false), ("NFQUEUE", false)] {
        let rules = format!(
            "*filter\n:FORWARD DROP [0:0]\n\
             -A FORWARD -m conntrack --ctstate ESTABLISHED -j {target}\nCOMMIT\n"
        );
        let met_in = |state| pass_as(&read(&rules), both, Some(state), &mut Nobody).as_taken();
        assert_eq!(met_in(CtState::Established).is_some(), met, "{target}");
        assert!(met_in(CtState::New).is_some(), "the policy is not {target}'s to doubt");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_known_of_several_states_holds_in_each(
        text in text(),
        states in prop::sample::subsequence(CtState::ALL.to_vec(), 1..=4),
    ) {
        let ruleset = read(&text);
        let all = states.iter().map(|state| States::of(*state)).reduce(States::or).unwrap();
        let (verdicts, hits) = pass(&ruleset, all);
        for state in states {
            let (one, found) = pass(&ruleset, state.into());
            let told = [
                pass_as(&ruleset, all, Some(state), &mut Nobody),
                pass_as(&ruleset, all, Some(state), &mut Hits::default()),
            ];
            for told in told {
                if let Some((verdict, by)) = told.as_taken() {
                    prop_assert_eq!(one.only(), Some((verdict, Some(by))), "{:?}\n{}", state, text);
                }
                prop_assert!(told.only() == verdicts.only(), "{text}");
            }
            for verdict in [Verdict::Accept, Verdict::Drop] {
                prop_assert!(verdicts.may_be(verdict) || !one.may_be(verdict), "{state:?}\n{text}");
            }
            let places = hits.0.keys().chain(found.0.keys());
            for at in places {
                let [surely, maybe] = hits.0.get(at).copied().unwrap_or_default();
                let [least, more] = found.0.get(at).copied().unwrap_or_default();
                prop_assert!(surely <= least + more, "{state:?} {at:?}\n{text}");
                prop_assert!(least <= surely + maybe, "{state:?} {at:?}\n{text}");
            }
        }
    }

    #[test]
    fn rules_that_take_every_state_leave_nothing_open(first in prop::sample::select(vec!["NEW", "ESTABLISHED"])) {
        let text = format!(
            "*filter\n:FORWARD DROP [0:0]\n:in -\n-A FORWARD -m state --state {first} -j ACCEPT\n\
             -A FORWARD -j in\n-A in -m conntrack --ctstate NEW,ESTABLISHED -j ACCEPT\nCOMMIT\n"
        );
        let ruleset = read(&text);
        let both = States::of(CtState::New).or(CtState::Established.into());
        let (verdicts, _) = pass(&ruleset, both);
        prop_assert_eq!(verdicts.only().map(|(verdict, _)| verdict), Some(Verdict::Accept));
    }
}
