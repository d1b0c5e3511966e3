//! A stream that several threads make at a time, packet for packet the one that one thread makes.
//!
//! The generator cannot be jumped by arithmetic. Its scrambling is linear in the bits of the state, but each draw then adds
//! one, whose carry is not; and how many draws a packet takes depends on what is drawn. So it is walked through once, and
//! what it is like where each part begins is kept: from there any thread makes the part, as often as wanted.

use engines::Packet;

use super::Stream;

/// Generators where the parts of a stream begin.
#[derive(Debug)]
pub struct Parts {
    begins: Vec<Stream>,
    each: usize,
    packets: usize,
}

impl Parts {
    /// Cuts this number of packets of a stream, whose warm-up was taken, in parts of `each`, at least one.
    #[must_use]
    pub fn new(stream: &Stream, packets: usize, each: usize) -> Self {
        let (mut stream, each) = (stream.clone(), each.max(1));
        let begins = (0..packets.div_ceil(each)).map(|_| {
            let begin = stream.clone();
            stream.skip(each);
            begin
        });
        Self { begins: begins.collect(), each, packets }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.begins.len()
    }

    /// The packets of a part; none of one that is not there.
    #[must_use]
    pub fn part(&self, at: usize) -> Vec<Packet<u32>> {
        let Some(begin) = self.begins.get(at) else { return Vec::new() };
        let rest = self.packets - at * self.each;
        begin.clone().packets().take(rest.min(self.each)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{PRESETS, Preset, Variant, WarmUp};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn parts_in_any_order_are_the_stream(
            (variant, preset) in (0..4usize, 0..8usize),
            (packets, each) in (0..5_000usize, 1..900usize),
        ) {
            let preset = Preset { addresses_log: 9, trains_log: 5, ..PRESETS[preset] };
            let mut stream = Stream::new(Variant::ALL[variant], &preset, WarmUp::Mended);
            stream.warm_up().for_each(drop);
            let parts = Parts::new(&stream, packets, each);
            let mut made: Vec<_> = (0..parts.count()).rev().map(|at| parts.part(at)).collect();
            made.reverse();
            let whole: Vec<_> = stream.packets().take(packets).collect();
            prop_assert_eq!(made.concat(), whole);
            prop_assert!(parts.part(parts.count()).is_empty());
        }
    }
}
