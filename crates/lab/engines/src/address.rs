//! What an address has to be for an engine: one of the access list, small enough to number where an engine needs it.

use std::hash::{BuildHasherDefault, Hash, Hasher};

/// An address that engines take: `u32` for the studies, `u128` as for IPv6.
pub trait Address: access::Address + Hash {
    /// Its number, if that fits; engines that lay out a whole space use it.
    fn index(self) -> Option<usize>;

    /// Its highest 24 bits, which order addresses in coarse steps.
    fn high(self) -> u32;

    /// A well-spread number made of it.
    fn spread(self) -> u64;
}

impl Address for u32 {
    #[inline]
    fn index(self) -> Option<usize> {
        usize::try_from(self).ok()
    }

    #[inline]
    fn high(self) -> u32 {
        self >> 8
    }

    #[inline]
    fn spread(self) -> u64 {
        mixed(u64::from(self))
    }
}

impl Address for u128 {
    fn index(self) -> Option<usize> {
        usize::try_from(self).ok()
    }

    fn high(self) -> u32 {
        (self >> 104) as u32
    }

    fn spread(self) -> u64 {
        mixed(self as u64 ^ mixed((self >> 64) as u64))
    }
}

/// The finalizer of SplitMix64: every bit of the input moves every bit of the result.
#[inline]
fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Hashes addresses for the engines' tables. Not keyed: the engines serve the studies, whose
/// addresses nobody chooses to collide; [`access::List`] hashes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread(u64);

/// Builds `Spread` hashers.
pub type Mix = BuildHasherDefault<Spread>;

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = mixed(self.0 ^ value);
    }

    #[inline]
    fn write_u128(&mut self, value: u128) {
        self.0 = mixed(self.0 ^ value.spread());
    }
}
