//! Lists as rules see them, packet by packet.

use super::*;
use crate::ext::kit::testing::{ipv4_udp, with_transit};
use conntrack::SECOND;

/// Some rules of one list each, asked one by one.
struct Rules {
    memories: Vec<Looking>,
    lists: NamedLists,
    now: u64,
    certain: bool,
}

impl Rules {
    fn new(questions: &[Question]) -> Self {
        let memories = questions.iter().map(|question| {
            let room = match question.hits {
                0 => USUAL_ROOM,
                hits => hits as usize,
            };
            let (name, mask) = ("a".into(), [0xff; 16]);
            Looking {
                name,
                mask,
                room,
                by_destination: false,
                question: *question,
                list: None,
                seen: None,
            }
        });
        let memories = memories.collect();
        Self { memories, lists: NamedLists::default(), now: SECOND, certain: true }
    }

    fn ask(&mut self, rule: usize, host: u8) -> Outcome {
        let mut bytes = ipv4_udp(b"");
        bytes[15] = host;
        let Self { memories, lists, now, certain } = self;
        with_transit(&bytes, bytes.len(), |transit| {
            (transit.time, transit.certain) = (Some(*now), *certain);
            transit.hook = Hook::Prerouting;
            memories[rule].evaluate(transit, lists)
        })
    }

    fn wait(&mut self, seconds: u64) {
        self.now += seconds * SECOND;
    }
}

fn question(action: Action) -> Question {
    Question { action, invert: false, seconds: None, hits: 0, by_ttl: false, reaps: false }
}

const SET: usize = 0;

#[test]
fn the_fourth_within_a_minute_is_told() {
    let update = Question { seconds: Some(60), hits: 4, ..question(Action::Update) };
    let mut rules = Rules::new(&[question(Action::Set), update]);
    let attempt = |rules: &mut Rules, host| {
        let told = rules.ask(1, host);
        if told == Outcome::NO {
            rules.ask(SET, host);
        }
        rules.wait(10);
        told
    };
    let told: Vec<_> = (0..6).map(|_| attempt(&mut rules, 1)).collect();
    use Outcome as O;
    assert_eq!(told, [O::NO, O::NO, O::NO, O::NO, O::YES, O::YES], "each attempt renews it");
    assert_eq!(attempt(&mut rules, 2), Outcome::NO, "another host");
    rules.wait(61);
    assert_eq!(attempt(&mut rules, 1), Outcome::NO);
}

#[test]
fn what_is_removed_is_gone_and_the_answer_says_whether_it_was_there() {
    let mut rules = Rules::new(&[question(Action::Set), question(Action::Remove)]);
    assert_eq!(rules.ask(1, 1), Outcome::NO);
    rules.ask(SET, 1);
    assert_eq!(rules.ask(1, 1), Outcome::YES);
    assert_eq!(rules.ask(1, 1), Outcome::NO);
}

#[test]
fn a_hundred_addresses_are_held_and_the_one_not_seen_for_longest_goes() {
    let mut rules = Rules::new(&[question(Action::Set), question(Action::Check)]);
    for host in 0..100 {
        rules.ask(SET, host);
    }
    rules.ask(SET, 0);
    rules.ask(SET, 100);
    assert_eq!(rules.ask(1, 0), Outcome::YES);
    assert_eq!(rules.ask(1, 1), Outcome::NO);
}

#[test]
fn an_exclamation_mark_turns_the_answer_and_updates_what_did_not_match() {
    let update = Question { invert: true, seconds: Some(5), ..question(Action::Update) };
    let mut rules = Rules::new(&[question(Action::Set), update]);
    assert_eq!(rules.ask(1, 1), Outcome::YES, "not there");
    rules.ask(SET, 1);
    assert_eq!(rules.ask(1, 1), Outcome::NO);
    rules.wait(6);
    assert_eq!(rules.ask(1, 1), Outcome::YES, "too old, and renewed");
    assert_eq!(rules.ask(1, 1), Outcome::NO);
}

#[test]
fn only_the_oldest_is_reaped() {
    let reap = Question { seconds: Some(5), reaps: true, ..question(Action::Check) };
    let mut rules = Rules::new(&[question(Action::Set), reap, question(Action::Check)]);
    for host in 1..=3 {
        rules.ask(SET, host);
    }
    rules.wait(9);
    assert_eq!(rules.ask(1, 3), Outcome::NO);
    assert_eq!(
        (1..=3).map(|host| rules.ask(2, host)).collect::<Vec<_>>(),
        [Outcome::NO, Outcome::YES, Outcome::YES]
    );
}

#[test]
fn a_packet_that_may_not_have_come_leaves_an_address_that_may_not_be_there() {
    let mut rules = Rules::new(&[
        question(Action::Set),
        question(Action::Check),
        Question { hits: 2, ..question(Action::Check) },
    ]);
    rules.certain = false;
    assert_eq!(rules.ask(SET, 1), Outcome::YES);
    rules.certain = true;
    assert_eq!(rules.ask(1, 1), Outcome::MAYBE);
    rules.ask(SET, 1);
    assert_eq!((rules.ask(1, 1), rules.ask(2, 1)), (Outcome::YES, Outcome::MAYBE));
    rules.ask(SET, 1);
    assert_eq!(rules.ask(2, 1), Outcome::YES);
}

#[test]
fn a_full_list_of_which_something_is_not_known_is_indeterminate() {
    let mut rules = Rules::new(&[question(Action::Set), question(Action::Check)]);
    for host in 0..100 {
        rules.ask(SET, host);
    }
    rules.certain = false;
    rules.ask(SET, 100);
    assert_eq!((rules.ask(1, 5), rules.ask(SET, 5)), (Outcome::MAYBE, Outcome::YES));
}

#[test]
fn with_another_time_to_live_an_address_is_another_one() {
    let by_ttl = Question { by_ttl: true, ..question(Action::Check) };
    let mut rules = Rules::new(&[question(Action::Set), by_ttl]);
    rules.ask(SET, 1);
    assert_eq!(rules.ask(1, 1), Outcome::YES);
    let mut bytes = ipv4_udp(b"");
    (bytes[15], bytes[8]) = (1, bytes[8] - 1);
    let Rules { memories, lists, .. } = &mut rules;
    let mut at = |hook| {
        with_transit(&bytes, bytes.len(), |transit| {
            transit.hook = hook;
            memories[1].evaluate(transit, lists)
        })
    };
    assert_eq!(at(Hook::Prerouting), Outcome::NO);
    assert_eq!(at(Hook::Forward), Outcome::YES, "it was lowered on the way");
}

#[test]
fn an_address_that_is_not_known_may_be_any() {
    let mut rules = Rules::new(&[question(Action::Set), question(Action::Check)]);
    let bytes = ipv4_udp(b"");
    let Rules { memories, lists, .. } = &mut rules;
    let told = with_transit(&bytes, 9, |transit| memories[0].evaluate(transit, lists));
    assert_eq!((told, rules.ask(1, 1)), (Outcome::YES, Outcome::MAYBE));
}

#[test]
fn the_first_rule_of_a_list_says_what_of_an_address_counts() {
    let mut rules = Rules::new(&[question(Action::Set), question(Action::Check)]);
    rules.memories[0].mask = [0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    rules.ask(SET, 1);
    assert_eq!(rules.ask(1, 2), Outcome::YES);
}
