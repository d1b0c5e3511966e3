//! What matches remember: whose it is, how long it stays, and which rule has it.

use std::sync::Arc;

use host::Host;
use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, Link, Packet};
use rules::Transit;
use rules::eval::{Alive, Memories, Nobody, Observer, SharedLists, SharedMemories, Verdict, walk};
use rules::model::{Family, Hook, Ruleset};
use rules::revision::{Numbers, Revision};
use rules::save::{LoadOptions, load};

fn ruleset(rules: &str) -> Ruleset {
    let text = format!("*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n");
    load(&text, &LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() })
        .unwrap()
        .ruleset
}

/// A rule that drops this many packets.
fn limit(burst: u32) -> String {
    format!("-A INPUT -m limit --limit 1/hour --limit-burst {burst} -j DROP\n")
}

/// Drops whatever came before.
const RECENT: &str =
    "-A INPUT -m recent --name seen --rcheck -j DROP\n-A INPUT -m recent --name seen --set\n";

/// Ends every walk at its first rule.
struct Stops;

impl Observer for Stops {
    fn stops(&self) -> bool {
        true
    }
}

/// What a datagram meets in INPUT.
fn meets(walks: impl FnOnce(&mut Transit<'_, '_>) -> Option<Verdict>) -> Option<Verdict> {
    let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, Message::udp(1, 2)) }.frame();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let base = Transit::new(&mut packet, Family::Ipv4, Hook::Input, &host);
    walks(&mut Transit { time: Some(1_000_000_000), ..base })
}

fn read(rules: &Ruleset, memories: &mut Memories) -> Option<Verdict> {
    meets(|transit| {
        walk(rules, 0, transit, Alive::Certain, memories, &mut Nobody).only().map(|found| found.0)
    })
}

fn revised(revision: &Revision, memories: &mut Memories) -> Option<Verdict> {
    meets(|transit| {
        let verdicts = revision.walk(0, transit, Alive::Certain, memories, &mut Nobody);
        verdicts.only().map(|found| found.0)
    })
}

const ACCEPT: Option<Verdict> = Some(Verdict::Accept);
const DROP: Option<Verdict> = Some(Verdict::Drop);

#[test]
fn lists_end_with_the_rules_of_their_family() {
    let lists = Arc::new(SharedLists::default());
    let rules = ruleset(RECENT);
    let revision = Revision::first(&rules, &mut Numbers::default());
    let own = || {
        let mut memories = Memories::among(Family::Ipv4, Arc::clone(&lists));
        memories.follow(&revision);
        memories
    };
    let mut memories = own();
    assert_eq!(revised(&revision, &mut memories), ACCEPT);
    assert_eq!(revised(&revision, &mut own()), DROP, "the list is that of all among them");
    assert_eq!(read(&rules, &mut Memories::of(&rules)), ACCEPT, "these have their own");
    memories.end();
    assert_eq!(revised(&revision, &mut own()), ACCEPT);
}

#[test]
fn a_rule_that_stays_keeps_its_state_wherever_it_comes_to_stand() {
    let mut numbers = Numbers::default();
    let first = Revision::first(&ruleset(&limit(2)), &mut numbers);
    let mut memories = Memories::among(Family::Ipv4, Arc::default());
    memories.follow(&first);
    assert_eq!(memories.room(), 0, "states come to be with packets");
    assert_eq!(revised(&first, &mut memories), DROP);
    let new = ruleset(&format!("-A INPUT -p icmp\n{}{}", limit(1), limit(2)));
    let next = first.replaced_by(new, &mut numbers).unwrap();
    memories.follow(&next);
    let met: Vec<_> = (0..3).map(|_| revised(&next, &mut memories)).collect();
    assert_eq!(met, [DROP, DROP, ACCEPT], "one of the new rule, one that the old one had left");
}

#[test]
fn a_list_that_no_rule_of_a_revision_names_ends() {
    let mut numbers = Numbers::default();
    let first = Revision::first(&ruleset(RECENT), &mut numbers);
    let mut memories = Memories::among(Family::Ipv4, Arc::default());
    memories.follow(&first);
    let met = [revised(&first, &mut memories), revised(&first, &mut memories)];
    assert_eq!(met, [ACCEPT, DROP]);
    let flushed = first.changed_by("*filter\n-F INPUT\nCOMMIT\n", &mut numbers).unwrap();
    memories.follow(&flushed);
    assert_eq!(revised(&flushed, &mut memories), ACCEPT);
    let text = format!("*filter\n{RECENT}COMMIT\n");
    let again = flushed.changed_by(&text, &mut numbers).unwrap();
    memories.follow(&again);
    let met = [revised(&again, &mut memories), revised(&again, &mut memories)];
    assert_eq!(met, [ACCEPT, DROP], "the list began again");
}

/// Two workers of one run, and its rules.
struct Workers {
    shared: Arc<SharedMemories>,
    both: [Memories; 2],
}

impl Workers {
    fn new() -> Self {
        let shared = Arc::new(SharedMemories::among(Arc::default()));
        let both = [(); 2].map(|()| Memories::sharing(Arc::clone(&shared), Family::Ipv4));
        Self { shared, both }
    }

