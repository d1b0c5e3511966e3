//! Rules against rules: the regions equal what a comparison packet by packet finds, and nothing else.

use lint::{Compared, Differences, Fate, Given, diff, diff_on, walked};
use proptest::prelude::*;
use rules::ipset::Sets;
use rules::model::{Family, Hook, Ruleset};
use rules::predicate::{Field, Values};
use rules::save::{LoadOptions, load};

use super::brute_force::{text, universe};
use super::{filter, ruleset};

fn compared(old: &str, new: &str) -> Differences {
    diff(&filter(old), &filter(new)).expect("one family")
}

#[test]
fn a_port_that_is_opened_is_one_region() {
    let old = "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n";
    let new = "-A INPUT -p tcp -m multiport --dports 22,443 -j ACCEPT\n";
    let found = compared(old, new);
    let [region] = &*found.regions else { panic!("{found:?}") };
    assert_eq!(region.fates, [Fate::Drop, Fate::Accept]);
    assert_eq!(region.piece.to_string(), "protocol tcp, dport 443");
    assert_eq!((region.deciders[0].0, region.deciders[1].0), (2, 5));
    assert_eq!(region.witness, "in=other0 tcp 192.0.2.1:40000 > 198.51.100.1:443 syn path=input");
    assert_eq!(found.unknown, Vec::<String>::new());
}

#[test]
fn rules_in_another_order_that_does_not_matter_are_the_same() {
    let one = "-A INPUT -s 10.0.0.1 -j ACCEPT\n";
    let other = "-A INPUT -s 10.0.0.2 -p udp -j ACCEPT\n";
    let both = compared(&format!("{one}{other}"), &format!("{other}{one}"));
    assert_eq!(both.compared(), Compared::Same);
    let split = "-A INPUT -s 10.0.0.0/9 -j ACCEPT\n-A INPUT -s 10.128.0.0/9 -j ACCEPT\n";
    assert_eq!(compared("-A INPUT -s 10.0.0.0/8 -j ACCEPT\n", split).compared(), Compared::Same);
}

#[test]
fn what_depends_on_a_test_that_can_only_be_asked_is_unknown() {
    let set = "-A INPUT -m string --string a --algo bm -j ACCEPT\n";
    let found = compared(set, "");
    assert_eq!(found.compared(), Compared::Unknown);
    assert!(found.unknown[0].contains("depends on -m string"), "{found:?}");
    assert_eq!(compared(set, set).compared(), Compared::Same);
}

#[test]
fn a_limit_is_the_same_only_where_it_is_asked_about_the_same_packets() {
    let limit = "-A INPUT -p udp -m limit --limit 1/sec -j ACCEPT\n";
    assert_eq!(compared(limit, limit).compared(), Compared::Same);
    let other = format!("-A INPUT -s 10.0.0.1 -j DROP\n{limit}");
    let found = compared(limit, &other);
    assert_eq!((found.compared(), found.regions.len()), (Compared::Unknown, 0), "{found:?}");
    assert!(found.unknown[0].contains("depends on -m limit"), "{found:?}");
}

#[test]
fn what_comes_after_a_target_that_may_do_anything_is_unknown_if_it_differs() {
    let queue = "-A INPUT -p tcp -j NFQUEUE --queue-num 1\n";
    let [old, new] = ["22", "23"]
        .map(|port| format!("{queue}-A INPUT -p tcp -m tcp --dport {port} -j ACCEPT\n"));
    assert_eq!(compared(&old, &old).compared(), Compared::Same);
    assert_eq!(compared(&old, &new).compared(), Compared::Unknown);
}

#[test]
fn other_marks_make_tests_of_marks_unknown() {
    let text = |mark: &str| {
        let rules = format!("-A PREROUTING -j MARK --set-xmark {mark}/0xffffffff\n");
        ruleset(&format!("*mangle\n:PREROUTING ACCEPT [0:0]\n{rules}COMMIT\n"))
    };
    assert_eq!(diff(&text("0x1"), &text("0x2")).unwrap().compared(), Compared::Unknown);
    assert_eq!(diff(&text("0x1"), &text("0x1")).unwrap().compared(), Compared::Same);
}

