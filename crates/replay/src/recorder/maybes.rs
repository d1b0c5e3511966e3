//! [`Maybes`]: for each rule that packets may have hit, the first of them and what leaves that open.
//!
//! Contract: workers that count parts of the packets find what one would, whichever counts which; no memory is taken where all is
//! certain.

use dataplane::Why;

/// The first maybe hit of each rule of each file, by its slot.
#[derive(Debug, Default)]
pub(crate) struct Maybes(Vec<Vec<Option<MaybeHit>>>);

/// The first packet that may have hit a rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaybeHit {
    /// Number of the packet.
    pub(crate) number: u64,
    /// What leaves the hit open; `None` for a copy that may not exist.
    pub(crate) why: Option<Why>,
}

impl Maybes {
    /// Whether no packet before this one is known to have perhaps hit the rule of a slot.
    pub(super) fn lacks(&self, (file, slot): (usize, u32), number: u64) -> bool {
        self.of(file, slot).is_none_or(|hit| number < hit.number)
    }

    /// Notes a packet that may have hit the rule of a slot, if it is the first.
    pub(super) fn add(&mut self, (file, slot): (usize, u32), hit: MaybeHit) {
        if !self.lacks((file, slot), hit.number) {
            return;
        }
        if self.0.len() <= file {
            self.0.resize_with(file + 1, Vec::new);
        }
        let rules = &mut self.0[file];
        if rules.len() <= slot as usize {
            rules.resize(slot as usize + 1, None);
        }
        rules[slot as usize] = Some(hit);
    }

    /// The first packet that may have hit a rule, if any.
    pub(crate) fn of(&self, file: usize, slot: u32) -> Option<&MaybeHit> {
        self.0.get(file)?.get(slot as usize)?.as_ref()
    }

    /// Adds what others found.
    pub(super) fn merge(&mut self, other: Self) {
        for (file, rules) in other.0.into_iter().enumerate() {
            for (slot, hit) in (0..).zip(rules) {
                hit.into_iter().for_each(|hit| self.add((file, slot), hit));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_find_is_what_one_would_have() {
        for workers in 2..5 {
            let mut all = Maybes::default();
            for worker in (0..workers).rev() {
                let mut own = Maybes::default();
                for number in (7..=500).filter(|number| number % workers == worker) {
                    own.add((1, 3), MaybeHit { number, why: Some(Why::Foreign(number as u16)) });
                }
                all.merge(own);
            }
            let hit = all.of(1, 3).unwrap();
            assert_eq!((hit.number, hit.why), (7, Some(Why::Foreign(7))));
            assert!(all.of(1, 2).is_none() && all.of(0, 3).is_none());
            assert!(all.lacks((1, 3), 6) && !all.lacks((1, 3), 7));
        }
    }
}
