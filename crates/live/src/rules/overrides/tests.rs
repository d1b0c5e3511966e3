//! What was asked for, held to what a journal makes of it: whatever was acknowledged is there again, and nothing else.

use std::cell::RefCell;
use std::net::IpAddr;

use access::list::Block;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use dataplane::{Config, Start};

/// A journal in memory, which is full after `room` records.
struct Disk {
    state: RefCell<State>,
    room: RefCell<usize>,
}

impl Disk {
    fn record(&self, records: Vec<Record>) -> Result<(), &'static str> {
        let mut room = self.room.borrow_mut();
        *room = room.checked_sub(1).ok_or("full")?;
        records.iter().for_each(|record| self.state.borrow_mut().take(record));
        Ok(())
    }
}

fn published(sets: Option<Sets>) -> Published {
    Published::counting([], Config::default(), Start { sets, ..Start::default() })
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let block = (0..4_u8, 29..=32_u8)
        .prop_map(|(last, bits)| Block::parse(&format!("10.0.0.{last}/{bits}")).expect("a block"));
    let change = (0..4_usize, block.clone(), proptest::option::of(block)).prop_map(
        |(action, source, destination)| {
            let action = Action::ALL[action];
            let is_ban = matches!(action, Action::Ban | Action::Unban);
            Change { action, source, destination: destination.filter(|_| !is_ban) }
        },
    );
    vec(change, 1..5)
}

/// The decisions of a list about each pair of a few addresses.
fn decided(list: &access::list::List) -> Vec<bool> {
    let addr = |last: u8| IpAddr::from([10, 0, 0, last]);
    let pairs = (0..10).flat_map(|from| (0..10).map(move |to| (from, to)));
    pairs.map(|(from, to)| list.decide(addr(from), addr(to)).is_ok()).collect()
}

proptest! {
    /// After any batches, of which the disk takes some, a new start has the list that is in force: what was refused
    /// changed nothing.
    #[test]
    fn bans_are_there_again(batches in vec(changes(), 0..8), room in 0..9_usize, file in changes()) {
        let disk = Disk { state: RefCell::default(), room: RefCell::new(room) };
        let published = published(None);
        published.change_bans(&file);
        let by_hand = Overrides::default();
        for (at, batch) in batches.iter().enumerate() {
            let done = by_hand.change_bans(batch, &published, |records| disk.record(records));
            prop_assert_eq!(done.is_ok(), at < room);
        }
        let again = Overrides::of(&disk.state.borrow());
        let files = || Some(Schedule::default().with(&file));
        let in_force = published.shared().bans().reader().at(None).clone();
        for kept in [&again, &by_hand] {
            let made = kept.held().on_bans(files()).expect("a list");
            prop_assert_eq!(decided(made.list()), decided(&in_force));
        }
        let ranges = by_hand.lock().places.len();
        prop_assert_eq!(by_hand.lock().bans.len(), ranges, "one for each of whom there was one");
    }
}

const SETS: &str = "create bad hash:ip family inet hashsize 1024 maxelem 65536\nadd bad 192.0.2.1\n\
    create good hash:net family inet hashsize 1024 maxelem 65536\n";

fn sets() -> Option<Sets> {
    Some(Sets::parse(SETS).expect("sets"))
}

fn held_by(sets: &Sets) -> Vec<String> {
    let saved = sets.save(None, usize::MAX, 0).into_iter();
    saved
        .map(|mut set| {
            set.some.sort_unstable();
            format!("{} {}", set.name, set.some.join(","))
        })
        .collect()
}

proptest! {
    #[test]
    fn sets_are_there_again(
        texts in vec((0..6_usize, 1..5_u8), 0..30),
        is_long: bool,
        room in 0..40_usize,
    ) {
        let disk = Disk { state: RefCell::default(), room: RefCell::new(room) };
        let published = published(sets());
        let by_hand = Overrides::default();
        if is_long {
            by_hand.lock().bytes = MOST_BYTES - 100;
        }
        for (what, last) in texts {
            let text = match what {
                0 | 1 => format!("add bad 192.0.2.{last} -exist\n"),
                2 => format!("del bad 192.0.2.{last} -exist\nadd good 10.{last}.0.0/16 -exist\n"),
                3 => "flush bad\n".to_owned(),
                4 => format!("add none 192.0.2.{last}\n"),
                _ => format!("del bad 192.0.2.{last}\n"),
            };
            let _ = by_hand.change_sets(&text, &published, |records| disk.record(records));
        }
        let shared = published.shared();
        let in_force = held_by(shared.sets().expect("sets"));
        let again = Overrides::of(&disk.state.borrow());
        let (made, left_out) = again.held().on_sets(sets());
        prop_assert_eq!(held_by(&made.expect("sets")), in_force);
        prop_assert_eq!(left_out, Vec::<String>::new());
    }
}

#[test]
fn a_line_that_the_sets_do_not_take_any_more_is_told() {
    let text = "add bad 192.0.2.9\nadd gone 192.0.2.9\n".to_owned();
    let state = State { sets: [(key(1), text)].into(), ..State::default() };
    let (made, left_out) = Overrides::of(&state).held().on_sets(sets());
    assert_eq!(held_by(&made.expect("sets"))[0], "bad 192.0.2.1,192.0.2.9");
    assert_eq!(left_out.len(), 1);
    assert!(left_out[0].starts_with("a change of the sets is left out: add gone"), "{left_out:?}");
}
