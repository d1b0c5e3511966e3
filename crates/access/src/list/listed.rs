//! A list as the changes that make it: what a file of bans would say to have the same list.
//!
//! Contract: an empty list has no changes. Each range takes as few blocks as possible, and their order matters: sources
//! that a destination accepts follow sources that it denies. Two equal lists have the same changes.

use super::side::Side;
use super::{Action, Block, Change, List};
use crate::address::Address;
use crate::ranges::RangeSet;

/// How addresses of a family are numbers, and blocks.
struct Of {
    bits: u32,
    block: fn(u128, u128) -> Block,
}

const V4: Of = Of { bits: 32, block: |first, last| Block::V4((first as u32, last as u32)) };
const V6: Of = Of { bits: 128, block: |first, last| Block::V6((first, last)) };

impl List {
    /// The changes that make this list of an empty one.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        of_side(&self.v4, &V4, &mut changes);
        of_side(&self.v6, &V6, &mut changes);
        changes
    }
}

fn of_side<A: Address + Into<u128>>(side: &Side<A>, of: &Of, changes: &mut Vec<Change>) {
    for source in side.banned_runs().flat_map(|run| of.blocks(run)) {
        changes.push(Change { action: Action::Ban, source, destination: None });
    }
    for (range, sources) in side.accepting() {
        let Some(sources) = sources else { continue };
        for destination in of.blocks(range) {
            of_destination(destination, sources, of, changes);
        }
    }
}

/// All sources are denied, and some accepted again, where those are fewer than what is denied one by one.
fn of_destination<A: Address + Into<u128>>(
    destination: Block,
    sources: &RangeSet<A>,
    of: &Of,
    changes: &mut Vec<Change>,
) {
    let destination = Some(destination);
    let denied: Vec<_> = sources.inverse().runs().flat_map(|run| of.blocks(run)).collect();
    let accepted: Vec<_> = sources.runs().flat_map(|run| of.blocks(run)).collect();
    let deny = |source| Change { action: Action::Deny, source, destination };
    if denied.len() <= accepted.len() + 1 {
        changes.extend(denied.into_iter().map(deny));
        return;
    }
    changes.extend(of.blocks((A::LOWEST, None)).map(deny));
    let accept = |source| Change { action: Action::Accept, source, destination };
    changes.extend(accepted.into_iter().map(accept));
}

impl Of {
    /// As few blocks as there can be of a run: from an address on to before another one, or to the highest.
    fn blocks<A: Into<u128>>(&self, (first, end): (A, Option<A>)) -> impl Iterator<Item = Block> {
        let highest = u128::MAX >> (128 - self.bits);
        // A set whose flips begin at the lowest address has a run without any before them.
        let last = end.map_or(Some(highest), |end| end.into().checked_sub(1));
        let (bits, block) = (self.bits, self.block);
        let mut next = last.map(|_| first.into());
        let last = last.unwrap_or(0);
        std::iter::from_fn(move || {
            let first = next?;
            let fits = |free: u32| first | low(free) <= last;
            let most = first.trailing_zeros().min(bits);
            let free = (0..=most).rev().find(|free| fits(*free))?;
            let high = first | low(free);
            next = (high < last).then(|| high + 1);
            Some(block(first, high))
        })
    }
}

/// Returns a number whose lowest `bits` bits are set.
fn low(bits: u32) -> u128 {
    u128::MAX.checked_shr(128 - bits).unwrap_or(0)
}
