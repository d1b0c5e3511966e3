//! The word that an address depends on: PNG, how often it was banned, and the latest change of its ranges.
//!
//! Bits from the lowest: PNG, accept, busy, begin of the range (16), its length (17), bans (28).

/// The word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header(pub(super) u64);

const PNG: u64 = 1;
const ACCEPT: u64 = 2;
const BUSY: u64 = 4;
const BEGIN: u32 = 3;
const LENGTH: u32 = 19;
const BANS: u32 = 36;

impl Header {
    /// An address that was never configured.
    pub(super) const NEW: Self = Self(0);

    /// Whether it may not send.
    #[inline]
    pub(super) fn persona_non_grata(self) -> bool {
        self.0 & PNG != 0
    }

    /// A writer is carrying the latest change into the cells.
    #[inline]
    pub(super) fn is_busy(self) -> bool {
        self.0 & BUSY != 0
    }

    /// What the latest change says of a source: whether it is accepted, if it is in the range.
    #[inline]
    pub(super) fn latest(self, source: u32) -> Option<bool> {
        let begin = (self.0 >> BEGIN) as u32 & 0xffff;
        let length = (self.0 >> LENGTH) as u32 & 0x1ffff;
        (source.wrapping_sub(begin) < length).then_some(self.0 & ACCEPT != 0)
    }

    /// How often the address was banned, modulo 2^28.
    #[inline]
    pub(super) fn bans(self) -> u64 {
        self.0 >> BANS
    }

    /// After a change that is being carried into the cells.
    #[inline]
    pub(super) fn after(self, png: bool, accept: bool, begin: usize, end: usize) -> Self {
        let (begin, length) = if begin < end { (begin, end - begin) } else { (0, 0) };
        let bans = self.bans() + u64::from(png && !self.persona_non_grata());
        Self(
            (u64::from(png) * PNG)
                | (u64::from(accept) * ACCEPT)
                | BUSY
                | ((begin as u64) << BEGIN)
                | ((length as u64) << LENGTH)
                | (bans << BANS),
        )
    }

    /// After the change has been carried into the cells.
    #[inline]
    pub(super) fn done(self) -> Self {
        Self(self.0 & !BUSY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_the_largest_ranges() {
        let header = Header::NEW.after(true, true, 0, 1 << 16);
        assert_eq!((header.latest(0), header.latest(65_535)), (Some(true), Some(true)));
        let header = header.after(true, false, 65_535, 65_536);
        assert_eq!((header.latest(65_534), header.latest(65_535)), (None, Some(false)));
        assert_eq!(header.bans(), 1, "banned once");
        let empty = header.after(false, true, 9, 9);
        assert!((0..65_536).all(|source| empty.latest(source).is_none()));
        assert!(empty.is_busy() && !empty.done().is_busy() && !empty.persona_non_grata());
    }

    #[test]
    fn bans_wrap_without_touching_the_rest() {
        let mut header = Header(u64::MAX << BANS);
        header = header.after(true, false, 3, 5);
        assert_eq!((header.bans(), header.latest(3), header.latest(5)), (0, Some(false), None));
    }
}
