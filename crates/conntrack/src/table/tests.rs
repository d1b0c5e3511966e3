//! The table against a plain map, its bound, and what it costs.

use super::*;
use crate::flow::Flow;
use crate::index::Handle;
use crate::key::{Direction, HashKey, Tuple};
use crate::second::SECOND;
use crate::status::Status;
use proptest::prelude::*;
use std::collections::HashMap;

fn tuple(source: u16, destination: u16) -> Tuple {
    Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, [source, destination])
}

fn flow(tuple: Tuple, timeout: u64) -> Flow {
    let mut flow = Flow::new(tuple, tuple.inverse().unwrap(), 1);
    flow.deadline = timeout;
    flow
}

fn add(table: &mut Table, tuple: Tuple, timeout: u64, now: u64) -> Option<Handle> {
    let handle = table.allocate(&flow(tuple, timeout), now).0?;
    if table.confirm(handle, now).is_err() {
        table.release(handle);
        return None;
    }
    Some(handle)
}

#[test]
fn a_flow_is_found_by_both_tuples_until_it_dies() {
    let mut table = Table::new(16, false, HashKey::new(None));
    let there = tuple(1, 2);
    let handle = add(&mut table, there, SECOND, 5).unwrap();
    assert_eq!(table.find(&there, None, 6), Some((handle, Direction::Original)));
    let back = there.inverse().unwrap();
    assert_eq!(table.find(&back, None, 6), Some((handle, Direction::Reply)));
    assert_eq!(table.find(&there, Some(Direction::Reply), 6), None);
    assert_eq!(table.find(&there, None, SECOND + 5), None, "its time is over");
    assert_eq!((table.len(), table.stats().expired), (0, 1));
    assert!(table.flow(handle).is_none(), "the handle leads nowhere");
    assert!(add(&mut table, there, SECOND, SECOND + 6).is_some());
    assert!(table.flow(handle).is_none(), "not to the slot's next flow either");
}

#[test]
fn a_tuple_can_be_taken_once() {
    let mut table = Table::new(16, false, HashKey::new(None));
    let handle = add(&mut table, tuple(1, 2), SECOND, 0).unwrap();
    let second = table.allocate(&flow(tuple(1, 2), SECOND), 0).0.unwrap();
    assert_eq!(table.confirm(second, 0), Err(Conflict::With(handle)));
    let reversed = table.allocate(&flow(tuple(1, 2).inverse().unwrap(), SECOND), 0).0.unwrap();
    assert_eq!(table.confirm(reversed, 0), Err(Conflict::With(handle)));
}

#[test]
fn a_full_table_drops_the_unassured_and_keeps_the_assured() {
    let mut table = Table::new(64, false, HashKey::new(None));
    for port in 0..32 {
        let handle = add(&mut table, tuple(port, 1), 100 * SECOND, 0).unwrap();
        table.flow_mut(handle).unwrap().status.set(Status::ASSURED);
    }
    for port in 0..10_000 {
        add(&mut table, tuple(port, 2), 100 * SECOND, 0);
        assert!(table.len() <= 64);
    }
    assert!(table.stats().early_drops > 9_000, "{:?}", table.stats());
    for port in 0..32 {
        assert!(table.find(&tuple(port, 1), None, 1).is_some(), "{port}");
    }
}

#[test]
fn a_table_full_of_assured_flows_refuses() {
    let mut table = Table::new(64, false, HashKey::new(None));
    for port in 0..64 {
        let handle = add(&mut table, tuple(port, 1), 100 * SECOND, 0).unwrap();
        table.flow_mut(handle).unwrap().status.set(Status::ASSURED);
    }
    assert_eq!(add(&mut table, tuple(1, 2), SECOND, 0), None);
    assert_eq!(table.stats().refused, 1);
    assert!(add(&mut table, tuple(1, 2), SECOND, 100 * SECOND).is_some(), "the dead make room");
}

#[test]
fn the_sweep_finds_the_dead_that_nobody_asks_for() {
    let mut table = Table::new(100_000, false, HashKey::new(None));
    for port in 0..1000 {
        add(&mut table, tuple(port, 1), SECOND, 0);
    }
    for port in 0..1000 {
        add(&mut table, tuple(port, 2), 100 * SECOND, 2 * SECOND);
    }
    assert_eq!(table.len(), 1000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Few ports and short lives, so that flows clash, die and come again.
    #[test]
    fn equals_a_map(steps in prop::collection::vec((0u8..4, 0u16..12, 0u16..3, 0u64..4), 0..300)) {
        let mut table = Table::new(1024, false, HashKey::new(None));
        let mut model: HashMap<Tuple, u64> = HashMap::new();
        let mut now = 0;
        for (what, source, destination, wait) in steps {
            now += wait;
            let tuple = tuple(source, 100 + destination);
            model.retain(|_, deadline| *deadline > now);
            match what {
                0 | 1 => {
                    let added = add(&mut table, tuple, 10, now).is_some();
                    prop_assert_eq!(added, !model.contains_key(&tuple));
                    model.entry(tuple).or_insert(now + 10);
                }
                2 => {
                    if let Some((handle, _)) = table.find(&tuple, None, now) {
                        table.release(handle);
                    }
                    model.remove(&tuple);
                }
                _ => {
                    if let Some((handle, _)) = table.find(&tuple, None, now) {
                        table.flow_mut(handle).unwrap().deadline = now + 10;
                        model.insert(tuple, now + 10);
                    }
                }
            }
            for tuple in (0..12).flat_map(|s| (0..3).map(move |d| super::tests::tuple(s, 100 + d))) {
                let back = tuple.inverse().unwrap();
                let known = model.contains_key(&tuple);
                prop_assert_eq!(table.find(&tuple, None, now).is_some(), known);
                prop_assert_eq!(table.find(&back, None, now).is_some(), known);
            }
            prop_assert_eq!(table.len(), model.len());
        }
    }
}