    fn follow(&mut self, revision: &Revision) {
        self.both.iter_mut().for_each(|memories| memories.follow(revision));
    }

    /// What packets meet, one at each of these workers after the other.
    fn meet(&mut self, revision: &Revision, at: &[usize]) -> Vec<Option<Verdict>> {
        at.iter().map(|at| revised(revision, &mut self.both[*at])).collect()
    }
}

#[test]
fn workers_have_one_state_of_each_rule_and_one_list_of_each_name() {
    let rules = ruleset(&format!("{}{}{RECENT}", limit(1), limit(2)));
    let revision = Revision::first(&rules, &mut Numbers::default());
    let mut workers = Workers::new();
    workers.follow(&revision);
    let met = workers.meet(&revision, &[0, 1, 0, 1, 0, 1]);
    assert_eq!(met, [DROP, DROP, DROP, ACCEPT, DROP, DROP]);
    let mut third = Memories::sharing(Arc::clone(&workers.shared), Family::Ipv4);
    third.follow(&revision);
    assert_eq!(revised(&revision, &mut third), DROP, "the list has it");
    let mut apart = Memories::among(Family::Ipv4, Arc::default());
    apart.follow(&revision);
    let met: Vec<_> = (0..4).map(|_| revised(&revision, &mut apart)).collect();
    assert_eq!(met, [DROP, DROP, DROP, ACCEPT], "it shares nothing");
}

#[test]
fn a_place_that_is_given_again_has_the_state_of_its_new_rule() {
    let mut numbers = Numbers::default();
    let first = Revision::first(&ruleset(&limit(2)), &mut numbers);
    let mut workers = Workers::new();
    let mut alone = Memories::among(Family::Ipv4, Arc::default());
    workers.follow(&first);
    alone.follow(&first);
    assert_eq!(workers.meet(&first, &[0, 1, 0]), [DROP, DROP, ACCEPT]);
    let met: Vec<_> = (0..3).map(|_| revised(&first, &mut alone)).collect();
    assert_eq!(met, [DROP, DROP, ACCEPT]);
    let change = |revision: &Revision, line: &str, numbers: &mut Numbers| {
        let next = revision.changed_by(&format!("*filter\n{line}COMMIT\n"), numbers).unwrap();
        numbers.free(next.dropped());
        next
    };
    let without = change(&first, "-D INPUT 1\n", &mut numbers);
    let second = change(&without, &limit(1), &mut numbers);
    let place =
        |revision: &Revision| revision.rule("filter", "INPUT", 0).unwrap().matches[0].memory;
    assert_eq!(place(&first), place(&second), "the same place");
    workers.follow(&second);
    alone.follow(&second);
    assert_eq!(workers.meet(&second, &[1, 0, 1]), [DROP, ACCEPT, ACCEPT]);
    let met: Vec<_> = (0..2).map(|_| revised(&second, &mut alone)).collect();
    assert_eq!(met, [DROP, ACCEPT]);
}

/// A worker's walk through FORWARD is given up.
fn gives_up(revision: &Revision, memories: &mut Memories) {
    let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, Message::udp(1, 2)) }.frame();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let mut transit = Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &host);
    let verdicts = revision.walk(0, &mut transit, Alive::Certain, memories, &mut Stops);
    assert!(verdicts.is_given_up());
}

#[test]
fn a_worker_s_walk_that_was_given_up_leaves_doubt_to_all() {
    let mut numbers = Numbers::default();
    let deep: String = (0..5000).map(|_| "-A FORWARD\n").collect();
    let rules = ruleset(&format!("{}{deep}", limit(9)));
    let first = Revision::first(&rules, &mut numbers);
    let mut workers = Workers::new();
    workers.follow(&first);
    assert_eq!(workers.meet(&first, &[0, 1]), [DROP, DROP]);
    gives_up(&first, &mut workers.both[0]);

    assert_eq!(workers.meet(&first, &[1, 0]), [None, None]);
    let mut late = Memories::sharing(Arc::clone(&workers.shared), Family::Ipv4);
    late.follow(&first);
    assert_eq!(revised(&first, &mut late), None, "who comes later finds it so");

    let text = format!("*filter\n-F INPUT\n{}COMMIT\n", limit(2));
    let second = first.changed_by(&text, &mut numbers).unwrap();
    workers.follow(&second);
    let met = workers.meet(&second, &[1, 0, 1]);
    assert_eq!(met, [DROP, DROP, ACCEPT], "a rule that was not there then is known");
    assert_eq!(workers.meet(&first, &[1]), [None], "the rules before it are not");
}

#[test]
fn a_rule_that_nobody_had_met_is_in_doubt_for_all_after_a_walk_that_was_given_up() {
    let deep: String = (0..5000).map(|_| "-A FORWARD\n").collect();
    let rules = ruleset(&format!("{}{deep}", limit(9)));
    let revision = Revision::first(&rules, &mut Numbers::default());
    let mut workers = Workers::new();
    workers.follow(&revision);
    gives_up(&revision, &mut workers.both[0]);
    let mut late = Memories::sharing(Arc::clone(&workers.shared), Family::Ipv4);
    late.follow(&revision);
    assert_eq!(revised(&revision, &mut late), None);
}
