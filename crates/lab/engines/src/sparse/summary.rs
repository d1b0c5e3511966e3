//! The word that sums an address up, so that most decisions need nothing else of it.
//!
//! Bits from the lowest: busy, PNG, whether R has the highest sources, from where on it has all of them or none (25), bans
//! (36).

use crate::Address;

/// The word. Of an address that a writer is busy with it says nothing but that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Summary(pub(super) u64);

const BUSY: u64 = 1;
const PNG: u64 = 2;
const HIGHEST: u64 = 4;
const FROM: u32 = 3;
const FROM_BITS: u32 = 25;
const BANS: u32 = FROM + FROM_BITS;

impl Summary {
    /// An address that no config packet named yet.
    pub(super) const fn new(default: bool) -> Self {
        Self(if default { HIGHEST } else { 0 })
    }

    /// PNG, the bans so far, and of R the last place where membership changes and what comes after it.
    pub(super) fn of<A: Address>(png: bool, bans: u64, (last, highest): (Option<A>, bool)) -> Self {
        let from = last.map_or(0, |last| u64::from(last.high()) + 1);
        let flags = u64::from(png) * PNG + u64::from(highest) * HIGHEST;
        Self(flags | (from << FROM) | (bans << BANS))
    }

    /// A writer is busy with the address: its entry counts.
    #[inline]
    pub(super) fn is_busy(self) -> bool {
        self.0 & BUSY != 0
    }

    /// The same address with a writer.
    pub(super) fn busy(self) -> Self {
        Self(self.0 | BUSY)
    }

    /// Whether the address may not send.
    #[inline]
    pub(super) fn persona_non_grata(self) -> bool {
        self.0 & PNG != 0
    }

    /// How often it was banned, as far as the word counts.
    #[inline]
    pub(super) fn bans(self) -> u64 {
        self.0 >> BANS
    }

    /// Whether R has a source, and all above it; `None` where the word does not tell.
    #[inline]
    pub(super) fn accepts<A: Address>(self, source: A) -> Option<bool> {
        let from = (self.0 >> FROM) as u32 & ((1 << FROM_BITS) - 1);
        (!self.is_busy() && source.high() >= from).then_some(self.0 & HIGHEST != 0)
    }
}

/// A count of bans as far as a word has it.
#[inline]
pub(super) fn counted(bans: u64) -> u64 {
    bans << BANS >> BANS
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tells_of_the_sources_above_the_last_flip_alone() {
        let summary = Summary::of(true, 7, (Some(0x1234_u32), false));
        assert!(summary.persona_non_grata() && !summary.is_busy());
        assert_eq!(summary.bans(), 7);
        assert_eq!(summary.accepts(0x12ff_u32), None, "in the same 256 addresses");
        assert_eq!(summary.accepts(0x1300_u32), Some(false));
        assert_eq!(summary.busy().accepts(0x1300_u32), None);
        let highest = Summary::of(false, 0, (Some(u32::MAX), true));
        assert_eq!(highest.accepts(u32::MAX), None);
        assert_eq!(Summary::of(false, 0, (None::<u32>, true)), Summary::new(true));
        assert_eq!(Summary::new(true).accepts(0_u32), Some(true));
        assert_eq!(Summary::of(false, 1, (Some(5_u128), true)).accepts(1_u128 << 104), Some(true));
    }

    #[test]
    fn bans_wrap_without_touching_the_rest() {
        let summary = Summary::of(true, u64::MAX, (Some(0_u32), true));
        assert_eq!((summary.bans(), counted(u64::MAX)), (u64::MAX >> BANS, u64::MAX >> BANS));
        assert_eq!(summary.accepts(0x100_u32), Some(true));
    }
}
