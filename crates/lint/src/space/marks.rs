//! The order of a mark's bits: rules test marks under masks, and bits that many masks have come first, so that what a rule
//! tests is a prefix, and a region few ranges.

use rules::predicate::{Field, Predicate};

/// Bits of a mark.
const BITS: usize = 32;

/// Places of bits, counted from the least of a mark, from the first level on.
#[derive(Debug, Clone)]
pub(crate) struct Marks([u32; BITS]);

impl Marks {
    /// The order for these tests.
    pub(crate) fn of<'p>(predicates: impl Iterator<Item = &'p Predicate>) -> Self {
        let mut masks = Vec::new();
        predicates.for_each(|one| note_masks(one, &mut masks));
        masks.sort_unstable();
        masks.dedup();
        let mut order: [u32; BITS] = std::array::from_fn(|place| (BITS - 1 - place) as u32);
        order.sort_by_key(|bit| {
            std::cmp::Reverse(masks.iter().filter(|mask| *mask >> bit & 1 == 1).count())
        });
        Self(order)
    }

    /// A mark, or a mask, in this order.
    pub(crate) fn packed(&self, mark: u128) -> u128 {
        self.0.iter().fold(0, |packed, bit| packed << 1 | (mark >> bit & 1))
    }

    /// The other way round.
    pub(crate) fn unpacked(&self, packed: u128) -> u128 {
        let bits = self.0.iter().enumerate();
        bits.fold(0, |mark, (place, bit)| mark | (packed >> (BITS - 1 - place) & 1) << bit)
    }

    /// How many levels after the first one of a mark a bit of it is.
    pub(crate) fn level(&self, bit: u32) -> u32 {
        self.0.iter().position(|one| *one == bit).unwrap_or(0) as u32
    }
}

fn note_masks(predicate: &Predicate, to: &mut Vec<u128>) {
    match predicate {
        Predicate::All(several) | Predicate::Any(several) => {
            several.iter().for_each(|one| note_masks(one, to));
        }
        Predicate::Not(one) => note_masks(one, to),
        Predicate::Masked { field: Field::Mark | Field::ConnMark, mask, .. } => to.push(*mask),
        _ => {}
    }
}

/// A range of numbers as values under masks, in order.
pub(crate) fn cubes(low: u128, high: u128, bits: u32) -> Vec<(u128, u128)> {
    let full = if bits >= 128 { u128::MAX } else { (1 << bits) - 1 };
    let mut found = Vec::new();
    let mut next = Some(low);
    while let Some(start) = next.filter(|start| *start <= high) {
        let mut free = start.trailing_zeros().min(bits);
        let last = |free: u32| start | if free >= 128 { u128::MAX } else { (1 << free) - 1 };
        while last(free) > high {
            free -= 1;
        }
        found.push((start, full & !(last(free) ^ start)));
        next = last(free).checked_add(1);
    }
    found
}
