//! What walks remember, tell their observers and leave open.

use conntrack::{CtState, CtView, States};
use host::Host;
use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, Link, Packet};
use rules::eval::{Alive, By, Cause, Memories, Nobody, Observer, RuleRef, Verdict, Verdicts, walk};
use rules::ext::Memory;
use rules::model::{Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};
use rules::{Backend, Connection, Iface, Outcome, Transit};

fn ruleset(family: Family, text: &str) -> Ruleset {
    load(text, &LoadOptions { family: Some(family), ..LoadOptions::default() }).unwrap().ruleset
}

fn forward(rules: &str) -> Ruleset {
    ruleset(Family::Ipv4, &format!("*filter\n:FORWARD ACCEPT [0:0]\n:own -\n{rules}COMMIT\n"))
}

/// Walks a datagram that comes at this time, in one of these states.
fn datagram(
    rules: &Ruleset,
    time: u64,
    states: States,
    memories: &mut Memories,
    observer: &mut impl Observer,
) -> Verdicts {
    meets(rules, time, states, Alive::Certain, memories, observer)
}

/// Walks the datagram of [`datagram`] when it may not exist, as `entry` says.
fn meets(
    rules: &Ruleset,
    time: u64,
    states: States,
    entry: Alive,
    memories: &mut Memories,
    observer: &mut impl Observer,
) -> Verdicts {
    let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let craft = Craft { ethernet: None, ..Craft::new(addresses, Message::udp(1, 2)) };
    let mut bytes = craft.frame();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let ct = Connection { view: CtView::without_flow(states), ..Connection::default() };
    let base = Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &host);
    let mut transit = Transit { ct, time: Some(time), ..base };
    walk(rules, 0, &mut transit, entry, memories, observer)
}

/// What single packets meet that come one after the other, and which rule, from 0, or the policy gave it.
fn one_by_one(rules: &Ruleset, packets: usize) -> Vec<(Verdict, Option<u32>)> {
    let mut memories = Memories::of(rules);
    let mut next = |_| {
        let new = CtState::New.into();
        let verdicts = datagram(rules, 1_000_000_000, new, &mut memories, &mut Nobody);
        let (verdict, by) = verdicts.only().unwrap();
        let rule = match by {
            Some(By::Rule(at)) => Some(at.rule),
            _ => None,
        };
        (verdict, rule)
    };
    (0..packets).map(&mut next).collect()
}

/// Every call, as text.
#[derive(Default, PartialEq, Eq, Debug)]
struct Log(Vec<String>);

impl Observer for Log {
    fn rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, _: &Transit<'_, '_>) {
        self.0.push(format!("rule {at:?} {outcome:?} {alive:?}"));
    }
    fn asked(&mut self, at: RuleRef, index: usize, outcome: Outcome) {
        self.0.push(format!("asked {at:?} {index} {outcome:?}"));
    }
    fn remembered(&mut self, at: RuleRef, _: &dyn Memory) {
        self.0.push(format!("remembered {at:?}"));
    }
    fn hit(&mut self, at: RuleRef, certain: bool, _: &Transit<'_, '_>) {
        self.0.push(format!("hit {at:?} {certain}"));
    }
    fn counted(&mut self, slot: u32, certain: bool, _: &Transit<'_, '_>) {
        self.0.push(format!("counted {slot} {certain}"));
    }
    fn policy(&mut self, table: u32, chain: u32, certain: bool, _: &Transit<'_, '_>) {
        self.0.push(format!("policy {table} {chain} {certain}"));
    }
    fn off_end(&mut self, table: u32, chain: u32, certain: bool) {
        self.0.push(format!("off the end {table} {chain} {certain}"));
    }
    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.0.push(format!("unknown {at:?} {cause:?}"));
    }
    fn may_count(&mut self, at: RuleRef, cause: Cause) {
        self.0.push(format!("may count {at:?} {cause:?}"));
    }
}

