//! The exercise's random numbers: a state of 30 bits, always from the same seed.

/// The scrambling of a state, in one of two ways that give the same.
pub trait Mangle: std::fmt::Debug + Send + Sync + 'static {
    /// Scrambles.
    fn mangle(x: u32) -> u32;
}

/// What a set lowest bit adds as it is shifted out.
const FEEDBACK: u32 = 0x38e7_4301;

/// Bit by bit, as it was handed out.
#[derive(Debug, Clone)]
pub struct Bitwise;

impl Mangle for Bitwise {
    fn mangle(x: u32) -> u32 {
        bitwise(x)
    }
}

const fn bitwise(mut x: u32) -> u32 {
    let mut step = 0;
    while step < 31 {
        x = (x >> 1) ^ (FEEDBACK * (x & 1));
        step += 1;
    }
    x
}

/// By four look-ups: each step is linear in the bits of the state, so all of them are.
#[derive(Debug, Clone)]
pub struct Tabled;

const TABLES: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 4 {
        let mut value = 0;
        while value < 256 {
            tables[byte][value] = bitwise((value as u32) << (8 * byte));
            value += 1;
        }
        byte += 1;
    }
    tables
};

impl Mangle for Tabled {
    #[inline]
    fn mangle(x: u32) -> u32 {
        let [a, b, c, d] = x.to_le_bytes();
        TABLES[0][usize::from(a)]
            ^ TABLES[1][usize::from(b)]
            ^ TABLES[2][usize::from(c)]
            ^ TABLES[3][usize::from(d)]
    }
}

/// One stream of random numbers.
#[derive(Debug, Clone)]
pub(super) struct Random<M> {
    state: u32,
    mangle: std::marker::PhantomData<M>,
}

impl<M: Mangle> Random<M> {
    pub(super) fn new() -> Self {
        Self { state: 59_009, mangle: std::marker::PhantomData }
    }

    /// From 1 to 2^30.
    #[inline]
    pub(super) fn next(&mut self) -> u32 {
        self.state = M::mangle(self.state) + 1;
        self.state
    }

    /// From 0 to below `below`.
    #[inline]
    pub(super) fn below(&mut self, below: u32) -> u32 {
        self.next() % below
    }

    /// From 0 to below 1.
    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        f64::from(self.next() & ((1 << 30) - 1)) / f64::from(1 << 30)
    }

    /// At least 1; the mean is `mean` and about a half, since it is rounded up. 20.795 is the logarithm of
    /// 2^30, rounded up. A draw of 2^30 gives the largest number, as the original does.
    #[inline]
    pub(super) fn exponential(&mut self, mean: f64) -> i32 {
        let below = f64::from((1 << 30) - self.next());
        (mean * (20.795 - below.ln())).ceil() as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_scramble_alike() {
        for x in (0..31).map(|bit| 1 << bit).chain((0..1 << 30).step_by(104_729)) {
            assert_eq!(Bitwise::mangle(x), Tabled::mangle(x), "{x}");
        }
    }

    /// Were a draw affine in the bits of the state, draws could be jumped by powers of a matrix.
    #[test]
    fn scrambling_is_linear_and_a_draw_is_not_even_affine() {
        let draw = |state: u32| Tabled::mangle(state) + 1;
        let (mut linear, mut affine) = (true, true);
        let at = |factor: u32, at: u32| at.wrapping_mul(factor) % (1 << 30);
        for (x, y) in (1..2_000).map(|n| (at(104_729, n), at(15_485_863, n))) {
            linear &= Tabled::mangle(x ^ y) == Tabled::mangle(x) ^ Tabled::mangle(y);
            affine &= draw(x ^ y) == draw(x) ^ draw(y) ^ draw(0);
        }
        assert!(linear && !affine);
    }
}
