//! The counts that Linux 6.18.44 gives (measured, or told by `nf_conncount.c` where it says so).

use std::collections::HashMap;

use super::*;
use conntrack::Zone;

const KEY: Key = Key { address: [0; 16], zone: 0 };
const MS: u64 = 1_000_000;

/// The connections of a test, by port.
#[derive(Default)]
struct Net {
    fates: HashMap<u16, Fate>,
    now: u64,
}

impl Flows for Net {
    fn fate(&mut self, tuple: &Tuple, _zone: Zone, _now: u64) -> Fate {
        self.fates.get(&tuple.source_part()).copied().unwrap_or(Fate::Gone)
    }
}

fn tuple(port: u16) -> Tuple {
    Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 6, [port, 80])
}

impl Net {
    fn wait(&mut self, millis: u64) {
        self.now += millis * MS;
    }

    fn visit(&self, port: u16, standing: Standing) -> Visit {
        let (now, zone, born) = (self.now, Zone::default(), u64::from(port));
        Visit { now, certain: true, tuple: tuple(port), zone, born, is_flow: true, standing }
    }

    /// A first packet, which leaves.
    fn open(&mut self, lists: &mut Lists, port: u16) -> (u32, Option<u32>) {
        let counted = lists.count(KEY, &self.visit(port, Standing::Begins), self);
        self.fates.insert(port, Fate::Living(port.into(), 0));
        (counted.least, counted.most)
    }

    fn comes(&mut self, lists: &mut Lists, port: u16, standing: Standing) -> (u32, Option<u32>) {
        let counted = lists.count(KEY, &self.visit(port, standing), self);
        (counted.least, counted.most)
    }
}

#[test]
fn living_connections_are_counted_once() {
    let (mut net, mut lists) = (Net::default(), Lists::default());
    for (port, count) in [(1, 1), (2, 2), (3, 3)] {
        net.wait(1);
        assert_eq!(net.open(&mut lists, port), (count, Some(count)));
    }
    for standing in [Standing::Confirmed, Standing::Assured] {
        net.wait(1);
        assert_eq!(net.comes(&mut lists, 2, standing), (3, Some(3)), "{standing:?}");
    }
}

#[test]
fn one_that_is_over_is_taken_out_in_the_next_tick() {
    let (mut net, mut lists) = (Net::default(), Lists::default());
    net.open(&mut lists, 1);
    net.open(&mut lists, 2);
    net.fates.insert(1, Fate::Closed(0));
    assert_eq!(net.comes(&mut lists, 2, Standing::Assured), (1, Some(2)), "is it another tick?");
    net.wait(10);
    assert_eq!(net.comes(&mut lists, 2, Standing::Assured), (1, Some(1)));
}

#[test]
fn one_that_never_left_is_spared_for_two_ticks_where_another_processor_entered_it() {
    let (mut net, mut lists) = (Net::default(), Lists::default());
    net.open(&mut lists, 1);
    net.fates.remove(&1);
    net.wait(15);
    assert_eq!(net.comes(&mut lists, 2, Standing::Begins), (1, Some(2)));
    net.fates.insert(2, Fate::Living(2, 0));
    net.wait(15);
    assert_eq!(net.comes(&mut lists, 2, Standing::Assured), (1, Some(1)));
}

#[test]
fn the_last_one_over_drops_the_packet_and_an_assured_one_does_not_come_back() {
    let (mut net, mut lists) = (Net::default(), Lists::default());
    net.open(&mut lists, 1);
    net.fates.insert(1, Fate::Closed(0));
    net.wait(20);
    assert_eq!(net.comes(&mut lists, 1, Standing::Assured), (0, Some(0)));
    net.wait(20);
    assert_eq!(net.comes(&mut lists, 1, Standing::Assured), (0, Some(0)));
    assert_eq!(net.comes(&mut lists, 2, Standing::Begins), (1, Some(1)));
}