#[test]
fn each_of_two_observers_is_told_what_one_alone_is() {
    let rules = forward(
        "-A FORWARD -m limit --limit 1/hour --limit-burst 2 -j own\n\
         -A FORWARD -m conntrack --ctstate NEW -m state --state NEW,INVALID -j DROP\n\
         -A own -p udp -m udp --dport 2\n-A own -m conntrack --ctstate NEW\n",
    );
    let open = States::of(CtState::New).or(CtState::Established.into());
    let (mut alone, mut lent) = (Log::default(), Log::default());
    let mut both = (Log::default(), Log::default());
    let verdicts = [
        datagram(&rules, 1, open, &mut Memories::of(&rules), &mut alone),
        datagram(&rules, 1, open, &mut Memories::of(&rules), &mut &mut lent),
        datagram(&rules, 1, open, &mut Memories::of(&rules), &mut both),
    ];
    assert_eq!(verdicts, [verdicts[0]; 3]);
    let (first, second) = both;
    for word in [
        "rule",
        "asked",
        "remembered",
        "hit",
        "counted",
        "policy",
        "off the end",
        "unknown",
        "may count",
    ] {
        assert!(alone.0.iter().any(|call| call.starts_with(word)), "{word}: {alone:?}");
    }
    assert_eq!([&lent, &first, &second], [&alone; 3]);
}

/// iptables-extensions(8), limit: each rule has a bucket of its own.
#[test]
fn each_rule_remembers_for_itself() {
    let limit = |burst: u32| format!("-m limit --limit 1/hour --limit-burst {burst}");
    let rules =
        forward(&format!("-A FORWARD {} -j ACCEPT\n-A FORWARD {} -j DROP\n", limit(2), limit(1)));
    let (accept, drop) = (Verdict::Accept, Verdict::Drop);
    let expected = [(accept, Some(0)), (accept, Some(0)), (drop, Some(1)), (accept, None)];
    assert_eq!(one_by_one(&rules, 4), expected);
}

/// iptables-extensions(8), recent: a list is one by its name, whatever rules use it.
#[test]
fn rules_that_name_one_list_share_it() {
    let rules = |read: &str| {
        forward(&format!(
            "-A FORWARD -m recent --name {read} --rcheck -j DROP\n\
             -A FORWARD -m recent --name seen --set\n"
        ))
    };
    let second = |read: &str| one_by_one(&rules(read), 2)[1];
    assert_eq!(second("seen"), (Verdict::Drop, Some(0)));
    assert_eq!(second("other"), (Verdict::Accept, None));
}

/// A packet that may not have been there took from the bucket, or did not: two were enough for both.
#[test]
fn what_a_doubtful_packet_may_have_used_up_is_counted_both_ways() {
    let rules = forward("-A FORWARD -m limit --limit 1/hour --limit-burst 2 -j DROP\n");
    let mut memories = Memories::of(&rules);
    let mut next = |entry| {
        let new = CtState::New.into();
        meets(&rules, 1, new, entry, &mut memories, &mut Nobody).only().map(|(verdict, _)| verdict)
    };
    next(Alive::Maybe);
    assert_eq!(next(Alive::Certain), Some(Verdict::Drop));
    assert_eq!(next(Alive::Certain), None);
}

fn rule(rule: u32) -> Option<By> {
    Some(By::Rule(RuleRef { table: 0, chain: 0, rule }))
}

fn given(rules: &[u32]) -> Verdicts {
    let mut verdicts = Verdicts::default();
    rules.iter().for_each(|at| verdicts.add(Verdict::Drop, rule(*at)));
    verdicts
}

