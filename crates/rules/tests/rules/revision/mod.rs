//! Revisions: random changes against plain lists of texts, what a change shares with the revision before, and
//! what a rule keeps through it.
//!
//! `naive` does to lists of strings what the commands say, without any of the code under test.

mod naive;

use std::collections::HashSet;
use std::sync::Arc;

use conntrack::steer::Key;
use host::Host;
use naive::{Edit, Naive, changes};
use packet::{Checksums, Link, Packet};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rules::eval::{Alive, Memories, Observer, RuleRef, turns_at, walk};
use rules::model::{Counters, Family, Hook, Rule, Ruleset};
use rules::revision::{Dropped, Numbers, Revision};
use rules::save::{LoadError, LoadOptions, load, print_ruleset};
use rules::{Class, Transit};

const START: &str = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
                     :a - [0:0]\n:b - [0:0]\nCOMMIT\n";

fn ruleset(text: &str) -> Ruleset {
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    load(text, &options).unwrap_or_else(|error| panic!("{error}\n{text}")).ruleset
}

fn first(text: &str) -> (Revision, Numbers) {
    let mut numbers = Numbers::default();
    let revision = Revision::first(&ruleset(text), &mut numbers);
    (revision, numbers)
}

fn printed(revision: &Revision) -> String {
    print_ruleset(&revision.ruleset(), false, |_, _, _| Counters::default())
}

/// Counts by the place of the counters.
#[derive(Default, PartialEq, Debug)]
struct Slots(Vec<u32>);

impl Observer for Slots {
    const SEES_RULES: bool = false;

    fn counted(&mut self, slot: u32, _certain: bool, _: &Transit<'_, '_>) {
        self.0.push(slot);
    }
}

/// A packet's walk through INPUT of the revision, and by the reference.
fn walked(revision: &Revision) -> [(Option<rules::eval::Verdict>, Slots); 2] {
    let rules = revision.ruleset();
    let mut bytes = [0; 40];
    bytes[0] = 0x45;
    bytes[3] = 40;
    (bytes[8], bytes[9]) = (64, 17);
    bytes[12..16].copy_from_slice(&[10, 0, 0, 1]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
    let host = Host::default();
    let memories = || Memories::of(&rules);
    let mut walk_one = |reference: bool| {
        let mut seen = Slots::default();
        let mut packet = Packet::parse(&mut bytes, 40, Link::Raw, Checksums::Ignore);
        let mut transit = Transit::new(&mut packet, Family::Ipv4, Hook::Input, &host);
        let (sure, memories) = (Alive::Certain, &mut memories());
        let verdicts = match reference {
            true => walk(&rules, 0, &mut transit, sure, memories, &mut seen),
            false => revision.walk(0, &mut transit, sure, memories, &mut seen),
        };
        (verdicts.only().map(|(verdict, _)| verdict), seen)
    };
    [walk_one(false), walk_one(true)]
}

fn changed_as_the_lists_are(changes: &[Edit]) -> Result<(), TestCaseError> {
    let (mut revision, mut numbers) = first(START);
    let mut naive = Naive::start();
    for change in changes {
        let line = naive.line(change);
        let text = format!("*filter\n{line}\nCOMMIT\n");
        let (before, expected) = (printed(&revision), naive.apply(change));
        match (revision.changed_by(&text, &mut numbers), expected) {
            (Ok(next), true) => {
                prop_assert_eq!(next.number(), revision.number() + 1);
                numbers.free(next.dropped());
                revision = next;
            }
            (Err(LoadError { line, .. }), false) => {
                prop_assert_eq!(line, 2);
                prop_assert_eq!(printed(&revision), before);
            }
            (found, _) => {
                let found = found.map(|revision| printed(&revision));
                prop_assert!(false, "{line}: {found:?}, expected {expected}\n{before}");
            }
        }
        prop_assert_eq!(printed(&revision), naive.text(), "after {}", line);
        prop_assert_eq!(revision.verify(), Ok(()));
        is_summed_up(&revision)?;
    }
    let [found, expected] = walked(&revision);
    prop_assert_eq!(found, expected, "{}", printed(&revision));
    Ok(())
}

#[test]
fn random_changes_do_what_they_say() {
    let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&changes(), |changes| changed_as_the_lists_are(&changes)).unwrap();
}

