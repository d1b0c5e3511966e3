//! Rulesets from the wild with one rule changed: regions hold the packets that get another verdict, and no other.

use std::collections::BTreeMap;
use std::sync::Arc;

use lint::{Differences, Part, Preferred, Region, Sample, Space, diff, whole_walk};
use rules::model::{Action, Counters, Ruleset};
use rules::predicate::Predicate;
use rules::save::{LoadOptions, load, print_ruleset};

use super::wild::rulesets;

/// Numbers that a seed begins.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// Table, chain and number of a rule.
type Place = (usize, usize, usize);

/// A ruleset with a rule taken out, exchanged with the next one, put first, or with the contrary verdict.
fn edited(old: &Ruleset, numbers: &mut Numbers) -> Option<(Ruleset, Place)> {
    let text = print_ruleset(old, false, |_, _, _| Counters::default());
    let options = LoadOptions { family: Some(old.family), ..LoadOptions::default() };
    let mut new = load(&text, &options).expect("rules that were loaded").ruleset;
    let chains: Vec<(usize, usize)> = (0..new.tables.len())
        .flat_map(|table| (0..new.tables[table].chains.len()).map(move |chain| (table, chain)))
        .filter(|(table, chain)| !old.tables[*table].chains[*chain].rules.is_empty())
        .collect();
    let (table, chain) = *chains.get(numbers.below(chains.len()))?;
    let rules = &mut new.tables[table].chains[chain].rules;
    let at = numbers.below(rules.len());
    match numbers.below(4) {
        0 => _ = rules.remove(at),
        1 => {
            let next = (at + 1) % rules.len();
            rules.swap(at, next);
        }
        2 => {
            let rule = rules.remove(at);
            rules.insert(0, rule);
        }
        _ => {
            let rule = Arc::make_mut(&mut rules[at]);
            rule.action = match rule.action {
                Action::Accept => Action::Drop,
                Action::Drop => Action::Accept,
                _ => return None,
            };
        }
    }
    Some((new, (table, chain, at)))
}

/// Where packets are drawn from: what changed rules and regions hold, and anything.
fn aims(
    space: &mut Space,
    rulesets: [&Ruleset; 2],
    place: Place,
    found: &Differences,
) -> Vec<Region> {
    let mut aims = vec![Region::ALL];
    for region in &found.regions {
        aims.push(space.of_piece(&region.piece).expect("room"));
    }
    let (table, chain, at) = place;
    for ruleset in rulesets {
        let rules = &ruleset.tables[table].chains[chain].rules;
        for rule in rules.iter().skip(at).take(1) {
            let header = rule.header.as_ref().and_then(|it| it.predicate(space.family()));
            let tests = rule.matches.iter().filter_map(|used| space.predicate_of(used));
            let all = Predicate::All(header.into_iter().chain(tests).collect());
            aims.push(space.of_predicate(&all).expect("room"));
        }
    }
    aims
}

fn holds(space: &mut Space, region: &lint::Difference, sample: &Sample, is_sent: bool) -> bool {
    // What is shown by a packet that the host sends is of those.
    let of_output = region.witness.contains("path=output");
    let says_way = region.piece.fields.iter().any(|(part, _)| *part == Part::Way);
    let way = match region.place.split(' ').next_back() {
        Some("INPUT") => Some(true),
        Some("FORWARD" | "POSTROUTING") if !is_sent => Some(false),
        _ => None,
    };
    if of_output != is_sent || !says_way && way.is_some_and(|way| way != sample.to_host) {
        return false;
    }
    is_of_piece(space, region, sample)
}

/// Of a region whatever its way, which some regions of packets that are sent on do not say.
fn is_of_piece(space: &mut Space, region: &lint::Difference, sample: &Sample) -> bool {
    let piece = space.of_piece(&region.piece).expect("room");
    let one = space.of_sample(sample).expect("room");
    space.diagrams.meet(piece, one)
}

/// What was checked.
#[derive(Debug, Default)]
struct Checked {
    edits: u64,
    different: u64,
    unknown: u64,
    packets: u64,
    inside: u64,
}

fn check(
    old: &Ruleset,
    (new, place): (&Ruleset, Place),
    each: u64,
    checked: &mut Checked,
    name: &str,
) {
    let found = diff(old, new).expect("room");
    checked.edits += 1;
    checked.different += u64::from(!found.regions.is_empty());
    checked.unknown += u64::from(!found.unknown.is_empty());
    let mut space = Space::of(&[old, new]);
    let universes = [space.arriving().expect("room"), space.sent().expect("room")];
    for aim in aims(&mut space, [old, new], place, &found) {
        for (universe, is_sent) in universes.into_iter().zip([false, true]) {
            let from = space.diagrams.and(universe, aim).expect("room");
            for seed in 0..each {
                let preferred = Preferred::drawn(old.family, seed * 31 + 7);
                let Some(sample) = space.sample(from, &preferred) else { break };
                let fates = [old, new].map(|it| whole_walk(&space, it, is_sent, &sample));
                let [Some(before), Some(after)] = fates else { continue };
                checked.packets += 1;
                let is_inside = |region: &&lint::Difference| region.depends.is_empty();
                let certain: Vec<_> = found.regions.iter().filter(is_inside).collect();
                let inside = certain.iter().any(|it| holds(&mut space, it, &sample, is_sent));
                checked.inside += u64::from(inside);
                // What is said of other packets is about packets that others came before.
                let is_of_packet = |it: &&String| !it.contains("any packet that gets to line");
                let may_be = found.more
                    || found.unknown.iter().any(|it| is_of_packet(&it))
                    || found.regions.iter().any(|it| is_of_piece(&mut space, it, &sample));
                let differ = before != after;
                assert!(
                    differ == inside || differ && may_be,
                    "{name}: {before:?} -> {after:?}, inside {inside}: {sample:?}\n{}",
                    found.text()
                );
            }
        }
    }
}

#[test]
fn regions_of_one_changed_rule_hold_what_changes() {
    let full = std::env::var_os("TAMIS_FULL").is_some();
    let (edits, each) = if full { (20, 60) } else { (2, 20) };
    let mut all: BTreeMap<String, Checked> = BTreeMap::new();
    for (name, old) in rulesets() {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ name.len() as u64);
        let checked = all.entry(name.clone()).or_default();
        for _ in 0..edits * 4 {
            if checked.edits >= edits {
                break;
            }
            if let Some((new, place)) = edited(&old, &mut numbers) {
                check(&old, (&new, place), each, checked, &name);
            }
        }
    }
    for (name, checked) in &all {
        println!("{name}: {checked:?}");
    }
}
