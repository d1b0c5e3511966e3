//! Walks of a packet of which somebody knows more than it tells: what it matched, where it came, what came before it.

use std::collections::HashMap;

use host::Host;
use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, Link, Mark, Packet};
use rules::Transit;
use rules::eval::{
    Alive, By, Cause, Memories, Nobody, Observer, Proof, RuleRef, Verdict, Verdicts, walk,
};
use rules::model::{Family, Hook};
use rules::save::{LoadOptions, load};

/// Knows this of rules, by their chain and their number, and keeps hits and what is not known.
#[derive(Default)]
struct Knows {
    proofs: HashMap<(u32, u32), Proof>,
    opens: Option<(u32, u32)>,
    hits: Vec<((u32, u32), bool)>,
    unknown: Vec<((u32, u32), Cause)>,
}

impl Observer for Knows {
    fn hit(&mut self, at: RuleRef, certain: bool, _: &Transit<'_, '_>) {
        self.hits.push(((at.chain, at.rule), certain));
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.unknown.push(((at.chain, at.rule), cause));
    }

    fn proof(&mut self, at: RuleRef) -> Proof {
        self.proofs.get(&(at.chain, at.rule)).copied().unwrap_or(Proof::Nothing)
    }

    fn opens(&mut self, at: RuleRef) -> bool {
        self.opens == Some((at.chain, at.rule))
    }
}

/// What a datagram meets whose mark is not known.
fn datagram(rules: &str, observer: &mut impl Observer) -> Verdicts {
    let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n:own -\n:deep -\n{rules}COMMIT\n");
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    let rules = load(&text, &options).unwrap().ruleset;
    let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, Message::udp(1, 2)) }.frame();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let base = Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &host);
    let mut transit = Transit { mark: Mark { value: 0, unknown: u32::MAX }, ..base };
    walk(&rules, 0, &mut transit, Alive::Certain, &mut Memories::of(&rules), observer)
}

fn rule(chain: u32, rule: u32) -> Option<By> {
    Some(By::Rule(RuleRef { table: 0, chain, rule }))
}

fn proving(proofs: &[((u32, u32), Proof)]) -> Knows {
    Knows { proofs: proofs.iter().copied().collect(), ..Knows::default() }
}

#[test]
fn what_hangs_on_the_past_is_open_though_the_packet_tells() {
    let rules = "-A FORWARD -p udp -m udp --dport 2 -j DROP\n-A FORWARD -j REJECT\n";
    let mut knows = Knows { opens: Some((0, 0)), ..Knows::default() };
    let verdicts = datagram(rules, &mut knows);
    assert_eq!([Verdict::Drop, Verdict::Reject].map(|v| verdicts.by(v)), [rule(0, 0), rule(0, 1)]);
    assert_eq!(knows.unknown, [((0, 0), Cause::Past)]);
    assert_eq!(knows.hits, [((0, 0), false), ((0, 1), false)]);
    let verdicts = datagram(rules, &mut Knows::default());
    assert_eq!(verdicts.sure(), Some((Verdict::Drop, rule(0, 0))));
}

#[test]
fn one_of_two_observers_that_knows_something_is_asked() {
    let rules = "-A FORWARD -m mark --mark 1 -j DROP\n-A FORWARD -j REJECT\n";
    let proof = ((0, 0), Proof::Matches);
    let sure = Some((Verdict::Drop, rule(0, 0)));
    assert_eq!(datagram(rules, &mut Nobody).sure(), None);
    assert_eq!(datagram(rules, &mut (Nobody, proving(&[proof]))).sure(), sure);
    assert_eq!(datagram(rules, &mut (proving(&[proof]), Nobody)).sure(), sure);
    assert_eq!(datagram(rules, &mut &mut proving(&[proof])).sure(), sure);
}

#[test]
fn a_rule_that_is_proved_to_match_does_if_the_packet_comes_there() {
    let rules = "-A FORWARD -m mark --mark 1 -j ACCEPT\n-A FORWARD -m mark --mark 2 -j DROP\n\
                 -A FORWARD -j REJECT\n";
    let mut knows = proving(&[((0, 1), Proof::Matches)]);
    let verdicts = datagram(rules, &mut knows);
    assert_eq!([Verdict::Accept, Verdict::Drop].map(|v| verdicts.by(v)), [rule(0, 0), rule(0, 1)]);
    assert!(!verdicts.may_be(Verdict::Reject), "nothing comes after it");
    assert_eq!(knows.hits, [((0, 0), false), ((0, 1), false)]);
}

#[test]
fn a_rule_that_the_packet_came_to_leaves_nothing_of_what_was_open_before() {
    let rules = "-A FORWARD -m mark --mark 1 -j DROP\n-A FORWARD -m mark --mark 2 -j own\n\
                 -A FORWARD -j ACCEPT\n\
                 -A own -m mark --mark 3 -j DROP\n-A own -m mark --mark 4 -j RETURN\n\
                 -A own -m mark --mark 5 -j LOG\n";
    let came = [((1, 2), Proof::Came)];
    let mut knows = proving(&came);
    let verdicts = datagram(rules, &mut knows);
    assert_eq!(verdicts.sure(), Some((Verdict::Accept, rule(0, 2))));
    assert_eq!(knows.hits[knows.hits.len() - 2..], [((1, 2), true), ((0, 2), true)]);

    // None came back early either: what ends all in there ends all.
    let verdicts = datagram(&format!("{rules}-A own -j REJECT\n"), &mut proving(&came));
    assert_eq!(verdicts.sure(), Some((Verdict::Reject, rule(1, 3))));
    // And what was open after it stays so.
    let verdicts =
        datagram(&format!("{rules}-A own -m mark --mark 6 -j DROP\n"), &mut proving(&came));
    assert_eq!([Verdict::Accept, Verdict::Drop].map(|v| verdicts.by(v)), [rule(0, 2), rule(1, 3)]);
}

#[test]
fn who_came_to_a_rule_went_into_each_chain_on_the_way() {
    let rules = "-A FORWARD -m mark --mark 1 -g own\n-A FORWARD -j DROP\n\
                 -A own -m mark --mark 2 -j deep\n-A deep -m mark --mark 3 -j LOG\n";
    let policy = Some(By::Policy { table: 0, chain: 0 });
    let verdicts = datagram(rules, &mut proving(&[((2, 0), Proof::Came)]));
    assert_eq!(verdicts.sure(), Some((Verdict::Accept, policy)), "a goto does not come back");
    let verdicts = datagram(rules, &mut Knows::default());
    assert_eq!([Verdict::Accept, Verdict::Drop].map(|v| verdicts.by(v)), [policy, rule(0, 1)]);
}
