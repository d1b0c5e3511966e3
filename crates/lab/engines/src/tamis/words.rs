//! A bit for each source; 64 share a cell. For spaces whose matrix is small.

use super::dense::Cells;
use super::sys;
use crate::span::masks;
use crate::sync::{AtomicU64, Ordering};

/// A bit for each pair: rows of sources, one row for each destination.
#[derive(Debug)]
pub(crate) struct Words {
    /// Words of one destination.
    stride: usize,
    words: Box<[AtomicU64]>,
}

impl Cells for Words {
    fn new(addresses: usize, default: bool) -> Self {
        let stride = addresses.div_ceil(64);
        let word = if default { u64::MAX } else { 0 };
        let words = (0..stride * addresses).map(|_| AtomicU64::new(word)).collect();
        Self { stride, words }
    }

    #[inline]
    fn has(&self, destination: usize, source: usize) -> bool {
        let word = self.words[destination * self.stride + source / 64].load(Ordering::SeqCst);
        word >> (source % 64) & 1 == 1
    }

    #[inline]
    fn set(&self, destination: usize, begin: usize, end: usize, accept: bool) {
        for (word, mask) in masks(begin, end) {
            let word = &self.words[destination * self.stride + word];
            let old = word.load(Ordering::Relaxed);
            word.store(if accept { old | mask } else { old & !mask }, Ordering::Release);
        }
    }

    #[inline]
    fn holds(&self, destination: usize, begin: usize, end: usize, accept: bool) -> bool {
        if begin >= end {
            return true;
        }
        let mut masks = masks(begin, end);
        let (Some((word, mask)), None) = (masks.next(), masks.next()) else { return false };
        let word = self.words[destination * self.stride + word].load(Ordering::SeqCst);
        word & mask == if accept { mask } else { 0 }
    }

    #[inline]
    fn soon_has(&self, destination: usize, source: usize) {
        sys::soon_read(&self.words[destination * self.stride + source / 64]);
    }

    #[inline]
    fn soon_set(&self, destination: usize, begin: usize, end: usize) {
        let at = destination * self.stride;
        for word in (begin / 64..end.div_ceil(64)).step_by(8) {
            sys::soon_write(&self.words[at + word]);
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}