fn words(found: &Differences) -> Vec<String> {
    let region = |it: &lint::Difference| {
        format!("{}: {} -> {}: {}", it.place, it.fates[0], it.fates[1], it.piece)
    };
    found.regions.iter().map(region).collect()
}

#[test]
fn a_mark_that_is_set_on_the_way_is_followed() {
    let with = |port: u16| {
        ruleset(&format!(
            "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -m tcp --dport {port} -j MARK --set-xmark 0x35/0xff\nCOMMIT\n\
             *filter\n:FORWARD DROP [0:0]\n-A FORWARD -m mark --mark 0x35/0xff -j ACCEPT\nCOMMIT\n"
        ))
    };
    let found = diff(&with(22), &with(23)).unwrap();
    let mut words = words(&found);
    words.sort();
    assert_eq!(
        words,
        [
            "filter FORWARD: ACCEPT -> DROP: mark !0x35/0xff, protocol tcp, dport 22",
            "filter FORWARD: DROP -> ACCEPT: mark !0x35/0xff, protocol tcp, dport 23",
        ],
        "{found:?}"
    );
    // Another mark may lead another way, too.
    assert!(found.unknown.iter().all(|it| it.contains("maybe another route")), "{found:?}");
}

#[test]
fn what_a_translation_makes_of_the_destination_is_what_filter_sees() {
    let with = |rule: &str| {
        ruleset(&format!(
            "*nat\n:PREROUTING ACCEPT [0:0]\n{rule}COMMIT\n\
             *filter\n:FORWARD DROP [0:0]\n:INPUT DROP [0:0]\n\
             -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
             -A FORWARD -d 10.0.0.5/32 -p tcp -m tcp --dport 80 -j ACCEPT\nCOMMIT\n"
        ))
    };
    let rule = "-A PREROUTING -d 192.0.2.1/32 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.0.0.5:80\n";
    let (old, new) = (with(""), with(rule));
    let host = host::Host {
        local: Some(vec![host::Network::parse("192.0.2.1").unwrap()]),
        ..host::Host::default()
    };
    let given = lint::Given { host, ..lint::Given::default() };
    let found = lint::diff_on(&old, &new, &given).unwrap();
    let expected =
        "filter INPUT: DROP -> ACCEPT: state NEW, destination 192.0.2.1, protocol tcp, dport 8080";
    assert_eq!(words(&found), [expected], "{found:?}");
    assert_eq!(found.unknown, Vec::<String>::new());
    // Whose address it is nobody said.
    let found = diff(&old, &new).unwrap();
    assert!(found.to_know.iter().any(|it| it.contains("--local")), "{found:?}");
}

#[test]
fn types_of_addresses_are_parts_of_a_packet() {
    let rules =
        "-A INPUT -m addrtype --dst-type LOCAL,BROADCAST,MULTICAST -j RETURN\n-A INPUT -j ACCEPT\n";
    let new = format!("-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n{rules}");
    let found = compared(rules, &new);
    assert_eq!(
        words(&found),
        ["filter INPUT: DROP -> ACCEPT: protocol tcp, dport 22"],
        "{found:?}"
    );
    assert_eq!(found.regions[0].given, ["--local 198.51.100.1"]);
    assert_eq!(found.unknown, Vec::<String>::new());
}

#[test]
fn what_is_in_a_set_that_is_given_is_shown_by_a_packet() {
    let sets = "create a hash:net family inet\nadd a 10.0.0.0/8\nadd a 10.1.0.0/16 nomatch\n";
    let given = Given { sets: Sets::parse(sets).ok(), ..Given::default() };
    let test = "-A INPUT -p tcp -m tcp --dport 22 -m set --match-set a src";
    let compared = |given| {
        let [old, new] = ["DROP", "ACCEPT"].map(|it| filter(&format!("{test} -j {it}\n")));
        diff_on(&old, &new, given).expect("one family")
    };
    let found = compared(&given);
    let expected = "filter INPUT: DROP -> ACCEPT: source 10.0.0.0/16,10.2.0.0-10.255.255.255, protocol tcp, dport 22";
    assert_eq!(words(&found), [expected], "{found:?}");
    assert_eq!(found.unknown, Vec::<String>::new());
    assert!(found.regions[0].witness.contains("tcp 10."), "{found:?}");
    let found = compared(&Given::default());
    assert_eq!(found.compared(), Compared::Unknown, "{found:?}");
}

