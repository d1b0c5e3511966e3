//! The work of a permitted packet: steps of a linear congruence, 16 bits of the result.
//!
//! A compiler sees through the plain loop (it composes steps), and so can we: how much work a step is has to
//! be said. [`honest`] takes every step, [`jump_ahead`] computes the same in a number of steps that grows
//! with the logarithm.

use std::hint::black_box;

use engines::Body;

const MULTIPLIER: u64 = 25_214_903_917;
const INCREMENT: u64 = 11;

/// Every step, none composed with another.
#[must_use]
pub fn honest(body: Body) -> u16 {
    let mut state = u64::from(body.seed);
    for _ in 0..body.iterations {
        state = black_box(state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT));
    }
    // Reducing modulo 2^48 at the end gives the same bits.
    (state >> 12) as u16
}

/// The same by squaring the step.
#[must_use]
pub fn jump_ahead(body: Body) -> u16 {
    let mut state = u64::from(body.seed);
    let (mut factor, mut term) = (MULTIPLIER, INCREMENT);
    let mut left = body.iterations;
    while left > 0 {
        if left & 1 == 1 {
            state = state.wrapping_mul(factor).wrapping_add(term);
        }
        term = term.wrapping_mul(factor.wrapping_add(1));
        factor = factor.wrapping_mul(factor);
        left >>= 1;
    }
    (state >> 12) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_give_the_same() {
        for iterations in [0, 1, 2, 3, 7, 8, 255, 10_000, 65_537] {
            for seed in [0, 1, 59_009, (1 << 30) - 1] {
                let body = Body { iterations, seed };
                assert_eq!(honest(body), jump_ahead(body), "{body:?}");
                // As defined: the state is reduced in every step.
                let step = |state| (state * u128::from(MULTIPLIER) + 11) % (1 << 48);
                let state = (0..iterations).fold(u128::from(seed), |state, _| step(state));
                assert_eq!(u128::from(honest(body)), (state >> 12) & 0xffff);
            }
        }
    }
}