/// Changes made at once give the same rules as one by one.
#[test]
fn one_transaction_is_all_of_its_changes_or_none() {
    let config = Config { cases: 500, failure_persistence: None, ..Config::default() };
    let test = |changes: Vec<Edit>| {
        let (start, mut numbers) = first(START);
        let mut naive = Naive::start();
        let (mut text, mut refused) = ("*filter\n".to_owned(), None);
        for (index, change) in changes.iter().enumerate() {
            text += &format!("{}\n", naive.line(change));
            if !naive.apply(change) {
                refused = Some(index as u32 + 2);
                break;
            }
        }
        let found = start.changed_by(&text, &mut numbers);
        prop_assert_eq!(found.as_ref().err().map(|error| error.line), refused, "{}", text);
        let after = found.as_ref().unwrap_or(&start);
        let expected = if refused.is_none() { naive.text() } else { START.to_owned() };
        prop_assert_eq!(printed(after), expected);
        Ok(())
    };
    TestRunner::new(config).run(&changes(), test).unwrap();
}

fn slots(revision: &Revision, chain: &str) -> Vec<u32> {
    (0..).map_while(|n| revision.rule("filter", chain, n)).map(|rule| rule.slot).collect()
}

#[test]
fn a_reload_keeps_the_rules_that_stay() {
    let old = "*filter\n:INPUT ACCEPT [0:0]\n:a - [0:0]\n:gone - [0:0]\n\
               -A INPUT -s 10.0.0.1/32\n-A INPUT -s 10.0.0.1/32\n-A INPUT -j a\n-A INPUT -j gone\n\
               -A a -p udp -j DROP\nCOMMIT\n";
    let new = "*filter\n:a - [0:0]\n:INPUT DROP [0:0]\n:fresh - [0:0]\n\
               -A INPUT -j a\n-A INPUT -s 10.0.0.9/32\n-A INPUT -s 10.0.0.1/32\n-A INPUT -j fresh\n\
               -A a -p udp -j DROP\nCOMMIT\n";
    let (revision, mut numbers) = first(old);
    let before = slots(&revision, "INPUT");
    let next = revision.replaced_by(ruleset(new), &mut numbers).unwrap();
    let after = slots(&next, "INPUT");
    assert_eq!((after[0], after[2]), (before[2], before[0]), "a jump, and the first of two alike");
    assert!(!before.contains(&after[1]) && !before.contains(&after[3]));
    let mut dropped = next.dropped().slots.clone();
    dropped.sort_unstable();
    assert_eq!(dropped, [before[1], before[3]]);
    assert_eq!(slots(&next, "a"), slots(&revision, "a"));
    let text = printed(&next);
    assert!(text.contains(":INPUT DROP") && text.contains(":fresh -") && !text.contains("gone"));
    assert_eq!(next.verify(), Ok(()));
}

/// A chain that takes the place of a deleted one comes last, and given rules come in their order.
#[test]
fn chains_are_printed_in_the_order_in_which_they_came() {
    let in_order = |revision: &Revision| {
        print_ruleset(&revision.in_order(), false, |_, _, _| Counters::default())
    };
    let (revision, mut numbers) = first(START);
    let change = "*filter\n-X a\n-N c\n-A INPUT -j c\n-A c -g b\n-A b -p udp\nCOMMIT\n";
    let next = revision.changed_by(change, &mut numbers).unwrap();
    let text = in_order(&next);
    let chains: Vec<&str> = text.lines().filter(|line| line.contains(" - [")).collect();
    assert_eq!(chains, [":b - [0:0]", ":c - [0:0]"]);
    assert_eq!(in_order(&first(&text).0), text);
    let turned = text.replace(":b - [0:0]\n:c - [0:0]\n", ":c - [0:0]\n:b - [0:0]\n");
    let turned = in_order(&first(&turned).0);
    let next = next.replaced_by(ruleset(&turned), &mut numbers).unwrap();
    assert_eq!((in_order(&next), next.made().len()), (turned, 0));
    assert_eq!(next.verify(), Ok(()));
}

