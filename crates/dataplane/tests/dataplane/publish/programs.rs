//! What is held of programs and rules, by whom and for how long, and what rules are called.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use dataplane::publish::{MOST_PROGRAMS, Published, Worker};
use dataplane::{Arrival, Config, DropReason, FinalVerdict, Path};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use rules::ext::{Match, MatchUse, Printer, Support};
use rules::model::{Action, Counters, Family, Hook, Rule, Ruleset};
use rules::save::{LoadOptions, load, print_ruleset};

use super::{change, rules, ruleset};
use crate::Nobody;

fn forwarding(rulesets: &[&str]) -> Published {
    let rulesets: Vec<Ruleset> = rulesets.iter().map(|text| read(text)).collect();
    let config = Config { path: Some(Path::Forward), ..Config::default() };
    Published::new(&rulesets, config)
}

fn read(text: &str) -> Ruleset {
    load(text, &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}\n{text}")).ruleset
}

/// The verdict on a datagram from 10.0.0.1, or its IPv6 counterpart; a microsecond after the last.
fn verdict(worker: &mut Worker, is_v6: bool, number: u64) -> FinalVerdict {
    let addresses = match is_v6 {
        false => Addresses::V4 { source: [10, 0, 0, 1], destination: [192, 0, 2, 9] },
        true => Addresses::V6 { source: [0x20; 16], destination: [0x21; 16] },
    };
    let message = Message::udp(5000, 53);
    let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, message) }.frame();
    let time = Some(1_000_000_000 + number * 1000);
    let arrival = Arrival { time, ..Arrival::new(number, Link::Raw, bytes.len()) };
    worker.burst().handle(&mut bytes, &arrival, &mut Nobody).outcome.end.verdict
}

fn accepts(worker: &mut Worker, number: u64) -> bool {
    matches!(verdict(worker, false, number), FinalVerdict::Accept(_))
}

fn limited(burst: u32) -> String {
    format!("-m limit --limit 1/hour --limit-burst {burst} -j ACCEPT")
}

/// One rule is replaced again and again by a rule that reads the same, another one stays.
#[test]
fn states_are_reclaimed_with_the_rules_that_had_them() {
    let stays = limited(3).replace("-j", "-p udp -j");
    let mangle = format!("*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING {}\n", limited(2));
    let text = format!(
        "{mangle}-A PREROUTING -j DROP\nCOMMIT\n*raw\n:PREROUTING DROP [0:0]\n-A PREROUTING {stays}\nCOMMIT\n"
    );
    let published = forwarding(&[&text]);
    let mut worker = published.worker();
    assert!(accepts(&mut worker, 1));
    for round in 0..20_000_u64 {
        change(&published, &format!("-R PREROUTING 1 {}", limited(2)));
        // The new rule has its two; the rule that stays has had one of three before.
        if round % 1000 == 0 {
            assert_eq!(accepts(&mut worker, round + 2), round < 2000, "{round}");
        }
    }
    assert!(worker.state().memories() <= 4, "{} states", worker.state().memories());
    let held = published.held();
    assert!(held.places <= 6 && held.programs <= 2, "{held:?}");
}

#[test]
fn a_rule_in_place_of_one_that_reads_the_same_starts_afresh() {
    let text = format!("*filter\n:FORWARD DROP [0:0]\n-A FORWARD {}\nCOMMIT\n", limited(1));
    let published = forwarding(&[&text]);
    let mut worker = published.worker();
    for round in 0..200 {
        assert!(accepts(&mut worker, 2 * round), "{round}");
        assert!(!accepts(&mut worker, 2 * round + 1), "{round}");
        let line = format!("*filter\n-R FORWARD 1 {}\nCOMMIT\n", limited(1));
        published.commit_text(round + 1, Family::Ipv4, &line).unwrap();
    }
}

#[test]
fn the_current_rules_in_place_of_themselves_change_nothing() {
    let text = format!(
        "*filter\n:FORWARD DROP [7:70]\n[5:50] -A FORWARD -p tcp\n-A FORWARD {}\n\
         -A FORWARD -m conntrack --ctstate ESTABLISHED\nCOMMIT\n",
        limited(2)
    );
    let published = forwarding(&[&text]);
    let mut worker = published.worker();
    assert!(accepts(&mut worker, 1));
    let state = |worker: &Worker, published: &Published| {
        let snapshot = published.snapshot().unwrap();
        let revision = Arc::clone(snapshot.program.revision(Family::Ipv4).unwrap());
        let counts: Vec<(u64, Counters)> =
            revision.rules().map(|rule| (rule.id, snapshot.rule(rule))).collect();
        let policy = snapshot.policy(Family::Ipv4, "filter", Hook::Forward);
        (counts, policy, worker.state().footprint().connections, worker.state().memories())
    };
    let before = state(&worker, &published);
    for number in 1..50 {
        let held = published.program();
        let current = held.revision(Family::Ipv4).unwrap().ruleset();
        drop(held);
        assert_eq!(published.replace(number, current), Ok(number + 1));
    }
    assert_eq!(state(&worker, &published), before);
    assert!(accepts(&mut worker, 2) && !accepts(&mut worker, 3), "one of two was left");
}

