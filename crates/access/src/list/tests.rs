//! The list, compared with a model that keeps every change.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn change(text: &str) -> Change {
    let mut words = text.split(' ');
    let mut word = || words.next();
    let action = word().unwrap();
    Change {
        action: Action::ALL.into_iter().find(|known| known.word() == action).unwrap(),
        source: Block::parse(word().unwrap()).unwrap(),
        destination: word().map(|text| Block::parse(text).unwrap()),
    }
}

fn list(changes: &[&str]) -> List {
    let mut list = List::default();
    changes.iter().for_each(|text| list.update(&change(text)));
    list
}

fn decide(list: &List, source: &str, destination: &str) -> Result<(), Denied> {
    list.decide(source.parse().unwrap(), destination.parse().unwrap())
}

#[test]
fn blocks_are_read() {
    assert_eq!(Block::parse("10.1.2.3/8"), Some(Block::V4((0x0a00_0000, 0x0aff_ffff))));
    assert_eq!(Block::parse("0.0.0.0/0"), Some(Block::V4((0, u32::MAX))));
    assert_eq!(Block::parse("::/0"), Some(Block::V6((0, u128::MAX))));
    assert_eq!(Block::parse("::1"), Some(Block::V6((1, 1))));
    for wrong in ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "::/129", "::1/-1", "x"]
    {
        assert_eq!(Block::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn everything_is_permitted_at_first() {
    let list = List::default();
    assert_eq!(decide(&list, "255.255.255.255", "0.0.0.0"), Ok(()));
    assert_eq!(decide(&list, "::", "ffff::"), Ok(()));
}

#[test]
fn the_last_word_on_a_ban_wins() {
    let list = list(&["ban 10.0.0.0/8", "unban 10.1.0.0/16", "ban 10.1.2.3", "ban 2001:db8::/32"]);
    for (source, banned) in [("10.0.0.1", true), ("10.1.0.1", false), ("10.1.2.3", true)] {
        let expected = if banned { Err(Denied::Banned) } else { Ok(()) };
        assert_eq!(decide(&list, source, "192.0.2.1"), expected, "{source}");
    }
    assert_eq!(decide(&list, "2001:db8::1", "::1"), Err(Denied::Banned));
    assert_eq!(decide(&list, "2001:db9::1", "::1"), Ok(()));
}

#[test]
fn destinations_accept_by_their_range() {
    let list =
        list(&["deny 0.0.0.0/0 192.0.2.0/24", "accept 10.0.0.0/8 192.0.2.128/25", "ban 10.9.9.9"]);
    assert_eq!(decide(&list, "10.0.0.1", "192.0.2.1"), Err(Denied::NotAccepted));
    assert_eq!(decide(&list, "10.0.0.1", "192.0.2.129"), Ok(()));
    assert_eq!(decide(&list, "11.0.0.1", "192.0.2.129"), Err(Denied::NotAccepted));
    assert_eq!(decide(&list, "11.0.0.1", "192.0.3.0"), Ok(()));
    assert_eq!(decide(&list, "10.9.9.9", "192.0.2.129"), Err(Denied::Banned));
}

#[test]
fn what_is_undone_leaves_nothing() {
    let list = list(&["deny 10.0.0.0/8 192.0.2.0/24", "accept 10.0.0.0/8"]);
    assert_eq!(list.v4.ranges(), 1);
}

#[test]
fn changes_take_place_in_their_order() {
    let at = |when, text| (when, change(text));
    let mut schedule = Schedule::new(
        "bans",
        vec![
            at(When::After(20), "unban 10.0.0.1"),
            at(When::Before, "ban 10.0.0.2"),
            at(When::After(10), "ban 10.0.0.1"),
            at(When::At(1030), "ban 10.0.0.1"),
            at(When::At(1030), "unban 10.0.0.2"),
            at(When::At(1030), "unban 10.0.0.1"),
        ],
    );
    let mut banned =
        |time, source: &str| decide(schedule.at(time), source, "192.0.2.1") == Err(Denied::Banned);
    assert!(banned(None, "10.0.0.2") && !banned(None, "10.0.0.1"));
    assert!(!banned(Some(1000), "10.0.0.1"));
    assert!(!banned(Some(1009), "10.0.0.1"));
    assert!(banned(Some(1010), "10.0.0.1") && banned(None, "10.0.0.1"));
    assert!(!banned(Some(1020), "10.0.0.1") && banned(Some(1020), "10.0.0.2"));
    assert!(!banned(Some(2000), "10.0.0.1") && !banned(Some(2000), "10.0.0.2"));
}

/// Eight addresses at each end of the space, so that its bounds are hit often.
fn address() -> impl Strategy<Value = u32> {
    (0u32..8, any::<bool>()).prop_map(|(at, high)| if high { u32::MAX - at } else { at })
}

fn block() -> impl Strategy<Value = Block> {
    (address(), address()).prop_map(|(one, other)| Block::V4((one.min(other), one.max(other))))
}

fn a_change() -> impl Strategy<Value = Change> {
    (0usize..4, block(), prop::option::of(block())).prop_map(|(action, source, destination)| {
        let action = Action::ALL[action];
        let destination = destination.filter(|_| matches!(action, Action::Accept | Action::Deny));
        Change { action, source, destination }
    })
}

/// Whether the last change that speaks of this pair permits it.
fn oracle(changes: &[Change], source: u32, destination: u32) -> Result<(), Denied> {
    let has = |block: Block, address| {
        block.v4().is_some_and(|(first, last)| first <= address && address <= last)
    };
    let last = |yes: Action, no: Action| {
        let mut latest_first = changes.iter().rev();
        let found = latest_first.find(|change| {
            [yes, no].contains(&change.action)
                && has(change.source, source)
                && change.destination.is_none_or(|block| has(block, destination))
        });
        found.map(|change| change.action)
    };
    match (last(Action::Ban, Action::Unban), last(Action::Accept, Action::Deny)) {
        (Some(Action::Ban), _) => Err(Denied::Banned),
        (_, Some(Action::Deny)) => Err(Denied::NotAccepted),
        _ => Ok(()),
    }
}

proptest! {
    /// Two readers in turns, and changes by hand, against the schedule of one.
    #[test]
    fn a_live_list_changes_as_its_schedule_says(
        changes in prop::collection::vec((0..40u64, a_change()), 0..20),
        packets in prop::collection::vec((0..5u64, 0..2usize, 0..9u32), 1..40),
    ) {
        let timed = changes.iter().map(|(after, change)| (When::After(*after), *change));
        let mut schedule = Schedule::new("", timed.collect());
        let live = Arc::new(Live::new(schedule.clone()));
        let mut readers = [live.reader(), live.reader()];
        let mut now = 1000;
        for (wait, reader, source) in packets {
            now += wait;
            let [source, other] = [source, 8 - source].map(|at| IpAddr::V4(Ipv4Addr::from_bits(at)));
            let expected = schedule.at(Some(now)).decide(source, other);
            prop_assert_eq!(readers[reader].at(Some(now)).decide(source, other), expected);
        }
        let everything = Block::parse("0.0.0.0/0").unwrap();
        let ban = Change { action: Action::Ban, source: everything, destination: None };
        live.update_all(&[ban]);
        let source = IpAddr::V4(Ipv4Addr::from_bits(7));
        for reader in &mut readers {
            prop_assert_eq!(reader.at(None).decide(source, source), Err(Denied::Banned));
        }
    }
}

proptest! {
    #[test]
    fn as_if_every_change_were_remembered(changes in prop::collection::vec(a_change(), 0..40)) {
        let mut one_by_one = List::default();
        changes.iter().for_each(|change| one_by_one.update(change));
        let published = Published::default();
        published.update_all(&changes);
        let mut reader = published.reader();
        let ends = (0u32..9).chain(u32::MAX - 8..=u32::MAX);
        for (source, destination) in ends.clone().flat_map(|s| ends.clone().map(move |d| (s, d))) {
            let expected = oracle(&changes, source, destination);
            let ip = |address| IpAddr::V4(Ipv4Addr::from_bits(address));
            prop_assert_eq!(one_by_one.decide(ip(source), ip(destination)), expected);
            prop_assert_eq!(reader.latest().decide(ip(source), ip(destination)), expected);
        }
    }

    /// The changes are blocks, as files of bans have them.
    #[test]
    fn a_list_is_what_its_own_changes_make(changes in prop::collection::vec(a_change(), 0..40)) {
        let mut list = List::default();
        list.update_all(&changes);
        let own = list.changes();
        for Change { source, destination, .. } in &own {
            for block in [Some(*source), *destination].into_iter().flatten() {
                prop_assert_eq!(Block::parse(&block.to_string()), Some(block));
            }
        }
        let mut again = List::default();
        own.iter().for_each(|change| again.update(change));
        prop_assert_eq!(&again, &list);
        prop_assert_eq!(again.changes(), own);
    }
}

#[test]
fn what_a_list_says_of_itself_is_short() {
    let text = |changes: &[&str]| -> Vec<String> {
        let said = list(changes).changes();
        said.iter().map(|change| format!("{} {}", change.action.word(), change.source)).collect()
    };
    assert!(text(&[]).is_empty() && text(&["ban ::/0", "unban ::/0"]).is_empty());
    assert_eq!(
        text(&["ban ::/0", "ban 10.0.0.0/9", "ban 10.128.0.0/9"]),
        ["ban 10.0.0.0/8", "ban ::/0"]
    );
    assert_eq!(text(&["ban 255.255.255.254/31"]), ["ban 255.255.255.254/31"]);
    let guarded = ["deny 0.0.0.0/0 10.0.0.1", "accept 10.9.0.0/16 10.0.0.1"];
    assert_eq!(text(&guarded), ["deny 0.0.0.0/0", "accept 10.9.0.0/16"]);
    assert_eq!(text(&["deny 10.9.0.1 10.0.0.1"]), ["deny 10.9.0.1/32"]);
}