/// Where chains are walked more than once, only the rules can tell how long a walk is.
#[test]
fn a_bound_of_the_class_is_told_where_it_is_known() {
    let class = |lines: &str| {
        let (revision, mut numbers) = first(START);
        let next = revision.changed_by(&format!("*filter\n{lines}\nCOMMIT\n"), &mut numbers);
        next.unwrap().class_bound()
    };
    assert_eq!(class("-A INPUT -p udp -j a"), Some(Class::Pure));
    assert_eq!(class("-A INPUT -j a\n-A FORWARD -j a"), None);
    assert_eq!(class("-A INPUT -j a\n-A FORWARD -j a\n-D INPUT 1"), Some(Class::Pure));
    let by_addresses = Some(Class::PerFlow(Key::Addresses));
    assert_eq!(class("-A b -j REJECT"), by_addresses);
    assert_eq!(class("-A b -m conntrack --ctstate NEW"), by_addresses);
    assert_eq!(class("-A b -j REJECT\n-F b"), Some(Class::Pure));
}

#[test]
fn counters_in_the_text_override_those_that_were_kept() {
    let (revision, mut numbers) = first("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p udp\nCOMMIT\n");
    let new = ruleset("*filter\n:INPUT ACCEPT [0:0]\n[7:700] -A INPUT -p udp\nCOMMIT\n");
    let next = revision.replaced_by(new, &mut numbers).unwrap();
    let made = next.made().first().unwrap();
    assert_eq!(made.counters, Counters { packets: 7, bytes: 700 });
    assert_ne!(slots(&next, "INPUT"), slots(&revision, "INPUT"));
}

#[test]
fn a_reload_may_turn_jumps_around() {
    let (revision, mut numbers) = first("*filter\n:a - [0:0]\n:b - [0:0]\n-A a -j b\nCOMMIT\n");
    let new = "*filter\n:a - [0:0]\n:b - [0:0]\n-A b -j a\nCOMMIT\n";
    let next = revision.replaced_by(ruleset(new), &mut numbers).unwrap();
    assert_eq!(printed(&next), new);
}

const LOOPED: &str = "*filter\n:INPUT ACCEPT [0:0]\n:a - [0:0]\n:b - [0:0]\n:c - [0:0]\n\
                      -A a -j b\n-A b -j a\n-A c -j b\nCOMMIT\n";

#[test]
fn a_loop_is_refused_where_a_packet_gets_to_it() {
    let (revision, mut numbers) = first(LOOPED);
    assert_eq!(printed(&revision), LOOPED);
    for to in ["a", "b", "c"] {
        let text = format!("*filter\n-A INPUT -j {to}\n");
        let refused = revision.changed_by(&text, &mut numbers).unwrap_err();
        assert_eq!((refused.line, refused.column), (2, 4), "{refused}");
    }
    let (revision, mut numbers) = first(START);
    let text = "*filter\n-A a -g b\n-A b -j a\n-A INPUT -j b\n";
    let refused = revision.changed_by(text, &mut numbers).unwrap_err();
    assert_eq!((refused.line, refused.column), (4, 4), "{refused}");
    let reached = revision.changed_by("*filter\n-A INPUT -j a\n-A a -j b\n", &mut numbers).unwrap();
    for closes in ["-A b -j a", "-A a -j a", "-A b -g b"] {
        let text = format!("*filter\n{closes}\n");
        let refused = reached.changed_by(&text, &mut numbers).unwrap_err();
        assert_eq!((refused.line, refused.column), (2, 4), "{refused}");
    }
}

