//! Nothing unknown: the walk ends as the naive one does, counter for counter. Something unknown: whatever
//! the truth is, it is among the possible verdicts and between the definite and the possible hits.

use std::collections::BTreeMap;
use std::ops::Range;

use host::Host;
use packet::{Checksums, Link, Mark};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};
use rules::eval::{Alive, Memories, Observer, RuleRef, Verdict, Verdicts, walk};
use rules::model::{Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};
use rules::{Iface, Transit};

use super::made::{IFACES, Packet, Table, packets, tables};
use super::naive::{End, Walk};

/// Completions tried for each packet.
const COMPLETIONS: usize = 12;

/// What is not known about a packet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unknown {
    /// Bytes captured; the rest was on the wire.
    captured: Option<usize>,
    /// Byte ranges that a target may have rewritten.
    forgotten: Vec<Range<usize>>,
    input: bool,
    output: bool,
    /// Bits of the mark.
    mark: u32,
    /// Whether it got here at all.
    entry: bool,
}

/// Bytes that tell where the headers lie: no target rewrites them, so no completion changes them.
const SHAPE: [usize; 6] = [0, 2, 3, 6, 7, 9];

pub(crate) fn unknowns() -> impl Strategy<Value = Unknown> {
    let range = (0..40_usize, 1..9_usize).prop_map(|(start, len)| start..start + len);
    (
        proptest::option::weighted(0.4, 20..40_usize),
        prop::collection::vec(range, 0..4),
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(0), 0..4_u32],
        prop::bool::weighted(0.1),
    )
        .prop_map(|(captured, forgotten, input, output, mark, entry)| Unknown {
            captured,
            forgotten,
            input,
            output,
            mark,
            entry,
        })
}

impl Unknown {
    fn byte(&self, at: usize) -> bool {
        self.captured.is_some_and(|captured| at >= captured)
            || (!SHAPE.contains(&at) && self.forgotten.iter().any(|range| range.contains(&at)))
    }

    /// The packet with something else wherever it is not known. Small values, so that rules match.
    fn completed(&self, packet: &Packet, rng: &mut TestRng) -> Packet {
        let mut other = packet.clone();
        for (at, byte) in other.bytes.iter_mut().enumerate() {
            if self.byte(at) && rng.random_bool(0.7) {
                *byte = [0, 1, 2, 3, 10, 255][rng.random_range(0..6)];
            }
        }
        if self.input {
            other.input = IFACES[rng.random_range(0..IFACES.len())];
        }
        if self.output {
            other.output = IFACES[rng.random_range(0..IFACES.len())];
        }
        other.mark = (other.mark & !self.mark) | (rng.random_range(0..4) & self.mark);
        other
    }
}

/// Definite and possible hits.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    rules: BTreeMap<RuleRef, (u64, u64)>,
    policy: (u64, u64),
}

fn count((definite, maybe): &mut (u64, u64), certain: bool) {
    *(if certain { definite } else { maybe }) += 1;
}

impl Observer for Seen {
    fn hit(&mut self, at: RuleRef, certain: bool, _: &Transit<'_, '_>) {
        count(self.rules.entry(at).or_default(), certain);
    }

    fn policy(&mut self, _: u32, _: u32, certain: bool, _: &Transit<'_, '_>) {
        count(&mut self.policy, certain);
    }
}

pub(crate) fn ruleset(table: &Table) -> Ruleset {
    let text = table.text();
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    load(&text, &options).unwrap_or_else(|error| panic!("{error}\n{text}")).ruleset
}

/// Has a packet walked as far as it is known; `walk` gets it at the hook, and whether it certainly is there.
pub(crate) fn at_hook<T>(
    packet: &Packet,
    unknown: &Unknown,
    walk: impl FnOnce(&mut Transit<'_, '_>, Alive) -> T,
) -> T {
    let mut bytes = packet.bytes.clone();
    let wire = bytes.len();
    bytes.truncate(unknown.captured.unwrap_or(wire));
    let mut parsed = packet::Packet::parse(&mut bytes, wire, Link::Raw, Checksums::Ignore);
    for range in &unknown.forgotten {
        parsed.forget(range.clone());
    }
    let host = Host::default();
    let iface = |name, unknown| if unknown { Iface::Unknown } else { Iface::Named(name) };
    let mut transit = Transit {
        input: iface(packet.input, unknown.input),
        output: iface(packet.output, unknown.output),
        mark: Mark { value: packet.mark & !unknown.mark, unknown: unknown.mark },
        ..Transit::new(&mut parsed, Family::Ipv4, Hook::Forward, &host)
    };
    walk(&mut transit, if unknown.entry { Alive::Maybe } else { Alive::Certain })
}

