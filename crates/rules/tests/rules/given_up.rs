//! Walks that are given up: after how many steps, why, and what is known of their packets then.

use std::cell::Cell;

use host::Host;
use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, Link, Mark, Packet};
use rules::Transit;
use rules::eval::{
    Alive, By, Cause, Claim, MAX_STEPS, Memories, Nobody, Observer, PATIENCE, RuleRef, Verdict,
    Verdicts, walk,
};
use rules::model::{Family, Hook, Ruleset};
use rules::revision::{Numbers, Revision};
use rules::save::{LoadOptions, load};

/// Steps between two times that an observer is asked whether to stop.
const ASKED_EVERY: u32 = 4096;

/// Rules whose walk through FORWARD takes this many steps, at least `MAX_STEPS - 2`: chains jump to each other twice over.
/// A walk through INPUT takes one.
fn long(steps: u32) -> Ruleset {
    let mut text = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n".to_owned();
    (0..=20).for_each(|level| text.push_str(&format!(":d{level} -\n")));
    text.push_str("-A INPUT -m limit --limit 1/hour --limit-burst 50 -j DROP\n");
    text.push_str("-A FORWARD -j d0\n-A FORWARD -j d0\n");
    for level in 0..20 {
        text.push_str(&format!("-A d{level} -j d{0}\n-A d{level} -j d{0}\n", level + 1));
    }
    (MAX_STEPS - 2..steps).for_each(|_| text.push_str("-A FORWARD -p icmp -j DROP\n"));
    text.push_str("COMMIT\n");
    load(&text, &LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() })
        .unwrap()
        .ruleset
}

/// Counts the times that it is asked whether to stop, says so from one of them on, and keeps why rules are unknown.
#[derive(Default)]
struct Asked {
    times: Cell<u32>,
    stops_at: Option<u32>,
    unknown: Vec<(RuleRef, Cause)>,
}

impl Asked {
    fn stopping_at(time: u32) -> Self {
        Self { stops_at: Some(time), ..Self::default() }
    }
}

impl Observer for Asked {
    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.unknown.push((at, cause));
    }

    fn stops(&self) -> bool {
        self.times.set(self.times.get() + 1);
        self.stops_at.is_some_and(|time| self.times.get() >= time)
    }
}

/// What a datagram meets at a hook, and its mark after that.
fn meets(hook: Hook, walks: impl FnOnce(&mut Transit<'_, '_>) -> Verdicts) -> (Verdicts, Mark) {
    let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
    let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, Message::udp(1, 2)) }.frame();
    let len = bytes.len();
    let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    let base = Transit::new(&mut packet, Family::Ipv4, hook, &host);
    let mut transit = Transit { time: Some(1_000_000_000), ..base };
    (walks(&mut transit), transit.mark)
}

fn by_model(
    rules: &Ruleset,
    hook: Hook,
    memories: &mut Memories,
    observer: &mut impl Observer,
) -> (Verdicts, Mark) {
    meets(hook, |transit| walk(rules, 0, transit, Alive::Certain, memories, observer))
}

fn by_revision(
    revision: &Revision,
    hook: Hook,
    memories: &mut Memories,
    observer: &mut impl Observer,
) -> Verdicts {
    meets(hook, |transit| revision.walk(0, transit, Alive::Certain, memories, observer)).0
}

fn only(verdicts: &Verdicts) -> Option<Verdict> {
    verdicts.only().map(|(verdict, _)| verdict)
}

fn forward(rule: u32) -> RuleRef {
    RuleRef { table: 0, chain: 1, rule }
}

#[test]
fn a_walk_may_take_its_steps_and_no_more() {
    let rules = long(MAX_STEPS);
    let mut asked = Asked::default();
    let (verdicts, mark) = by_model(&rules, Hook::Forward, &mut Memories::of(&rules), &mut asked);
    assert_eq!((only(&verdicts), verdicts.is_given_up()), (Some(Verdict::Accept), false));
    assert_eq!((mark, verdicts.translated_by()), (Mark::default(), Claim::None));
    assert_eq!((asked.times.get(), asked.unknown), (MAX_STEPS / ASKED_EVERY, vec![]));

    let rules = long(MAX_STEPS + 1);
    let mut asked = Asked::default();
    let (verdicts, mark) = by_model(&rules, Hook::Forward, &mut Memories::of(&rules), &mut asked);
    assert_eq!(asked.unknown, [(forward(4), Cause::Steps)]);
    assert_eq!(mark.unknown, u32::MAX);
    nothing_is_known(&verdicts, forward(4));
}