/// A match whose body reports when it is dropped.
#[derive(Debug)]
struct Told(Arc<Drops>);

#[derive(Debug)]
struct Drops {
    writer: ThreadId,
    by_writer: AtomicUsize,
    by_others: AtomicUsize,
}

impl Match for Told {
    fn print(&self, _: &mut Printer) {}
}

impl Drop for Told {
    fn drop(&mut self) {
        let is_writer = thread::current().id() == self.0.writer;
        let count = if is_writer { &self.0.by_writer } else { &self.0.by_others };
        count.fetch_add(1, Relaxed);
    }
}

fn told(drops: &Arc<Drops>) -> Rule {
    let body = Box::new(Told(Arc::clone(drops)));
    Rule {
        header: None,
        matches: [MatchUse::new("told", Support::Evaluated, body)].into(),
        action: Action::None,
        counters: Counters::default(),
        line: 0,
        slot: 0,
        id: 0,
        listed: None,
    }
}

#[test]
fn no_worker_frees_a_rule() {
    const ROUNDS: usize = 1000;
    let published = forwarding(&["*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp\nCOMMIT\n"]);
    let (writer, none) = (thread::current().id(), AtomicUsize::default);
    let drops = Arc::new(Drops { writer, by_writer: none(), by_others: none() });
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut worker = published.worker();
                while done.load(Relaxed) < ROUNDS {
                    assert!(accepts(&mut worker, 1));
                }
            });
        }
        for round in 0..ROUNDS {
            let replace = |transaction: &mut rules::revision::Transaction<'_>| {
                transaction.replace("filter", "FORWARD", 1, vec![told(&drops)])
            };
            published.commit(round as u64 + 1, Family::Ipv4, replace).unwrap();
            done.store(round + 1, Relaxed);
        }
    });
    let (by_writer, by_others) = (drops.by_writer.load(Relaxed), drops.by_others.load(Relaxed));
    assert!(by_others == 0 && by_writer >= ROUNDS - MOST_PROGRAMS - 1, "{drops:?}");
}

/// A worker that sleeps holds up neither commits nor snapshots, and wakes to the newest program.
#[test]
fn a_worker_that_sleeps_is_offline() {
    let published = forwarding(&["*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp\nCOMMIT\n"]);
    let ((slept, asleep), (wake, woken)) = (channel(), channel::<()>());
    thread::scope(|scope| {
        let published = &published;
        let sleeper = scope.spawn(move || {
            let mut worker = published.worker();
            assert!(accepts(&mut worker, 1));
            slept.send(()).unwrap();
            woken.recv_timeout(Duration::from_secs(60)).unwrap();
            let number = worker.burst().program().number();
            (number, verdict(&mut worker, false, 2))
        });
        asleep.recv().unwrap();
        let start = Instant::now();
        for number in 1..=3 * MOST_PROGRAMS as u64 {
            let text = "*filter\n-A FORWARD -p tcp\nCOMMIT\n";
            published.commit_text(number, Family::Ipv4, text).unwrap();
            let snapshot = published.snapshot().unwrap();
            let rule = rules(&snapshot.program).rule("filter", "FORWARD", 0).unwrap();
            assert_eq!(snapshot.rule(rule).packets, 1, "what it counted before it slept");
        }
        let waits = start.elapsed() / (3 * MOST_PROGRAMS as u32);
        assert!(waits < Duration::from_millis(100), "{waits:?} for each");
        let last = published.program().number();
        let flush = "*filter\n-F FORWARD\n-P FORWARD DROP\nCOMMIT\n";
        assert_eq!(published.commit_text(last, Family::Ipv4, flush), Ok(last + 1));
        assert_eq!(published.held().programs, 0, "nobody has the ones before");
        wake.send(()).unwrap();
        let (number, verdict) = sleeper.join().unwrap();
        assert_eq!(number, last + 1);
        let by_policy = FinalVerdict::Drop(DropReason::Policy { table: 0, chain: 0 });
        assert_eq!(verdict, by_policy);
    });
}

