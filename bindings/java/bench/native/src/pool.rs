//! The study's packets: a ring of structs, or its one static struct, in memory that stays where it is.
//!
//! Contract: one thread. Java reads and writes the structs by their addresses, only while no function of this library
//! runs; [`Pool::take`] goes round the ring.

use crate::fields::{self, ALIGNED, ALIGNED_SIZE, COUNT, PACKED, PACKED_SIZE, SIZES};
use crate::frames::Random;

/// The most structs of a burst.
pub const BURST: usize = 256;
const LINE: usize = 64;

/// Structs in a row.
#[derive(Debug)]
pub struct Pool {
    memory: Vec<u8>,
    /// Where the first struct begins, on a cache line.
    start: usize,
    count: usize,
    is_aligned: bool,
    /// The struct that comes next.
    next: usize,
    /// The one that was taken last.
    current: usize,
    burst: Box<[u64; BURST]>,
}

impl Pool {
    /// So many structs, filled with the same noise every time.
    #[must_use]
    pub fn new(count: usize, is_aligned: bool) -> Self {
        let size = if is_aligned { ALIGNED_SIZE } else { PACKED_SIZE };
        let memory = vec![0; count.max(1) * size + LINE];
        let start = memory.as_ptr().align_offset(LINE);
        let burst = Box::new([0; BURST]);
        let mut pool =
            Self { memory, start, count: count.max(1), is_aligned, next: 0, current: 0, burst };
        pool.fill();
        pool
    }

    fn fill(&mut self) {
        let mut random = Random::new(1);
        for index in 0..self.count {
            for (offset, size) in self.offsets().iter().zip(SIZES) {
                let at = self.at(index) + offset;
                self.memory[at..at + size].copy_from_slice(&random.word().to_le_bytes()[..size]);
            }
        }
    }

    fn offsets(&self) -> &'static [usize; COUNT] {
        if self.is_aligned { &ALIGNED } else { &PACKED }
    }

    /// Bytes of a struct.
    #[must_use]
    pub fn size(&self) -> usize {
        if self.is_aligned { ALIGNED_SIZE } else { PACKED_SIZE }
    }

    fn at(&self, index: usize) -> usize {
        self.start + index * self.size()
    }

    /// The address of the first struct, and the bytes of all.
    pub fn whole(&mut self) -> (*mut u8, usize) {
        (self.memory[self.start..].as_mut_ptr(), self.count * self.size())
    }

    /// The bytes of the next struct of the ring, which is the current one from now on.
    #[inline]
    pub fn take(&mut self) -> &mut [u8] {
        self.current = self.next;
        self.next = if self.next + 1 == self.count { 0 } else { self.next + 1 };
        self.current()
    }

    /// The bytes of the struct that was taken last.
    #[inline]
    pub fn current(&mut self) -> &mut [u8] {
        let (at, size) = (self.at(self.current), self.size());
        &mut self.memory[at..at + size]
    }

    /// Takes up to `most` structs at once; how many.
    #[inline]
    pub fn poll(&mut self, most: usize) -> usize {
        let taken = most.min(BURST);
        for index in 0..taken {
            self.burst[index] = self.take().as_mut_ptr() as u64;
        }
        taken
    }

    /// Where [`Pool::poll`] leaves the addresses of structs.
    #[must_use]
    pub fn burst(&self) -> *const u64 {
        self.burst.as_ptr()
    }

    /// The job in Rust, on so many structs; what all their fields added up to.
    pub fn floor(&mut self, packets: u64) -> u64 {
        if self.is_aligned {
            self.run::<ALIGNED_SIZE>(packets, &ALIGNED)
        } else {
            self.run::<PACKED_SIZE>(packets, &PACKED)
        }
    }

    #[inline(always)]
    fn run<const SIZE: usize>(&mut self, packets: u64, offsets: &[usize; COUNT]) -> u64 {
        let (structs, _) = self.memory[self.start..].as_chunks_mut::<SIZE>();
        let structs = &mut structs[..self.count];
        let (mut sum, mut left) = (0u64, packets);
        while left > 0 {
            let ring = &mut structs[self.next..];
            let ring = if left < ring.len() as u64 { &mut ring[..left as usize] } else { ring };
            left -= ring.len() as u64;
            self.next = (self.next + ring.len()) % self.count;
            for one in ring {
                sum = sum.wrapping_add(fields::change(one, offsets));
            }
        }
        sum
    }

    /// FNV-1a of all fields in their order: the same for both layouts, and of every byte of packed structs.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let fields = (0..self.count).flat_map(|index| {
            let begin = self.at(index);
            (0..COUNT).map(move |field| (begin + self.offsets()[field], SIZES[field]))
        });
        let bytes = fields.flat_map(|(at, size)| &self.memory[at..at + size]);
        bytes.fold(FNV_OFFSET, |hash, byte| fnv(hash, *byte))
    }
}

/// Where FNV-1a begins.
pub const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a with one byte more.
#[must_use]
pub fn fnv(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ring as it is described: one struct after the other, by way of `take`.
    fn one_by_one(pool: &mut Pool, packets: u64) -> u64 {
        let offsets = pool.offsets();
        (0..packets).fold(0, |sum: u64, _| {
            let bytes = pool.take();
            sum.wrapping_add(match bytes.len() {
                PACKED_SIZE => fields::change::<PACKED_SIZE>(bytes.try_into().unwrap(), offsets),
                _ => fields::change::<ALIGNED_SIZE>(bytes.try_into().unwrap(), offsets),
            })
        })
    }

    #[test]
    fn the_floor_does_what_is_done_struct_by_struct_in_both_layouts() {
        for count in [1, 7, 1024] {
            let mut slow = Pool::new(count, false);
            let before = slow.hash();
            let sum = one_by_one(&mut slow, 2500).wrapping_add(one_by_one(&mut slow, 3));
            for is_aligned in [false, true] {
                let mut fast = Pool::new(count, is_aligned);
                assert_eq!(fast.hash(), before);
                assert_eq!(fast.floor(2500).wrapping_add(fast.floor(3)), sum);
                assert_eq!(fast.hash(), slow.hash());
            }
            assert_ne!(before, slow.hash());
        }
    }

    #[test]
    fn a_burst_has_the_addresses_of_the_structs_in_turn() {
        let mut pool = Pool::new(3, false);
        assert_eq!(pool.poll(1000), BURST);
        let first = pool.whole().0 as u64;
        let expected: Vec<u64> = (0..4).map(|index| first + index % 3 * 56).collect();
        assert_eq!(pool.burst[..4], expected);
    }
}