#[test]
fn an_assured_one_is_entered_where_its_list_is_made_for_it_alone() {
    let (mut net, mut there) = (Net::default(), Lists::of_one(KEY));
    assert_eq!(net.comes(&mut there, 1, Standing::Assured), (0, Some(0)));
    assert_eq!(net.open(&mut there, 2), (1, Some(1)));
    let mut made = Lists::default();
    assert_eq!(net.comes(&mut made, 1, Standing::Assured).1, Some(1));
}

#[test]
fn a_repeated_first_packet_may_be_entered_twice_within_a_tick() {
    let (mut net, mut lists) = (Net::default(), Lists::default());
    net.comes(&mut lists, 1, Standing::Begins);
    net.wait(1);
    assert_eq!(net.comes(&mut lists, 1, Standing::Begins), (1, Some(2)));
    net.wait(50);
    assert_eq!(net.comes(&mut lists, 1, Standing::Begins), (1, Some(1)));
}

#[test]
fn a_walk_takes_out_no_more_than_65() {
    let (mut net, mut lists) = (Net::default(), Lists::default());
    for port in 1..=100 {
        net.open(&mut lists, port);
    }
    for port in 1..=99 {
        net.fates.insert(port, Fate::Closed(0));
    }
    net.wait(20);
    // 35 of the hundred are left, and the new one: measured with 100 resets.
    assert_eq!(net.comes(&mut lists, 200, Standing::Begins), (36, Some(36)));
    net.wait(20);
    net.fates.insert(200, Fate::Living(200, 0));
    assert_eq!(net.comes(&mut lists, 200, Standing::Assured), (2, Some(2)));
}

#[test]
fn a_packet_that_may_not_come_by_leaves_an_entry_that_may_be_there() {
    let (mut net, mut lists) = (Net::default(), Lists::default());
    net.open(&mut lists, 1);
    let visit = Visit { certain: false, ..net.visit(2, Standing::Begins) };
    lists.count(KEY, &visit, &mut net);
    net.fates.insert(2, Fate::Living(2, 0));
    net.wait(20);
    assert_eq!(net.comes(&mut lists, 1, Standing::Assured), (1, Some(2)));
    assert_eq!(net.comes(&mut lists, 2, Standing::Confirmed), (2, Some(2)));
}

#[test]
fn a_new_list_elsewhere_may_have_others_looked_through() {
    let (mut net, mut lists) = (Net::default(), Lists::default());
    net.open(&mut lists, 1);
    net.fates.insert(1, Fate::Closed(0));
    let other = Key { address: [1; 16], zone: 0 };
    net.wait(100);
    lists.count(other, &net.visit(9, Standing::Begins), &mut net);
    // If it was looked through then, it may have been removed, and made again.
    assert_eq!(net.comes(&mut lists, 1, Standing::Assured), (0, Some(1)));
}

#[test]
fn midway_there_may_be_any_number_more() {
    let (mut net, mut lists) = (Net::default(), Lists::default());
    lists.starts_midway(true);
    assert_eq!(net.open(&mut lists, 1), (1, None));
    assert_eq!(net.open(&mut lists, 2), (2, None));
    assert_eq!(net.comes(&mut lists, 3, Standing::Unknown), (2, None));
}

#[test]
fn what_is_indeterminate_stays_so_and_memory_is_bounded() {
    let (mut net, mut lists) = (Net::default(), Lists::default());
    for port in 0..=LONGEST as u16 {
        net.open(&mut lists, port);
        net.wait(20);
    }
    assert_eq!((lists.indeterminate, lists.entries, lists.by_key.len()), (true, 0, 0));
    assert_eq!(net.comes(&mut lists, 1, Standing::Begins), (1, None));
}

/// A run as the kernel does it, with one of the possible ticks and processors.
mod sound {
    use proptest::prelude::*;

    use super::*;

    /// The kernel's list, as `nf_conncount.c` keeps it.
    #[derive(Default)]
    struct Kernel {
        list: Option<Vec<(Tuple, u64, bool)>>,
        last_walk: u64,
        since_walk: usize,
        tick: u64,
    }