/// A walk that was given up at this rule leaves both verdicts open, and whether the flow is translated.
fn nothing_is_known(verdicts: &Verdicts, at: RuleRef) {
    assert!(verdicts.is_given_up() && verdicts.only().is_none());
    assert!(verdicts.without_accept().only().is_none(), "in the tables after this one, too");
    let by = [Verdict::Accept, Verdict::Drop, Verdict::Reject].map(|each| verdicts.by(each));
    assert_eq!(by, [Some(By::Rule(at)), Some(By::Rule(at)), None]);
    let anything = Claim::Open { draws: true, redirects: true, moves_source: true };
    assert_eq!(verdicts.translated_by(), anything);
}

#[test]
fn a_chain_that_is_too_long_for_many_is_given_up_at_once_until_rules_change() {
    let (rules, mut numbers) = (long(MAX_STEPS + 1), Numbers::default());
    let first = Revision::first(&rules, &mut numbers);
    let memories = &mut Memories::among(Family::Ipv4, Default::default());
    memories.follow(&first);
    for _ in 0..PATIENCE {
        let verdicts = by_revision(&first, Hook::Forward, memories, &mut Nobody);
        nothing_is_known(&verdicts, forward(4));
    }
    nothing_is_known(&by_revision(&first, Hook::Forward, memories, &mut Nobody), forward(0));
    let mut asked = Asked::default();
    nothing_is_known(&by_revision(&first, Hook::Forward, memories, &mut asked), forward(0));
    assert_eq!((asked.times.get(), asked.unknown), (0, vec![(forward(0), Cause::Patience)]));
    let input = by_revision(&first, Hook::Input, memories, &mut Nobody);
    assert!(!input.is_given_up(), "another chain is walked");

    let second = first.changed_by("*filter\n-D FORWARD -j d0\nCOMMIT\n", &mut numbers).unwrap();
    memories.follow(&second);
    let verdicts = by_revision(&second, Hook::Forward, memories, &mut Nobody);
    assert_eq!(only(&verdicts), Some(Verdict::Accept), "half as long, and walked again");
}

#[test]
fn a_walk_ends_when_one_of_its_observers_says_so() {
    let rules = long(MAX_STEPS);
    let revision = Revision::first(&rules, &mut Numbers::default());
    let memories = &mut Memories::of(&rules);
    for time in 1..=PATIENCE + 2 {
        let mut one = Asked::stopping_at(time);
        let mut pairs = (Asked::stopping_at(time), Asked::default());
        let mut turned = (Asked::default(), Asked::stopping_at(time));
        let mut lent = Asked::stopping_at(time);
        let verdicts = [
            by_model(&rules, Hook::Forward, memories, &mut one).0,
            by_revision(&revision, Hook::Forward, memories, &mut pairs),
            by_revision(&revision, Hook::Forward, memories, &mut turned),
            by_revision(&revision, Hook::Forward, memories, &mut &mut lent),
        ];
        assert!(verdicts.iter().all(Verdicts::is_given_up), "{time}");
        for observer in [&one, &pairs.0, &turned.1, &lent] {
            assert_eq!(observer.times.get(), time);
            let [(_, cause)] = observer.unknown[..] else { panic!("{:?}", observer.unknown) };
            assert_eq!(cause, Cause::Stopped, "however often: it says nothing of the chain");
        }
    }
}

#[test]
fn what_matches_remember_is_not_known_after_a_walk_that_was_given_up() {
    let rules = long(MAX_STEPS);
    let own = || Memories::of(&rules);
    let input =
        |memories: &mut Memories| only(&by_model(&rules, Hook::Input, memories, &mut Nobody).0);
    let give_up = |memories: &mut Memories| {
        by_model(&rules, Hook::Forward, memories, &mut Asked::stopping_at(1));
    };
    let mut memories = own();
    assert_eq!(input(&mut memories), Some(Verdict::Drop));
    give_up(&mut memories);
    assert_eq!(input(&mut memories), None);
    assert_eq!(input(&mut own()), Some(Verdict::Drop), "those of another walker are");
}

#[test]
fn rules_made_after_a_walk_that_was_given_up_remember_for_sure() {
    let mut numbers = Numbers::default();
    let first = Revision::first(&long(MAX_STEPS), &mut numbers);
    let memories = &mut Memories::among(Family::Ipv4, Default::default());
    memories.follow(&first);
    by_revision(&first, Hook::Forward, memories, &mut Asked::stopping_at(1));
    let input = |revision: &Revision, memories: &mut Memories| {
        only(&by_revision(revision, Hook::Input, memories, &mut Nobody))
    };
    assert_eq!(input(&first, memories), None, "met for the first time, and in doubt");
    let text = "*filter\n-I INPUT -m limit --limit 1/hour --limit-burst 1 -j REJECT\nCOMMIT\n";
    let second = first.changed_by(text, &mut numbers).unwrap();
    memories.follow(&second);
    assert_eq!(input(&second, memories), Some(Verdict::Reject));
    assert_eq!(
        input(&second, memories),
        None,
        "that one says no, and the one after it is in doubt"
    );
}
