//! `rules.allocs` of a walk is 0: no layout allocates while it is walked.
//!
//! The crate that counts puts itself in front of the allocator of this test, and counts for each thread apart.

use lab::bench::rules::fan::SMALL;
use lab::bench::rules::workload::{Linear, at_hook};
use lab::layouts::{Kind, Laid};
use rules::Transit;
use rules::eval::{Alive, Memories, Observer};
use rules::model::{Family, Hook, Ruleset};

/// One worker's counters.
struct Local(Vec<u64>);

impl Observer for Local {
    const SEES_RULES: bool = false;

    fn counted(&mut self, slot: u32, certain: bool, _: &Transit<'_, '_>) {
        self.0[slot as usize] += u64::from(certain);
    }
}

/// Allocations of a packet's walk, and the rules it hit.
fn walked(laid: &Laid, ruleset: &Ruleset, hook: Hook, packet: &[u8]) -> (u64, u64) {
    let rules = ruleset.tables[0].chains.iter().map(|chain| chain.rules.len()).sum();
    let mut counters = Local(vec![0; rules]);
    let mut memories = Memories::of(ruleset);
    at_hook(packet, ruleset.family, hook, |transit| {
        let counted = allocation_counter::measure(|| {
            laid.walk(0, transit, Alive::Certain, &mut memories, &mut counters);
        });
        (counted.count_total, counters.0.iter().sum())
    })
}

#[test]
fn the_counter_counts() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1_u8])));
    assert_eq!(counted.count_total, 1);
}

#[test]
fn walks_do_not_allocate() {
    for family in [Family::Ipv4, Family::Ipv6] {
        for is_match in [true, false] {
            let linear = Linear { family, is_match, chains: 5, rules: 2000 };
            let ruleset = linear.ruleset();
            for kind in Kind::ALL {
                let laid = Laid::encode(kind, &ruleset.tables[0], family);
                let hits = if is_match { 10_005 } else { 5 };
                let found = walked(&laid, &ruleset, Hook::Input, &linear.packet());
                assert_eq!(found, (0, hits), "{} {linear:?}", kind.name());
            }
        }
    }
}

#[test]
fn walks_of_a_fanned_tree_do_not_allocate() {
    let tree = SMALL.tree();
    let ruleset = tree.ruleset();
    let packets = tree.packets(SMALL.run);
    for kind in Kind::ALL {
        let laid = Laid::encode(kind, &ruleset.tables[0], Family::Ipv4);
        for packet in &packets[..20] {
            let (allocations, hits) = walked(&laid, &ruleset, Hook::Forward, packet);
            assert_eq!(allocations, 0, "{}", kind.name());
            assert!(hits > 1);
        }
    }
}
