//! [`Draw`]: numbers that a seed decides.
//!
//! Source: SplitMix64, after Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).

/// State of the generator.
#[derive(Clone, Debug)]
pub(super) struct Draw(pub(super) u64);

impl Draw {
    /// Whether something strikes that does so in this many of a million cases.
    pub(super) fn strikes(&mut self, per_million: u32) -> bool {
        self.next() % 1_000_000 < u64::from(per_million)
    }

    /// A number below `limit`; 0 when that is 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % (limit as u64).max(1)) as usize
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
