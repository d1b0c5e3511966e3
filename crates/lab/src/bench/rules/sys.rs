//! Asks the processor for its time-stamp counter.
//!
//! Contract: reads a register. Its ticks have one rate whatever the clock of the core, and it is read in no order with what
//! stands around it in the program.

#![allow(unsafe_code)]

/// The counter; none where this program does not know one.
#[inline]
pub(super) fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86_64 has the instruction, which reads a register and nothing else.
        Some(unsafe { std::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}
