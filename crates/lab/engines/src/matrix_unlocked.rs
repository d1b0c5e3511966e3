//! `matrix_unlocked`: one thread's matrix in one piece, without a lock: the roofline that others are
//! measured against.
//!
//! Concurrency: none; it belongs to one thread.

use super::matrix::{MOST, fitting};
use crate::span::{masks, within};
use crate::{Address, Config, Decide, TooLarge};

/// Bits of all pairs, without a lock.
#[derive(Debug)]
pub struct MatrixUnlocked {
    addresses: usize,
    default: bool,
    /// Words of one column.
    words: usize,
    png: Box<[bool]>,
    bits: Box<[u64]>,
}

impl MatrixUnlocked {
    /// A matrix of the addresses below `addresses`, accepting all sources or none.
    ///
    /// # Errors
    /// The space is not bounded, or larger than [`MOST`].
    pub fn new(addresses: Option<usize>, default: bool) -> Result<Self, TooLarge> {
        let addresses = fitting(addresses, MOST)?;
        let words = addresses.div_ceil(64);
        let word = if default { u64::MAX } else { 0 };
        Ok(Self {
            addresses,
            default,
            words,
            png: vec![false; addresses].into(),
            bits: vec![word; words * addresses].into(),
        })
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.png.len() + self.bits.len() * 8
    }

    #[inline]
    fn number<A: Address>(&self, address: A) -> Option<usize> {
        address.index().filter(|&index| index < self.addresses)
    }
}

impl<A: Address> Decide<A> for MatrixUnlocked {
    #[inline]
    fn decide(&mut self, source: A, destination: A) -> bool {
        let from = self.number(source);
        let png = from.is_some_and(|from| self.png[from]);
        let accepts = match (from, self.number(destination)) {
            (Some(from), Some(to)) => {
                self.bits[to * self.words + from / 64] >> (from % 64) & 1 == 1
            }
            _ => self.default,
        };
        !png & accepts
    }

    #[inline]
    fn update(&mut self, config: &Config<A>) {
        let Some(at) = self.number(config.address) else { return };
        self.png[at] = config.persona_non_grata;
        let (begin, end) = within(config, self.addresses);
        for (word, mask) in masks(begin, end) {
            let bits = &mut self.bits[at * self.words + word];
            *bits = if config.accept { *bits | mask } else { *bits & !mask };
        }
    }
}