/// A verdict's rule has a name of its own, and can be read by who holds its revision, which holds up nobody.
#[test]
fn a_rule_is_named_after_its_revision_is_gone() {
    let text = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -j DROP\nCOMMIT\n";
    let published = forwarding(&[text]);
    let mut worker = published.worker();
    let FinalVerdict::Drop(DropReason::Rule(at)) = verdict(&mut worker, false, 1) else {
        panic!("a rule drops it")
    };
    let program = published.program();
    let (number, first) = (program.number(), program.rule(Family::Ipv4, at).unwrap().id);
    let revision = Arc::clone(program.revision(Family::Ipv4).unwrap());
    drop(program);
    let mut last = first;
    for expected in 1..10_000 {
        let line = "*filter\n-R FORWARD 1 -p udp -j DROP\nCOMMIT\n";
        published.commit_text(expected, Family::Ipv4, line).unwrap();
        let name = published.program().rule(Family::Ipv4, at).unwrap().id;
        assert!(name > last, "{name} after {last}");
        last = name;
    }
    assert_eq!(published.held().programs, 0, "whoever holds a revision holds up nobody");
    assert_eq!((number, revision.rule_at(at).unwrap().id), (1, first));
    assert_eq!(print_ruleset(&revision.ruleset(), false, |_, _, _| Counters::default()), text);
}

/// Families have their counters and states apart, and one number together.
#[test]
fn families_are_changed_one_by_one() {
    let v4 = "*filter\n:FORWARD DROP [1:2]\n[3:4] -A FORWARD -p udp -j ACCEPT\nCOMMIT\n";
    let v6 = "# ip6tables-save\n*filter\n:FORWARD DROP [0:0]\n-A FORWARD -s 2020::/16\nCOMMIT\n";
    let options = |family| LoadOptions { family: Some(family), ..LoadOptions::default() };
    let load = |text, family| load(text, &options(family)).unwrap().ruleset;
    let rulesets = [load(v4, Family::Ipv4), load(v6, Family::Ipv6)];
    let config = Config { path: Some(Path::Forward), ..Config::default() };
    let published = Published::new(&rulesets, config);
    let mut worker = published.worker();
    assert!(matches!(verdict(&mut worker, false, 1), FinalVerdict::Accept(_)));
    assert!(matches!(verdict(&mut worker, true, 2), FinalVerdict::Drop(_)));
    let line = "*filter\n-I FORWARD -j ACCEPT\nCOMMIT\n";
    assert_eq!(published.commit_text(1, Family::Ipv6, line), Ok(2));
    assert!(matches!(verdict(&mut worker, true, 3), FinalVerdict::Accept(_)));
    let snapshot = published.snapshot().unwrap();
    let packets = |family: Family| {
        let revision = snapshot.program.revision(family).unwrap();
        let rules = revision.rules().map(|rule| snapshot.rule(rule).packets);
        (rules.collect::<Vec<_>>(), snapshot.policy(family, "filter", Hook::Forward).packets)
    };
    assert_eq!(packets(Family::Ipv4), (vec![4], 1));
    assert_eq!(packets(Family::Ipv6), (vec![1, 1], 1));
    // And a family that had no rules gets some.
    let arp = "*filter\n-A INPUT -j DROP\nCOMMIT\n";
    assert_eq!(published.commit_text(2, Family::Arp, arp), Ok(3));
    assert_eq!(published.program().revision(Family::Arp).unwrap().rule_count(), 1);
    assert!(matches!(verdict(&mut worker, true, 4), FinalVerdict::Accept(_)));
}

/// Lists come and go with the rules that name them, also for a worker that did not look meanwhile.
#[test]
fn a_list_is_its_names_as_long_as_a_rule_names_it() {
    let sets = "-A FORWARD -m recent --name SEEN --set -j ACCEPT\n";
    let asks = "-R FORWARD 1 -m recent --name SEEN --rcheck -j ACCEPT";
    let published = forwarding(&[&format!("*filter\n:FORWARD DROP [0:0]\n{sets}COMMIT\n")]);
    let mut worker = published.worker();
    let mut number = 1;
    let mut commit = |line: &str| {
        let text = format!("*filter\n{line}\nCOMMIT\n");
        number = published.commit_text(number, Family::Ipv4, &text).unwrap();
    };
    assert!(accepts(&mut worker, 1));
    commit(asks);
    assert!(accepts(&mut worker, 2), "another rule of the same name");
    commit("-F FORWARD");
    commit(&asks.replace("-R FORWARD 1", "-A FORWARD"));
    assert!(!accepts(&mut worker, 3), "no rule named it meanwhile");
}

#[test]
fn rules_that_somebody_holds_are_taken() {
    let text = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p udp -j ACCEPT\nCOMMIT\n";
    let published = forwarding(&["*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"]);
    let given = ruleset(text);
    let held = Arc::clone(&given.tables[0].chains[0].rules[0]);
    assert_eq!(published.replace(1, given), Ok(2));
    let program = published.program();
    let own = rules(&program).rule("filter", "FORWARD", 0).unwrap();
    assert!(!Arc::ptr_eq(own, &held));
    assert!(accepts(&mut published.worker(), 1));
}
