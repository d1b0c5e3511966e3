//! [`Form`]: which of the things that rules ask for a table is looked up by.

use crate::layout::code::Asks;

/// Bits of an IPv4 address that tables are looked up by.
const STEPS_V4: [u32; 7] = [32, 28, 24, 20, 16, 8, 0];
/// Bits of an IPv6 address.
const STEPS_V6: [u32; 7] = [128, 64, 56, 48, 32, 16, 0];

/// A protocol, a source port, a destination port, an input and an output interface is asked for.
const PROTOCOL: u8 = 1;
const PORTS: [u8; 2] = [2, 4];
const INTERFACES: [u8; 2] = [8, 16];

/// Bits of the addresses, and what else is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Form {
    /// Bits of source and destination, from the first one on.
    bits: [u32; 2],
    others: u8,
    is_v6: bool,
}

/// The masks of a form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Masks {
    source: [u64; 2],
    destination: [u64; 2],
    others: u8,
    is_v6: bool,
}

impl Form {
    /// The most that a rule may be looked up by.
    pub(super) fn of(asks: &Asks, is_v6: bool) -> Self {
        let bits = [asks.source.mask, asks.destination.mask].map(|mask| whole_bits(mask, is_v6));
        let mut others = if asks.protocol == 0 { 0 } else { PROTOCOL };
        for side in 0..2 {
            others |= if asks.ports[side].is_some() { PORTS[side] } else { 0 };
            others |= if asks.interfaces[side].is_some() { INTERFACES[side] } else { 0 };
        }
        Self { bits, others, is_v6 }
    }

    /// Whether rules of another form may be looked up by this one, too.
    pub(super) fn includes(&self, other: &Self) -> bool {
        self.bits[0] <= other.bits[0]
            && self.bits[1] <= other.bits[1]
            && self.others & !other.others == 0
    }

    /// How much it tells rules apart: the more, the more is looked up by.
    pub(super) fn weight(&self) -> u32 {
        let of_others = 8 * u32::from(self.others & PROTOCOL) + 16 * self.others.count_ones();
        self.bits.iter().sum::<u32>() + of_others
    }

    pub(super) fn masks(&self) -> Masks {
        let [source, destination] = self.bits.map(|bits| mask(bits, self.is_v6));
        Masks { source, destination, others: self.others, is_v6: self.is_v6 }
    }
}

impl Masks {
    /// The hash of what the form is looked up by: equal for a rule and a packet that it may match.
    #[inline]
    pub(super) fn hash(&self, of: &Asks) -> u64 {
        let [source, destination] = [(of.source, self.source), (of.destination, self.destination)]
            .map(|(address, mask)| [address.value[0] & mask[0], address.value[1] & mask[1]]);
        let addresses = match self.is_v6 {
            true => mix(mix(source[0], source[1]), mix(destination[0], destination[1])),
            false => source[0] | destination[0] << 32,
        };
        mix(addresses, self.hash_others(of))
    }

    #[inline]
    fn hash_others(&self, of: &Asks) -> u64 {
        let has = |bit: u8| self.others & bit != 0;
        let mut all = if has(PROTOCOL) { of.protocol } else { 0 };
        for side in 0..2 {
            if has(PORTS[side]) {
                all |= u64::from(of.ports[side].unwrap_or_default()) << (16 + 16 * side);
            }
            if has(INTERFACES[side]) {
                all = mix(all, of.interfaces[side].unwrap_or_default() ^ side as u64);
            }
        }
        all
    }
}

/// The most of the steps that a mask has set from the first bit on.
fn whole_bits(mask: [u64; 2], is_v6: bool) -> u32 {
    let (ones, steps) = match is_v6 {
        true => (bytes(mask).leading_ones(), STEPS_V6),
        false => ((mask[0] as u32).swap_bytes().leading_ones(), STEPS_V4),
    };
    steps.into_iter().find(|step| *step <= ones).unwrap_or(0)
}

/// A mask of the first bits, as words whose first byte is the lowest.
fn mask(bits: u32, is_v6: bool) -> [u64; 2] {
    if is_v6 {
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0).swap_bytes();
        return [mask as u64, (mask >> 64) as u64];
    }
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0).swap_bytes();
    [mask.into(), 0]
}

/// Words whose first byte is the lowest as a number whose first byte is the highest.
fn bytes([low, high]: [u64; 2]) -> u128 {
    (u128::from(low) | u128::from(high) << 64).swap_bytes()
}

/// Two words as one: both halves of their product (as wyhash has it).
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xe703_7ed1_a0b4_28db);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_of_the_first_bits() {
        let v4 = |bits: u32| mask(bits, false)[0].to_le_bytes()[..4].to_vec();
        assert_eq!((v4(0), v4(20)), (vec![0; 4], vec![0xff, 0xff, 0xf0, 0]));
        assert_eq!(mask(32, false), [0xffff_ffff, 0]);
        assert_eq!(mask(128, true), [u64::MAX; 2]);
        assert_eq!(mask(56, true)[0].to_le_bytes(), [255, 255, 255, 255, 255, 255, 255, 0]);
        for bits in [0, 8, 16, 20, 24, 28, 32] {
            assert_eq!(whole_bits(mask(bits, false), false), bits);
        }
        for bits in STEPS_V6 {
            assert_eq!(whole_bits(mask(bits, true), true), bits);
        }
        // What has holes counts up to the first one.
        assert_eq!(whole_bits([0xff00_ffff, 0], false), 16);
    }
}