#[test]
fn of_those_that_may_give_a_verdict_the_first_and_the_last_are_told() {
    for (rules, or_by) in [
        (&[1][..], None),
        (&[1, 1], None),
        (&[1, 2], Some((rule(2), false))),
        (&[1, 2, 2], Some((rule(2), false))),
        (&[1, 2, 3], Some((rule(3), true))),
    ] {
        let verdicts = given(rules);
        assert_eq!(verdicts.by(Verdict::Drop), rule(1), "{rules:?}");
        assert_eq!(verdicts.or_by(Verdict::Drop), or_by, "{rules:?}");
        assert_eq!(verdicts.only(), Some((Verdict::Drop, rule(1))));
        assert!(!verdicts.is_empty() && Verdicts::default().is_empty());
    }
}

#[test]
fn sets_of_verdicts_unite_and_part() {
    for (ours, theirs) in [(&[1][..], &[2, 3, 4][..]), (&[1, 2], &[3]), (&[], &[1, 2, 3])] {
        let mut both = given(ours);
        both.extend(&given(theirs));
        assert_eq!(both, given(&[ours, theirs].concat()), "{ours:?} {theirs:?}");
    }
    let mut open = given(&[1, 2]);
    open.add(Verdict::Accept, None);
    let drops = open.givers(Verdict::Drop);
    assert_eq!((open.only(), drops), (None, given(&[1, 2]).givers(Verdict::Drop)));
    assert_eq!(open.without_accept(), given(&[1, 2]));
    assert!(open.givers(Verdict::Reject).is_none());
}

/// `ip6t_do_table` drops a packet whose extension headers end too early (`hotdrop`), nf_tables lets it fall through.
#[test]
fn where_extension_headers_end_is_not_known_legacy_may_drop() {
    let text = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j ACCEPT\nCOMMIT\n";
    let may_drop = |backend: Backend| {
        let mut rules = ruleset(Family::Ipv6, text);
        rules.evaluate_as(backend);
        // Destination options, of which nothing was captured.
        let mut bytes = vec![0x60, 0, 0, 0, 0, 36, 60, 64];
        bytes.extend([0x20; 32]);
        let mut packet = Packet::parse(&mut bytes, 76, Link::Raw, Checksums::Ignore);
        let host = Host::default();
        let mut transit = Transit::new(&mut packet, Family::Ipv6, Hook::Forward, &host);
        let memories = &mut Memories::of(&rules);
        walk(&rules, 0, &mut transit, Alive::Certain, memories, &mut Nobody).may_be(Verdict::Drop)
    };
    assert_eq!([may_drop(Backend::Legacy), may_drop(Backend::Nft)], [true, false]);
}

/// Rules that may drop a datagram from an unknown interface, and what they could not decide.
fn by_unknown_interface(tests: &str) -> (Verdicts, Vec<String>) {
    let rules = forward(&format!("-A FORWARD {tests} -j DROP\n"));
    let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let craft = Craft { ethernet: None, ..Craft::new(addresses, Message::udp(1, 2)) };
    let mut bytes = craft.frame();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let base = Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &host);
    let mut transit = Transit { input: Iface::Unknown, ..base };
    let mut log = Log::default();
    let memories = &mut Memories::of(&rules);
    let verdicts = walk(&rules, 0, &mut transit, Alive::Certain, memories, &mut log);
    log.0.retain(|call| call.starts_with("unknown"));
    (verdicts, log.0)
}

#[test]
fn what_one_test_does_not_know_another_decides() {
    for tests in ["-i eth0 -p tcp", "-s 10.0.0.9 -i eth0", "-i eth0 -p udp -m udp --dport 3"] {
        let (verdicts, open) = by_unknown_interface(tests);
        assert_eq!(
            (verdicts.only().map(|(verdict, _)| verdict), open),
            (Some(Verdict::Accept), vec![])
        );
    }
    let (verdicts, open) = by_unknown_interface("-s 10.0.0.1 -i eth0 -p udp");
    assert!(verdicts.may_be(Verdict::Drop) && verdicts.may_be(Verdict::Accept));
    assert!(
        matches!(&open[..], [one] if one.ends_with("Input")),
        "the one that could not: {open:?}"
    );
}