#[test]
fn rules_with_a_loop_that_no_packet_gets_to_take_the_place_of_others() {
    let old = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:a - [0:0]\n:d - [0:0]\n\
               -A INPUT -j d\n-A FORWARD -j a\n-A d -j a\nCOMMIT\n";
    let (revision, mut numbers) = first(old);
    let looped = revision.replaced_by(ruleset(LOOPED), &mut numbers).unwrap();
    assert_eq!(printed(&Revision::clone(&looped)).lines().count(), LOOPED.lines().count() + 1);
    let back = looped.replaced_by(ruleset(old), &mut numbers).unwrap();
    assert_eq!(print_ruleset(&back.in_order(), false, |_, _, _| Counters::default()), old);
}

#[test]
fn a_long_chain_is_changed_where_it_is_asked() {
    let rules: String =
        (0..5000).map(|n| format!("-A INPUT -s 10.1.{}.{}/32\n", n / 256, n % 256)).collect();
    let (revision, mut numbers) = first(&format!("*filter\n:INPUT ACCEPT [0:0]\n{rules}COMMIT\n"));
    let text =
        "*filter\n-D INPUT -s 10.1.11.184/32\n-I INPUT 3000 -s 10.2.0.0/16\n-A INPUT -j DROP\n";
    let next = revision.changed_by(text, &mut numbers).unwrap();
    let mut expected: Vec<String> = rules.lines().map(str::to_owned).collect();
    expected.remove(3000);
    expected.insert(2999, "-A INPUT -s 10.2.0.0/16".into());
    expected.push("-A INPUT -j DROP".into());
    let printed = printed(&next);
    let found: Vec<&str> = printed.lines().filter(|line| line.starts_with("-A")).collect();
    assert_eq!(found, expected);
    assert_eq!(next.verify(), Ok(()));
    assert_eq!(revision.rule_count(), 5000, "the revision before is as it was");
}

/// What an old revision alone holds: the segment that changed, not the rules around it; all that is flushed.
#[test]
fn a_revision_says_what_it_does_not_share() {
    let rules = "-A a -s 10.0.0.1 -j ACCEPT\n".repeat(20_000);
    let text = START.replace("COMMIT\n", &format!("{rules}COMMIT\n"));
    let (start, mut numbers) = first(&text);
    let change = |line| format!("*filter\n{line}\nCOMMIT\n");
    let one = start.changed_by(&change("-R a 500 -j DROP"), &mut numbers).unwrap();
    let all = one.changed_by(&change("-F a"), &mut numbers).unwrap();
    assert_eq!(start.replaced_bytes(), 0);
    let held = start.footprint().bytes;
    assert!(one.replaced_bytes() > 1024 * 16 && one.replaced_bytes() < held / 8, "{held}");
    assert!(all.replaced_bytes() > held / 2, "{} of {held}", all.replaced_bytes());
}

/// What it keeps count of is what a look at every rule finds.
fn is_summed_up(revision: &Revision) -> Result<(), TestCaseError> {
    let rules = revision.ruleset();
    prop_assert_eq!(revision.tracks(), rules.tracks());
    prop_assert_eq!(revision.translates(), rules.translates());
    prop_assert_eq!(revision.asks_for_ports(), rules.asks_for_ports());
    prop_assert_eq!(revision.proxies(), rules.proxies());
    let remembers = |rule: &Rule| rule.matches.iter().any(|used| used.body.memory().is_some());
    prop_assert_eq!(revision.remembers(), rules.rules().any(remembers));
    prop_assert_eq!(revision.rule_count(), rules.rules().count());
    if let Some(bound) = revision.class_bound() {
        let class = rules.class_of_sharers();
        prop_assert_eq!(bound.clone().or(class), bound);
    }
    for hook in [Hook::Input, Hook::Forward, Hook::Output] {
        let base = rules.tables[0].base_chain(hook);
        let turns = revision.turns(hook);
        prop_assert_eq!(&turns, &turns_at(&rules, hook));
        prop_assert_eq!(turns.iter().any(|turn| turn.base.is_some()), base.is_some());
        let has_rules = base.is_some_and(|base| !rules.tables[0].chains[base].rules.is_empty());
        prop_assert_eq!(revision.has_rules(hook), has_rules);
    }
    for (at, rule) in places(&rules) {
        prop_assert!(Arc::ptr_eq(revision.rule_at(at).unwrap(), rule));
    }
    Ok(())
}

