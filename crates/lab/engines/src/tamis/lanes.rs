//! 2^BITS sources share a cell of 64 bits: the places where membership changes, each in a lane of its own.
//!
//! With sets of a few hundred runs in tens of thousands of addresses, a run of 256 or 512 sources changes
//! membership two or three times. A cell has 63 / (BITS + 1) lanes of BITS + 1 bits, the highest of each a
//! guard. Membership of source x is the cell's base bit, flipped for each lane whose place is at most x:
//! one multiplication, one subtraction (the guards keep lanes from borrowing) and a count of bits. An
//! unused lane has place 0 and always flips, which the base bit allows for. A cell with more changes than
//! lanes becomes the number of a page of plain bits, and stays it: pages are never freed, so a reader may
//! hold a number for as long as it likes, and the pages of a space cannot outgrow its matrix.

use super::dense::Cells;
use super::sys;
use crate::arena::Arena;
use crate::span::masks;
use crate::sync::{AtomicU64, Ordering};

/// A cell for each destination and 2^`BITS` sources, in rows by destination.
#[derive(Debug)]
pub(crate) struct Lanes<const BITS: u32> {
    /// Cells of one destination.
    stride: usize,
    cells: Box<[AtomicU64]>,
    pages: Arena<Page>,
}

/// Plain bits, for cells that outgrew their lanes.
#[derive(Debug)]
struct Page([AtomicU64; 8]);

impl Default for Page {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Membership in one cell, unpacked: of its first source, and where it changes, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    first: bool,
    places: [u16; Self::MOST],
    len: usize,
}

impl Run {
    /// The most lanes of a cell, and two that a change may add.
    const MOST: usize = 9;

    fn has(&self, source: usize) -> bool {
        let flips = self.places[..self.len].iter().filter(|&&at| usize::from(at) <= source);
        self.first ^ (flips.count() % 2 == 1)
    }

    fn push(&mut self, place: usize) {
        self.places[self.len] = place as u16;
        self.len += 1;
    }

    /// With the sources from `begin` to before `end` as members, or not.
    fn with(&self, begin: usize, end: usize, member: bool, width: usize) -> Self {
        let first = if begin == 0 { member } else { self.first };
        let mut new = Self { first, places: [0; Self::MOST], len: 0 };
        let places = || self.places[..self.len].iter().map(|&at| usize::from(at));
        places().filter(|&at| at < begin).for_each(|at| new.push(at));
        if begin > 0 && self.has(begin - 1) != member {
            new.push(begin);
        }
        if end < width && self.has(end) != member {
            new.push(end);
        }
        places().filter(|&at| at > end).for_each(|at| new.push(at));
        new
    }
}

impl<const BITS: u32> Lanes<BITS> {
    const WIDTH: usize = 1 << BITS;
    const LANE: u32 = BITS + 1;
    const COUNT: u32 = 63 / Self::LANE;
    /// The lowest bit of each lane.
    const ONES: u64 = {
        let (mut ones, mut lane) = (0, 0);
        while lane < Self::COUNT {
            ones |= 1 << (lane * Self::LANE);
            lane += 1;
        }
        ones
    };
    const GUARDS: u64 = Self::ONES << BITS;
    const PLACE: u64 = (1 << BITS) - 1;
    /// The guard of the first lane: the cell is the number of a page.
    const PAGE: u64 = 1 << BITS;
    const BASE: u32 = 63;

    #[inline]
    fn of_cell(cell: u64, source: usize) -> bool {
        let places = cell & (Self::ONES * Self::PLACE);
        let reached = ((Self::ONES * source as u64) | Self::GUARDS) - places;
        ((reached & Self::GUARDS).count_ones() as u64 ^ cell >> Self::BASE) & 1 == 1
    }

    fn unpack(cell: u64) -> Run {
        let mut run = Run { first: Self::of_cell(cell, 0), places: [0; Run::MOST], len: 0 };
        for lane in 0..Self::COUNT {
            let place = cell >> (lane * Self::LANE) & Self::PLACE;
            if place != 0 {
                run.push(place as usize);
            }
        }
        run
    }

    /// The cell, if its changes have lanes.
    fn pack(run: &Run) -> Option<u64> {
        if run.len > Self::COUNT as usize {
            return None;
        }
        let lanes = run.places[..run.len].iter().zip(0u32..);
        let cell =
            lanes.fold(0, |cell, (&place, lane)| cell | u64::from(place) << (lane * Self::LANE));
        let unused = Self::COUNT as usize - run.len;
        let base = run.first ^ (unused % 2 == 1);
        Some(cell | u64::from(base) << Self::BASE)
    }

    #[inline]
    fn page_of(&self, cell: u64) -> &Page {
        self.pages.get((cell >> Self::LANE & u64::from(u32::MAX)) as usize)
    }

    /// The number of a new page with the members of a run, as a cell.
    fn page_from(&self, run: &Run) -> u64 {
        let at = self.pages.reserve();
        let page = self.pages.get(at as usize);
        for source in (0..Self::WIDTH).filter(|&source| run.has(source)) {
            let word = &page.0[source / 64];
            word.store(word.load(Ordering::Relaxed) | 1 << (source % 64), Ordering::Relaxed);
        }
        Self::PAGE | u64::from(at) << Self::LANE
    }

