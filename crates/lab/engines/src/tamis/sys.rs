//! Asks the processor for a word's cache line before its use, to read or to write it.
//!
//! Contract: hints. Nothing is read or written, and where there is no such instruction nothing happens.

#![allow(unsafe_code)]

use crate::sync::AtomicU64;

/// The word will be read.
#[inline]
pub(super) fn soon_read(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect that a program can see, whatever the address; x86_64 has SSE.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast()) };
    }
}

/// The word will be written.
#[inline]
pub(super) fn soon_write(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: as above; a processor without PREFETCHW takes it for a no-op.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_ref(word).cast()) };
    }
}