fn places(rules: &Ruleset) -> impl Iterator<Item = (RuleRef, &Arc<Rule>)> {
    let chains = rules.tables[0].chains.iter().zip(0..);
    chains.flat_map(|(chain, number)| {
        let place = move |rule| RuleRef { table: 0, chain: number, rule };
        chain.rules.iter().zip(0..).map(move |(rule, at)| (place(at), rule))
    })
}

#[test]
fn rules_that_somebody_else_has_are_copied() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p udp -j DROP\nCOMMIT\n";
    let (revision, mut numbers) = first(text);
    // A revision shares the rules that it was made of.
    let given = ruleset(text);
    let holder = Revision::first(&given, &mut Numbers::default());
    let other = revision.changed_by("*filter\n-I INPUT -p tcp\nCOMMIT\n", &mut numbers).unwrap();
    let next = other.replaced_by(given, &mut numbers).unwrap();
    assert_eq!(printed(&next), text);
    assert_eq!(slots(&next, "INPUT"), slots(&revision, "INPUT"), "it reads the same");
    assert_eq!(printed(&holder), text);
    // Of another rule it has its own.
    let given = ruleset(&text.replace("udp", "icmp"));
    let holder = Revision::first(&given, &mut Numbers::default());
    let next = next.replaced_by(given, &mut numbers).unwrap();
    let rule = |revision: &Revision| Arc::clone(revision.rule("filter", "INPUT", 0).unwrap());
    assert!(!Arc::ptr_eq(&rule(&next), &rule(&holder)));
    assert_eq!((rule(&holder).id, rule(&next).id), (0, 2));
}

/// With counters in the text, a rule of an extension, and a chain that was deleted.
#[test]
fn the_same_rules_change_nothing() {
    let text = "*filter\n:INPUT ACCEPT [5:50]\n:a - [0:0]\n:b - [0:0]\n[7:70] -A INPUT -p udp -j b\n\
                -A INPUT -m limit --limit 1/hour\n-A b -j DROP\nCOMMIT\n";
    let (first, mut numbers) = first(text);
    let revision = first.changed_by("*filter\n-X a\nCOMMIT\n", &mut numbers).unwrap();
    let next = revision.replaced_by(revision.ruleset(), &mut numbers).unwrap();
    assert!(next.rules().zip(revision.rules()).all(|(one, other)| Arc::ptr_eq(one, other)));
    assert_eq!((next.made().len(), next.dropped()), (0, &Dropped::default()));
    assert_eq!((next.rule_count(), next.verify()), (3, Ok(())));
    assert_eq!(printed(&next), printed(&revision));
    // With a new one, the others stay, too, whatever counters their text once gave them.
    let (mut given, mut more) =
        (next.ruleset(), ruleset("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp\nCOMMIT\n"));
    given.tables[0].chains[0].rules.append(&mut more.tables[0].chains[0].rules);
    let more = next.replaced_by(given, &mut numbers).unwrap();
    assert_eq!((more.made().len(), more.dropped()), (1, &Dropped::default()));
}

/// A table of another family has numbers of its own, and places that were dropped are taken again under another name.
#[test]
fn no_name_is_given_twice() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m limit --limit 1/hour\nCOMMIT\n";
    let (mut revision, mut numbers) = first(text);
    let other = Revision::first(&ruleset(text), &mut numbers);
    let mut names: HashSet<u64> =
        revision.rules().chain(other.rules()).map(|rule| rule.id).collect();
    let again = "*filter\n-R INPUT 1 -m limit --limit 1/hour\nCOMMIT\n";
    for round in 3..1000 {
        revision = revision.changed_by(again, &mut numbers).unwrap();
        numbers.free(revision.dropped());
        names.extend(revision.rules().map(|rule| rule.id));
        assert_eq!(names.len(), round);
    }
    assert_eq!((numbers.slots(), numbers.memories()), (3, 3));
}
