//! What a listing leaves open, as warnings: elements that `nft -t` left out, and the order of chains of several tables.
//!
//! Source: nft(8), "LIST RULESET"; measured on Linux 6.18: of base chains with one hook and one priority the last
//! registered runs first.

use std::collections::BTreeMap;

use host::foreign::{ForeignChain, ForeignFamily};
use nft::model::Set;
use rules::save::Warning;

use super::lines;
use super::listing::Listing;

/// Bits of [`nft::model::SET_FLAGS`].
const TIMEOUT: u8 = 4;
const DYNAMIC: u8 = 8;

/// Warns of what a listing leaves open.
pub(crate) fn doubts(listing: &Listing) -> Vec<Warning> {
    empty_sets(listing).into_iter().chain(ties(listing)).collect()
}

/// Warns of sets that rules read, that no rule fills, and that have no elements: a terse listing looks like that.
fn empty_sets(listing: &Listing) -> Option<Warning> {
    let is_fixed = |set: &&Set| set.flags & (TIMEOUT | DYNAMIC) == 0;
    let mut empty = listing.ruleset.empty_sets().filter(is_fixed);
    let name = &*empty.next()?.name;
    let what = format!(
        "rules read a set without elements ({name}): nft -t, if that listed it, leaves them out"
    );
    let mut lines = listing.text.lines().zip(1..);
    let line = lines.find(|(line, _)| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("set" | "map")) && words.next() == Some(name)
    });
    Some(Warning { what, line: line.map_or(0, |(_, line)| line), count: 1 + empty.count() as u32 })
}

/// Warns of chains of two tables that act at one hook with one priority: tables are listed in the order in which they were
/// made, but a chain may have been added later.
fn ties(listing: &Listing) -> Vec<Warning> {
    let chains = nft::foreign::chains(&listing.ruleset);
    let mut turns: BTreeMap<_, Vec<&ForeignChain>> = BTreeMap::new();
    for chain in &chains {
        turns.entry((chain.hook.name(), chain.priority)).or_default().push(chain);
    }
    let lines = lines::of_chains(&listing.text);
    let pairs = turns.values().flat_map(|turn| turn.windows(2));
    let tied = pairs.filter(|pair| sees_both(pair[0], pair[1]));
    tied.map(|pair| {
        let [first, second] = [pair[0], pair[1]].map(|chain| {
            (format!("{} {}", chain.family.name(), chain.table), &*chain.name)
        });
        let line = lines.get(&(&*second.0, second.1)).copied().unwrap_or(0);
        let what = format!(
            "chain {} of {} and chain {} of {} have one hook and priority: the latter is taken to come first, as the \
             later table, unless the former was added to its table after that",
            first.1, first.0, second.1, second.0
        );
        Warning { what, line, count: 1 }
    })
    .collect()
}

/// Whether a packet may meet chains of both tables.
fn sees_both(one: &ForeignChain, other: &ForeignChain) -> bool {
    let is_of_ip = |family| matches!(family, ForeignFamily::Ip | ForeignFamily::Ip6);
    let meet = match (one.family, other.family) {
        (ForeignFamily::Inet, family) | (family, ForeignFamily::Inet) => {
            is_of_ip(family) || family == ForeignFamily::Inet
        }
        (one, other) => one == other,
    };
    meet && (one.family, &one.table) != (other.family, &other.table)
}