#[test]
fn what_the_stack_drops_no_rule_sees() {
    let text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p ipv6-icmp -j ACCEPT\nCOMMIT\n";
    let options = LoadOptions { family: Some(Family::Ipv6), ..LoadOptions::default() };
    let rules = load(text, &options).expect("rules").ruleset;
    let mut values = Values::default();
    values.set(Field::Protocol, 58);
    values.set(Field::Destination, 0xff02 << 112 | 1);
    for (source, hits) in [(0x2001_0db8 << 96 | 1, Some(1)), (0xff39 << 112 | 1, None)] {
        values.set(Field::Source, source);
        let walked = walked(&rules, 0, Hook::Input, &values);
        assert_eq!(walked.map(|it| it.hits.len()), hits, "from {source:x}");
    }
}

#[test]
fn an_address_is_of_one_type() {
    let rules = filter("-A INPUT -m addrtype --src-type LOCAL -j ACCEPT\n");
    let mut values = Values::default();
    values.set(Field::Protocol, 17);
    values.set(Field::Source, 0x0a00_0001);
    values.set(Field::SourceType, 2);
    values.set(Field::DestinationType, 1);
    for (destination, is_there) in [(0x0a00_0002, true), (0x0a00_0001, false)] {
        values.set(Field::Destination, destination);
        assert_eq!(walked(&rules, 0, Hook::Input, &values).is_some(), is_there, "{destination:x}");
    }
}

#[test]
fn a_rule_of_many_is_compared_alone() {
    let rules: String = (0..4_000)
        .map(|at| {
            format!(
                "-A FORWARD -s 10.{}.{}.1 -d 10.0.{}.{} -j ACCEPT\n",
                at / 256,
                at % 256,
                at % 256,
                at / 256
            )
        })
        .collect();
    let new = format!("-A FORWARD -s 10.9.9.1 -p tcp -m tcp --dport 80 -j DROP\n{rules}");
    let found = compared(&rules, &new);
    let expected = "filter FORWARD: ACCEPT -> DROP: source 10.9.9.1, destination 10.0.9.9, protocol tcp, dport 80";
    assert_eq!(words(&found), [expected], "{found:?}");
}

/// For every packet: whether the two rulesets certainly differ.
fn differ(old: &Ruleset, new: &Ruleset, tracks: bool) -> Vec<bool> {
    let verdict = |ruleset, it| {
        walked(ruleset, 0, Hook::Forward, it).expect("a packet").verdict.map(|(v, _)| v)
    };
    universe(tracks).iter().map(|it| verdict(old, it) != verdict(new, it)).collect()
}

/// The regions of a difference hold exactly the packets that differ.
pub(crate) fn exact(old: &str, new: &str) -> Result<(), TestCaseError> {
    let (before, after) = (ruleset(old), ruleset(new));
    let found = diff(&before, &after).expect("room");
    prop_assert_eq!(&found.unknown, &Vec::<String>::new());
    let mut space = lint::Space::of(&[&before, &after]);
    let all = space.arriving().expect("room");
    let mut inside = lint::Region::NONE;
    for region in &found.regions {
        let piece = space.of_piece(&region.piece).expect("room");
        let piece = space.diagrams.and(piece, all).expect("room");
        prop_assert!(!space.diagrams.meet(inside, piece), "regions meet");
        inside = space.diagrams.or(inside, piece).expect("room");
    }
    let truth = differ(&before, &after, old.contains("state"));
    let packets = universe(old.contains("state"));
    let is_wrong = |(number, packet): &(usize, &rules::predicate::Values)| {
        let one = space.of_values(packet).expect("room");
        space.diagrams.meet(one, inside) != truth[*number]
    };
    let wrong = packets.iter().enumerate().find(is_wrong);
    prop_assert!(wrong.is_none() || found.more, "{:?}\n{}{}{}", wrong, old, new, found.text());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn regions_hold_exactly_the_packets_that_differ(old in text(), new in text()) {
        // The same tests of states in both, so that both are of tracked packets or neither is.
        prop_assume!(old.contains("state") == new.contains("state"));
        exact(&old, &new)?;
    }
}