    impl Kernel {
        fn jiffy(&self, now: u64) -> u64 {
            now / self.tick
        }

        fn is_evicted(&self, entry: &(Tuple, u64, bool), fate: Fate, now: u64, cpu: bool) -> bool {
            let age = self.jiffy(now) - self.jiffy(entry.1);
            match fate {
                Fate::Gone => entry.2 == cpu || age >= 2,
                fate => matches!(fate, Fate::Closed(_)),
            }
        }

        fn count(&mut self, visit: &Visit, net: &Net, cpu: bool) -> u32 {
            let fate = |t: &Tuple| net.fates.get(&t.source_part()).copied().unwrap_or(Fate::Gone);
            let now = self.jiffy(visit.now);
            let news = (visit.tuple, visit.now, cpu);
            let Some(mut list) = self.list.take() else {
                (self.last_walk, self.since_walk) = (now, 0);
                self.list = Some(vec![news]);
                return 1;
            };
            let mut taken = 0;
            let (mut at, mut found) = (0, false);
            if visit.standing == Standing::Assured {
                if now != self.last_walk && !list.is_empty() {
                    while at < list.len() {
                        let its = fate(&list[at].0);
                        if self.is_evicted(&list[at], its, visit.now, cpu) {
                            list.remove(at);
                            taken += 1;
                            continue;
                        }
                        at += 1;
                        if its != Fate::Gone && taken > AT_ONCE {
                            break;
                        }
                    }
                    (self.last_walk, self.since_walk) = (now, list.len());
                }
                let count = list.len() as u32;
                self.list = Some(list);
                return count;
            }
            let again = now == self.last_walk && list.len() - self.since_walk.min(list.len()) < 64;
            if visit.standing == Standing::Confirmed || !again {
                while at < list.len() && taken <= AT_ONCE && !found {
                    let its = fate(&list[at].0);
                    let same = list[at].0 == visit.tuple;
                    let gone = self.is_evicted(&list[at], its, visit.now, cpu);
                    if same && (its != Fate::Gone || !gone) {
                        found = true;
                    } else if gone {
                        list.remove(at);
                        taken += 1;
                    } else {
                        at += 1;
                    }
                }
                if !found {
                    (self.last_walk, self.since_walk) = (now, list.len());
                }
            }
            if !found {
                list.push(news);
            }
            let count = list.len() as u32;
            self.list = Some(list);
            count
        }
    }

    proptest! {
        #[test]
        fn every_count_of_the_kernel_is_within_the_range(
            steps in prop::collection::vec(
                (1u16..8, 0u8..10, 0u64..30, any::<bool>(), 0u8..4), 1..80),
            tick in prop::sample::select(vec![1u64, 3, 4, 10]),
            start in 0u64..10,
        ) {
            let mut net = Net { now: 1_000_000 * MS + start * MS / 2, ..Net::default() };
            let (mut lists, mut kernel) = (Lists::default(), Kernel { tick: tick * MS, ..Kernel::default() });
            for (port, kind, wait, cpu, end) in steps {
                net.now += if wait > 15 { wait * MS } else { wait * MS / 20 };
                let known = net.fates.get(&port).copied();
                let standing = match (known, kind) {
                    (None, _) => Standing::Begins,
                    (Some(_), 0..=4) => Standing::Assured,
                    _ => Standing::Confirmed,
                };
                let visit = net.visit(port, standing);
                let theirs = kernel.count(&visit, &net, cpu);
                let ours = lists.count(KEY, &visit, &mut net);
                prop_assert!(
                    ours.least <= theirs && ours.most.is_none_or(|most| theirs <= most),
                    "{theirs} is not in {ours:?}"
                );
                match end {
                    0 => drop(net.fates.insert(port, Fate::Closed(0))),
                    1 => drop(net.fates.remove(&port)),
                    _ if known.is_none() => {
                        net.fates.insert(port, Fate::Living(port.into(), 0));
                    }
                    _ => {}
                }
            }
        }
    }
}
