//! [`Meeting`] finds, among many regions in a row, the next region that shares a packet with a given one.
//!
//! Contract: it names the places that [`Diagrams::meet`] would, asked region by region, in as many questions as there
//! are answers but for a logarithm. Unions of neighbours say where there is none; unions that find no room are left
//! out.

use crate::diagram::{Diagrams, Region};

/// Regions, or unions, of which one union is made: two to this.
const SHIFT: usize = 5;

/// Regions in a row, and over them unions of ever more.
#[derive(Debug)]
pub(crate) struct Meeting {
    levels: Vec<Vec<Region>>,
}

impl Meeting {
    pub(crate) fn of(diagrams: &mut Diagrams, regions: Vec<Region>) -> Self {
        let mut levels = vec![regions];
        diagrams.within_quarter(|diagrams| {
            while let Some(below) = levels.last().filter(|below| below.len() > 1 << SHIFT) {
                let blocks = below.chunks(1 << SHIFT);
                levels.push(blocks.map(|block| union(diagrams, block)).collect());
            }
        });
        Self { levels }
    }

    /// The first place from `from` on whose region has a packet of `of`.
    pub(crate) fn next(&self, diagrams: &mut Diagrams, from: usize, of: Region) -> Option<usize> {
        let top = self.levels.len() - 1;
        let first = from >> (SHIFT * top);
        (first..self.levels[top].len()).find_map(|at| self.under(diagrams, (top, at), from, of))
    }

    fn under(
        &self,
        diagrams: &mut Diagrams,
        (level, at): (usize, usize),
        from: usize,
        of: Region,
    ) -> Option<usize> {
        let is_before = (at + 1) << (SHIFT * level) <= from;
        if is_before || !diagrams.meet(self.levels[level][at], of) {
            return None;
        }
        let Some(below) = level.checked_sub(1) else { return Some(at) };
        let last = ((at + 1) << SHIFT).min(self.levels[below].len());
        (at << SHIFT..last).find_map(|at| self.under(diagrams, (below, at), from, of))
    }
}

/// All of several regions, or everything where there is no room.
fn union(diagrams: &mut Diagrams, regions: &[Region]) -> Region {
    let all = regions.iter().try_fold(Region::NONE, |all, one| diagrams.or(all, *one));
    all.unwrap_or(Region::ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regions of one or two bits out of twelve levels, the next one drawn from the one before.
    fn regions(diagrams: &mut Diagrams, count: usize) -> Vec<Region> {
        let mut state = 1_u32;
        let mut draw = |most: u32| {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (state >> 16) % most
        };
        let mut bit = |diagrams: &mut Diagrams| {
            let (level, is_set) = (draw(12), draw(2) == 0);
            let (low, high) =
                if is_set { (Region::NONE, Region::ALL) } else { (Region::ALL, Region::NONE) };
            diagrams.choice(level, low, high).unwrap()
        };
        (0..count)
            .map(|_| {
                let all = [bit(diagrams), bit(diagrams), bit(diagrams), bit(diagrams)];
                all.into_iter().fold(Region::ALL, |all, one| diagrams.and(all, one).unwrap())
            })
            .collect()
    }

    #[test]
    fn it_finds_what_asking_each_finds() {
        for (count, most) in [(0, 1 << 20), (1, 1 << 20), (3_000, 1 << 20), (3_000, 500)] {
            let mut diagrams = Diagrams::of_most(1 << 20);
            let all = regions(&mut diagrams, count);
            let asked = regions(&mut diagrams, 40);
            // Where there is no room for unions, each is asked.
            diagrams.limit(most);
            let meeting = Meeting::of(&mut diagrams, all.clone());
            for of in asked {
                let (mut found, mut from) = (Vec::new(), 0);
                while let Some(at) = meeting.next(&mut diagrams, from, of) {
                    found.push(at);
                    from = at + 1;
                }
                let each = (0..count).filter(|at| diagrams.meet(all[*at], of));
                assert_eq!(found, each.collect::<Vec<_>>(), "{count} {most}");
            }
        }
    }
}