fn walked(rules: &Ruleset, packet: &Packet, unknown: &Unknown) -> (Verdicts, Seen) {
    let mut seen = Seen::default();
    let verdicts = at_hook(packet, unknown, |transit, entry| {
        walk(rules, 0, transit, entry, &mut Memories::of(rules), &mut seen)
    });
    (verdicts, seen)
}

fn verdict(end: End) -> Verdict {
    match end {
        End::Accept => Verdict::Accept,
        End::Drop => Verdict::Drop,
    }
}

/// Each rule's hits in the naive walk with what the walk under test saw of it.
fn pairs(naive: &Walk<'_, '_>, seen: &Seen) -> Vec<(u64, (u64, u64))> {
    let mut pairs = vec![(naive.policy_hits, seen.policy)];
    for (chain, hits) in naive.hits.iter().enumerate() {
        for (rule, hits) in hits.iter().enumerate() {
            let at = RuleRef { table: 0, chain: chain as u32, rule: rule as u32 };
            pairs.push((*hits, seen.rules.get(&at).copied().unwrap_or_default()));
        }
    }
    pairs
}

fn known_is_exact(mut table: Table, packet: &Packet) -> Result<(), TestCaseError> {
    table.chains.iter_mut().flatten().for_each(|rule| rule.opaque = false);
    let (verdicts, seen) = walked(&ruleset(&table), packet, &Unknown::default());
    let mut never = || unreachable!("no match of which nothing is known");
    let mut naive = Walk::new(&table, packet.clone(), &mut never);
    let end = naive.run();
    let only = verdicts.only().map(|(verdict, _)| verdict);
    prop_assert_eq!(only, Some(verdict(end)), "\n{}", table.text());
    for (hits, seen) in pairs(&naive, &seen) {
        prop_assert_eq!(seen, (hits, 0), "\n{}", table.text());
    }
    Ok(())
}

fn unknown_is_sound(
    table: &Table,
    packet: &Packet,
    unknown: &Unknown,
    rng: &mut TestRng,
) -> Result<(), TestCaseError> {
    let (verdicts, seen) = walked(&ruleset(table), packet, unknown);
    for _ in 0..COMPLETIONS {
        let truth = unknown.completed(packet, rng);
        let mut toss = || rng.random_bool(0.5);
        let mut naive = Walk::new(table, truth.clone(), &mut toss);
        let end = naive.run();
        let text = table.text();
        prop_assert!(verdicts.may_be(verdict(end)), "{end:?} of {truth:?}\n{text}");
        for (hits, (definite, maybe)) in pairs(&naive, &seen) {
            // A packet that never got here hits nothing.
            let least = if unknown.entry { 0 } else { hits };
            prop_assert!(definite <= least, "{definite} > {hits} of {truth:?}\n{text}");
            prop_assert!(hits <= definite + maybe, "{hits} of {truth:?}\n{text}");
        }
    }
    Ok(())
}

pub(crate) fn runner() -> TestRunner {
    // Enough for each change that the tests are meant to catch; a failure is printed with its input.
    TestRunner::new(Config { cases: 3000, failure_persistence: None, ..Config::default() })
}

#[test]
fn a_known_packet_walks_as_in_the_naive_walk() {
    let both = (tables(), packets());
    runner().run(&both, |(table, packet)| known_is_exact(table, &packet)).unwrap();
}

#[test]
fn whatever_is_unknown_every_completion_is_possible() {
    let all = (tables(), packets(), unknowns(), any::<[u8; 32]>());
    let test = |(table, packet, unknown, seed): (Table, Packet, Unknown, [u8; 32])| {
        let mut rng = TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &seed);
        unknown_is_sound(&table, &packet, &unknown, &mut rng)
    };
    runner().run(&all, test).unwrap();
}

/// The tests above would pass if everything were always unknown.
#[test]
fn what_does_not_matter_is_not_unknown() {
    let mut decided = 0;
    let mut runner = TestRunner::deterministic();
    for _ in 0..1000 {
        let all = (tables(), packets(), unknowns());
        let (table, packet, unknown) = all.new_tree(&mut runner).unwrap().current();
        let (verdicts, _) = walked(&ruleset(&table), &packet, &unknown);
        decided += usize::from(verdicts.only().is_some());
    }
    println!("{decided} of 1000 partly unknown packets have one verdict");
    assert!(decided > 400, "only {decided}");
}
