//! [`Boxes`]: concatenations with intervals.
//!
//! One of the numbers is cut into the pieces between all ends of its intervals, and each piece lists the elements that
//! cover it; these are looked at one by one. The number whose lists are shortest in all is taken.

use super::{Key, Span};

/// Elements of several numbers, some of them intervals.
#[derive(Debug)]
pub(super) struct Boxes {
    /// The number that is cut into pieces.
    field: usize,
    /// Where pieces begin, in order.
    starts: Box<[u128]>,
    /// Where the list of each piece begins in `lists`; one more than pieces.
    bounds: Box<[u32]>,
    /// Elements.
    lists: Box<[u32]>,
    keys: Box<[Key]>,
}

/// Ends of all intervals of a number, and the elements over each piece between them.
fn pieces(keys: &[Key], field: usize) -> (Vec<u128>, Vec<Vec<u32>>) {
    let span = |key: &Key| key.get(field).copied().unwrap_or(Span::one(0));
    let mut starts: Vec<u128> = vec![0];
    for key in keys {
        let Span { low, high } = span(key);
        starts.push(low);
        starts.extend(high.checked_add(1));
    }
    starts.sort_unstable();
    starts.dedup();
    let mut lists = vec![Vec::new(); starts.len()];
    for (element, key) in keys.iter().enumerate() {
        let Span { low, high } = span(key);
        let first = starts.partition_point(|start| *start < low);
        let last = starts.partition_point(|start| *start <= high);
        lists[first..last].iter_mut().for_each(|list| list.push(element as u32));
    }
    (starts, lists)
}

/// How many entries the lists of a number have, without making them.
fn cost(keys: &[Key], field: usize) -> usize {
    let mut starts: Vec<u128> = Vec::new();
    let span = |key: &Key| key.get(field).copied().unwrap_or(Span::one(0));
    for key in keys {
        let Span { low, high } = span(key);
        starts.push(low);
        starts.extend(high.checked_add(1));
    }
    starts.sort_unstable();
    starts.dedup();
    let covered = |key: &Key| {
        let Span { low, high } = span(key);
        let first = starts.partition_point(|start| *start < low);
        starts.partition_point(|start| *start <= high) - first
    };
    keys.iter().map(covered).sum()
}

impl Boxes {
    pub(super) fn new(keys: Vec<Key>) -> Self {
        let fields = keys.first().map_or(1, |key| key.len().max(1));
        let field = (0..fields).min_by_key(|field| cost(&keys, *field)).unwrap_or(0);
        let (starts, lists) = pieces(&keys, field);
        let mut bounds: Vec<u32> = vec![0];
        for list in &lists {
            bounds.push(bounds.last().copied().unwrap_or(0) + list.len() as u32);
        }
        Self {
            field,
            starts: starts.into(),
            bounds: bounds.into(),
            lists: lists.concat().into(),
            keys: keys.into(),
        }
    }

    /// The first element that holds all numbers of a key.
    pub(super) fn find(&self, numbers: &[u128]) -> Option<u32> {
        let number = *numbers.get(self.field)?;
        let piece = self.starts.partition_point(|start| *start <= number).checked_sub(1)?;
        let (from, to) = (*self.bounds.get(piece)?, *self.bounds.get(piece + 1)?);
        let candidates = self.lists.get(from as usize..to as usize)?;
        let holds = |element: &&u32| {
            let key = &self.keys[**element as usize];
            key.iter().zip(numbers).all(|(span, number)| span.holds(*number))
        };
        candidates.iter().find(holds).copied()
    }
}