    fn set_in(&self, cell: &AtomicU64, begin: usize, end: usize, accept: bool) {
        let old = cell.load(Ordering::Relaxed);
        if old & Self::PAGE != 0 {
            for (word, mask) in masks(begin, end) {
                let word = &self.page_of(old).0[word];
                let old = word.load(Ordering::Relaxed);
                word.store(if accept { old | mask } else { old & !mask }, Ordering::Release);
            }
            return;
        }
        let run = Self::unpack(old).with(begin, end, accept, Self::WIDTH);
        let new = Self::pack(&run).unwrap_or_else(|| self.page_from(&run));
        cell.store(new, Ordering::Release);
    }
}

impl<const BITS: u32> Cells for Lanes<BITS> {
    fn new(addresses: usize, default: bool) -> Self {
        let stride = addresses.div_ceil(Self::WIDTH);
        let run = Run { first: default, places: [0; Run::MOST], len: 0 };
        let cell = Self::pack(&run).unwrap_or(0);
        let cells = (0..stride * addresses).map(|_| AtomicU64::new(cell)).collect();
        Self { stride, cells, pages: Arena::default() }
    }

    #[inline]
    fn has(&self, destination: usize, source: usize) -> bool {
        let at = destination * self.stride + source / Self::WIDTH;
        let (cell, source) = (self.cells[at].load(Ordering::SeqCst), source % Self::WIDTH);
        if cell & Self::PAGE == 0 {
            return Self::of_cell(cell, source);
        }
        let word = self.page_of(cell).0[source / 64].load(Ordering::SeqCst);
        word >> (source % 64) & 1 == 1
    }

    fn set(&self, destination: usize, begin: usize, end: usize, accept: bool) {
        let mut from = begin;
        while from < end {
            let cell = from / Self::WIDTH;
            let start = cell * Self::WIDTH;
            let to = end.min(start + Self::WIDTH);
            let cell = &self.cells[destination * self.stride + cell];
            self.set_in(cell, from - start, to - start, accept);
            from = to;
        }
    }

    fn holds(&self, destination: usize, begin: usize, end: usize, accept: bool) -> bool {
        if begin >= end {
            return true;
        }
        let cell = begin / Self::WIDTH;
        if cell != (end - 1) / Self::WIDTH {
            return false;
        }
        let start = cell * Self::WIDTH;
        let cell = self.cells[destination * self.stride + cell].load(Ordering::SeqCst);
        if cell & Self::PAGE != 0 {
            return false;
        }
        let run = Self::unpack(cell);
        run.with(begin - start, end - start, accept, Self::WIDTH) == run
    }

    #[inline]
    fn soon_has(&self, destination: usize, source: usize) {
        sys::soon_read(&self.cells[destination * self.stride + source / Self::WIDTH]);
    }

    #[inline]
    fn soon_set(&self, destination: usize, begin: usize, end: usize) {
        let at = destination * self.stride;
        for cell in (begin / Self::WIDTH..end.div_ceil(Self::WIDTH)).step_by(8) {
            sys::soon_write(&self.cells[at + cell]);
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.cells) + self.pages.bytes()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Random changes, short and long, against a plain array; small widths make pages soon.
    fn compare<const BITS: u32>(default: bool, changes: &[(usize, usize, bool)]) {
        let addresses = 1100;
        let cells = Lanes::<BITS>::new(addresses, default);
        let mut plain = vec![default; addresses];
        for &(begin, length, accept) in changes {
            let end = (begin + length).min(addresses);
            let held = cells.holds(3, begin, end, accept);
            let same = plain[begin..end].iter().all(|&member| member == accept);
            assert!(!held || same, "a change that changes something is never left out");
            cells.set(3, begin, end, accept);
            plain[begin..end].fill(accept);
        }
        for (source, &member) in plain.iter().enumerate() {
            assert_eq!(cells.has(3, source), member, "source {source}");
            assert_eq!((cells.has(2, source), cells.has(4, source)), (default, default));
        }
    }

    proptest! {
        #[test]
        fn as_a_plain_array(
            default: bool,
            changes in prop::collection::vec((0usize..1100, 0usize..260, any::<bool>()), 0..80),
        ) {
            compare::<8>(default, &changes);
            compare::<9>(default, &changes);
        }
    }

    #[test]
    fn a_run_survives_packing() {
        for cell in [0, 1 << 63, 5 | 1 << 63, 5 | 9 << 10 | 511 << 20] {
            let run = Lanes::<9>::unpack(cell);
            let again = Lanes::<9>::pack(&run).unwrap();
            assert!(
                (0..512).all(|x| Lanes::<9>::of_cell(cell, x) == Lanes::<9>::of_cell(again, x))
            );
            assert!((0..512).all(|x| Lanes::<9>::of_cell(cell, x) == run.has(x)));
        }
    }

    /// Presets 5 to 7 come with 2.6 changes for each cell of 256, preset 8 with 2.1 for each of 512.
    #[test]
    fn an_eighth_and_a_quarter_of_the_matrix() {
        assert_eq!(Lanes::<9>::new(4096, false).bytes(), 4096 * 4096 / 8 / 8);
        assert_eq!(Lanes::<8>::new(4096, false).bytes(), 4096 * 4096 / 8 / 4);
    }
}
